//! The fields of a namespace that decisions read.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Namespace;

/// A namespace: its name, labels and annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceView {
    /// Its name.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

impl NamespaceView {
    /// Reads a namespace.
    pub fn from_api(namespace: &Namespace) -> NamespaceView {
        let meta = &namespace.metadata;
        NamespaceView {
            name: meta.name.clone().unwrap_or_default(),
            labels: meta.labels.clone().unwrap_or_default(),
            annotations: meta.annotations.clone().unwrap_or_default(),
        }
    }
}
