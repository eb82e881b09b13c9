//! All roles and bindings, indexed by subject.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use plimsoll_core::problem::{joined, quoted};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::aggregate::gathered;
use super::bindings::{Binding, Bindings, Grant};
use super::rule::rule_allows;
use super::{GROUP, PolicyKind};
use crate::auth::attributes::Attributes;
use crate::auth::identity::User;

/// All roles and bindings of the cluster.
#[derive(Debug, Default)]
pub struct Policy {
    cluster_roles: BTreeMap<String, ClusterRole>,
    /// The rules of aggregated cluster roles.
    gathered: BTreeMap<String, Vec<PolicyRule>>,
    /// By namespace, then by name.
    roles: HashMap<String, BTreeMap<String, Vec<PolicyRule>>>,
    cluster_bindings: Bindings,
    /// By namespace.
    bindings: HashMap<String, Bindings>,
}

/// An object that is not of its kind.
#[derive(Debug, thiserror::Error)]
#[error("{kind:?} {name} cannot be read")]
pub struct Malformed {
    kind: PolicyKind,
    name: String,
    #[source]
    source: serde_json::Error,
}

impl Policy {
    /// Updates the index from an object; `None` when it was deleted. An object that cannot be
    /// decoded grants nothing any more.
    pub fn observe(
        &mut self,
        kind: PolicyKind,
        namespace: &str,
        name: &str,
        object: Option<&Value>,
    ) -> Result<(), Malformed> {
        let outcome = match kind {
            PolicyKind::ClusterRole => {
                let (role, outcome) = decode(object);
                self.set_cluster_role(name, role);
                outcome
            }
            PolicyKind::Role => {
                let (role, outcome) = decode(object);
                self.set_role(namespace, name, role);
                outcome
            }
            PolicyKind::ClusterRoleBinding => {
                let (found, outcome) = decode::<ClusterRoleBinding>(object);
                let found = found.map(|binding| (binding.role_ref, binding.subjects));
                self.set_binding("", name, found);
                outcome
            }
            PolicyKind::RoleBinding => {
                let (found, outcome) = decode::<RoleBinding>(object);
                let found = found.map(|binding| (binding.role_ref, binding.subjects));
                self.set_binding(namespace, name, found);
                outcome
            }
        };
        outcome.map_err(|source| Malformed {
            kind,
            name: name.to_owned(),
            source,
        })
    }

    fn set_cluster_role(&mut self, name: &str, role: Option<ClusterRole>) {
        match role {
            Some(role) => self.cluster_roles.insert(name.to_owned(), role),
            None => self.cluster_roles.remove(name),
        };
        self.gathered = gathered(&self.cluster_roles);
    }

    fn set_role(&mut self, namespace: &str, name: &str, role: Option<Role>) {
        match role {
            Some(role) => {
                let roles = self.roles.entry(namespace.to_owned()).or_default();
                roles.insert(name.to_owned(), role.rules.unwrap_or_default());
            }
            None => {
                if let Some(roles) = self.roles.get_mut(namespace) {
                    roles.remove(name);
                    if roles.is_empty() {
                        self.roles.remove(namespace);
                    }
                }
            }
        }
    }

    fn set_binding(
        &mut self,
        namespace: &str,
        name: &str,
        binding: Option<(RoleRef, Option<Vec<Subject>>)>,
    ) {
        let binding = binding.map(|(role, subjects)| Binding {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            role,
            subjects: subjects.unwrap_or_default(),
        });
        if namespace.is_empty() {
            self.cluster_bindings.set(name, binding);
            return;
        }
        let bindings = self.bindings.entry(namespace.to_owned()).or_default();
        bindings.set(name, binding);
        if bindings.is_empty() {
            self.bindings.remove(namespace);
        }
    }

    /// Whether some rule allows the request. The error lists roles that could not be found, in
    /// upstream's words; mostly it is empty.
    pub fn allows(&self, user: &User, attributes: &Attributes<'_>) -> Result<Grant, String> {
        let mut errors = BTreeSet::new();
        for bindings in self.scopes(attributes.namespace()) {
            for binding in bindings.of(user) {
                let rules = match self.rules_of(&binding.role, &binding.namespace) {
                    Ok(rules) => rules,
                    Err(error) => {
                        errors.insert(error);
                        continue;
                    }
                };
                if rules.iter().any(|rule| rule_allows(rule, attributes)) {
                    return Ok(bindings.grant(binding, user));
                }
            }
        }
        Err(match errors.is_empty() {
            true => String::new(),
            false => format!("RBAC: {}", joined(errors)),
        })
    }

    /// All rules of a user in a namespace, and the errors.
    pub fn rules_for(&self, user: &User, namespace: &str) -> (Vec<PolicyRule>, Vec<String>) {
        let (mut found, mut errors) = (Vec::new(), Vec::new());
        for bindings in self.scopes(namespace) {
            let mut distinct = BTreeMap::new();
            distinct.extend(bindings.of(user).map(|b| (b.name.as_str(), b)));
            for binding in distinct.into_values() {
                match self.rules_of(&binding.role, &binding.namespace) {
                    Ok(rules) => found.extend_from_slice(rules),
                    Err(error) => errors.push(error),
                }
            }
        }
        (found, errors)
    }

    /// The rules of the role that a binding in `namespace` names. The error is upstream's text.
    pub fn rules_of(&self, role: &RoleRef, namespace: &str) -> Result<&[PolicyRule], String> {
        let missing = |kind| format!("{kind}.{GROUP} {} not found", quoted(&role.name));
        match role.kind.as_str() {
            "ClusterRole" => self
                .cluster_role_rules(&role.name)
                .ok_or_else(|| missing("clusterrole")),
            "Role" => {
                let roles = self.roles.get(namespace);
                let rules = roles.and_then(|roles| roles.get(&role.name));
                let rules = rules.map(Vec::as_slice);
                rules.ok_or_else(|| missing("role"))
            }
            kind => Err(format!("unsupported role reference kind: {}", quoted(kind))),
        }
    }

    fn cluster_role_rules(&self, name: &str) -> Option<&[PolicyRule]> {
        if let Some(rules) = self.gathered.get(name) {
            return Some(rules);
        }
        let role = self.cluster_roles.get(name)?;
        Some(role.rules.as_deref().unwrap_or_default())
    }

    /// The cluster roles whose stored rules differ from their aggregated rules, with the latter.
    /// Upstream's aggregation controller writes these.
    pub fn stale_aggregated_roles(&self) -> Vec<(&str, &[PolicyRule])> {
        let stale = self.gathered.iter().filter(|(name, rules)| {
            let stored = self
                .cluster_roles
                .get(*name)
                .and_then(|role| role.rules.as_ref());
            stored.map_or(&[][..], Vec::as_slice) != rules.as_slice()
        });
        stale
            .map(|(name, rules)| (name.as_str(), rules.as_slice()))
            .collect()
    }

    /// The bindings of the cluster, then those of the namespace.
    fn scopes(&self, namespace: &str) -> impl Iterator<Item = &Bindings> {
        [&self.cluster_bindings]
            .into_iter()
            .chain(self.bindings.get(namespace))
    }
}

/// The object if it can be decoded; one that cannot counts as deleted.
fn decode<T: DeserializeOwned>(
    object: Option<&Value>,
) -> (Option<T>, Result<(), serde_json::Error>) {
    match object.map(T::deserialize).transpose() {
        Ok(found) => (found, Ok(())),
        Err(error) => (None, Err(error)),
    }
}
