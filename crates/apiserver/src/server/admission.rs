//! Admission: the checks between a request and the store, in upstream's order.
//!
//! The rules themselves are pure and live in `machinery::admission`, `auth` and core; this file
//! supplies the state of the cluster and the caller.

use k8s_openapi::api::core::v1::{Node, Pod};
use plimsoll_core::admission::pod_resize;
use plimsoll_core::object::node::NodeView;
use plimsoll_core::object::pod::PodView;
use plimsoll_core::problem::quoted;
use serde::Deserialize as _;
use serde_json::Value;

use super::call::Call;
use super::quota::{QuotaUpdates, charge};
use super::service_account;
use super::signing;
use super::write::{name_of, namespace_of};
use crate::auth::attributes::{Attributes, Resource};
use crate::auth::node::{self, Denial, Operation};
use crate::auth::rbac::EscalationError;
use crate::auth::rbac::{self, PolicyKind, PolicyWrite};
use crate::kinds::{self, Kind};
use crate::machinery::admission::{self, Cluster};
use crate::machinery::write::{Admission, Part};
use crate::status::{Cause, Status};

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Priority classes that cannot be deleted.
const SYSTEM_CLASSES: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

/// Admission of one write.
#[derive(Debug)]
pub(crate) struct Gate<'a> {
    pub(super) call: &'a Call<'a>,
    pub(super) part: Part,
    operation: Operation,
    cluster: Cluster,
    /// Warnings for the caller.
    pub(super) warnings: Vec<String>,
}

impl Call<'_> {
    /// Admission of a body that requests an action on the object that the path names.
    pub(crate) fn admit_action(&self, body: &Value) -> Result<(), Status> {
        self.check_namespace(&self.target.namespace, body)?;
        self.check_node(Operation::Create, body, None)
    }

    /// Admission of a delete; `old` is the object to be deleted.
    pub(crate) fn admit_delete(&self, old: &Value) -> Result<(), Status> {
        let name = name_of(old);
        let is = |group, kind| (self.kind.group, self.kind.kind) == (group, kind);
        if is("", "Namespace") && IMMORTAL.contains(&name) {
            return Err(self.forbidden(old, "this namespace may not be deleted"));
        }
        self.check_node(Operation::Delete, &Value::Null, Some(old))?;
        if is("scheduling.k8s.io", "PriorityClass") && SYSTEM_CLASSES.contains(&name) {
            let reason = "this is a system priority class and cannot be deleted";
            return Err(self.forbidden(old, reason));
        }
        Ok(())
    }

    fn forbidden(&self, object: &Value, reason: &str) -> Status {
        let meta = &object["metadata"];
        let text = |field: &str| meta[field].as_str().unwrap_or_default();
        let name = match (text("name"), text("generateName")) {
            ("", "") => self.target.name.as_str(),
            ("", prefix) => prefix,
            (name, _) => name,
        };
        Status::forbidden(self.kind, name, reason)
    }

    /// NamespaceLifecycle: no new objects in namespaces that are missing or terminating.
    fn check_namespace(&self, namespace: &str, object: &Value) -> Result<(), Status> {
        let namespaces = self.server.cache.stored("namespaces");
        let Some(found) = namespaces.and_then(|all| all.get(namespace)) else {
            let row = kinds::by_resource("", "v1", "namespaces").expect("namespaces are served");
            return Err(Status::not_found(row, namespace));
        };
        if found.field("status.phase") != Some("Terminating") {
            return Ok(());
        }
        let reason = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut status = self.forbidden(object, &reason);
        let details = status.details.get_or_insert_default();
        details.causes.push(Cause {
            reason: "NamespaceTerminating",
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        });
        Err(status)
    }

    /// NodeRestriction: a node writes only its own Node object and its pods.
    fn check_node(
        &self,
        operation: Operation,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        if self.user.node_name().is_none() {
            return Ok(());
        }
        let old = old.unwrap_or(&Value::Null);
        // A delete request has no object of its own.
        let shown = if object.is_null() { old } else { object };
        let write = node::Write {
            operation,
            group: self.kind.group,
            resource: self.kind.plural,
            subresource: &self.target.subresource,
            namespace: &self.target.namespace,
            name: match self.target.name.as_str() {
                "" => name_of(shown),
                name => name,
            },
            object,
            old,
        };
        let denied = self
            .server
            .access
            .with(self.user, &self.server.cache, |authorizer| {
                node::restrict(self.user, &write, self.server, authorizer)
            });
        denied.map_err(|denial| match denial {
            Denial::Forbidden(reason) => self.forbidden(shown, &reason),
            Denial::NotFound { resource, name } => {
                let row = kinds::by_resource("", "v1", resource).unwrap_or(self.kind);
                Status::not_found(row, &name)
            }
        })
    }
}

