//! Reconciling the default roles and bindings when the server starts.
//!
//! Additions of an administrator stay; missing rules and subjects are added. An object with
//! `rbac.authorization.kubernetes.io/autoupdate: "false"` is left alone. Matches v1.36
//! component-helpers/auth/rbac/reconciliation without the removal of extra permissions.

use std::collections::BTreeMap;

use k8s_openapi::api::rbac::v1::{
    AggregationRule, ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef,
    Subject,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::cover::uncovered;
use super::{PolicyKind, Standard};
use crate::auth::Objects;

/// One write that reconciles a default object.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The object is missing.
    Create(PolicyKind, Value),
    /// The object lacks something.
    Update(PolicyKind, Value),
    /// The binding is of another role, which cannot be changed: delete it, then create this.
    Recreate(PolicyKind, Value),
}

/// The writes that are needed, in the order in which to do them.
pub fn reconcile(standard: &Standard, existing: &dyn Objects) -> Vec<Change> {
    let mut changes = Vec::new();
    let cluster_roles = standard.cluster_roles.iter();
    changes.extend(cluster_roles.filter_map(|role| {
        compared(
            PolicyKind::ClusterRole,
            role,
            &role.metadata,
            existing,
            merged_cluster_role,
        )
    }));
    let cluster_bindings = standard.cluster_role_bindings.iter();
    changes.extend(cluster_bindings.filter_map(|b| {
        compared(
            PolicyKind::ClusterRoleBinding,
            b,
            &b.metadata,
            existing,
            merged_cluster_binding,
        )
    }));
    changes.extend(standard.roles.iter().filter_map(|role| {
        compared(
            PolicyKind::Role,
            role,
            &role.metadata,
            existing,
            merged_role,
        )
    }));
    changes.extend(standard.role_bindings.iter().filter_map(|b| {
        compared(
            PolicyKind::RoleBinding,
            b,
            &b.metadata,
            existing,
            merged_binding,
        )
    }));
    changes
}

/// Compares one object. `merge` adds what the standard object has to the existing one; `None` means
/// that it cannot.
fn compared<T: Clone + PartialEq + Serialize + DeserializeOwned>(
    kind: PolicyKind,
    wanted: &T,
    metadata: &ObjectMeta,
    existing: &dyn Objects,
    merge: impl Fn(&T, T) -> Option<T>,
) -> Option<Change> {
    let json = |object: &T| serde_json::to_value(object).expect("API objects are JSON");
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let name = metadata.name.as_deref().unwrap_or_default();
    let Some(found) = existing.object(super::GROUP, kind.resource(), namespace, name) else {
        return Some(Change::Create(kind, json(wanted)));
    };
    let annotations = found.pointer("/metadata/annotations");
    let choice = annotations.and_then(|a| a.get("rbac.authorization.kubernetes.io/autoupdate"));
    if choice.and_then(Value::as_str) == Some("false") {
        return None;
    }
    let Ok(found) = T::deserialize(&found) else {
        return Some(Change::Recreate(kind, json(wanted)));
    };
    match merge(wanted, found.clone()) {
        None => Some(Change::Recreate(kind, json(wanted))),
        Some(merged) => (merged != found).then(|| Change::Update(kind, json(&merged))),
    }
}

fn merged_cluster_role(wanted: &ClusterRole, mut found: ClusterRole) -> Option<ClusterRole> {
    merge_metadata(&wanted.metadata, &mut found.metadata);
    add_missing_rules(wanted.rules.as_deref(), &mut found.rules);
    match &wanted.aggregation_rule {
        None => found.aggregation_rule = None,
        Some(rule) => {
            let found = found
                .aggregation_rule
                .get_or_insert_with(AggregationRule::default);
            let selectors = found.cluster_role_selectors.get_or_insert_with(Vec::new);
            let wanted = rule.cluster_role_selectors.iter().flatten();
            add_missing(wanted, selectors);
        }
    }
    Some(found)
}

fn merged_role(wanted: &Role, mut found: Role) -> Option<Role> {
    merge_metadata(&wanted.metadata, &mut found.metadata);
    add_missing_rules(wanted.rules.as_deref(), &mut found.rules);
    Some(found)
}

fn merged_cluster_binding(
    wanted: &ClusterRoleBinding,
    mut found: ClusterRoleBinding,
) -> Option<ClusterRoleBinding> {
    merge_metadata(&wanted.metadata, &mut found.metadata);
    merge_subjects(
        &wanted.role_ref,
        &found.role_ref,
        &wanted.subjects,
        &mut found.subjects,
    )?;
    Some(found)
}

fn merged_binding(wanted: &RoleBinding, mut found: RoleBinding) -> Option<RoleBinding> {
    merge_metadata(&wanted.metadata, &mut found.metadata);
    merge_subjects(
        &wanted.role_ref,
        &found.role_ref,
        &wanted.subjects,
        &mut found.subjects,
    )?;
    Some(found)
}

/// `None` if the bindings refer to different roles.
fn merge_subjects(
    wanted_role: &RoleRef,
    found_role: &RoleRef,
    wanted: &Option<Vec<Subject>>,
    found: &mut Option<Vec<Subject>>,
) -> Option<()> {
    if wanted_role != found_role {
        return None;
    }
    if let Some(wanted) = wanted {
        add_missing(wanted, found.get_or_insert_with(Vec::new));
    }
    Some(())
}

fn add_missing_rules(wanted: Option<&[PolicyRule]>, found: &mut Option<Vec<PolicyRule>>) {
    let missing = uncovered(
        found.as_deref().unwrap_or_default(),
        wanted.unwrap_or_default(),
    );
    if !missing.is_empty() {
        found.get_or_insert_with(Vec::new).extend(missing);
    }
}

fn add_missing<'a, T: Clone + PartialEq + 'a>(
    wanted: impl IntoIterator<Item = &'a T>,
    found: &mut Vec<T>,
) {
    for item in wanted {
        if !found.contains(item) {
            found.push(item.clone());
        }
    }
}

/// The object's own labels and annotations win over the standard ones.
fn merge_metadata(wanted: &ObjectMeta, found: &mut ObjectMeta) {
    let merge = |wanted: &Option<BTreeMap<String, String>>,
                 found: &mut Option<BTreeMap<String, String>>| {
        for (key, value) in wanted.iter().flatten() {
            let found = found.get_or_insert_with(BTreeMap::new);
            found.entry(key.clone()).or_insert_with(|| value.clone());
        }
    };
    merge(&wanted.labels, &mut found.labels);
    merge(&wanted.annotations, &mut found.annotations);
}
