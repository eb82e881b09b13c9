//! A report in the Static Analysis Results Interchange Format, which code hosts and editors show
//! beside the lines of a file.
//!
//! The format is SARIF 2.1.0 (OASIS).

use plimsoll_core::lint::{Level, Rule};
use serde_json::{Value, json};

use super::report::{FindingRow, Report};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The report of a program of that version; `home` is where its rules are described.
pub fn sarif(report: &Report, version: &str, home: &str) -> Value {
    let rules = Rule::ALL.into_iter().map(|rule| {
        json!({
            "id": rule.id(),
            "shortDescription": { "text": rule.summary() },
            "fullDescription": { "text": rule.why() },
        })
    });
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "plimsoll check",
                "version": version,
                "informationUri": home,
                "rules": rules.collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": report.findings.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

fn result(finding: &FindingRow) -> Value {
    let index = Rule::ALL.iter().position(|rule| rule.id() == finding.id);
    // What is missing in a file is shown at its beginning.
    let mut region = json!({ "startLine": finding.line.unwrap_or(1) });
    if let Some(column) = finding.column {
        region["startColumn"] = json!(column);
    }
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(&finding.file) },
            "region": region,
        },
    });
    if !finding.path.is_empty() {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": finding.path }]);
    }
    json!({
        "ruleId": finding.id,
        "ruleIndex": index,
        "level": match finding.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Info => "note",
        },
        "message": { "text": finding.text() },
        "locations": [location],
    })
}

/// The name of a file as a URI reference.
fn uri(name: &str) -> String {
    if name == "-" {
        return "stdin".to_owned();
    }
    let name = name.strip_prefix("./").unwrap_or(name);
    let scheme = if name.starts_with('/') { "file://" } else { "" };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let escaped = name.bytes().map(|byte| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    scheme.chars().map(String::from).chain(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_uri_references() {
        assert_eq!(uri("./a b/c.yaml"), "a%20b/c.yaml");
        assert_eq!(uri("/etc/x.yaml"), "file:///etc/x.yaml");
        assert_eq!(uri("ä.yaml"), "%C3%A4.yaml");
    }
}
