//! A file becomes a pod.
//!
//! Matches v1.36 pkg/kubelet/config/{file_linux,common}.go.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodStatus, Toleration};
use plimsoll_core::object::syntax::check_dns_subdomain;
use sha2::{Digest, Sha256};

use super::defaults;

/// A file that is no pod.
#[derive(Debug, thiserror::Error)]
pub(super) enum ManifestError {
    /// It is neither YAML nor JSON, or has fields of wrong types.
    #[error("cannot be read as a pod: {0}")]
    Syntax(String),
    /// It is something else.
    #[error("is a {kind} of {version}, expected a Pod of v1")]
    Kind { kind: String, version: String },
    /// It has no usable name.
    #[error("metadata.name {name:?} cannot be used: {problem}")]
    Name { name: String, problem: String },
    /// It refers to what only the API server has.
    #[error("a static pod may not use {what}")]
    Refers { what: &'static str },
}

#[derive(serde::Deserialize)]
struct Head {
    #[serde(default)]
    kind: String,
    #[serde(default, rename = "apiVersion")]
    version: String,
}

/// The pod that a file describes on a node. `path` is part of its identity.
pub(super) fn parse(text: &str, path: &str, node: &str) -> Result<Pod, ManifestError> {
    let syntax = |error: &dyn std::fmt::Display| ManifestError::Syntax(error.to_string());
    let head: Head = serde_saphyr::from_str(text).map_err(|error| syntax(&error))?;
    if head.kind != "Pod" || head.version != "v1" {
        return Err(ManifestError::Kind {
            kind: head.kind,
            version: head.version,
        });
    }
    let mut pod: Pod = serde_saphyr::from_str(text).map_err(|error| syntax(&error))?;
    check_references(&pod)?;
    let name = pod.metadata.name.clone().unwrap_or_default();
    let full = format!("{name}-{}", node.to_lowercase());
    if let Some(problem) = check_dns_subdomain(&full)
        .first()
        .filter(|_| !name.is_empty())
    {
        return Err(ManifestError::Name {
            name,
            problem: problem.to_string(),
        });
    }
    if name.is_empty() {
        return Err(ManifestError::Name {
            name,
            problem: "name is needed for the pod".to_owned(),
        });
    }
    let uid = pod
        .metadata
        .uid
        .get_or_insert_with(|| hash(text, path, node))
        .clone();
    pod.metadata.name = Some(full);
    pod.metadata
        .namespace
        .get_or_insert_with(|| "default".to_owned());
    let annotations = pod.metadata.annotations.get_or_insert_with(BTreeMap::new);
    annotations.insert("kubernetes.io/config.hash".to_owned(), uid);
    annotations.insert("kubernetes.io/config.source".to_owned(), "file".to_owned());
    defaults::apply(&mut pod);
    let spec = pod.spec.get_or_insert_default();
    spec.node_name = Some(node.to_owned());
    let everything = Toleration {
        operator: Some("Exists".to_owned()),
        effect: Some("NoExecute".to_owned()),
        ..Toleration::default()
    };
    let tolerations = spec.tolerations.get_or_insert_default();
    if !tolerations.contains(&everything) {
        tolerations.push(everything);
    }
    pod.status = Some(PodStatus {
        phase: Some("Pending".to_owned()),
        ..PodStatus::default()
    });
    Ok(pod)
}

/// 128 bits in hexadecimal, as upstream's are; of what they are the digest is no matter.
fn hash(text: &str, path: &str, node: &str) -> String {
    let mut sum = Sha256::new();
    for part in [text, "\0host:", node, "\0file:", path] {
        sum.update(part.as_bytes());
    }
    let digest = sum.finalize();
    digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn check_references(pod: &Pod) -> Result<(), ManifestError> {
    let Some(spec) = &pod.spec else {
        return Ok(());
    };
    let mut volumes = spec.volumes.iter().flatten();
    let account = spec.service_account_name.as_deref().unwrap_or_default();
    let what = if !account.is_empty() {
        "a service account"
    } else if volumes.any(|volume| volume.secret.is_some() || volume.config_map.is_some()) {
        "secrets or config maps"
    } else if spec
        .resource_claims
        .as_ref()
        .is_some_and(|claims| !claims.is_empty())
    {
        "resource claims"
    } else {
        return Ok(());
    };
    Err(ManifestError::Refers { what })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEB: &str = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - name: c\n    image: busybox:1\n";

    #[test]
    fn a_manifest_becomes_a_pod_of_the_node() {
        let pod = parse(WEB, "/m/web.yaml", "n1").unwrap();
        assert_eq!(pod.metadata.name.as_deref(), Some("web-n1"));
        assert_eq!(pod.metadata.namespace.as_deref(), Some("default"));
        let uid = pod.metadata.uid.clone().unwrap();
        assert_eq!(uid.len(), 32);
        let annotations = pod.metadata.annotations.as_ref().unwrap();
        assert_eq!(annotations["kubernetes.io/config.hash"], uid);
        assert_eq!(annotations["kubernetes.io/config.source"], "file");
        assert_eq!(pod.spec.unwrap().node_name.as_deref(), Some("n1"));
    }

    #[test]
    fn another_content_is_another_pod() {
        let uid = |text: &str| parse(text, "/m/web.yaml", "n1").unwrap().metadata.uid;
        assert_eq!(uid(WEB), uid(WEB));
        assert_ne!(uid(WEB), uid(&WEB.replace("busybox:1", "busybox:2")));
    }

    #[test]
    fn files_that_are_no_pods_say_why() {
        let error = |text: &str| parse(text, "/m/x", "n1").unwrap_err().to_string();
        assert!(error("a: [").contains("cannot be read"));
        assert_eq!(
            error("apiVersion: v1\nkind: Service\n"),
            "is a Service of v1, expected a Pod of v1"
        );
        assert!(error(&WEB.replace("name: web", "name: We_b")).contains("\"We_b\""));
        let account = WEB.replace("spec:\n", "spec:\n  serviceAccountName: a\n");
        assert_eq!(
            error(&account),
            "a static pod may not use a service account"
        );
    }
}
