//! Roles and their bindings.
//!
//! Matches v1.36 pkg/apis/rbac/validation/validation.go.

use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};

use super::metadata::{self, Scope};
use super::names::{NameRule, dns_subdomain};
use super::path::Path;
use super::problems::{Problems, json};
use super::{selector, text};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn validate_role(role: &Role, problems: &mut Problems) {
    metadata::check(
        &role.metadata,
        Scope::Namespaced,
        NameRule::PathSegment,
        problems,
    );
    check_rules(role.rules.as_deref(), Scope::Namespaced, problems);
}

pub(super) fn validate_role_update(new: &Role, old: &Role, problems: &mut Problems) {
    validate_role(new, problems);
    metadata::check_update(&new.metadata, &old.metadata, problems);
}

pub(super) fn validate_cluster_role(role: &ClusterRole, problems: &mut Problems) {
    metadata::check(
        &role.metadata,
        Scope::Cluster,
        NameRule::PathSegment,
        problems,
    );
    check_rules(role.rules.as_deref(), Scope::Cluster, problems);
    let Some(aggregation) = &role.aggregation_rule else {
        return;
    };
    let path = Path::new("aggregationRule");
    let list = path.child("clusterRoleSelectors");
    let selectors = aggregation
        .cluster_role_selectors
        .as_deref()
        .unwrap_or_default();
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        problems.required(&list, detail);
    }
    for (index, labels) in selectors.iter().enumerate() {
        let path = list.index(index);
        selector::check(Some(labels), &path, problems);
        if plimsoll_core::object::selector::LabelSelector::from_api(Some(labels)).is_err() {
            problems.invalid(&path, json(&()), "invalid label selector.");
        }
    }
}

pub(super) fn validate_cluster_role_update(
    new: &ClusterRole,
    old: &ClusterRole,
    problems: &mut Problems,
) {
    validate_cluster_role(new, problems);
    metadata::check_update(&new.metadata, &old.metadata, problems);
}

fn check_rules(rules: Option<&[PolicyRule]>, scope: Scope, problems: &mut Problems) {
    let list = Path::new("rules");
    for (index, rule) in rules.unwrap_or_default().iter().enumerate() {
        check_rule(rule, scope, &list.index(index), problems);
    }
}

fn check_rule(rule: &PolicyRule, scope: Scope, path: &Path<'_>, problems: &mut Problems) {
    let is_empty = |list: &Option<Vec<String>>| list.as_ref().is_none_or(Vec::is_empty);
    if rule.verbs.is_empty() {
        problems.required(
            &path.child("verbs"),
            "verbs must contain at least one value",
        );
    }
    if !is_empty(&rule.non_resource_urls) {
        let path = path.child("nonResourceURLs");
        if scope == Scope::Namespaced {
            let detail = "namespaced rules cannot apply to non-resource URLs";
            problems.invalid(&path, json(&rule.non_resource_urls), detail);
        }
        let lists = [&rule.api_groups, &rule.resources, &rule.resource_names];
        if !lists.into_iter().all(is_empty) {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            problems.invalid(&path, json(&rule.non_resource_urls), detail);
        }
        return;
    }
    if is_empty(&rule.api_groups) {
        let detail = "resource rules must supply at least one api group";
        problems.required(&path.child("apiGroups"), detail);
    }
    if is_empty(&rule.resources) {
        let detail = "resource rules must supply at least one resource";
        problems.required(&path.child("resources"), detail);
    }
}

pub(super) fn validate_role_binding(binding: &RoleBinding, problems: &mut Problems) {
    metadata::check(
        &binding.metadata,
        Scope::Namespaced,
        NameRule::PathSegment,
        problems,
    );
    check_role_ref(&binding.role_ref, &["Role", "ClusterRole"], problems);
    check_subjects(binding.subjects.as_deref(), Scope::Namespaced, problems);
}

pub(super) fn validate_role_binding_update(
    new: &RoleBinding,
    old: &RoleBinding,
    problems: &mut Problems,
) {
    validate_role_binding(new, problems);
    metadata::check_update(&new.metadata, &old.metadata, problems);
    check_same_role(&new.role_ref, &old.role_ref, problems);
}

pub(super) fn validate_cluster_role_binding(binding: &ClusterRoleBinding, problems: &mut Problems) {
    metadata::check(
        &binding.metadata,
        Scope::Cluster,
        NameRule::PathSegment,
        problems,
    );
    check_role_ref(&binding.role_ref, &["ClusterRole"], problems);
    check_subjects(binding.subjects.as_deref(), Scope::Cluster, problems);
}

pub(super) fn validate_cluster_role_binding_update(
    new: &ClusterRoleBinding,
    old: &ClusterRoleBinding,
    problems: &mut Problems,
) {
    validate_cluster_role_binding(new, problems);
    metadata::check_update(&new.metadata, &old.metadata, problems);
    check_same_role(&new.role_ref, &old.role_ref, problems);
}

fn check_same_role(new: &RoleRef, old: &RoleRef, problems: &mut Problems) {
    if new != old {
        #[derive(serde::Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Shown<'a> {
            #[serde(rename = "APIGroup")]
            api_group: &'a str,
            kind: &'a str,
            name: &'a str,
        }
        let shown = Shown {
            api_group: text(&new.api_group),
            kind: &new.kind,
            name: &new.name,
        };
        problems.invalid(&Path::new("roleRef"), json(&shown), "cannot change roleRef");
    }
}

fn check_role_ref(role: &RoleRef, kinds: &[&str], problems: &mut Problems) {
    let path = Path::new("roleRef");
    problems.one_of(&path.child("apiGroup"), text(&role.api_group), &[GROUP]);
    problems.one_of(&path.child("kind"), &role.kind, kinds);
    match role.name.as_str() {
        "" => problems.required(&path.child("name"), ""),
        name => problems.invalid_each(&path.child("name"), name, NameRule::PathSegment.check(name)),
    }
}

fn check_subjects(subjects: Option<&[Subject]>, scope: Scope, problems: &mut Problems) {
    let list = Path::new("subjects");
    for (index, subject) in subjects.unwrap_or_default().iter().enumerate() {
        let path = list.index(index);
        let (name, group) = (subject.name.as_str(), text(&subject.api_group));
        problems.require_text(&path.child("name"), name);
        match subject.kind.as_str() {
            "ServiceAccount" => {
                if !name.is_empty() {
                    problems.invalid_each(&path.child("name"), name, dns_subdomain(name));
                }
                problems.one_of(&path.child("apiGroup"), group, &[""]);
                if scope == Scope::Cluster {
                    problems.require_text(&path.child("namespace"), text(&subject.namespace));
                }
            }
            "User" | "Group" => problems.one_of(&path.child("apiGroup"), group, &[GROUP]),
            other => {
                let kinds = ["ServiceAccount", "User", "Group"];
                problems.not_supported(&path.child("kind"), other, &kinds);
            }
        }
    }
}
