//! Which nodes a pod may or would rather run on.
//!
//! Matches v1.36 component-helpers/scheduling/corev1/nodeaffinity: terms are alternatives, the
//! expressions in a term must all hold, and a term without expressions selects no node.

use std::fmt;

use k8s_openapi::api::core::v1::{
    NodeSelector as ApiNodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec,
    PreferredSchedulingTerm,
};

use crate::problem::Problem;

use super::{
    FieldOperator, FieldRequirement, FieldSelector, LabelSelector, Lookup, Operator, Requirement,
};

/// The only field of a node that terms can select by.
const METADATA_NAME: &str = "metadata.name";

/// Alternatives of which one must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSelector {
    terms: Vec<Term>,
    problems: Vec<Problem>,
}

impl NodeSelector {
    /// Parses a node selector that stands at `path` (empty if nowhere).
    ///
    /// Wrong terms are kept aside: they count only if no other term holds, see
    /// [`NodeSelector::matches`].
    pub fn from_api(path: &str, selector: &ApiNodeSelector) -> NodeSelector {
        let dot = if path.is_empty() { "" } else { "." };
        let mut parsed = NodeSelector {
            terms: Vec::new(),
            problems: Vec::new(),
        };
        for (index, term) in selector.node_selector_terms.iter().enumerate() {
            match Term::from_api(&format!("{path}{dot}nodeSelectorTerms[{index}]"), term) {
                Ok(term) => parsed.terms.extend(term),
                Err(problems) => parsed.problems.extend(problems),
            }
        }
        parsed
    }

    /// Whether a node of that name and with those labels is selected.
    ///
    /// If it is not, and some terms are wrong, their problems are the answer.
    pub fn matches(&self, name: &str, labels: &impl Lookup) -> Result<bool, &[Problem]> {
        if self.terms.iter().any(|term| term.matches(name, labels)) {
            Ok(true)
        } else if self.problems.is_empty() {
            Ok(false)
        } else {
            Err(&self.problems)
        }
    }

    /// The errors of its terms.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

/// Where a pod must run: its `nodeSelector` and its required node affinity, both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredNodeAffinity {
    labels: LabelSelector,
    affinity: Option<NodeSelector>,
}

impl RequiredNodeAffinity {
    /// Reads both parts of a pod's spec.
    pub fn from_spec(spec: &PodSpec) -> RequiredNodeAffinity {
        let affinity = spec.affinity.as_ref();
        let affinity = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
        let required = affinity.and_then(|node| {
            node.required_during_scheduling_ignored_during_execution
                .as_ref()
        });
        let node_selector = spec.node_selector.as_ref();
        RequiredNodeAffinity {
            labels: node_selector.map_or(LabelSelector::everything(), LabelSelector::from_set),
            affinity: required.map(|selector| NodeSelector::from_api("", selector)),
        }
    }

    /// Whether the pod may run on a node of that name and with those labels; the problems of its
    /// terms if that is why not.
    pub fn matches(&self, name: &str, labels: &impl Lookup) -> Result<bool, &[Problem]> {
        if !self.labels.matches(labels) {
            return Ok(false);
        }
        match &self.affinity {
            Some(affinity) => affinity.matches(name, labels),
            None => Ok(true),
        }
    }
}

/// What of a [`RequiredNodeAffinity`] does not hold on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnmetAffinity {
    /// Labels of the `nodeSelector` that the node does not have.
    pub node_selector: Vec<Requirement>,
    /// What each alternative of the required affinity lacks; empty if one of them holds.
    pub alternatives: Vec<UnmetTerm>,
}

/// What of one alternative does not hold on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnmetTerm {
    /// About labels.
    pub labels: Vec<Requirement>,
    /// About fields.
    pub fields: Vec<FieldRequirement>,
}

impl RequiredNodeAffinity {
    /// What does not hold on a node of that name and with those labels.
    pub fn unmet(&self, name: &str, labels: &impl Lookup) -> UnmetAffinity {
        let affinity = self.affinity.as_ref();
        let is_met = |affinity: &&NodeSelector| affinity.matches(name, labels) == Ok(true);
        let terms = affinity
            .filter(|affinity| !is_met(affinity))
            .map_or(&[][..], |affinity| &affinity.terms);
        UnmetAffinity {
            node_selector: unmet_labels(&self.labels, labels),
            alternatives: terms
                .iter()
                .map(|term| UnmetTerm {
                    labels: unmet_labels(&term.labels, labels),
                    fields: term
                        .fields
                        .requirements()
                        .iter()
                        .filter(|field| !field.matches(&NodeFields { name }))
                        .cloned()
                        .collect(),
                })
                .collect(),
        }
    }
}

