//! Scheduling constraints of a pod: node selectors, affinity, spread.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    PodAffinityTerm, TopologySpreadConstraint, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::super::internal;
use super::super::names::{dns_label, dns_subdomain};
use super::super::path::Path;
use super::super::problems::{Problems, json};
use super::super::selector::{
    self, EXISTS_WITH_VALUES, IN_WITHOUT_VALUES, NO_OPERATOR, check_key, check_values,
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const WEIGHT: &str = "must be in the range 1-100";

pub(super) fn check(affinity: &Affinity, path: &Path<'_>, problems: &mut Problems) {
    if let Some(node) = &affinity.node_affinity {
        check_node_affinity(node, &path.child("nodeAffinity"), problems);
    }
    let pods = affinity.pod_affinity.as_ref().map(|a| {
        (
            &a.required_during_scheduling_ignored_during_execution,
            &a.preferred_during_scheduling_ignored_during_execution,
        )
    });
    let anti = affinity.pod_anti_affinity.as_ref().map(|a| {
        (
            &a.required_during_scheduling_ignored_during_execution,
            &a.preferred_during_scheduling_ignored_during_execution,
        )
    });
    for (field, terms) in [("podAffinity", pods), ("podAntiAffinity", anti)] {
        let Some((required, preferred)) = terms else {
            continue;
        };
        let path = path.child(field);
        let list = path.child(REQUIRED);
        for (index, term) in required.iter().flatten().enumerate() {
            check_pod_term(term, &list.index(index), problems);
        }
        check_weighted_terms(
            preferred.as_deref().unwrap_or_default(),
            &path.child(PREFERRED),
            problems,
        );
    }
}

fn check_node_affinity(affinity: &NodeAffinity, path: &Path<'_>, problems: &mut Problems) {
    if let Some(selector) = &affinity.required_during_scheduling_ignored_during_execution {
        check_node_selector(selector, &path.child(REQUIRED), problems);
    }
    let list = path.child(PREFERRED);
    let terms = affinity
        .preferred_during_scheduling_ignored_during_execution
        .iter()
        .flatten();
    for (index, term) in terms.enumerate() {
        let path = list.index(index);
        check_weight(term.weight, &path, problems);
        check_node_term(
            &term.preference,
            Values::Any,
            &path.child("preference"),
            problems,
        );
    }
}

/// Whether the values of a node selector must be valid label values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Labels,
    Any,
}

pub(in super::super) fn check_node_selector(
    selector: &NodeSelector,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let path = path.child("nodeSelectorTerms");
    if selector.node_selector_terms.is_empty() {
        return problems.required(&path, "must have at least one node selector term");
    }
    for (index, term) in selector.node_selector_terms.iter().enumerate() {
        check_node_term(term, Values::Labels, &path.index(index), problems);
    }
}

fn check_node_term(
    term: &NodeSelectorTerm,
    values: Values,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let list = path.child("matchExpressions");
    for (index, requirement) in term.match_expressions.iter().flatten().enumerate() {
        check_node_requirement(requirement, values, &list.index(index), problems);
    }
    let list = path.child("matchFields");
    for (index, requirement) in term.match_fields.iter().flatten().enumerate() {
        check_node_field(requirement, &list.index(index), problems);
    }
}

fn check_node_requirement(
    requirement: &NodeSelectorRequirement,
    rule: Values,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let values = requirement.values.as_deref().unwrap_or_default();
    let values_path = path.child("values");
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => problems.required(&values_path, IN_WITHOUT_VALUES),
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            problems.forbidden(&values_path, EXISTS_WITH_VALUES);
        }
        "Gt" | "Lt" if values.len() != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            problems.required(&values_path, detail);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => problems.invalid(&path.child("operator"), json(&other), NO_OPERATOR),
    }
    check_key(&requirement.key, &path.child("key"), problems);
    if rule == Values::Labels {
        check_values(values, &values_path, problems);
    }
}

