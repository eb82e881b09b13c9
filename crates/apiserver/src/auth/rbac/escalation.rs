//! Escalation checks on writing roles and bindings: no user grants more than it has.
//!
//! Matches v1.36 pkg/registry/rbac/*/policybased and pkg/registry/rbac/validation/rule.go. Users
//! that may `escalate` a role or `bind` it are exempt.

use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef,
};
use plimsoll_core::problem::quoted;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::cover::{described, uncovered};
use super::{GROUP, Policy};
use crate::auth::attributes::{Attributes, Forbidden, Resource};
use crate::auth::identity::{MASTERS, User};
use crate::auth::{quoted_list, text};

/// The four kinds of this API group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    /// Rules for the whole cluster, or for any namespace.
    ClusterRole,
    /// ClusterRoleBinding.
    ClusterRoleBinding,
    /// Rules for a namespace.
    Role,
    /// RoleBinding.
    RoleBinding,
}

impl PolicyKind {
    /// The kind of that plural name.
    pub fn of_resource(resource: &str) -> Option<PolicyKind> {
        let kinds = [
            PolicyKind::ClusterRole,
            PolicyKind::ClusterRoleBinding,
            PolicyKind::Role,
            PolicyKind::RoleBinding,
        ];
        kinds.into_iter().find(|kind| kind.resource() == resource)
    }

    /// The plural name.
    pub fn resource(self) -> &'static str {
        match self {
            PolicyKind::ClusterRole => "clusterroles",
            PolicyKind::ClusterRoleBinding => "clusterrolebindings",
            PolicyKind::Role => "roles",
            PolicyKind::RoleBinding => "rolebindings",
        }
    }
}

/// A role or binding that is about to be written.
#[derive(Clone, Copy, Debug)]
pub struct PolicyWrite<'a> {
    /// The kind.
    pub kind: PolicyKind,
    /// The namespace in the URL.
    pub namespace: &'a str,
    /// The name in the URL; empty on create.
    pub name: &'a str,
    /// The new object.
    pub object: &'a Value,
    /// The current object; `None` on create.
    pub old: Option<&'a Value>,
}

/// Why a role or binding may not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EscalationError {
    /// 403.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// 404: the role to bind does not exist.
    #[error("{resource}.{GROUP} {} not found", quoted(.name))]
    NotFound {
        /// The plural name.
        resource: &'static str,
        /// The name of the role.
        name: String,
    },
    /// 400: the object is not of its kind, or binds neither a role nor a cluster role.
    #[error("{0}")]
    Malformed(String),
}

/// Whether the user may write this role or binding.
pub fn check_write(
    policy: &Policy,
    user: &User,
    write: &PolicyWrite<'_>,
) -> Result<(), EscalationError> {
    if user.is_in(MASTERS) {
        return Ok(());
    }
    let changes_little = write
        .old
        .is_some_and(|old| only_gc_fields_differ(old, write.object));
    match write.kind {
        PolicyKind::Role | PolicyKind::ClusterRole => {
            if may_escalate(policy, user, write) || changes_little {
                return Ok(());
            }
            check_role(policy, user, write)
        }
        PolicyKind::RoleBinding | PolicyKind::ClusterRoleBinding => {
            if changes_little {
                return Ok(());
            }
            check_binding(policy, user, write)
        }
    }
}

fn check_role(
    policy: &Policy,
    user: &User,
    write: &PolicyWrite<'_>,
) -> Result<(), EscalationError> {
    if write.kind == PolicyKind::Role {
        let role: Role = decode(write.object)?;
        return check_grant(policy, user, write, &role.rules.unwrap_or_default());
    }
    let role: ClusterRole = decode(write.object)?;
    check_grant(
        policy,
        user,
        write,
        role.rules.as_deref().unwrap_or_default(),
    )?;
    let old: Option<ClusterRole> = write.old.map(decode).transpose()?;
    // An aggregated role can contain anything.
    if gathers(&role) || old.as_ref().is_some_and(gathers) {
        let (owned, _) = policy.rules_for(user, write.namespace);
        if !uncovered(&owned, &full_authority()).is_empty() {
            let reason = "must have cluster-admin privileges to use the aggregationRule";
            return Err(forbidden(write, reason.to_owned()));
        }
    }
    Ok(())
}

