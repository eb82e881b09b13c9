//! What a kubelet may write: the admission plugin NodeRestriction.
//!
//! Matches v1.36 plugin/pkg/admission/noderestriction/admission.go, with its texts.

use plimsoll_core::problem::quoted;
use serde_json::Value;

use super::audience::check_audience;
use super::mirror_pod::check_mirror_pod;
use super::own_node::check_own_node;
use crate::auth::authorize::Authorizer;
use crate::auth::identity::User;
use crate::auth::signer::{KUBELET_CLIENT, KUBELET_SERVING};
use crate::auth::signing_request::SigningRequest;
use crate::auth::{Objects, text};

/// The operation on the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The object is created.
    Create,
    /// The object is updated.
    Update,
    /// The object is deleted.
    Delete,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        }
    }
}

/// A write that is about to happen. Absent strings are empty.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The operation.
    pub operation: Operation,
    /// The API group.
    pub group: &'a str,
    /// The plural name.
    pub resource: &'a str,
    /// The subresource.
    pub subresource: &'a str,
    /// The namespace.
    pub namespace: &'a str,
    /// The name in the URL; on create of an object with a name, that name.
    pub name: &'a str,
    /// The object that was sent; `Value::Null` on delete.
    pub object: &'a Value,
    /// The current object; `Value::Null` on create.
    pub old: &'a Value,
}

/// Why a kubelet may not write this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// 403; the caller puts `pods "web" is forbidden: ` before it.
    #[error("{0}")]
    Forbidden(String),
    /// 404: an object that the write refers to does not exist.
    #[error("{resource} {} not found", quoted(.name))]
    NotFound {
        /// The plural name.
        resource: &'static str,
        /// The name that was looked for.
        name: String,
    },
}

/// Whether the user may write this. This plugin restricts kubelets only.
pub fn restrict(
    user: &User,
    write: &Write<'_>,
    objects: &dyn Objects,
    authorizer: &Authorizer,
) -> Result<(), Denial> {
    let node = match user.node_name() {
        None => return Ok(()),
        Some("") => {
            let name = quoted(&user.name);
            return deny(format!("could not determine node from user {name}"));
        }
        Some(node) => node,
    };
    match (write.group, write.resource, write.subresource) {
        ("", "pods", "") => pod(node, write, objects),
        ("", "pods", "status") => pod_status(node, write),
        ("", "pods", "eviction") => pod_eviction(node, write, objects),
        ("", "pods", other) => deny(format!(
            "unexpected pod subresource {}, only 'status' and 'eviction' are allowed",
            quoted(other)
        )),
        ("", "nodes", _) => check_own_node(node, write),
        ("", "persistentvolumeclaims", "status") => claim_status(node, write),
        ("", "persistentvolumeclaims", _) => deny("may only update PVC status"),
        ("", "serviceaccounts", "token") if write.operation == Operation::Create => {
            let pod = token_pod(node, write, objects)?;
            check_audience(user, write, &pod, objects, authorizer).map_err(Denial::Forbidden)
        }
        ("certificates.k8s.io", "podcertificaterequests", _) => {
            deny("PodCertificateRequest feature gate is disabled")
        }
        ("coordination.k8s.io", "leases", _) => lease(node, write),
        ("storage.k8s.io", "csinodes", _) => match own_name(write) == node {
            true => Ok(()),
            false => deny("can only access CSINode with the same name as the requesting node"),
        },
        ("resource.k8s.io", "resourceslices", _) => resource_slice(node, write),
        ("certificates.k8s.io", "certificatesigningrequests", _) => signing_request(node, write),
        _ => Ok(()),
    }
}

pub(super) fn deny(reason: impl Into<String>) -> Result<(), Denial> {
    Err(Denial::Forbidden(reason.into()))
}

fn find_pod(objects: &dyn Objects, namespace: &str, name: &str) -> Result<Value, Denial> {
    let pod = objects.object("", "pods", namespace, name);
    pod.ok_or_else(|| Denial::NotFound {
        resource: "pods",
        name: name.to_owned(),
    })
}

fn pod(node: &str, write: &Write<'_>, objects: &dyn Objects) -> Result<(), Denial> {
    let quoted_node = quoted(node);
    match write.operation {
        Operation::Create => check_mirror_pod(node, write, objects),
        Operation::Delete => {
            let pod = find_pod(objects, write.namespace, write.name)?;
            match text(&pod, "/spec/nodeName") == node {
                true => Ok(()),
                false => deny(format!(
                    "node {quoted_node} can only delete pods with spec.nodeName set to itself"
                )),
            }
        }
        Operation::Update => deny(format!(
            "unexpected operation \"UPDATE\", node {quoted_node} can only create and delete \
             mirror pods"
        )),
    }
}

fn pod_status(node: &str, write: &Write<'_>) -> Result<(), Denial> {
    let (old, new, node_text) = (write.old, write.object, quoted(node));
    if write.operation != Operation::Update {
        let operation = quoted(write.operation.as_str());
        return deny(format!("unexpected operation {operation}"));
    }
    if text(old, "/spec/nodeName") != node {
        return deny(format!(
            "node {node_text} can only update pod status for pods with spec.nodeName set to itself"
        ));
    }
    if !same(old, new, "/metadata/labels") {
        return deny(format!(
            "node {node_text} cannot update labels through pod status"
        ));
    }
    if !same(old, new, "/status/resourceClaimStatuses") {
        return deny(format!(
            "node {node_text} cannot update resource claim statues"
        ));
    }
    if !same(old, new, "/status/extendedResourceClaimStatus") {
        return deny(format!(
            "node {node_text} cannot update extended resource claim status"
        ));
    }
    Ok(())
}

