//! Which object is meant.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

/// An object, as others refer to it. Two references may give the same uid different names, of
/// which at most one is right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Identity {
    // In the order in which alternatives are tried.
    pub(super) kind: String,
    pub(super) api_version: String,
    /// Empty for objects of the cluster.
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
}

impl Identity {
    /// An object that a watch reported.
    pub(super) fn of(api_version: &str, kind: &str, metadata: &ObjectMeta) -> Identity {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        Identity {
            kind: kind.to_owned(),
            api_version: api_version.to_owned(),
            namespace: text(&metadata.namespace),
            name: text(&metadata.name),
            uid: text(&metadata.uid),
        }
    }

    /// The owner that a dependent in that namespace refers to.
    pub(super) fn of_owner(owner: &OwnerReference, namespace: &str) -> Identity {
        Identity {
            kind: owner.kind.clone(),
            api_version: owner.api_version.clone(),
            namespace: namespace.to_owned(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
        }
    }

    /// Whether the reference gives this object the names it has.
    pub(super) fn is_named_by(&self, owner: &OwnerReference) -> bool {
        self.uid == owner.uid
            && self.name == owner.name
            && self.kind == owner.kind
            && self.api_version == owner.api_version
    }

    /// The same as an object of the cluster.
    pub(super) fn without_namespace(&self) -> Identity {
        Identity {
            namespace: String::new(),
            ..self.clone()
        }
    }
}

/// As upstream's messages have it.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity {
            kind,
            api_version,
            namespace,
            name,
            uid,
        } = self;
        write!(
            f,
            "[{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}]"
        )
    }
}
