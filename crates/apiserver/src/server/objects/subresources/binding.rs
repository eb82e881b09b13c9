//! `pods/binding`: assigns a pod to a node.
//!
//! Matches v1.36 pkg/registry/core/pod/storage/storage.go, `BindingREST`. This is the scheduler's
//! hot path: as in upstream, the pod is not validated again.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use super::action::{set_condition, text};
use crate::body::Body;
use crate::cache::Members;
use crate::http::query::WriteOptions;
use crate::kinds::{self, GroupVersionKind};
use crate::server::request::call::Call;
use crate::server::request::respond;
use crate::server::request::route::Target;
use crate::status::{Details, Status};

const BINDING: GroupVersionKind = GroupVersionKind {
    group: "",
    version: "v1",
    kind: "Binding",
};

impl Call<'_> {
    /// Handles a POST of a Binding.
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

    /// Handles a POST to the collection of bindings, where only the body names the pod.
    pub(crate) async fn bind_by_body(&self, bytes: &[u8]) -> Result<Response<Body>, Status> {
        let options = WriteOptions::for_create(self.query)?;
        let binding = self.action(bytes, BINDING)?;
        let pods = kinds::by_resource("", "v1", "pods").ok_or_else(Status::unknown_path)?;
        let target = Target {
            name: text(&binding, "/metadata/name").to_owned(),
            resource: "pods".to_owned(),
            subresource: "binding".to_owned(),
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
        self.admit_action(binding)?;
        let now = self.now_text();
        self.rewrite(is_dry_run, |old| {
            let Some(mut pod) = Outline::of(old) else {
                return Err(Status::internal_error("the stored pod is not an object"));
            };
            self.check_identity(binding, &pod)?;
            self.check_unbound(&pod)?;
            pod.bind(binding, &now);
            Ok(pod.encode())
        })
        .await?;
        let status = Status::new(201, "", "");
        Ok(respond::status(&status))
    }

    fn check_identity(&self, binding: &Value, pod: &Outline<'_>) -> Result<(), Status> {
        for (what, field) in [("UID", "uid"), ("ResourceVersion", "resourceVersion")] {
            let wanted = text(&binding["metadata"], &format!("/{field}"));
            let found = pod.metadata.text(field);
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

    fn check_unbound(&self, pod: &Outline<'_>) -> Result<(), Status> {
        let name = &self.target.name;
        let node = pod.spec.text("nodeName");
        let is_set = |value: Option<&[u8]>| value.is_some_and(|value| value != b"null");
        let gates = pod.spec.get("schedulingGates");
        let reason = if is_set(pod.metadata.get("deletionTimestamp")) {
            format!("pod {name} is being deleted, cannot be assigned to a host")
        } else if !node.is_empty() {
            format!("pod {name} is already assigned to node {node:?}")
        } else if is_set(gates.filter(|gates| *gates != b"[]")) {
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

/// An encoded pod, parsed only where a binding changes it. The other members are copied unparsed.
struct Outline<'a> {
    pod: Members<'a>,
    metadata: Members<'a>,
    spec: Members<'a>,
    status: Members<'a>,
}

impl<'a> Outline<'a> {
    fn of(encoded: &'a [u8]) -> Option<Outline<'a>> {
        let pod = Members::read(Some(encoded))?;
        let part = |name: &str| Members::read(pod.original(name));
        Some(Outline {
            metadata: part("metadata")?,
            spec: part("spec")?,
            status: part("status")?,
            pod,
        })
    }

    fn bind(&mut self, binding: &Value, now: &str) {
        self.metadata.remove("resourceVersion");
        let node = json!(text(binding, "/target/name"));
        self.spec.set("nodeName", node.to_string().into_bytes());
        self.status.remove("nominatedNodeName");
        for field in ["annotations", "labels"] {
            let given = binding["metadata"][field].as_object();
            if let Some(given) = given.filter(|given| !given.is_empty()) {
                let mut all = decoded(&self.metadata, field);
                if !all.is_object() {
                    all = json!({});
                }
                for (key, value) in given {
                    all[key] = value.clone();
                }
                self.metadata.set(field, all.to_string().into_bytes());
            }
        }
        let mut conditions = decoded(&self.status, "conditions");
        let condition = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null});
        set_condition(&mut conditions, now, condition);
        self.status
            .set("conditions", conditions.to_string().into_bytes());
    }

    fn encode(mut self) -> Bytes {
        self.pod.set("metadata", self.metadata.encode());
        self.pod.set("spec", self.spec.encode());
        self.pod.set("status", self.status.encode());
        self.pod.encode().into()
    }
}

fn decoded(members: &Members<'_>, name: &str) -> Value {
    let value = members.get(name).unwrap_or(b"null");
    serde_json::from_slice(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cache;

    /// The same change of the decoded pod.
    fn bound(mut pod: Value, binding: &Value, now: &str) -> Value {
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
        set_condition(&mut pod["status"]["conditions"], now, condition);
        pod
    }

    fn labels() -> impl Strategy<Value = Value> {
        let map = prop::collection::btree_map("[a-c\"\\\\/é]{1,3}", "[a-c\"{}\n]{0,3}", 0..3);
        prop_oneof![Just(Value::Null), map.prop_map(|map| json!(map))]
    }

    fn conditions() -> impl Strategy<Value = Value> {
        let condition = ("(PodScheduled|Ready)", "(True|False)", "[a-c\"]{0,3}").prop_map(
            |(sort, status, message)| {
                json!({"type": sort, "status": status, "message": message,
                    "lastTransitionTime": "2025-01-01T00:00:00Z"})
            },
        );
        prop_oneof![
            Just(Value::Null),
            prop::collection::vec(condition, 0..3).prop_map(Value::from),
        ]
    }

    fn put(object: &mut Value, field: &str, value: Value) {
        if !value.is_null() {
            object[field] = value;
        }
    }

    proptest! {
        #[test]
        fn binding_encoded_pod_equals_binding_decoded_pod(
            own in labels(), given in labels(), conditions in conditions(),
            nominated: bool, has_status: bool, node in "[a-z\"é]{1,8}",
        ) {
            let mut pod = json!({
                "kind": "Pod", "apiVersion": "v1",
                "metadata": {"name": "p", "uid": "u", "managedFields": [{"fieldsV1": {"f:a": {}}}]},
                "spec": {"containers": [{"name": "c"}], "priority": 1, "schedulerName": "s"},
            });
            put(&mut pod["metadata"], "labels", own.clone());
            put(&mut pod["metadata"], "annotations", own);
            if has_status {
                pod["status"] = json!({"phase": "Pending", "qosClass": "Burstable"});
                put(&mut pod["status"], "conditions", conditions);
                put(&mut pod["status"], "nominatedNodeName", match nominated {
                    true => json!("n"),
                    false => Value::Null,
                });
            }
            let binding = json!({
                "metadata": {"labels": given, "annotations": given},
                "target": {"name": node},
            });
            let now = "2026-01-01T00:00:00Z";
            let encoded = cache::encode_with_revision(&cache::encode(&pod), 7);
            let mut outline = Outline::of(&encoded).unwrap();
            prop_assert_eq!(outline.metadata.text("resourceVersion"), "7");
            outline.bind(&binding, now);
            let expected = cache::encode(&bound(pod, &binding, now));
            prop_assert_eq!(outline.encode(), expected);
        }
    }
}