fn check_node_field(
    requirement: &NodeSelectorRequirement,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let values = requirement.values.as_deref().unwrap_or_default();
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.len() == 1 => {}
        "In" | "NotIn" => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field \
                          selector";
            problems.required(&path.child("values"), detail);
        }
        other => problems.invalid(&path.child("operator"), json(&other), NO_OPERATOR),
    }
    if requirement.key != "metadata.name" {
        let detail = "not a valid field selector key";
        return problems.invalid(&path.child("key"), &requirement.key, detail);
    }
    let path = path.child("values");
    for (index, value) in values.iter().enumerate() {
        problems.invalid_each(&path.index(index), value, dns_subdomain(value));
    }
}

fn check_weight(weight: i32, path: &Path<'_>, problems: &mut Problems) {
    if !(1..=100).contains(&weight) {
        problems.invalid(&path.child("weight"), weight, WEIGHT);
    }
}

fn check_weighted_terms(
    terms: &[WeightedPodAffinityTerm],
    list: &Path<'_>,
    problems: &mut Problems,
) {
    for (index, term) in terms.iter().enumerate() {
        let path = list.index(index);
        check_weight(term.weight, &path, problems);
        check_pod_term(
            &term.pod_affinity_term,
            &path.child("podAffinityTerm"),
            problems,
        );
    }
}

fn check_pod_term(term: &PodAffinityTerm, path: &Path<'_>, problems: &mut Problems) {
    selector::check(
        term.label_selector.as_ref(),
        &path.child("labelSelector"),
        problems,
    );
    selector::check(
        term.namespace_selector.as_ref(),
        &path.child("namespaceSelector"),
        problems,
    );
    for name in term.namespaces.iter().flatten() {
        problems.invalid_each(&path.child("namespace"), name, dns_label(name));
    }
    let keys = term.match_label_keys.as_deref().unwrap_or_default();
    let mismatch = term.mismatch_label_keys.as_deref().unwrap_or_default();
    check_label_keys(keys, mismatch, term.label_selector.as_ref(), path, problems);
    let topology = path.child("topologyKey");
    if term.topology_key.is_empty() {
        problems.required(&topology, "can not be empty");
    }
    check_key(&term.topology_key, &topology, problems);
}

/// Keys whose values are taken from the pod must not also be in the selector explicitly.
///
/// They are already merged into the selector, so a key counts as duplicate if an expression
/// is the second one with it.
fn check_label_keys(
    keys: &[String],
    mismatch: &[String],
    selector: Option<&LabelSelector>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    for (field, keys) in [("matchLabelKeys", keys), ("mismatchLabelKeys", mismatch)] {
        let path = path.child(field);
        if !keys.is_empty() && selector.is_none() {
            problems.forbidden(&path, "must not be specified when labelSelector is not set");
            continue;
        }
        for (index, key) in keys.iter().enumerate() {
            check_key(key, &path.index(index), problems);
        }
    }
    if let Some(selector) = selector {
        let positions: BTreeMap<&String, usize> = keys
            .iter()
            .enumerate()
            .map(|(index, key)| (key, index))
            .collect();
        let mut seen: BTreeSet<&String> = selector
            .match_labels
            .iter()
            .flatten()
            .map(|(k, _)| k)
            .collect();
        for expression in selector.match_expressions.iter().flatten() {
            let key = &expression.key;
            if let Some(index) = positions.get(key).filter(|_| seen.contains(key)) {
                let detail = "exists in both matchLabelKeys and labelSelector";
                problems.invalid(&path.index(*index), key, detail);
            }
            seen.insert(key);
        }
    }
    let path = path.child("matchLabelKeys");
    for (index, key) in keys
        .iter()
        .enumerate()
        .filter(|(_, key)| mismatch.contains(key))
    {
        let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
        problems.invalid(&path.index(index), key, detail);
    }
}

