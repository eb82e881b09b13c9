//! The file that `--admission-control-config-file` names: the configurations of admission plugins.
//!
//! ```yaml
//! apiVersion: apiserver.config.k8s.io/v1
//! kind: AdmissionConfiguration
//! plugins:
//! - name: PodSecurity
//!   configuration:
//!     apiVersion: pod-security.admission.config.k8s.io/v1
//!     kind: PodSecurityConfiguration
//! ```
//!
//! A plugin's configuration is in the file or, with `path`, in one of its own. Each plugin
//! reads its own with [`Fields`]; unknown fields are mistakes, as upstream's decoder has it.
//!
//! Matches v1.36 staging/src/k8s.io/apiserver/pkg/admission/config.go.

use crate::config::document::{Node, child_path, item_path, parse};
use crate::problem::Problem;

const GROUP: &str = "apiserver.config.k8s.io";
const KIND: &str = "AdmissionConfiguration";

/// The plugins that can be configured. Upstream ignores other names; here a setting is either
/// obeyed or refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugin {
    /// How many events the server takes.
    EventRateLimit,
    /// Which pods namespaces take.
    PodSecurity,
}

impl Plugin {
    const ALL: [Plugin; 2] = [Plugin::EventRateLimit, Plugin::PodSecurity];

    /// Its name in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Plugin::EventRateLimit => "EventRateLimit",
            Plugin::PodSecurity => "PodSecurity",
        }
    }
}

/// The configuration of one plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginConfiguration {
    /// The plugin.
    pub plugin: Plugin,
    /// Its configuration, where the file has it.
    pub given: Option<Given>,
    /// The file that has it otherwise, relative to this one.
    pub path: Option<String>,
}

/// A configuration and its position in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// The configuration.
    pub node: Node,
    /// The path to it, empty for a file of its own.
    pub path: String,
}

impl Given {
    /// A configuration in a file of its own.
    pub fn from_file(bytes: &[u8]) -> Result<Given, Vec<Problem>> {
        let (node, problems) = parse(bytes).into_only_document();
        match node {
            Some(node) if problems.is_empty() => Ok(Given {
                node,
                path: String::new(),
            }),
            _ => Err(problems),
        }
    }
}

/// Reads the file.
pub fn read(bytes: &[u8]) -> Result<Vec<PluginConfiguration>, Vec<Problem>> {
    let given = Given::from_file(bytes)?;
    let mut problems = Vec::new();
    let fields = Fields::new(&given.node, &given.path, &["plugins"], &mut problems);
    let Some(mut fields) = fields else {
        return Err(problems);
    };
    fields.check_type(GROUP, &["v1", "v1alpha1"], KIND);
    let items = fields.items("plugins");
    let mut plugins: Vec<PluginConfiguration> = Vec::new();
    for (path, node) in items {
        if let Some(plugin) = read_plugin(node, &path, &mut problems) {
            if plugins.iter().any(|other| other.plugin == plugin.plugin) {
                let name = plugin.plugin.as_str();
                let problem = Problem::duplicate(child_path(&path, "name"), name);
                problems.push(problem.at(Some(node.position)));
            }
            plugins.push(plugin);
        }
    }
    if problems.is_empty() {
        Ok(plugins)
    } else {
        Err(problems)
    }
}

fn read_plugin(
    node: &Node,
    path: &str,
    problems: &mut Vec<Problem>,
) -> Option<PluginConfiguration> {
    let known = ["name", "path", "configuration"];
    let mut fields = Fields::plain(node, path, &known, problems)?;
    let name = fields.text("name").unwrap_or_default();
    let plugin = Plugin::ALL
        .into_iter()
        .find(|plugin| plugin.as_str() == name);
    let Some(plugin) = plugin else {
        let names = Plugin::ALL.map(Plugin::as_str);
        fields.refuse("name", Problem::not_supported("", &name, &names));
        return None;
    };
    let configuration = fields.get("configuration").filter(|node| !node.is_null());
    Some(PluginConfiguration {
        given: configuration.map(|node| Given {
            node: node.clone(),
            path: child_path(path, "configuration"),
        }),
        path: fields.text("path").filter(|path| !path.is_empty()),
        plugin,
    })
}

/// The fields of a mapping, read one by one; mistakes are collected.
#[derive(Debug)]
pub struct Fields<'n, 'p> {
    node: &'n Node,
    path: String,
    problems: &'p mut Vec<Problem>,
}

impl<'n, 'p> Fields<'n, 'p> {
    /// The fields of a typed object, which has `apiVersion` and `kind` besides the `known` ones.
    pub fn new(
        node: &'n Node,
        path: &str,
        known: &[&str],
        problems: &'p mut Vec<Problem>,
    ) -> Option<Fields<'n, 'p>> {
        let mut all = vec!["apiVersion", "kind"];
        all.extend(known);
        Fields::plain(node, path, &all, problems)
    }

    /// The fields of a mapping; `None`, and a problem, if it is none.
    pub fn plain(
        node: &'n Node,
        path: &str,
        known: &[&str],
        problems: &'p mut Vec<Problem>,
    ) -> Option<Fields<'n, 'p>> {
        let Some(entries) = node.as_mapping() else {
            let problem = Problem::wrong_type(path, node.describe(), "must be a mapping");
            problems.push(problem.at(Some(node.position)));
            return None;
        };
        node.report_duplicate_keys(path, problems);
        for entry in entries {
            if !known.contains(&entry.key.as_str()) {
                let detail = format!("known fields: {}", known.join(", "));
                let problem = Problem::unknown(child_path(path, &entry.key), detail);
                problems.push(problem.at(Some(entry.key_position)));
            }
        }
        Some(Fields {
            node,
            path: path.to_owned(),
            problems,
        })
    }

