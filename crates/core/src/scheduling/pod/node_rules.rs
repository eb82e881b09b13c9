//! Which nodes a pod may and would rather run on.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PodSpec};

use crate::object::identity::NodeName;
use crate::object::node::NodeView;
use crate::object::selector::{PreferredNodeAffinity, RequiredNodeAffinity, UnmetAffinity};
use crate::problem::Problem;

/// The node selector and the node affinity of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRules {
    required: RequiredNodeAffinity,
    /// Whether the spec has a node selector or required affinity, even an empty one.
    pub is_required: bool,
    /// The nodes that the required affinity names.
    pub named: NamedNodes,
    /// Where it would rather run; `None` if the spec has no such list.
    pub preferred: Option<PreferredNodeAffinity>,
}

/// Nodes that required affinity terms pick by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedNodes {
    /// Some term names none: any node may do.
    Any,
    /// Every term names nodes; these are all of them. Empty where no node has all the names that a
    /// term demands.
    Only(BTreeSet<NodeName>),
}

impl NodeRules {
    pub(super) fn of_pod(spec: &PodSpec, problems: &mut Vec<Problem>) -> NodeRules {
        let affinity = spec
            .affinity
            .as_ref()
            .and_then(|a| a.node_affinity.as_ref());
        let required = affinity.and_then(|node| {
            node.required_during_scheduling_ignored_during_execution
                .as_ref()
        });
        let preferred = affinity.and_then(|node| {
            node.preferred_during_scheduling_ignored_during_execution
                .as_ref()
        });
        let preferred = preferred.and_then(|terms| {
            PreferredNodeAffinity::from_api(terms)
                .map_err(|found| problems.extend(found))
                .ok()
        });
        NodeRules {
            required: RequiredNodeAffinity::from_spec(spec),
            is_required: required.is_some() || spec.node_selector.is_some(),
            named: NamedNodes::of_terms(required.map_or(&[], |r| &r.node_selector_terms)),
            preferred,
        }
    }

    /// Whether the pod may run on the node. Malformed terms match nothing.
    pub fn allow(&self, node: &NodeView) -> bool {
        self.verdict(node).unwrap_or(false)
    }

    /// Whether the pod may run on the node; the problems of its terms if that is why not.
    pub fn verdict(&self, node: &NodeView) -> Result<bool, &[Problem]> {
        self.required.matches(node.name.as_str(), &node.labels)
    }

    /// What of its node selector and required affinity does not hold on the node.
    pub fn unmet(&self, node: &NodeView) -> UnmetAffinity {
        self.required.unmet(node.name.as_str(), &node.labels)
    }
}

impl NamedNodes {
    /// Matches v1.36 plugins/nodeaffinity, `PreFilter`.
    fn of_terms(terms: &[NodeSelectorTerm]) -> NamedNodes {
        let mut all = BTreeSet::new();
        for term in terms {
            let Some(names) = names_of_term(term) else {
                return NamedNodes::Any;
            };
            all.extend(names.into_iter().map(NodeName::from));
        }
        if terms.is_empty() {
            NamedNodes::Any
        } else {
            NamedNodes::Only(all)
        }
    }
}

/// The names that all name lists of the term have; `None` if there is no such list.
fn names_of_term(term: &NodeSelectorTerm) -> Option<BTreeSet<&str>> {
    let fields = term.match_fields.iter().flatten();
    let lists = fields.filter(|field| field.key == "metadata.name" && field.operator == "In");
    lists
        .map(|field| -> BTreeSet<&str> {
            field.values.iter().flatten().map(String::as_str).collect()
        })
        .reduce(|all, list| all.intersection(&list).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn named(terms: Value) -> NamedNodes {
        NamedNodes::of_terms(&serde_json::from_value::<Vec<NodeSelectorTerm>>(terms).unwrap())
    }

    fn field(operator: &str, names: &[&str]) -> Value {
        json!({"key": "metadata.name", "operator": operator, "values": names})
    }

    #[test]
    fn names_are_intersected_in_a_term_and_united_over_terms() {
        let only = named(json!([
            {"matchFields": [field("In", &["a", "b"]), field("In", &["b", "c"])]},
            {"matchFields": [field("In", &["d"])]},
        ]));
        let want = ["b", "d"].map(NodeName::from).into_iter().collect();
        assert_eq!(only, NamedNodes::Only(want));
    }

    #[test]
    fn one_term_without_names_allows_any_node() {
        let with_labels = json!([
            {"matchFields": [field("In", &["a"])]}, {"matchFields": [field("NotIn", &["a"])]},
        ]);
        assert_eq!(named(with_labels), NamedNodes::Any);
        assert_eq!(named(json!([])), NamedNodes::Any);
    }
}
