//! The node authorizer: what a kubelet may request.
//!
//! Matches v1.36 plugin/pkg/auth/authorizer/node/node_authorizer.go, with its reasons.

use k8s_openapi::api::rbac::v1::PolicyRule;
use plimsoll_core::object::selector::FieldOperator;

use super::NodeGraph;
use super::graph::VertexType;
use crate::auth::attributes::{Attributes, Resource, Target};
use crate::auth::identity::User;
use crate::auth::rbac::rule_allows;

/// The reason of a denial; may be empty.
type Reason = String;

/// Whether the node authorizer allows the request. `rules` are the permissions of all kubelets.
pub fn authorize(
    graph: &NodeGraph,
    rules: &[PolicyRule],
    user: &User,
    attributes: &Attributes<'_>,
) -> Result<(), Reason> {
    let node = match user.node_name() {
        None => return refuse(""),
        Some("") => {
            let name = plimsoll_core::problem::quoted(&user.name);
            return Err(format!("unknown node for user {name}"));
        }
        Some(node) => node,
    };
    let by_rules = || match rules.iter().any(|rule| rule_allows(rule, attributes)) {
        true => Ok(()),
        false => refuse(""),
    };
    let Target::Resource(resource) = attributes.target else {
        return by_rules();
    };
    let request = Request {
        graph,
        node,
        verb: attributes.verb,
        resource,
    };
    match (resource.group, resource.resource) {
        ("", "secrets") => request.read_needed(VertexType::Secret),
        ("", "configmaps") => request.read_needed(VertexType::ConfigMap),
        ("", "persistentvolumeclaims") if resource.subresource == "status" => match request.verb {
            "update" | "patch" => request.needed(VertexType::VolumeClaim),
            _ => refuse("can only get/update/patch this type"),
        },
        ("", "persistentvolumeclaims") => request.get(|r| r.needed(VertexType::VolumeClaim)),
        ("", "persistentvolumes") => {
            request.get(|r| r.reached(graph.needs_volume(node, resource.name)))
        }
        ("resource.k8s.io", "resourceclaims") => {
            request.get(|r| r.needed(VertexType::ResourceClaim))
        }
        ("storage.k8s.io", "volumeattachments") => {
            request.get(|r| r.reached(graph.has_attachment(node, resource.name)))
        }
        ("", "serviceaccounts") => request.service_account(),
        ("coordination.k8s.io", "leases") => request.lease(),
        ("storage.k8s.io", "csinodes") => request.csi_node(),
        ("resource.k8s.io", "resourceslices") => request.resource_slice(),
        ("", "nodes") => request.node_object(),
        ("", "pods") => request.pod(),
        ("certificates.k8s.io", "podcertificaterequests") => refuse(""),
        _ => by_rules(),
    }
}

/// One request of one node.
#[derive(Clone, Copy)]
struct Request<'a> {
    graph: &'a NodeGraph,
    node: &'a str,
    verb: &'a str,
    resource: Resource<'a>,
}

fn refuse(reason: &str) -> Result<(), Reason> {
    Err(reason.to_owned())
}