pub(super) fn check_spread(
    constraints: &[TopologySpreadConstraint],
    list: &Path<'_>,
    problems: &mut Problems,
) {
    for (index, constraint) in constraints.iter().enumerate() {
        let path = list.index(index);
        problems.positive(&path.child("maxSkew"), constraint.max_skew);
        if constraint.topology_key.is_empty() {
            problems.required(&path.child("topologyKey"), "can not be empty");
        }
        let action = constraint.when_unsatisfiable.as_str();
        let action_path = path.child("whenUnsatisfiable");
        problems.one_of(&action_path, action, &["DoNotSchedule", "ScheduleAnyway"]);
        let same = |other: &TopologySpreadConstraint| {
            other.topology_key == constraint.topology_key && other.when_unsatisfiable == action
        };
        if constraints[index + 1..].iter().any(same) {
            let path = path.child("{topologyKey, whenUnsatisfiable}");
            problems.duplicate(&path, &format!("{{{}, {action}}}", constraint.topology_key));
        }
        check_min_domains(constraint, &path.child("minDomains"), problems);
        for (field, policy) in [
            ("nodeAffinityPolicy", &constraint.node_affinity_policy),
            ("nodeTaintsPolicy", &constraint.node_taints_policy),
        ] {
            if let Some(policy) = policy {
                problems.one_of(&path.child(field), policy, &["Honor", "Ignore"]);
            }
        }
        let selector = constraint.label_selector.as_ref();
        let keys = constraint.match_label_keys.as_deref().unwrap_or_default();
        check_label_keys(keys, &[], selector, &path, problems);
        selector::check(selector, &path.child("labelSelector"), problems);
    }
}

fn check_min_domains(
    constraint: &TopologySpreadConstraint,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let Some(domains) = constraint.min_domains else {
        return;
    };
    problems.positive(path, domains);
    let action = constraint.when_unsatisfiable.as_str();
    if action != "DoNotSchedule" {
        let detail =
            format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        problems.invalid(path, json(&domains), detail);
    }
}

/// An update of a gated pod may only add to its node selector.
pub(super) fn check_node_selector_additions(
    new: Option<&BTreeMap<String, String>>,
    old: Option<&BTreeMap<String, String>>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let is_kept =
        |(key, value): (&String, &String)| new.and_then(|new| new.get(key)) == Some(value);
    if !old.into_iter().flatten().all(is_kept) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        problems.invalid(path, json(&new), detail);
    }
}

/// An update of a gated pod may only narrow the terms of its node affinity.
pub(super) fn check_node_affinity_additions(
    new: Option<&NodeAffinity>,
    old: Option<&NodeAffinity>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    fn terms(affinity: Option<&NodeAffinity>) -> Option<&Vec<NodeSelectorTerm>> {
        let required = affinity?
            .required_during_scheduling_ignored_during_execution
            .as_ref()?;
        Some(&required.node_selector_terms)
    }
    let Some(old_terms) = terms(old) else { return };
    let new_terms = terms(new).map(Vec::as_slice).unwrap_or_default();
    let path = path.child(REQUIRED);
    let path = path.child("nodeSelectorTerms");
    if !old_terms.is_empty() && old_terms.len() != new_terms.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        let shown: Vec<internal::NodeSelectorTerm<'_>> = new_terms.iter().map(Into::into).collect();
        return problems.invalid(&path, json(&shown), detail);
    }
    for (index, (new, old)) in new_terms.iter().zip(old_terms).enumerate() {
        if !has_only_additions(new, old) {
            let detail = "only additions are allowed (no mutations or deletions)";
            let shown = internal::NodeSelectorTerm::from(new);
            problems.invalid(&path.index(index), json(&shown), detail);
        }
    }
}

fn has_only_additions(new: &NodeSelectorTerm, old: &NodeSelectorTerm) -> bool {
    let parts = [
        (&new.match_expressions, &old.match_expressions),
        (&new.match_fields, &old.match_fields),
    ];
    let parts = parts.map(|(new, old)| {
        (
            new.as_deref().unwrap_or_default(),
            old.as_deref().unwrap_or_default(),
        )
    });
    if parts.iter().all(|(_, old)| old.is_empty()) {
        return parts.iter().all(|(new, _)| new.is_empty());
    }
    parts.iter().all(|(new, old)| new.starts_with(old))
}
