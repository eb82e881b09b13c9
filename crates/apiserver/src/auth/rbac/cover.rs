//! Whether a user's rules cover the rules that are to be granted.
//!
//! Matches v1.36 component-helpers/auth/rbac/validation/policy_comparator.go and
//! pkg/registry/rbac/validation/policy_compact.go.

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::rule::{compact_text, has, has_or_all, parts, path_covers};

/// The parts of `wanted`, one verb on one resource each, that `owned` does not allow.
pub(super) fn uncovered(owned: &[PolicyRule], wanted: &[PolicyRule]) -> Vec<PolicyRule> {
    let mut missing: Vec<PolicyRule> = wanted.iter().flat_map(broken_down).collect();
    missing.retain(|part| !owned.iter().any(|rule| covers(rule, part)));
    missing
}

/// One rule per group, resource, verb and name, then one per URL and verb.
fn broken_down(rule: &PolicyRule) -> Vec<PolicyRule> {
    let one = |text: &String| Some(vec![text.clone()]);
    let mut out = Vec::new();
    for group in parts(&rule.api_groups) {
        for resource in parts(&rule.resources) {
            for verb in &rule.verbs {
                let plain = PolicyRule {
                    api_groups: one(group),
                    resources: one(resource),
                    verbs: vec![verb.clone()],
                    ..PolicyRule::default()
                };
                match parts(&rule.resource_names) {
                    [] => out.push(plain),
                    names => out.extend(names.iter().map(|name| PolicyRule {
                        resource_names: one(name),
                        ..plain.clone()
                    })),
                }
            }
        }
    }
    for url in parts(&rule.non_resource_urls) {
        out.extend(rule.verbs.iter().map(|verb| PolicyRule {
            non_resource_urls: one(url),
            verbs: vec![verb.clone()],
            ..PolicyRule::default()
        }));
    }
    out
}

/// Whether a rule covers a broken-down one.
fn covers(rule: &PolicyRule, part: &PolicyRule) -> bool {
    let all_in = |owned: &[String], wanted: &[String]| {
        has(owned, "*") || wanted.iter().all(|value| has(owned, value))
    };
    let names = parts(&rule.resource_names);
    let wanted_names = parts(&part.resource_names);
    let covers_names = names.is_empty()
        || !wanted_names.is_empty() && wanted_names.iter().all(|name| has(names, name));
    let covers_resource = |resource: &String| {
        let resources = parts(&rule.resources);
        let any_with_subresource = || {
            let (_, subresource) = resource.split_once('/')?;
            Some(has(resources, &format!("*/{subresource}")))
        };
        has_or_all(resources, resource) || any_with_subresource().unwrap_or(false)
    };
    let covers_url = |wanted: &String| {
        let urls = parts(&rule.non_resource_urls);
        urls.iter().any(|url| path_covers(url, wanted))
    };
    all_in(&rule.verbs, &part.verbs)
        && all_in(parts(&rule.api_groups), parts(&part.api_groups))
        && parts(&part.resources).iter().all(covers_resource)
        && parts(&part.non_resource_urls).iter().all(covers_url)
        && covers_names
}

/// Broken-down rules in the format of the error: verbs on the same resource in one line, sorted.
pub(super) fn described(rules: &[PolicyRule]) -> String {
    let mut merged: Vec<PolicyRule> = Vec::new();
    for rule in rules {
        let is_simple = parts(&rule.non_resource_urls).is_empty();
        let same = merged.iter_mut().find(|other| {
            is_simple
                && other.api_groups == rule.api_groups
                && other.resources == rule.resources
                && other.resource_names == rule.resource_names
        });
        match same {
            Some(other) => other.verbs.extend_from_slice(&rule.verbs),
            None => merged.push(rule.clone()),
        }
    }
    let mut lines: Vec<String> = merged.iter().map(compact_text).collect();
    lines.sort();
    lines.dedup();
    lines.join("\n")
}