fn check_binding(
    policy: &Policy,
    user: &User,
    write: &PolicyWrite<'_>,
) -> Result<(), EscalationError> {
    let (role, namespace) = match write.kind {
        PolicyKind::RoleBinding => {
            let binding: RoleBinding = decode(write.object)?;
            (binding.role_ref, write.namespace)
        }
        _ => {
            let binding: ClusterRoleBinding = decode(write.object)?;
            (binding.role_ref, "")
        }
    };
    let resource = match role.kind.as_str() {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        kind => {
            let text = format!("unsupported role reference kind: {}", quoted(kind));
            return Err(EscalationError::Malformed(text));
        }
    };
    if may_bind(policy, user, &role, resource, namespace) {
        return Ok(());
    }
    let rules = policy.rules_of(&role, namespace);
    let rules = rules.map_err(|_| EscalationError::NotFound {
        resource,
        name: role.name.clone(),
    })?;
    check_grant(policy, user, write, rules)
}

/// Whether the user has all permissions that the rules would grant.
fn check_grant(
    policy: &Policy,
    user: &User,
    write: &PolicyWrite<'_>,
    rules: &[PolicyRule],
) -> Result<(), EscalationError> {
    let (owned, errors) = policy.rules_for(user, write.namespace);
    let missing = uncovered(&owned, rules);
    if missing.is_empty() {
        return Ok(());
    }
    let mut reason = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        quoted(&user.name),
        quoted_list(&user.groups),
        described(&missing),
    );
    if !errors.is_empty() {
        let errors = plimsoll_core::problem::joined(errors);
        reason.push_str(&format!("; resolution errors: [{errors}]"));
    }
    Err(forbidden(write, reason))
}

fn forbidden(write: &PolicyWrite<'_>, reason: String) -> EscalationError {
    EscalationError::Forbidden(Forbidden {
        group: GROUP.to_owned(),
        resource: write.kind.resource().to_owned(),
        name: text(write.object, "/metadata/name").to_owned(),
        reason,
    })
}

fn may_escalate(policy: &Policy, user: &User, write: &PolicyWrite<'_>) -> bool {
    let resource = Resource {
        group: GROUP,
        resource: write.kind.resource(),
        namespace: write.namespace,
        name: write.name,
        ..Resource::default()
    };
    let attributes = Attributes::resource("escalate", resource);
    policy.allows(user, &attributes).is_ok()
}

fn may_bind(policy: &Policy, user: &User, role: &RoleRef, resource: &str, namespace: &str) -> bool {
    let resource = Resource {
        group: role.api_group.as_deref().unwrap_or_default(),
        resource,
        namespace,
        name: &role.name,
        ..Resource::default()
    };
    let attributes = Attributes::resource("bind", resource);
    policy.allows(user, &attributes).is_ok()
}

fn gathers(role: &ClusterRole) -> bool {
    let rule = role.aggregation_rule.as_ref();
    let selectors = rule.and_then(|rule| rule.cluster_role_selectors.as_ref());
    selectors.is_some_and(|selectors| !selectors.is_empty())
}

fn full_authority() -> [PolicyRule; 2] {
    let all = || vec!["*".to_owned()];
    let resources = PolicyRule {
        api_groups: Some(all()),
        resources: Some(all()),
        verbs: all(),
        ..PolicyRule::default()
    };
    let paths = PolicyRule {
        non_resource_urls: Some(all()),
        verbs: all(),
        ..PolicyRule::default()
    };
    [resources, paths]
}

/// Whether only fields that the garbage collector writes differ: it must be able to delete a role
/// that it could not grant.
fn only_gc_fields_differ(old: &Value, new: &Value) -> bool {
    let without = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object
            .pointer_mut("/metadata")
            .and_then(Value::as_object_mut)
        {
            for field in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
                metadata.remove(field);
            }
        }
        object
    };
    without(old) == without(new)
}

fn decode<T: DeserializeOwned>(object: &Value) -> Result<T, EscalationError> {
    T::deserialize(object).map_err(|error| EscalationError::Malformed(error.to_string()))
}