fn unmet_labels(selector: &LabelSelector, labels: &impl Lookup) -> Vec<Requirement> {
    let requirements = selector.requirements().unwrap_or_default().iter();
    let unmet = requirements.filter(|requirement| !requirement.matches(labels));
    unmet.cloned().collect()
}

impl fmt::Display for NodeSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms: Vec<String> = self.terms.iter().map(Term::to_string).collect();
        f.write_str(&terms.join(" or "))
    }
}

/// Where a pod would rather run: terms with weights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreferredNodeAffinity {
    terms: Vec<(Term, i32)>,
}

impl PreferredNodeAffinity {
    /// Parses the terms; all problems are reported. Terms of weight zero are not even looked at.
    pub fn from_api(terms: &[PreferredSchedulingTerm]) -> Result<Self, Vec<Problem>> {
        let mut preferred = PreferredNodeAffinity::default();
        let mut problems = Vec::new();
        for (index, term) in terms.iter().enumerate() {
            if term.weight == 0 {
                continue;
            }
            match Term::from_api(&format!("[{index}]"), &term.preference) {
                Ok(parsed) => preferred.terms.extend(parsed.map(|t| (t, term.weight))),
                Err(found) => problems.extend(found),
            }
        }
        if problems.is_empty() {
            Ok(preferred)
        } else {
            Err(problems)
        }
    }

    /// The sum of the weights of the terms that hold.
    pub fn score(&self, name: &str, labels: &impl Lookup) -> i64 {
        let held = self.terms.iter().filter(|(t, _)| t.matches(name, labels));
        held.map(|(_, weight)| i64::from(*weight)).sum()
    }
}

impl fmt::Display for PreferredNodeAffinity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms = self.terms.iter();
        let terms: Vec<String> = terms
            .map(|(t, weight)| format!("{t} (weight {weight})"))
            .collect();
        f.write_str(&terms.join(" and "))
    }
}

/// Expressions that must all hold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [self.labels.to_string(), self.fields.to_string()];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        f.write_str(&parts.join(","))
    }
}

/// A node's fields as selectors see them.
struct NodeFields<'a> {
    name: &'a str,
}

impl Lookup for NodeFields<'_> {
    fn lookup(&self, field: &str) -> Option<&str> {
        (field == METADATA_NAME).then_some(self.name)
    }
}

impl Term {
    /// Parses a term; `None` if it has no expressions.
    fn from_api(path: &str, term: &NodeSelectorTerm) -> Result<Option<Term>, Vec<Problem>> {
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        let field_expressions = term.match_fields.as_deref().unwrap_or_default();
        if expressions.is_empty() && field_expressions.is_empty() {
            return Ok(None);
        }
        let mut problems = Vec::new();
        let mut labels = Vec::new();
        for (index, expression) in expressions.iter().enumerate() {
            let path = format!("{path}.matchExpressions[{index}]");
            match label_requirement(&path, expression) {
                Ok(requirement) => labels.push(requirement),
                Err(found) => problems.extend(found),
            }
        }
        let mut fields = Vec::new();
        for (index, expression) in field_expressions.iter().enumerate() {
            let path = format!("{path}.matchFields[{index}]");
            match field_requirement(&path, expression) {
                Ok(requirement) => fields.push(requirement),
                Err(problem) => problems.push(problem),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Some(Term {
            labels: LabelSelector::new(labels),
            fields: FieldSelector::new(fields),
        }))
    }

    /// A node without a name has no fields, and then fields are not matched.
    fn matches(&self, name: &str, labels: &impl Lookup) -> bool {
        self.labels.matches(labels)
            && (name.is_empty() || self.fields.matches(&NodeFields { name }))
    }
}

fn label_requirement(
    path: &str,
    expression: &NodeSelectorRequirement,
) -> Result<Requirement, Vec<Problem>> {
    const SUPPORTED: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
    let operator = match expression.operator.as_str() {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::GreaterThan,
        "Lt" => Operator::LessThan,
        other => {
            let path = format!("{path}.operator");
            return Err(vec![Problem::not_supported(path, other, &SUPPORTED)]);
        }
    };
    Requirement::new(path, &expression.key, operator, expression.values.clone())
}

fn field_requirement(
    path: &str,
    expression: &NodeSelectorRequirement,
) -> Result<FieldRequirement, Problem> {
    let operator = match expression.operator.as_str() {
        "In" => FieldOperator::Equals,
        "NotIn" => FieldOperator::NotEquals,
        other => {
            let path = format!("{path}.operator");
            return Err(Problem::not_supported(path, other, &["In", "NotIn"]));
        }
    };
    match expression.values.as_deref() {
        Some([value]) => Ok(FieldRequirement {
            field: expression.key.clone(),
            operator,
            value: value.clone(),
        }),
        values => Err(Problem::invalid_list(
            format!("{path}.values"),
            values,
            "must have one element",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::aggregate;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn required(affinity: Value) -> RequiredNodeAffinity {
        let spec = json!({"containers": [], "affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": affinity}
        }}});
        RequiredNodeAffinity::from_spec(&serde_json::from_value(spec).unwrap())
    }

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        owned.collect()
    }

