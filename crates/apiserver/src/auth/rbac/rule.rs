//! What one rule allows.
//!
//! Matches v1.36 pkg/apis/rbac/v1/evaluation_helpers.go.

use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::auth::attributes::{Attributes, Resource, Target};
use crate::auth::quoted_list;

/// Whether the rule allows the request.
pub fn rule_allows(rule: &PolicyRule, attributes: &Attributes<'_>) -> bool {
    has_or_all(&rule.verbs, attributes.verb)
        && match &attributes.target {
            Target::Path(path) => parts(&rule.non_resource_urls)
                .iter()
                .any(|url| path_covers(url, path)),
            Target::Resource(resource) => {
                has_or_all(parts(&rule.api_groups), resource.group)
                    && names_resource(parts(&rule.resources), resource)
                    && names_object(parts(&rule.resource_names), resource.name)
            }
        }
}

/// The values of an optional part of a rule.
pub(super) fn parts(values: &Option<Vec<String>>) -> &[String] {
    values.as_deref().unwrap_or_default()
}

pub(super) fn has(values: &[String], wanted: &str) -> bool {
    values.iter().any(|value| value == wanted)
}

pub(super) fn has_or_all(values: &[String], wanted: &str) -> bool {
    values.iter().any(|value| value == "*" || value == wanted)
}

/// `pods`, `pods/status`, `*/status` or `*`.
fn names_resource(rules: &[String], resource: &Resource<'_>) -> bool {
    let is_subresource_of = |rule: &str, of: &str| {
        let rest = rule
            .strip_prefix(of)
            .and_then(|rest| rest.strip_prefix('/'));
        rest == Some(resource.subresource)
    };
    rules.iter().any(|rule| match resource.subresource {
        _ if rule == "*" => true,
        "" => rule == resource.resource,
        _ => is_subresource_of(rule, resource.resource) || is_subresource_of(rule, "*"),
    })
}

/// A rule without names applies to all of them; `create` and `list` have no name.
fn names_object(rules: &[String], name: &str) -> bool {
    rules.is_empty() || has(rules, name)
}

/// Whether a path in a rule, possibly with a `*` at its end, is about this one.
pub(super) fn path_covers(rule: &str, path: &str) -> bool {
    rule == path || rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*'))
}

/// The rule in one line, as in error messages.
pub(super) fn compact_text(rule: &PolicyRule) -> String {
    let shown = [
        ("APIGroups", parts(&rule.api_groups)),
        ("Resources", parts(&rule.resources)),
        ("NonResourceURLs", parts(&rule.non_resource_urls)),
        ("ResourceNames", parts(&rule.resource_names)),
        ("Verbs", rule.verbs.as_slice()),
    ];
    let shown: Vec<String> = shown
        .into_iter()
        .filter(|(_, values)| !values.is_empty())
        .map(|(name, values)| format!("{name}:{}", quoted_list(values)))
        .collect();
    format!("{{{}}}", shown.join(", "))
}