impl Request<'_> {
    fn get(self, check: impl FnOnce(Self) -> Result<(), Reason>) -> Result<(), Reason> {
        if self.verb != "get" {
            return refuse("can only get individual resources of this type");
        }
        if !self.resource.subresource.is_empty() {
            return refuse("cannot get subresource");
        }
        check(self)
    }

    fn read_needed(self, vertex: VertexType) -> Result<(), Reason> {
        if !matches!(self.verb, "get" | "list" | "watch") {
            return refuse("can only read resources of this type");
        }
        if !self.resource.subresource.is_empty() {
            return refuse("cannot read subresource");
        }
        if self.resource.namespace.is_empty() {
            return refuse("can only read namespaced object of this type");
        }
        self.needed(vertex)
    }

    fn needed(self, vertex: VertexType) -> Result<(), Reason> {
        let Resource {
            namespace, name, ..
        } = self.resource;
        self.reached(self.graph.needs(self.node, vertex, namespace, name))
    }

    /// Allowed if the object is the node's, or needed by one of its pods.
    fn reached(self, is_reached: bool) -> Result<(), Reason> {
        if self.resource.name.is_empty() {
            return refuse("No Object name found");
        }
        if is_reached {
            return Ok(());
        }
        let node = self.node;
        Err(format!(
            "no relationship found between node '{node}' and this object"
        ))
    }

    fn service_account(self) -> Result<(), Reason> {
        if self.verb == "get" && self.resource.subresource.is_empty() {
            return self.read_needed(VertexType::ServiceAccount);
        }
        if self.verb != "create" || self.resource.name.is_empty() {
            return refuse("can only create tokens for individual service accounts");
        }
        if self.resource.subresource != "token" {
            return refuse("can only create token subresource of serviceaccount");
        }
        self.needed(VertexType::ServiceAccount)
    }

    fn lease(self) -> Result<(), Reason> {
        if !matches!(self.verb, "get" | "create" | "update" | "patch" | "delete") {
            return refuse("can only get, create, update, patch, or delete a node lease");
        }
        if self.resource.namespace != "kube-node-lease" {
            return refuse("can only access leases in the \"kube-node-lease\" system namespace");
        }
        // The name is not known yet on create; the admission plugin checks it.
        if self.verb != "create" && self.resource.name != self.node {
            return refuse("can only access node lease with the same name as the requesting node");
        }
        Ok(())
    }

    fn csi_node(self) -> Result<(), Reason> {
        if !matches!(self.verb, "get" | "create" | "update" | "patch" | "delete") {
            return refuse("can only get, create, update, patch, or delete a CSINode");
        }
        if !self.resource.subresource.is_empty() {
            return refuse("cannot authorize CSINode subresources");
        }
        if self.verb != "create" && self.resource.name != self.node {
            return refuse("can only access CSINode with the same name as the requesting node");
        }
        Ok(())
    }

    fn resource_slice(self) -> Result<(), Reason> {
        if !self.resource.subresource.is_empty() {
            return refuse("cannot authorize ResourceSlice subresources");
        }
        match self.verb {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => {
                self.reached(self.graph.has_slice(self.node, self.resource.name))
            }
            "watch" | "list" | "deletecollection" if self.selects_own_node() => Ok(()),
            "watch" | "list" | "deletecollection" => refuse(
                "can only list/watch/deletecollection resourceslices with nodeName field selector",
            ),
            _ => refuse(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, \
                 create, update, patch, delete, deletecollection",
            ),
        }
    }

    fn node_object(self) -> Result<(), Reason> {
        let (node, name) = (self.node, self.resource.name);
        match (self.resource.subresource, self.verb) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
            ("", "get" | "list" | "watch") if name == node => Ok(()),
            ("", "get" | "list" | "watch") if name.is_empty() => Err(format!(
                "node '{node}' cannot read all nodes, only its own Node object"
            )),
            ("", "get" | "list" | "watch") => Err(format!(
                "node '{node}' cannot read '{name}', only its own Node object"
            )),
            _ => refuse(""),
        }
    }

    fn pod(self) -> Result<(), Reason> {
        match (self.resource.subresource, self.verb) {
            ("", "get") => self.get(|request| request.needed(VertexType::Pod)),
            ("", "list" | "watch") if self.selects_own_node() => Ok(()),
            ("", "list" | "watch") if !self.resource.name.is_empty() => {
                self.needed(VertexType::Pod)
            }
            ("", "list" | "watch") => {
                refuse("can only list/watch pods with spec.nodeName field selector")
            }
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Ok(())
            }
            _ => refuse(""),
        }
    }

    /// Whether the field selector contains `spec.nodeName=` this node.
    fn selects_own_node(self) -> bool {
        self.resource.field_selector.iter().any(|requirement| {
            requirement.field == "spec.nodeName"
                && requirement.operator == FieldOperator::Equals
                && requirement.value == self.node
        })
    }
}