    /// Refuses an object of another type.
    pub fn check_type(&mut self, group: &str, versions: &[&str], kind: &str) {
        let supported: Vec<String> = versions.iter().map(|v| format!("{group}/{v}")).collect();
        let supported: Vec<&str> = supported.iter().map(String::as_str).collect();
        for (field, supported) in [("apiVersion", supported.as_slice()), ("kind", &[kind])] {
            let given = self.text(field).unwrap_or_default();
            if !supported.contains(&given.as_str()) {
                self.refuse(field, Problem::not_supported("", &given, supported));
            }
        }
    }

    /// The value of a field; null is as good as absent.
    pub fn get(&self, field: &str) -> Option<&'n Node> {
        self.node.get(field).filter(|value| !value.is_null())
    }

    /// The path of a field.
    pub fn path_of(&self, field: &str) -> String {
        child_path(&self.path, field)
    }

    /// Records a problem of a field, with whatever path it has.
    pub fn refuse(&mut self, field: &str, problem: Problem) {
        let position = self
            .node
            .get(field)
            .map_or(self.node.position, |v| v.position);
        let path = self.path_of(field);
        self.problems
            .push(Problem { path, ..problem }.at(Some(position)));
    }

    /// A text.
    pub fn text(&mut self, field: &str) -> Option<String> {
        let node = self.get(field)?;
        let text = node.as_text().map(str::to_owned);
        if text.is_none() {
            self.refuse(
                field,
                Problem::wrong_type("", node.describe(), "must be a text"),
            );
        }
        text
    }

    /// A whole number of 32 bits.
    pub fn int32(&mut self, field: &str) -> Option<i32> {
        let node = self.get(field)?;
        let number = node.as_scalar().and_then(|scalar| scalar.as_integer());
        let number = number.and_then(|number| i32::try_from(number).ok());
        if number.is_none() {
            let rule = "must be a whole number of 32 bits";
            self.refuse(field, Problem::wrong_type("", node.describe(), rule));
        }
        number
    }

    /// The items of a list, each with its path.
    pub fn items(&mut self, field: &str) -> Vec<(String, &'n Node)> {
        let Some(node) = self.get(field) else {
            return Vec::new();
        };
        let path = self.path_of(field);
        let Some(items) = node.as_sequence() else {
            self.refuse(
                field,
                Problem::wrong_type("", node.describe(), "must be a list"),
            );
            return Vec::new();
        };
        let items = items.iter().enumerate();
        items
            .map(|(index, item)| (item_path(&path, index), item))
            .collect()
    }

    /// A list of texts, each with its path.
    pub fn texts(&mut self, field: &str) -> Vec<(String, &'n Node, String)> {
        let mut texts = Vec::new();
        for (path, node) in self.items(field) {
            match node.as_text() {
                Some(text) => texts.push((path, node, text.to_owned())),
                None => {
                    let problem = Problem::wrong_type(path, node.describe(), "must be a text");
                    self.problems.push(problem.at(Some(node.position)));
                }
            }
        }
        texts
    }

    /// The fields of a mapping within; `None` if it is absent or none.
    pub fn within(&mut self, field: &str, known: &[&str]) -> Option<Fields<'n, '_>> {
        let node = self.get(field)?;
        let path = self.path_of(field);
        Fields::plain(node, &path, known, self.problems)
    }

    /// Records a problem that has its path already.
    pub fn push(&mut self, problem: Problem) {
        self.problems.push(problem);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Vec<String> {
        let problems = read(text.as_bytes()).unwrap_err();
        problems.iter().map(Problem::to_string).collect()
    }

    #[test]
    fn plugins_have_their_configuration_inline_or_in_a_file() {
        let text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n\
            - name: PodSecurity\n  configuration: {kind: X}\n  path: limits.yaml\n";
        let plugins = read(text.as_bytes()).unwrap();
        assert_eq!(plugins[0].plugin, Plugin::PodSecurity);
        let given = plugins[0].given.as_ref().unwrap();
        assert_eq!(given.path, "plugins[0].configuration");
        assert_eq!(given.node.get("kind").unwrap().as_text(), Some("X"));
        assert_eq!(plugins[0].path.as_deref(), Some("limits.yaml"));
    }

    #[test]
    fn unknown_fields_are_refused() {
        assert_eq!(
            refused("apiVersion: v1\nkind: Pod\nplugin: []\n"),
            [
                "plugin: Unknown field: known fields: apiVersion, kind, plugins",
                "apiVersion: Unsupported value: \"v1\": supported values: \
                 \"apiserver.config.k8s.io/v1\", \"apiserver.config.k8s.io/v1alpha1\"",
                "kind: Unsupported value: \"Pod\": supported values: \"AdmissionConfiguration\"",
            ]
        );
        let text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n\
            - name: ImagePolicyWebhook\n- name: PodSecurity\n- name: PodSecurity\n- 5\n";
        assert_eq!(
            refused(text),
            [
                "plugins[0].name: Unsupported value: \"ImagePolicyWebhook\": supported \
                 values: \"EventRateLimit\", \"PodSecurity\"",
                "plugins[2].name: Duplicate value: \"PodSecurity\"",
                "plugins[3]: Invalid value: the number 5: must be a mapping",
            ]
        );
        assert_eq!(refused(""), ["kind: Required value: the file is empty"]);
    }
}
