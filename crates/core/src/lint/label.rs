//! Label keys of Kubernetes' own domains that are misspelt.

use serde_json::Value;

use crate::config::closest;
use crate::config::document::{child_path, item_path};

use super::{Finding, Level, Rule};

/// Labels that Kubernetes sets on nodes.
const NODE_LABELS: [&str; 10] = [
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/exclude-from-external-load-balancers",
    "node.kubernetes.io/instance-type",
    "node.kubernetes.io/windows-build",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
];

/// Keys of node labels in a pod's spec that look like a label of Kubernetes but are none: of topologies,
/// node selectors and node affinity. `path` is the path of the spec.
pub fn lint_node_labels(spec: &Value, path: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    look(spec, path, Inside::Spec, &mut findings);
    findings
}

/// What the value is a part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Spec,
    NodeAffinity,
}

fn look(value: &Value, path: &str, inside: Inside, findings: &mut Vec<Finding>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                look(item, &item_path(path, index), inside, findings);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let path = child_path(path, name);
                match (name.as_str(), member) {
                    ("topologyKey", Value::String(key)) => findings.extend(judge(key, &path)),
                    ("key", Value::String(key)) if inside == Inside::NodeAffinity => {
                        findings.extend(judge(key, &path));
                    }
                    ("nodeSelector", Value::Object(labels)) => {
                        let keys = labels.keys();
                        findings
                            .extend(keys.filter_map(|key| judge(key, &format!("{path}[{key}]"))));
                    }
                    ("nodeAffinity", _) => look(member, &path, Inside::NodeAffinity, findings),
                    _ => look(member, &path, inside, findings),
                }
            }
        }
        _ => {}
    }
}

fn judge(key: &str, path: &str) -> Option<Finding> {
    let (domain, name) = key.split_once('/')?;
    let is_own = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
    if !is_own || NODE_LABELS.contains(&key) {
        return None;
    }
    let same_name = NODE_LABELS.into_iter().find(|label| {
        label
            .split_once('/')
            .is_some_and(|(_, other)| other == name)
    });
    // Kubernetes keeps some labels under names of its betas.
    if domain == "beta.kubernetes.io" {
        return None;
    }
    let similar = closest(key, NODE_LABELS.into_iter());
    let meant = same_name.or(similar.filter(|label| !label.contains(".beta.")))?;
    Some(Finding {
        rule: Rule::UnknownLabel,
        level: Level::Warning,
        path: path.to_owned(),
        position: None,
        message: format!("{key} is not a label of nodes"),
        fix: format!("did you mean {meant:?}?"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn misspelt_labels_of_nodes_are_found_where_they_stand() {
        let spec = json!({
            "nodeSelector": {"kubernetes.io/hostnam": "a", "example.com/zone": "b"},
            "topologySpreadConstraints": [{"topologyKey": "kubernetes.io/zone"}],
            "affinity": {
                "podAffinity": {"x": [{"topologyKey": "topology.kubernetes.io/zone"}]},
                "nodeAffinity": {"y": {"matchExpressions": [{"key": "kubernetes.io/region"}]}},
            },
            "containers": [{"env": [{"key": "kubernetes.io/zone"}]}],
        });
        let found = lint_node_labels(&spec, "spec");
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|finding| (finding.path.as_str(), finding.fix.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (
                    "spec.affinity.nodeAffinity.y.matchExpressions[0].key",
                    "did you mean \"topology.kubernetes.io/region\"?"
                ),
                (
                    "spec.nodeSelector[kubernetes.io/hostnam]",
                    "did you mean \"kubernetes.io/hostname\"?"
                ),
                (
                    "spec.topologySpreadConstraints[0].topologyKey",
                    "did you mean \"topology.kubernetes.io/zone\"?"
                ),
            ]
        );
    }
}
