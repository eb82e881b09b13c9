//! Reading an EncryptionConfiguration.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plimsoll_core::problem::Problem;
use serde_json::{Map, Value};

use super::provider::{Key, Provider};

const API_VERSION: &str = "apiserver.config.k8s.io/v1";
const KIND: &str = "EncryptionConfiguration";

/// The supported providers.
const SUPPORTED: [&str; 2] = ["aesgcm", "identity"];

/// Providers of upstream that are rejected by name.
const UNSUPPORTED: [&str; 3] = ["aescbc", "kms", "secretbox"];

/// More rules, groups and keys than these are an error.
const MAX_ITEMS: usize = 100;

/// Which resources are encrypted with what.
#[derive(Debug)]
pub(super) struct Rule {
    /// `secrets`, `deployments.apps`, `*.apps`, `*.` or `*.*`.
    resources: Vec<String>,
    pub(super) providers: Vec<Provider>,
}

impl Rule {
    /// Whether the rule matches a resource.
    pub(super) fn matches(&self, group: &str, resource: &str) -> bool {
        self.resources.iter().any(|pattern| {
            let (name, of_group) = pattern.split_once('.').unwrap_or((pattern, ""));
            match (name, of_group) {
                ("*", "*") => true,
                ("*", of_group) => of_group == group,
                _ => (name, of_group) == (resource, group),
            }
        })
    }
}

/// Parses the rules; returns all errors otherwise. Values of secrets are never shown.
pub(super) fn read(text: &str) -> Result<Vec<Rule>, Vec<Problem>> {
    // Without the lines of the file, which may contain a secret.
    let options = serde_saphyr::options! { with_snippet: false };
    let document = serde_saphyr::from_str_with_options::<Value>(text, options);
    let document =
        document.map_err(|_| vec![Problem::internal("", "the file is not YAML or JSON")])?;
    let mut reader = Reader::default();
    let rules = reader.document(&document);
    match reader.problems.is_empty() {
        true => Ok(rules),
        false => Err(reader.problems),
    }
}

#[derive(Default)]
struct Reader {
    problems: Vec<Problem>,
}

impl Reader {
    fn document(&mut self, document: &Value) -> Vec<Rule> {
        let fields = self.fields(document, "", &["apiVersion", "kind", "resources"]);
        for (name, wanted) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            let given = fields.get(name).and_then(Value::as_str).unwrap_or_default();
            if given != wanted {
                self.problems
                    .push(Problem::not_supported(name, given, &[wanted]));
            }
        }
        let items = self.items(&fields, "resources", "");
        let items = items.iter().enumerate();
        items
            .map(|(at, item)| self.rule(item, &format!("resources[{at}]")))
            .collect()
    }

    fn rule(&mut self, item: &Value, path: &str) -> Rule {
        let fields = self.fields(item, path, &["resources", "providers"]);
        let mut resources = Vec::new();
        for (at, name) in self.items(&fields, "resources", path).iter().enumerate() {
            let path = format!("{path}.resources[{at}]");
            match name.as_str() {
                Some(name) if is_resource(name) => resources.push(name.to_owned()),
                Some(name) => {
                    let detail = "expected a resource such as secrets, deployments.apps, *.apps, \
                                  *. (all of the core group) or *.*";
                    self.problems.push(Problem::invalid(path, name, detail));
                }
                None => self
                    .problems
                    .push(Problem::required(path, "expected a text")),
            }
        }
        let providers = self.items(&fields, "providers", path);
        let providers = providers.iter().enumerate();
        let providers = providers
            .filter_map(|(at, item)| self.provider(item, &format!("{path}.providers[{at}]")));
        Rule {
            resources,
            providers: providers.collect(),
        }
    }

    fn provider(&mut self, item: &Value, path: &str) -> Option<Provider> {
        let known = [&SUPPORTED[..], &UNSUPPORTED].concat();
        let fields = self.fields(item, path, &known);
        if fields.len() != 1 {
            let detail = match fields.len() {
                0 => "provider does not contain any of the expected providers: aesgcm, identity",
                _ => {
                    "more than one provider specified in a single element, should split into \
                     different list elements"
                }
            };
            self.problems.push(Problem::required(path, detail));
            return None;
        }
        let (name, settings) = fields.into_iter().next()?;
        let path = format!("{path}.{name}");
        match name.as_str() {
            "identity" => Some(Provider::Identity),
            "aesgcm" => Some(Provider::AesGcm(self.keys(&settings, &path))),
            unsupported => {
                let detail = format!(
                    "provider {unsupported} is not supported; supported are aesgcm and identity"
                );
                self.problems.push(Problem::forbidden(path, detail));
                None
            }
        }
    }

    fn keys(&mut self, settings: &Value, path: &str) -> Vec<Key> {
        let fields = self.fields(settings, path, &["keys"]);
        let items = self.items(&fields, "keys", path);
        let mut names: Vec<&str> = Vec::new();
        let mut keys = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let path = format!("{path}.keys[{at}]");
            let fields = self.fields(item, &path, &["name", "secret"]);
            let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
            let name = item["name"].as_str().unwrap_or_default();
            if name.is_empty() || name.contains(':') {
                let path = format!("{path}.name");
                self.problems.push(match name.is_empty() {
                    true => Problem::required(path, "name is a mandatory field for a key"),
                    false => Problem::invalid(path, name, "must not contain ':'"),
                });
            }
            if names.contains(&name) {
                let path = format!("{path}.name");
                self.problems.push(Problem::duplicate(path, name));
            }
            names.push(name);
            keys.extend(self.key(name, text("secret"), &format!("{path}.secret")));
        }
        keys
    }

    fn key(&mut self, name: &str, secret: &str, path: &str) -> Option<Key> {
        if secret.is_empty() {
            let detail = "secret is a mandatory field for a key";
            self.problems.push(Problem::required(path, detail));
            return None;
        }
        let Ok(bytes) = STANDARD.decode(secret) else {
            let detail = "secrets must be base64 encoded";
            self.problems
                .push(Problem::invalid(path, "REDACTED", detail));
            return None;
        };
        let key = Key::new(name, &bytes);
        if key.is_none() {
            let detail = format!(
                "secret is not of the expected length, got {}, expected one of [16 32]",
                bytes.len()
            );
            self.problems
                .push(Problem::invalid(path, "REDACTED", detail));
        }
        key
    }

    /// The fields of an object; unknown ones are errors.
    fn fields(&mut self, value: &Value, path: &str, known: &[&str]) -> Map<String, Value> {
        let Some(fields) = value.as_object() else {
            self.problems
                .push(Problem::required(path, "expected an object"));
            return Map::new();
        };
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            let path = joined(path, name);
            self.problems.push(Problem::unknown(path, "unknown field"));
        }
        let is_known = |(name, _): &(&String, &Value)| known.contains(&name.as_str());
        let fields = fields.iter().filter(is_known);
        fields
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// The items of a list that must not be empty.
    fn items(&mut self, fields: &Map<String, Value>, name: &str, path: &str) -> Vec<Value> {
        let path = joined(path, name);
        let items = fields
            .get(name)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if items.is_empty() {
            let detail = format!("at least one {name} is required");
            self.problems.push(Problem::required(path, detail));
        } else if items.len() > MAX_ITEMS {
            self.problems
                .push(Problem::too_many(path, items.len(), MAX_ITEMS));
            return Vec::new();
        }
        items
    }
}