impl<'a> Gate<'a> {
    /// The checks of a request.
    pub(crate) fn new(call: &'a Call<'a>, part: Part, operation: Operation) -> Gate<'a> {
        let (server, namespace) = (call.server, &call.target.namespace);
        let cluster = server
            .facts
            .cluster(&server.cache, namespace, &server.options);
        Gate {
            call,
            part,
            operation,
            cluster,
            warnings: Vec::new(),
        }
    }

    pub(super) fn kind(&self) -> &'static Kind {
        self.call.kind
    }

    pub(super) fn forbidden(&self, object: &Value, reason: &str) -> Status {
        self.call.forbidden(object, reason)
    }

    /// A user that creates an object by PUT or by applying it needs the `create` permission, too.
    ///
    /// Matches v1.36 apiserver/pkg/endpoints/handlers/update.go, `withAuthorization`.
    fn check_creator(&self) -> Result<(), Status> {
        if self.operation != Operation::Create || self.call.verb == "create" {
            return Ok(());
        }
        let target = self.call.target;
        let resource = Resource {
            group: &target.group,
            resource: &target.resource,
            subresource: &target.subresource,
            namespace: &target.namespace,
            name: &target.name,
            ..Resource::default()
        };
        let attributes = Attributes::resource("create", resource);
        self.call.server.authorize(self.call.user, &attributes)
    }

    /// No user grants more permissions than it has.
    fn check_policy(&self, object: &Value, old: Option<&Value>) -> Result<(), Status> {
        if self.kind().group != rbac::GROUP {
            return Ok(());
        }
        let Some(kind) = PolicyKind::of_resource(self.kind().plural) else {
            return Ok(());
        };
        let write = PolicyWrite {
            kind,
            namespace: &self.call.target.namespace,
            name: &self.call.target.name,
            object,
            old,
        };
        let server = self.call.server;
        let user = self.call.user;
        let refused = server.access.with(user, &server.cache, |authorizer| {
            rbac::check_write(authorizer.policy(), user, &write)
        });
        refused.map_err(|refusal| match refusal {
            EscalationError::Forbidden(forbidden) => Status::denied(
                &forbidden.group,
                &forbidden.resource,
                &forbidden.name,
                &forbidden.reason,
            ),
            EscalationError::NotFound { resource, name } => {
                let row = kinds::by_resource(rbac::GROUP, "v1", resource);
                Status::not_found(row.unwrap_or(self.kind()), &name)
            }
            EscalationError::Malformed(reason) => Status::bad_request(reason),
        })
    }

    /// PodResizeValidator: no pod requests more than its node has for pods.
    fn check_resize(&self, object: &Value, old: Option<&Value>) -> Result<(), Status> {
        let is_resize = self.part == Part::Resize && self.operation == Operation::Update;
        let node = object["spec"]["nodeName"].as_str().unwrap_or_default();
        let is_changed = old.is_some_and(|old| old["spec"] != object["spec"]);
        if !is_resize || node.is_empty() || !is_changed {
            return Ok(());
        }
        let row = kinds::by_resource("", "v1", "nodes").expect("nodes are served");
        let nodes = self.call.server.cache.collection(row);
        let Some(found) = nodes.and_then(|nodes| nodes.get(node)) else {
            let reason = format!("node {} not found", quoted(node));
            return Err(self.forbidden(object, &reason));
        };
        let unreadable =
            |_| self.forbidden(object, &format!("failed to get node {}", quoted(node)));
        let node: Node = serde_json::from_slice(found.json()).map_err(unreadable)?;
        let node = NodeView::from_api(&node);
        // What a pod requests was validated before.
        let pod = Pod::deserialize(object).ok();
        let pod = pod.and_then(|pod| PodView::from_api(&pod).ok());
        let (Ok(node), Some(pod)) = (node, pod) else {
            return Ok(());
        };
        pod_resize::admit(&pod, &node).map_err(|refusal| {
            let mut status = self.forbidden(object, &refusal.message);
            let details = status.details.get_or_insert_default();
            details.causes.push(Cause {
                reason: refusal.cause,
                ..Cause::default()
            });
            status
        })
    }

    /// ResourceQuota, always last: the usage that the write adds to the quotas of the namespace, to
    /// be stored with it.
    pub(crate) async fn charge(
        &self,
        object: &Value,
        old: Option<&Value>,
        is_dry_run: bool,
    ) -> Result<QuotaUpdates, Status> {
        let may_count = match self.operation {
            Operation::Create => true,
            Operation::Update => {
                matches!(self.part, Part::Main | Part::Resize) && is_grown_by_updates(self.kind())
            }
            Operation::Delete => false,
        };
        if !may_count || !self.kind().is_namespaced() || is_dry_run {
            return Ok(QuotaUpdates::default());
        }
        charge(self.call, object, old).map_err(|reason| self.forbidden(object, &reason))
    }
}

