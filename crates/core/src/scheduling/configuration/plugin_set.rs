//! The plugins of one extension point in a file, merged with the default.

use crate::config::document::{Node, item_path};
use crate::problem::Problem;
use crate::scheduling::registry::{self, DEFAULT_PLUGINS};

use super::fields::Object;

/// Stands for all plugins in a list of disabled ones.
pub(super) const ALL: &str = "*";

/// Plugins that are switched on and off at one extension point, or at all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct PluginSet {
    pub(super) enabled: Vec<Named>,
    pub(super) disabled: Vec<String>,
}

/// A plugin that is named in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: String,
    /// Zero where none is stated.
    pub(super) weight: i32,
    /// Where the file names it; empty for the default.
    pub(super) path: String,
}

impl PluginSet {
    /// The default plugins, which are enabled wherever they can act.
    pub(super) fn default_multi_point() -> PluginSet {
        let enabled = DEFAULT_PLUGINS.iter().map(|(name, weight)| Named {
            name: (*name).to_owned(),
            weight: *weight,
            path: String::new(),
        });
        PluginSet {
            enabled: enabled.collect(),
            disabled: Vec::new(),
        }
    }

    /// Reads the plugin set at `path`. Disabled plugins that do not exist are reported here;
    /// upstream ignores them, which hides a misspelled name.
    pub(super) fn read(object: Object<'_>, path: &str, problems: &mut Vec<Problem>) -> PluginSet {
        let name_of = |node: &Node| {
            Object(Some(node))
                .text("name")
                .unwrap_or_default()
                .to_owned()
        };
        let enabled = object.items("enabled").iter().enumerate();
        let enabled = enabled.map(|(index, node)| Named {
            name: name_of(node),
            weight: Object(Some(node)).int32("weight").unwrap_or(0),
            path: item_path(&format!("{path}.enabled"), index),
        });
        let disabled: Vec<String> = object.items("disabled").iter().map(name_of).collect();
        for (index, name) in disabled.iter().enumerate() {
            let is_known = name == ALL
                || registry::find(name).is_some()
                || registry::REMOVED.contains(&name.as_str());
            if !is_known {
                let path = item_path(&format!("{path}.disabled"), index) + ".name";
                problems.push(registry::no_such(&path, name, "plugin"));
            }
        }
        PluginSet {
            enabled: enabled.collect(),
            disabled,
        }
    }

    pub(super) fn disables(&self, name: &str) -> bool {
        self.disabled.iter().any(|disabled| disabled == name)
    }

    /// This set as a change to the default one: defaults that are named again are replaced where
    /// they stand, the others come after.
    ///
    /// Matches v1.36 pkg/scheduler/apis/config/v1/default_plugins.go, `mergePluginSet`.
    pub(super) fn merged_into(self, default: PluginSet) -> PluginSet {
        let mut is_replacement = vec![false; self.enabled.len()];
        let mut enabled = Vec::new();
        for plugin in default.enabled {
            if self.disables(ALL) || self.disables(&plugin.name) {
                continue;
            }
            // Of several the last counts; the others are kept, and found to be duplicates later.
            let again = self.enabled.iter().rposition(|own| own.name == plugin.name);
            enabled.push(match again {
                Some(index) => {
                    is_replacement[index] = true;
                    self.enabled[index].clone()
                }
                None => plugin,
            });
        }
        let own = self.enabled.into_iter().zip(is_replacement);
        enabled.extend(own.filter_map(|(plugin, replaced)| (!replaced).then_some(plugin)));
        PluginSet {
            enabled,
            disabled: self.disabled,
        }
    }

    /// As upstream prints it in messages.
    pub(super) fn to_json(&self) -> String {
        let plugin = |name: &str, weight: i32| serde_json::json!({"Name": name, "Weight": weight});
        let enabled = self.enabled.iter();
        let enabled: Vec<_> = enabled.map(|own| plugin(&own.name, own.weight)).collect();
        let disabled: Vec<_> = self.disabled.iter().map(|name| plugin(name, 0)).collect();
        let list = |list: Vec<serde_json::Value>| match list.is_empty() {
            true => "null".to_owned(),
            false => serde_json::Value::from(list).to_string(),
        };
        format!(
            "{{\"Enabled\":{},\"Disabled\":{}}}",
            list(enabled),
            list(disabled)
        )
    }

    /// Whether both configure the same, at any position.
    pub(super) fn is_equivalent_to(&self, other: &PluginSet) -> bool {
        self.to_json() == other.to_json()
    }
}