fn joined(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// Whether it is the name or pattern of a resource.
fn is_resource(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let is_plain = !name.is_empty() && name.chars().all(is_part);
    is_plain
        || name == "*.*"
        || name
            .strip_prefix("*.")
            .is_some_and(|group| group.chars().all(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

    fn problems(text: &str) -> Vec<String> {
        let problems = read(text).err().unwrap_or_default();
        problems.iter().map(ToString::to_string).collect()
    }

    fn configuration(rules: &str) -> String {
        format!("apiVersion: {API_VERSION}\nkind: {KIND}\nresources:\n{rules}")
    }

    #[test]
    fn the_first_rule_that_names_a_resource_counts() {
        let rules = read(&configuration(&format!(
            "- resources: [secrets, deployments.apps]\n  providers:\n  - aesgcm: {{keys: [{{name: a, \
             secret: {SECRET}}}]}}\n  - identity: {{}}\n- resources: ['*.']\n  providers: [identity: {{}}]\n"
        )))
        .unwrap();
        assert!(rules[0].matches("", "secrets") && rules[0].matches("apps", "deployments"));
        assert!(!rules[0].matches("", "configmaps") && rules[1].matches("", "configmaps"));
        assert!(!rules[1].matches("apps", "deployments"));
        assert_eq!(rules[0].providers.len(), 2);
    }

    #[test]
    fn all_errors_are_reported_without_secrets() {
        let found = problems(&configuration(
            "- resources: [Secrets]\n  providers:\n  - secretbox: {keys: []}\n  - aesgcm: {keys: \
             [{name: 'a:b', secret: aHVudGVyMg==}, {name: c, secret: 'hunter2!'}, {secret: x}]}\n",
        ));
        let all = found.join("\n");
        for wanted in [
            "resources[0].resources[0]: Invalid value: \"Secrets\"",
            "resources[0].providers[0].secretbox: Forbidden: provider secretbox is not supported",
            "keys[0].name: Invalid value: \"a:b\"",
            "keys[0].secret: Invalid value: \"REDACTED\": secret is not of the expected length, got 7",
            "keys[1].secret: Invalid value: \"REDACTED\": secrets must be base64 encoded",
            "keys[2].name: Required value",
        ] {
            assert!(all.contains(wanted), "{wanted} in\n{all}");
        }
        assert!(
            !all.contains("hunter2") && !all.contains("aHVudGVyMg"),
            "{all}"
        );
        let broken = problems("kind: [hunter2");
        assert!(
            !broken.is_empty() && !broken[0].contains("hunter2"),
            "{broken:?}"
        );
        assert!(!problems("").is_empty() && !problems("kind: Pod").is_empty());
    }
}
