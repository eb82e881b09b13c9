//! Formats of names.
//!
//! Each function returns the rules that are violated, none if the text is valid. Matches v1.36
//! apimachinery/pkg/util/validation/validation.go and pkg/api/validation/generic.go. Rules for
//! label keys and values are core's.

use plimsoll_core::object::syntax::{SUBDOMAIN_RULE, check_dns_label, is_dns_subdomain, is_framed};

const UNDERSCORE_SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower \
    case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric \
    character (e.g. 'example.com', regex used for validation is \
    '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const CONFIG_KEY_RULE: &str = "a valid config key must consist of alphanumeric characters, '-', \
    '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
    '[-._a-zA-Z0-9]+')";
const HTTP_HEADER_RULE: &str = "a valid HTTP header must consist of alphanumeric characters or \
    '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
const ENV_NAME_RULE: &str = "a valid environment variable name must consist only of printable \
    ASCII characters other than '='";
const PERCENT_RULE: &str = "a valid percent string must be a numeric string followed by an ending \
    '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/// The format of a kind's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameRule {
    /// DNS subdomain, the rule of most kinds.
    Subdomain,
    /// DNS label.
    Label,
    /// Any path segment, the rule of roles.
    PathSegment,
    /// No rule beyond that for every kind.
    Any,
}

impl NameRule {
    /// The errors of a name.
    pub(super) fn check(self, name: &str) -> Vec<String> {
        match self {
            NameRule::Subdomain => dns_subdomain(name),
            NameRule::Label => dns_label(name),
            NameRule::PathSegment => path_segment(name),
            NameRule::Any => Vec::new(),
        }
    }

    /// The errors of a name prefix; it may end in a dash.
    pub(super) fn check_prefix(self, name: &str) -> Vec<String> {
        match (self, name.strip_suffix('-')) {
            (NameRule::PathSegment, _) => path_segment_characters(name),
            // Upstream replaces the last two characters, not only the dash.
            (_, Some(rest)) if !rest.is_empty() => {
                let mut masked: Vec<char> = rest.chars().collect();
                masked.pop();
                masked.push('a');
                self.check(&masked.into_iter().collect::<String>())
            }
            _ => self.check(name),
        }
    }
}

pub(super) fn dns_subdomain(name: &str) -> Vec<String> {
    broken(name, 253, is_dns_subdomain(name), SUBDOMAIN_RULE)
}

pub(super) fn dns_label(name: &str) -> Vec<String> {
    check_dns_label(name)
}

/// A subdomain whose labels may hold underscores.
pub(super) fn dns_subdomain_with_underscore(name: &str) -> Vec<String> {
    let is_outer = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label);
        is_framed(label, is_outer, |b| is_outer(b) || b == b'-' || b == b'_')
    };
    broken(
        name,
        253,
        name.split('.').all(is_label),
        UNDERSCORE_SUBDOMAIN_RULE,
    )
}

fn broken(name: &str, most: usize, is_right: bool, rule: &str) -> Vec<String> {
    let mut broken = Vec::new();
    if name.len() > most {
        broken.push(at_most(most));
    }
    if !is_right {
        broken.push(rule.to_owned());
    }
    broken
}

fn at_most(characters: usize) -> String {
    format!("must be no more than {characters} characters")
}

/// A key of a ConfigMap or Secret, which becomes a file name.
pub(super) fn config_map_key(key: &str) -> Vec<String> {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    let is_key = !key.is_empty() && key.bytes().all(is_inner);
    let mut broken = broken(key, 253, is_key, CONFIG_KEY_RULE);
    match key {
        "." => broken.push("must not be '.'".to_owned()),
        ".." => broken.push("must not be '..'".to_owned()),
        _ if key.starts_with("..") => broken.push("must not start with '..'".to_owned()),
        _ => {}
    }
    broken
}

pub(super) fn env_var_name(name: &str) -> Vec<String> {
    let mut broken = Vec::new();
    if name.is_empty() {
        broken.push("environment variable name must be non-empty".to_owned());
    }
    if !name.bytes().all(|b| matches!(b, 0x20..=0x7e) && b != b'=') {
        broken.push(ENV_NAME_RULE.to_owned());
    }
    broken
}

pub(super) fn http_header_name(name: &str) -> Vec<String> {
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if is_name {
        Vec::new()
    } else {
        vec![HTTP_HEADER_RULE.to_owned()]
    }
}

pub(super) fn port_number(port: i32) -> Vec<String> {
    let is_port = (1..=65535).contains(&port);
    if is_port {
        Vec::new()
    } else {
        vec!["must be between 1 and 65535, inclusive".to_owned()]
    }
}

pub(super) fn port_name(name: &str) -> Vec<String> {
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let rules = [
        (name.len() <= 15, "must be no more than 15 characters"),
        (
            !name.is_empty() && name.bytes().all(is_inner),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (
            name.bytes().any(|b| b.is_ascii_lowercase()),
            "must contain at least one letter (a-z)",
        ),
        (!name.contains("--"), "must not contain consecutive hyphens"),
        (
            !name.starts_with('-') && !name.ends_with('-'),
            "must not begin or end with a hyphen",
        ),
    ];
    let broken = rules.into_iter().filter(|(holds, _)| !holds);
    broken.map(|(_, rule)| rule.to_owned()).collect()
}

pub(super) fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    let is_percent = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if is_percent {
        Vec::new()
    } else {
        vec![PERCENT_RULE.to_owned()]
    }
}

/// Matches v1.36 apimachinery/pkg/api/validation/path.
fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    path_segment_characters(name)
}

fn path_segment_characters(name: &str) -> Vec<String> {
    let found = ["/", "%"].into_iter().filter(|c| name.contains(c));
    found.map(|c| format!("may not contain '{c}'")).collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_core::object::syntax::DNS_LABEL_RULE;

    use super::*;

    #[test]
    fn dns_labels_and_subdomains_are_distinguished() {
        assert_eq!(dns_label("a.b"), ["must not contain dots"]);
        assert_eq!(dns_label("A"), [DNS_LABEL_RULE]);
        assert_eq!(
            dns_label(&"a".repeat(64)),
            ["must be no more than 63 characters"]
        );
    }

    #[test]
    fn name_prefixes_may_end_in_a_dash() {
        assert!(NameRule::Subdomain.check_prefix("web-").is_empty());
        assert_eq!(NameRule::Subdomain.check_prefix("-"), [SUBDOMAIN_RULE]);
        assert!(NameRule::Subdomain.check_prefix("Web_").len() == 1);
        assert!(NameRule::PathSegment.check_prefix("a:b-").is_empty());
    }

    #[test]
    fn every_rule_of_port_names_is_reported() {
        assert_eq!(
            port_name("a".repeat(16).as_str()),
            ["must be no more than 15 characters"]
        );
        assert_eq!(port_name("-").len(), 2);
        assert!(port_name("http-1").is_empty());
    }

    #[test]
    fn keys_are_file_names() {
        assert_eq!(config_map_key(".."), ["must not be '..'"]);
        assert_eq!(config_map_key("..a"), ["must not start with '..'"]);
        assert_eq!(config_map_key(""), [CONFIG_KEY_RULE]);
    }
}
