//! Pods from files on the node.
//!
//! A file holds one pod in YAML or JSON. Its name gets the node's appended, its uid is a hash of
//! all that, so that a changed file is another pod. Matches v1.36 pkg/kubelet/config; the hash has
//! the same form as upstream's but not the same value, as that depends on how Go prints structs.
//!
//! Reading order: this file, `references` (what such pods may not use), [`folder`] (the watching).

pub mod folder;
mod references;

use k8s_openapi::api::core::v1::{Pod, Toleration};
use sha2::{Digest, Sha256};

use crate::pod_fields::{CONFIG_HASH, CONFIG_SOURCE};

/// Larger files are refused.
pub const MAX_BYTES: u64 = 10 << 20;

/// Why a file is not a pod.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is not YAML or JSON, or not an object that could be a pod.
    #[error("couldn't parse as pod({0}), please check config file")]
    NotAPod(String),
    /// It is another kind of object.
    #[error("invalid pod: it is of kind {kind:?} in {api_version:?}")]
    OtherKind {
        /// Its kind.
        kind: String,
        /// Its version.
        api_version: String,
    },
    /// It has no name.
    #[error("invalid pod: name is needed for the pod")]
    NoName,
    /// It has no containers.
    #[error("invalid pod: spec.containers: Required value")]
    NoContainers,
    /// It uses what only the API server has.
    #[error("static pods may not reference {0}")]
    ApiReference(String),
}

/// Reads a pod that stands in the file at `path`.
pub fn parse(text: &str, path: &str, node_name: &str) -> Result<Pod, ManifestError> {
    let not_a_pod = |error: &dyn std::fmt::Display| ManifestError::NotAPod(error.to_string());
    let value: serde_json::Value =
        serde_saphyr::from_str(text).map_err(|error| not_a_pod(&error))?;
    let field = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let (kind, api_version) = (field("kind"), field("apiVersion"));
    if kind != "Pod" || api_version != "v1" {
        return Err(ManifestError::OtherKind { kind, api_version });
    }
    let mut pod: Pod = serde_json::from_value(value).map_err(|error| not_a_pod(&error))?;
    let name = pod.metadata.name.take().filter(|name| !name.is_empty());
    let name = name.ok_or(ManifestError::NoName)?;
    if pod
        .spec
        .as_ref()
        .is_none_or(|spec| spec.containers.is_empty())
    {
        return Err(ManifestError::NoContainers);
    }
    if let Some(resource) = references::first_in(&pod) {
        return Err(ManifestError::ApiReference(resource.to_owned()));
    }
    pod.metadata.name = Some(name);
    complete(&mut pod, path, node_name);
    Ok(pod)
}

/// Fills in what the API server and the scheduler would have.
fn complete(pod: &mut Pod, path: &str, node_name: &str) {
    let meta = &mut pod.metadata;
    let given = meta.uid.take().filter(|uid| !uid.is_empty());
    let uid = given.unwrap_or_else(|| hash(pod, path, node_name));
    let meta = &mut pod.metadata;
    let name = meta.name.take().unwrap_or_default();
    meta.name = Some(format!("{name}-{}", node_name.to_ascii_lowercase()));
    if meta.namespace.as_deref().unwrap_or_default().is_empty() {
        meta.namespace = Some("default".to_owned());
    }
    let annotations = meta.annotations.get_or_insert_default();
    annotations.insert(CONFIG_HASH.to_owned(), uid.clone());
    annotations.insert(CONFIG_SOURCE.to_owned(), "file".to_owned());
    meta.uid = Some(uid);
    let spec = pod.spec.get_or_insert_default();
    spec.node_name = Some(node_name.to_owned());
    // Trouble with the node does not drive away what the node runs of its own accord.
    let tolerations = spec.tolerations.get_or_insert_default();
    let stays = Toleration {
        operator: Some("Exists".to_owned()),
        effect: Some("NoExecute".to_owned()),
        ..Toleration::default()
    };
    if !tolerations.contains(&stays) {
        tolerations.push(stays);
    }
    pod.status.get_or_insert_default().phase = Some("Pending".to_owned());
}

fn hash(pod: &Pod, path: &str, node_name: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(serde_json::to_vec(pod).unwrap_or_default());
    hasher.update(format!("host:{node_name}file:{path}"));
    let digest = hasher.finalize();
    let bytes = digest.iter().take(16);
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod_fields;

    const WEB: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers: [{name: a, image: busybox}]
";

    #[test]
    fn a_pod_from_a_file_belongs_to_its_node() {
        let pod = parse(WEB, "/manifests/web.yaml", "Node-1").unwrap();
        assert_eq!(pod_fields::name(&pod), "web-node-1");
        assert_eq!(pod_fields::namespace(&pod), "default");
        assert!(pod_fields::is_static(&pod));
        let uid = pod_fields::uid(&pod);
        assert_eq!(uid.len(), 32);
        let meta = &pod.metadata;
        assert_eq!(meta.annotations.as_ref().unwrap()[CONFIG_HASH], uid);
        let spec = pod.spec.as_ref().unwrap();
        assert_eq!(spec.node_name.as_deref(), Some("Node-1"));
        assert_eq!(spec.tolerations.as_ref().unwrap().len(), 1);
    }

    #[test]
    fn the_uid_changes_with_content_place_and_node() {
        let uid = |text: &str, path: &str, node: &str| {
            let pod = parse(text, path, node).unwrap();
            pod_fields::uid(&pod).to_owned()
        };
        let one = uid(WEB, "/a", "n");
        assert_eq!(uid(WEB, "/a", "n"), one);
        assert_eq!(
            uid(&WEB.replace("apiVersion", "\"apiVersion\""), "/a", "n"),
            one
        );
        assert_ne!(uid(&WEB.replace("busybox", "nginx"), "/a", "n"), one);
        assert_ne!(uid(WEB, "/b", "n"), one);
        assert_ne!(uid(WEB, "/a", "m"), one);
        let given = WEB.replace("{name: web}", "{name: web, uid: mine}");
        assert_eq!(uid(&given, "/a", "n"), "mine");
    }

    #[test]
    fn invalid_static_pods_are_refused() {
        let error = |text: &str| parse(text, "/a", "n").unwrap_err().to_string();
        assert!(error("{").starts_with("couldn't parse as pod("));
        assert!(error("kind: Service\napiVersion: v1").contains("Service"));
        let nameless = WEB.replace("{name: web}", "{}");
        assert_eq!(error(&nameless), "invalid pod: name is needed for the pod");
        let secretive = format!("{WEB}  volumes: [{{name: s, secret: {{secretName: x}}}}]\n");
        assert_eq!(
            error(&secretive),
            "static pods may not reference secrets (via secret volumes)"
        );
    }
}