/// Quotas depend on the contents of these kinds; all others count by number only.
fn is_grown_by_updates(kind: &Kind) -> bool {
    matches!(
        (kind.group, kind.kind),
        ("", "Pod" | "Service" | "PersistentVolumeClaim")
    )
}

impl Admission for Gate<'_> {
    fn admit(&mut self, object: &mut Value, old: Option<&Value>) -> Result<(), Status> {
        let kind = self.kind();
        if self.operation == Operation::Create && kind.is_namespaced() {
            let namespace = match namespace_of(object) {
                "" => self.call.target.namespace.as_str(),
                namespace => namespace,
            };
            self.call.check_namespace(namespace, object)?;
        }
        let is_new_pod =
            self.operation == Operation::Create && (kind.group, kind.kind) == ("", "Pod");
        if is_new_pod {
            let (server, namespace) = (self.call.server, &self.call.target.namespace);
            let account = |name: &str| server.facts.account(&server.cache, namespace, name);
            service_account::admit(object, namespace, account)
                .map_err(|reason| self.forbidden(object, &reason))?;
        }
        if kind.kind == "CertificateSigningRequest" {
            signing::admit(self.call, self.part, object, old)
                .map_err(|reason| self.forbidden(object, &reason))?;
        }
        self.call.check_node(self.operation, object, old)?;
        let admitted = match old {
            None => admission::admit_new(kind, object, &self.cluster),
            Some(old) => admission::admit_changed(kind, self.part, object, old, &self.cluster),
        };
        admitted.map_err(|reason| self.forbidden(object, &reason))?;
        self.check_policy(object, old)
    }

    fn check(&mut self, object: &Value, old: Option<&Value>) -> Result<(), Status> {
        self.check_creator()?;
        let kind = self.kind();
        let checked = match old {
            None => admission::check_new(kind, object, &self.cluster),
            Some(_) => admission::check_changed(kind, self.part, object, &self.cluster),
        };
        checked.map_err(|reason| self.forbidden(object, &reason))?;
        self.check_pod_security(object, old)?;
        self.check_event_rate(object)?;
        self.check_resize(object, old)
    }

    fn warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}
