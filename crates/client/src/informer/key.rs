//! Namespace and name of an object.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Namespace and name of an object; objects of the cluster have an empty namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// The key of those two parts.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Key {
        let (namespace, name) = (namespace.into(), name.into());
        Key { namespace, name }
    }

    /// The key of an object.
    pub fn of(metadata: &ObjectMeta) -> Key {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        Key::new(text(&metadata.namespace), text(&metadata.name))
    }
}

/// `namespace/name`, or the name alone.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}
