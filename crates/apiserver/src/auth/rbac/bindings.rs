//! Bindings of one scope, the cluster or a namespace, indexed by user and by group.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::rbac::v1::{RoleRef, Subject};
use plimsoll_core::problem::quoted;

use crate::auth::identity::{User, service_account_user_name};

/// A RoleBinding or ClusterRoleBinding.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// Empty for a cluster role binding.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The role.
    pub role: RoleRef,
    /// The subjects.
    pub subjects: Vec<Subject>,
}

/// The bindings of one scope.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    by_name: BTreeMap<String, Arc<Binding>>,
    /// For each user name, the bindings that name it and where in them.
    by_user: HashMap<String, BTreeMap<String, usize>>,
    /// The same for groups.
    by_group: HashMap<String, BTreeMap<String, usize>>,
}

/// Which binding allows a request, and through which of its subjects.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    binding: Arc<Binding>,
    subject: usize,
}

impl Bindings {
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Replaces the binding of that name; `None` removes it.
    pub(super) fn set(&mut self, name: &str, binding: Option<Binding>) {
        if let Some(old) = self.by_name.remove(name) {
            for (key, is_group) in old.keys() {
                let index = if is_group {
                    &mut self.by_group
                } else {
                    &mut self.by_user
                };
                if let Some(places) = index.get_mut(&key) {
                    places.remove(name);
                    if places.is_empty() {
                        index.remove(&key);
                    }
                }
            }
        }
        let Some(binding) = binding else {
            return;
        };
        for (place, subject) in binding.subjects.iter().enumerate() {
            let Some((key, is_group)) = key_of(subject, &binding.namespace) else {
                continue;
            };
            let index = if is_group {
                &mut self.by_group
            } else {
                &mut self.by_user
            };
            let places = index.entry(key).or_default();
            places.entry(name.to_owned()).or_insert(place);
        }
        self.by_name.insert(name.to_owned(), Arc::new(binding));
    }

    /// The bindings of a user; one that names several of its groups comes several times.
    pub(super) fn of(&self, user: &User) -> impl Iterator<Item = &Arc<Binding>> {
        let names = self.places(user).flat_map(BTreeMap::keys);
        names.filter_map(|name| self.by_name.get(name))
    }

    fn places(&self, user: &User) -> impl Iterator<Item = &BTreeMap<String, usize>> {
        let by_user = self.by_user.get(&user.name).into_iter();
        let by_group = user
            .groups
            .iter()
            .filter_map(|group| self.by_group.get(group));
        by_user.chain(by_group)
    }

    /// The grant through the first subject of the binding that matches the user.
    pub(super) fn grant(&self, binding: &Arc<Binding>, user: &User) -> Grant {
        let places = self
            .places(user)
            .filter_map(|places| places.get(&binding.name));
        Grant {
            binding: binding.clone(),
            subject: *places
                .min()
                .expect("the binding was found through a subject"),
        }
    }
}

impl Binding {
    fn keys(&self) -> impl Iterator<Item = (String, bool)> {
        let subjects = self.subjects.iter();
        subjects.filter_map(|subject| key_of(subject, &self.namespace))
    }
}

/// The user or group name of a subject, and whether it is a group.
///
/// A service account without a namespace is one of the binding's own; in a cluster role binding it
/// matches no user.
fn key_of(subject: &Subject, namespace: &str) -> Option<(String, bool)> {
    match subject.kind.as_str() {
        "User" => Some((subject.name.clone(), false)),
        "Group" => Some((subject.name.clone(), true)),
        "ServiceAccount" => {
            let own = subject.namespace.as_deref().filter(|own| !own.is_empty());
            let namespace = own.unwrap_or(namespace);
            let name = || service_account_user_name(namespace, &subject.name);
            (!namespace.is_empty()).then(|| (name(), false))
        }
        _ => None,
    }
}

/// `RoleBinding "web/default" of Role "reader" to User "alice"`.
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binding = &self.binding;
        let (kind, name) = match binding.namespace.as_str() {
            "" => ("ClusterRoleBinding", binding.name.clone()),
            namespace => ("RoleBinding", format!("{}/{namespace}", binding.name)),
        };
        let subject = &binding.subjects[self.subject];
        let subject_name = match subject.kind.as_str() {
            "ServiceAccount" => {
                let own = subject.namespace.as_deref().filter(|own| !own.is_empty());
                format!("{}/{}", subject.name, own.unwrap_or(&binding.namespace))
            }
            _ => subject.name.clone(),
        };
        write!(
            f,
            "{kind} {} of {} {} to {} {}",
            quoted(&name),
            binding.role.kind,
            quoted(&binding.role.name),
            subject.kind,
            quoted(&subject_name),
        )
    }
}
