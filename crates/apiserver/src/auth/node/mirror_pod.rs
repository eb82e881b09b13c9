//! Mirror pods of a kubelet's static pods. A kubelet may create them as long as they give it access
//! to nothing.

use plimsoll_core::problem::quoted;
use serde_json::Value;

use super::references::{self, MIRROR_ANNOTATION};
use super::restriction::{Denial, Write, deny};
use crate::auth::{Objects, list, text};

/// Whether the kubelet of the node called `name` may create this pod.
pub(super) fn check_mirror_pod(
    name: &str,
    write: &Write<'_>,
    objects: &dyn Objects,
) -> Result<(), Denial> {
    let (pod, node) = (write.object, quoted(name));
    if !references::is_mirror(pod) {
        return deny(format!(
            "pod does not have \"{MIRROR_ANNOTATION}\" annotation, node {node} can only create \
             mirror pods"
        ));
    }
    if text(pod, "/spec/nodeName") != name {
        return deny(format!(
            "node {node} can only create pods with spec.nodeName set to itself"
        ));
    }
    let owner = match list(pod, "/metadata/ownerReferences") {
        [owner] => owner,
        [] => {
            return deny(format!(
                "node {node} can only create pods with an owner reference set to itself"
            ));
        }
        _ => {
            return deny(format!(
                "node {node} can only create pods with a single owner reference set to itself"
            ));
        }
    };
    check_owner(name, owner, objects)?;
    match api_reference(pod) {
        Ok(None) => Ok(()),
        Ok(Some(what)) => deny(format!(
            "node {node} can not create pods that reference {what}"
        )),
        Err(error) => deny(format!(
            "error checking mirror pod for API references: {error}"
        )),
    }
}

fn check_owner(name: &str, owner: &Value, objects: &dyn Objects) -> Result<(), Denial> {
    let node = quoted(name);
    let says = |part, value: &str| text(owner, part) == value;
    if !(says("/apiVersion", "v1") && says("/kind", "Node") && says("/name", name)) {
        return deny(format!(
            "node {node} can only create pods with an owner reference set to itself"
        ));
    }
    if owner["controller"] != true {
        return deny(format!(
            "node {node} can only create pods with a controller owner reference set to itself"
        ));
    }
    if owner["blockOwnerDeletion"] == true {
        return deny(format!(
            "node {node} must not set blockOwnerDeletion on an owner reference"
        ));
    }
    let found = objects.object("", "nodes", "", name);
    let found = found.ok_or_else(|| Denial::NotFound {
        resource: "nodes",
        name: name.to_owned(),
    })?;
    let (claimed, uid) = (text(owner, "/uid"), text(&found, "/metadata/uid"));
    if claimed != uid {
        return deny(format!(
            "node {name} UID mismatch: expected {claimed} got {uid}"
        ));
    }
    Ok(())
}

/// Volumes that need nothing from the API.
const PLAIN_VOLUMES: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

/// Volumes that refer to API objects, with the type of object.
const LEADING_VOLUMES: [(&str, &str); 7] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    (
        "ephemeral",
        "persistentvolumeclaims (via ephemeral volumes)",
    ),
    ("azureFile", "secrets (via azureFile volumes)"),
];

/// The same within projected volumes.
const LEADING_SOURCES: [(&str, &str); 5] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    (
        "serviceAccountToken",
        "serviceaccounts (via projected volumes)",
    ),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

/// The type of API object that the pod refers to, if any.
///
/// Matches v1.36 pkg/api/pod/util.go, `HasAPIObjectReference`.
fn api_reference(pod: &Value) -> Result<Option<&'static str>, String> {
    if !text(pod, "/spec/serviceAccountName").is_empty() {
        return Ok(Some("serviceaccounts"));
    }
    if !references::secrets(pod).is_empty() {
        return Ok(Some("secrets"));
    }
    if !references::config_maps(pod).is_empty() {
        return Ok(Some("configmaps"));
    }
    if !list(pod, "/spec/resourceClaims").is_empty() {
        return Ok(Some("resourceclaims"));
    }
    for volume in list(pod, "/spec/volumes") {
        if let Some(found) = volume_reference(volume)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn volume_reference(volume: &Value) -> Result<Option<&'static str>, String> {
    let is_given = |object: &Value, part: &str| !object[part].is_null();
    let name = quoted(text(volume, "/name"));
    if PLAIN_VOLUMES.iter().any(|sort| is_given(volume, sort)) {
        return Ok(None);
    }
    if let Some((_, what)) = LEADING_VOLUMES
        .iter()
        .find(|(sort, _)| is_given(volume, sort))
    {
        return Ok(Some(what));
    }
    if !is_given(volume, "projected") {
        return Err(format!("unknown volume type for volume  {name}"));
    }
    for source in list(volume, "/projected/sources") {
        if let Some((_, what)) = LEADING_SOURCES
            .iter()
            .find(|(sort, _)| is_given(source, sort))
        {
            return Ok(Some(what));
        }
        if !is_given(source, "downwardAPI") {
            return Err(format!("unknown source for projected volume {name}"));
        }
    }
    Ok(None)
}