/// Whether both have the same value there; absent, null and empty are the same.
pub(super) fn same(old: &Value, new: &Value, pointer: &str) -> bool {
    let part = |object: &Value| {
        let part = object.pointer(pointer).cloned().unwrap_or_default();
        let is_empty = part.as_array().is_some_and(Vec::is_empty)
            || part.as_object().is_some_and(serde_json::Map::is_empty);
        if is_empty { Value::Null } else { part }
    };
    part(old) == part(new)
}

fn pod_eviction(node: &str, write: &Write<'_>, objects: &dyn Objects) -> Result<(), Denial> {
    if write.operation != Operation::Create {
        return deny(format!("unexpected operation {}", write.operation.as_str()));
    }
    let name = match (write.name, text(write.object, "/metadata/name")) {
        ("", "") => return deny("could not determine pod from request data"),
        ("", name) | (name, _) => name,
    };
    let pod = find_pod(objects, write.namespace, name)?;
    if text(&pod, "/spec/nodeName") != node {
        return deny(format!(
            "node {node} can only evict pods with spec.nodeName set to itself"
        ));
    }
    Ok(())
}

/// Everything except the capacity and the conditions must stay as it is.
fn claim_status(node: &str, write: &Write<'_>) -> Result<(), Denial> {
    if write.operation != Operation::Update {
        let operation = quoted(write.operation.as_str());
        return deny(format!("unexpected operation {operation}"));
    }
    let rest = |claim: &Value| {
        let mut claim = claim.clone();
        let mut remove = |pointer: &str, fields: &[&str]| {
            if let Some(part) = claim.pointer_mut(pointer).and_then(Value::as_object_mut) {
                fields.iter().for_each(|field| drop(part.remove(*field)));
            }
        };
        remove("/metadata", &["resourceVersion", "managedFields"]);
        remove(
            "/status",
            &[
                "capacity",
                "conditions",
                "allocatedResources",
                "allocatedResourceStatuses",
            ],
        );
        claim
    };
    if rest(write.old) == rest(write.object) {
        return Ok(());
    }
    let node = quoted(node);
    deny(format!(
        "node {node} is not allowed to update fields other than status.quantity and \
         status.conditions"
    ))
}

/// The pod that a kubelet's token is bound to: one of its own.
fn token_pod(node: &str, write: &Write<'_>, objects: &dyn Objects) -> Result<Value, Denial> {
    let forbidden = |reason: String| Err(Denial::Forbidden(reason));
    let value = |part| text(write.object, part);
    let name = value("/spec/boundObjectRef/name");
    let is_pod = value("/spec/boundObjectRef/apiVersion") == "v1"
        && value("/spec/boundObjectRef/kind") == "Pod"
        && !name.is_empty();
    if !is_pod {
        return forbidden("node requested token not bound to a pod".to_owned());
    }
    let uid = value("/spec/boundObjectRef/uid");
    if uid.is_empty() {
        return forbidden("node requested token with a pod binding without a uid".to_owned());
    }
    let pod = find_pod(objects, write.namespace, name)?;
    if text(&pod, "/metadata/uid") != uid {
        return forbidden(format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The \
             object might have been deleted and then recreated"
        ));
    }
    if text(&pod, "/spec/nodeName") != node {
        let reason = "node requested token bound to a pod scheduled on a different node";
        return forbidden(reason.to_owned());
    }
    Ok(pod)
}

fn lease(node: &str, write: &Write<'_>) -> Result<(), Denial> {
    if write.namespace != "kube-node-lease" {
        return deny("can only access leases in the \"kube-node-lease\" system namespace");
    }
    if own_name(write) != node {
        return deny("can only access node lease with the same name as the requesting node");
    }
    Ok(())
}

/// The name of the object: on create the one it would have.
fn own_name<'a>(write: &Write<'a>) -> &'a str {
    match write.operation {
        Operation::Create => text(write.object, "/metadata/name"),
        _ => write.name,
    }
}

fn resource_slice(node: &str, write: &Write<'_>) -> Result<(), Denial> {
    let is_own = |slice| text(slice, "/spec/nodeName") == node;
    match write.operation {
        Operation::Create if !is_own(write.object) => {
            deny("can only create ResourceSlice with the same NodeName as the requesting node")
        }
        Operation::Delete if !is_own(write.old) => {
            deny("can only delete ResourceSlice with the same NodeName as the requesting node")
        }
        _ => Ok(()),
    }
}

fn signing_request(node: &str, write: &Write<'_>) -> Result<(), Denial> {
    let signer = text(write.object, "/spec/signerName");
    let is_for_kubelets = [KUBELET_CLIENT, KUBELET_SERVING].contains(&signer);
    if write.operation != Operation::Create || !is_for_kubelets {
        return Ok(());
    }
    let wanted = format!("system:node:{node}");
    match SigningRequest::from_api(text(write.object, "/spec/request")) {
        Err(error) => deny(format!("unable to parse csr: {error}")),
        Ok(request) if request.common_name == wanted => Ok(()),
        Ok(_) => deny(format!("can only create a node CSR with CN={wanted}")),
    }
}
