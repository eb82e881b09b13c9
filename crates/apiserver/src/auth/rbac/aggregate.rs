//! Aggregated cluster roles: `admin`, `edit` and `view`.
//!
//! Matches v1.36 pkg/controller/clusterroleaggregation. Upstream's controller writes the rules into
//! the role, round after round until nothing changes; here the result of those rounds is computed
//! directly and takes effect at once.

use std::collections::BTreeMap;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use plimsoll_core::object::selector::LabelSelector;

/// The rules of each aggregated role, by name.
pub(super) fn gathered(roles: &BTreeMap<String, ClusterRole>) -> BTreeMap<String, Vec<PolicyRule>> {
    let gatherers = roles
        .iter()
        .filter(|(_, role)| role.aggregation_rule.is_some());
    let parts: BTreeMap<&str, Vec<&str>> = gatherers
        .map(|(name, role)| (name.as_str(), parts_of(name, role, roles)))
        .collect();
    let mut done = BTreeMap::new();
    for name in parts.keys() {
        let mut rules = Vec::new();
        gather(name, &parts, roles, &mut vec![name], &mut rules);
        done.insert((*name).to_owned(), rules);
    }
    done
}

/// The roles that the selectors match, selector by selector.
fn parts_of<'a>(
    own_name: &str,
    role: &ClusterRole,
    roles: &'a BTreeMap<String, ClusterRole>,
) -> Vec<&'a str> {
    let rule = role.aggregation_rule.as_ref();
    let selectors = rule.and_then(|rule| rule.cluster_role_selectors.as_deref());
    let mut names = Vec::new();
    for selector in selectors.unwrap_or_default() {
        // A selector that cannot be parsed matches nothing.
        let Ok(selector) = LabelSelector::from_api(Some(selector)) else {
            continue;
        };
        let none = BTreeMap::new();
        let chosen = roles.iter().filter(|(name, role)| {
            let labels = role.metadata.labels.as_ref().unwrap_or(&none);
            *name != own_name && selector.matches(labels)
        });
        names.extend(chosen.map(|(name, _)| name.as_str()));
    }
    names
}

/// Adds the rules of all parts of a role, each once. Cycles are cut at the first repetition.
fn gather<'a>(
    name: &str,
    parts: &BTreeMap<&str, Vec<&'a str>>,
    roles: &BTreeMap<String, ClusterRole>,
    met: &mut Vec<&'a str>,
    rules: &mut Vec<PolicyRule>,
) {
    for part in parts.get(name).into_iter().flatten() {
        if parts.contains_key(part) {
            if !met.contains(part) {
                met.push(part);
                gather(part, parts, roles, met, rules);
            }
            continue;
        }
        let own = roles.get(*part).and_then(|role| role.rules.as_deref());
        for rule in own.unwrap_or_default() {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
}