    #[test]
    fn no_terms_and_empty_terms_select_no_node() {
        let node = labels(&[("a", "1")]);
        assert_eq!(required(json!([])).matches("n", &node), Ok(false));
        assert_eq!(required(json!([{}])).matches("n", &node), Ok(false));
        let with_one_more = required(json!([{}, {"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["n"]}
        ]}]));
        assert_eq!(with_one_more.matches("n", &node), Ok(true));
        assert_eq!(with_one_more.matches("m", &node), Ok(false));
    }

    #[test]
    fn numbers_are_compared_as_integers() {
        let above = required(json!([{"matchExpressions": [
            {"key": "cpus", "operator": "Gt", "values": ["9"]}
        ]}]));
        assert_eq!(above.matches("n", &labels(&[("cpus", "10")])), Ok(true));
        assert_eq!(above.matches("n", &labels(&[("cpus", "9")])), Ok(false));
        assert_eq!(above.matches("n", &labels(&[("cpus", "many")])), Ok(false));
        assert_eq!(above.matches("n", &labels(&[])), Ok(false));
    }

    #[test]
    fn invalid_terms_are_reported_only_if_no_other_term_matches() {
        let affinity = required(json!([
            {"matchExpressions": [{"key": "a", "operator": "Near"}]},
            {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
        ]));
        assert_eq!(affinity.matches("n", &labels(&[("a", "1")])), Ok(true));
        let problems = affinity.matches("n", &labels(&[])).unwrap_err();
        assert_eq!(
            aggregate(problems),
            "nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: \"Near\": \
             supported values: \"In\", \"NotIn\", \"Exists\", \"DoesNotExist\", \"Gt\", \"Lt\""
        );
    }

    #[test]
    fn missing_labels_are_named_for_each_alternative() {
        let affinity = required(json!([
            {"matchExpressions": [
                {"key": "disk", "operator": "In", "values": ["ssd"]},
                {"key": "gpu", "operator": "Exists"},
            ]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["m"]}]},
        ]));
        let unmet = affinity.unmet("n", &labels(&[("gpu", "1"), ("disk", "hdd")]));
        let texts: Vec<String> = unmet.alternatives[0]
            .labels
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(texts, ["disk in (ssd)"]);
        assert_eq!(unmet.alternatives[1].fields[0].value, "m");
        let met = affinity.unmet("m", &labels(&[]));
        assert_eq!(met, UnmetAffinity::default(), "one alternative holds");
    }

    #[test]
    fn the_weights_of_terms_that_hold_are_added() {
        let term = |weight: i32, key: &str| {
            json!({"weight": weight, "preference": {"matchExpressions": [
                {"key": key, "operator": "Exists"}
            ]}})
        };
        let terms =
            json!([term(5, "a"), term(7, "b"), term(11, "c"), {"weight": 3, "preference": {}}]);
        let terms: Vec<PreferredSchedulingTerm> = serde_json::from_value(terms).unwrap();
        let preferred = PreferredNodeAffinity::from_api(&terms).unwrap();
        assert_eq!(preferred.score("n", &labels(&[("a", ""), ("c", "")])), 16);
    }

    #[test]
    fn weightless_terms_are_not_checked() {
        let mut term = PreferredSchedulingTerm::default();
        term.preference.match_expressions = Some(vec![NodeSelectorRequirement::default()]);
        assert!(PreferredNodeAffinity::from_api(std::slice::from_ref(&term)).is_ok());
        term.weight = 1;
        let problems = PreferredNodeAffinity::from_api(&[term]).unwrap_err();
        assert_eq!(problems[0].path, "[0].matchExpressions[0].operator");
    }
}
