//! `pods/binding`: a pod gets its node.
//!
//! Matches v1.36 pkg/registry/core/pod/storage/storage.go, `BindingREST`. It is the scheduler's hot
//! path: the pod is not validated again, as upstream does not.

use http::Response;
use serde_json::{Value, json};

use super::action::{set_condition, text};
use crate::body::Body;
use crate::http::query::WriteOptions;
use crate::kinds::{self, GroupVersionKind};
use crate::machinery::write::{Accepted, Part};
use crate::server::call::Call;
use crate::server::respond;
use crate::server::route::Target;
use crate::server::write::Change;
use crate::status::{Details, Status};

const BINDING: GroupVersionKind = GroupVersionKind {
    group: "",
    version: "v1",
    kind: "Binding",
};

impl Call<'_> {
    /// Answers a POST of a Binding.
    pub(crate) async fn bind(&self, bytes: &[u8]) -> Result<Response<Body>, Status> {
        let options = WriteOptions::for_create(self.query)?;
        let binding = self.action(bytes, BINDING)?;
        let name = text(&binding, "/metadata/name");
        if name != self.target.name {
            let text = "name in URL does not match name in Binding object";
            return Err(Status::bad_request(text));
        }
        self.bind_as(&binding, options.is_dry_run).await
    }

    /// Answers a POST to the collection of bindings, where the pod is named by the body alone.
    pub(crate) async fn bind_by_body(&self, bytes: &[u8]) -> Result<Response<Body>, Status> {
        let options = WriteOptions::for_create(self.query)?;
        let binding = self.action(bytes, BINDING)?;
        let pods = kinds::by_resource("", "v1", "pods").ok_or_else(Status::unknown_path)?;
        let target = Target {
            name: text(&binding, "/metadata/name").to_owned(),
            ..self.target.clone()
        };
        let call = Call {
            kind: pods,
            target: &target,
            ..*self
        };
        call.bind_as(&binding, options.is_dry_run).await
    }

    async fn bind_as(&self, binding: &Value, is_dry_run: bool) -> Result<Response<Body>, Status> {
        check_target(binding)?;
        let now = self.now_text();
        self.change(Part::Main, is_dry_run, |old, _| {
            self.check_identity(binding, old)?;
            self.check_unbound(old)?;
            Ok(Change::Put(bound(old, binding, &now)))
        })
        .await?;
        let status = Status::new(201, "", "");
        Ok(respond::status(&status))
    }

    fn check_identity(&self, binding: &Value, pod: &Value) -> Result<(), Status> {
        for (what, pointer) in [
            ("UID", "/metadata/uid"),
            ("ResourceVersion", "/metadata/resourceVersion"),
        ] {
            let (wanted, found) = (text(binding, pointer), text(pod, pointer));
            if !wanted.is_empty() && wanted != found {
                let reason = format!(
                    "Precondition failed: {what} in precondition: {wanted}, {what} in object \
                     meta: {found}"
                );
                return Err(Status::conflict(self.kind, &self.target.name, &reason));
            }
        }
        Ok(())
    }

    fn check_unbound(&self, pod: &Value) -> Result<(), Status> {
        let name = &self.target.name;
        let node = text(pod, "/spec/nodeName");
        let gates = pod["spec"]["schedulingGates"].as_array();
        let reason = if !pod["metadata"]["deletionTimestamp"].is_null() {
            format!("pod {name} is being deleted, cannot be assigned to a host")
        } else if !node.is_empty() {
            format!("pod {name} is already assigned to node {node:?}")
        } else if gates.is_some_and(|gates| !gates.is_empty()) {
            format!("pod {name} has non-empty .spec.schedulingGates")
        } else {
            return Ok(());
        };
        let message = format!("Operation cannot be fulfilled on pods/binding {name:?}: {reason}");
        Err(Status::new(409, "Conflict", message).about(Details {
            name: name.clone(),
            kind: "pods/binding".to_owned(),
            ..Details::default()
        }))
    }
}

fn check_target(binding: &Value) -> Result<(), Status> {
    let kind = text(binding, "/target/kind");
    let mut problems = Vec::new();
    if !matches!(kind, "" | "Node") {
        problems.push(format!(
            "target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\""
        ));
    }
    if text(binding, "/target/name").is_empty() {
        problems.push("target.name: Required value".to_owned());
    }
    match problems.as_slice() {
        [] => Ok(()),
        [one] => Err(Status::unexpected(one.clone())),
        many => Err(Status::unexpected(format!("[{}]", many.join(", ")))),
    }
}

fn bound(old: &Value, binding: &Value, now: &str) -> Accepted {
    let mut pod = old.clone();
    if let Some(meta) = pod["metadata"].as_object_mut() {
        meta.remove("resourceVersion");
    }
    pod["spec"]["nodeName"] = json!(text(binding, "/target/name"));
    if let Some(status) = pod["status"].as_object_mut() {
        status.remove("nominatedNodeName");
    }
    for field in ["annotations", "labels"] {
        let given = binding["metadata"][field].as_object();
        for (key, value) in given.into_iter().flatten() {
            pod["metadata"][field][key] = value.clone();
        }
    }
    let condition = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null});
    set_condition(&mut pod, now, condition);
    Accepted::unchecked(pod)
}
