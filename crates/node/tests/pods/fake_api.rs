//! An API server with pods and one node, in memory.
//!
//! It lists and watches pods, creates them, merges status patches as far as the agent relies on it,
//! and deletes. Tests can make it reject writes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::client::Body;
use plimsoll_client::testing::watch_line;
use serde_json::{Value, json};
use tokio::sync::mpsc;

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// The server. Cheap to clone; clones share its objects.
#[derive(Clone, Default)]
pub(crate) struct FakeApi(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    version: u64,
    pods: BTreeMap<String, Value>,
    watchers: Vec<mpsc::UnboundedSender<String>>,
    log: Vec<String>,
    refusals: u32,
}

impl FakeApi {
    pub(crate) fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Requests that changed an object.
    pub(crate) fn log(&self) -> Vec<String> {
        self.state().log.clone()
    }

    /// The next so many writes fail.
    pub(crate) fn refuse(&self, times: u32) {
        self.state().refusals = times;
    }

    /// Stores a pod as another client would.
    pub(crate) fn put(&self, pod: &Pod) {
        let pod = serde_json::to_value(pod).unwrap();
        self.state().store(pod, "ADDED");
    }

    /// Stores an object that may not be a valid pod.
    pub(crate) fn put_as_it_is(&self, pod: Value) {
        self.state().store(pod, "ADDED");
    }

    /// Removes a pod at once, without its node.
    pub(crate) fn remove(&self, name: &str) {
        self.state().remove(name);
    }

    /// Changes a pod as another client would.
    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut state = self.state();
        let mut pod = state.pods[name].clone();
        change(&mut pod);
        state.store(pod, "MODIFIED");
    }

    /// Deletes a pod as `kubectl delete` does: sets its deletion timestamp; the node removes it.
    pub(crate) fn delete(&self, name: &str, grace_secs: i64) {
        self.change(name, |pod| {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace_secs);
        });
    }

    pub(crate) fn pod(&self, name: &str) -> Option<Value> {
        self.state().pods.get(name).cloned()
    }
}

impl State {
    fn store(&mut self, mut pod: Value, event: &str) -> Value {
        self.version += 1;
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if pod["metadata"]["uid"].is_null() {
            pod["metadata"]["uid"] = json!(format!("api-{}", self.version));
        }
        let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
        self.pods.insert(name, pod.clone());
        self.notify(event, &pod);
        pod
    }

    fn remove(&mut self, name: &str) -> Option<Value> {
        let mut pod = self.pods.remove(name)?;
        self.version += 1;
        pod["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.notify("DELETED", &pod);
        Some(pod)
    }

    fn notify(&mut self, event: &str, pod: &Value) {
        let event = watch_line(event, pod);
        self.watchers
            .retain(|watcher| watcher.send(event.clone()).is_ok());
    }
}

/// Merges as a strategic merge patch of a status does: conditions by type, everything else whole.
fn merge_status(status: &mut Value, patch: &Value) {
    for (key, value) in patch.as_object().unwrap() {
        match key.as_str() {
            "conditions" => {
                let mut merged = status[key].as_array().cloned().unwrap_or_default();
                for change in value.as_array().unwrap() {
                    let place = merged.iter().position(|c| c["type"] == change["type"]);
                    if change["$patch"] == "delete" {
                        merged.remove(place.unwrap());
                        continue;
                    }
                    let mut own = place.map_or(json!({}), |place| merged.remove(place));
                    for (key, value) in change.as_object().unwrap() {
                        if value.is_null() {
                            own.as_object_mut().unwrap().remove(key);
                        } else {
                            own[key] = value.clone();
                        }
                    }
                    merged.push(own);
                }
                status[key] = json!(merged);
            }
            "podIPs" => {
                let list = value.as_array().unwrap();
                assert_eq!(list[0], json!({"$patch": "replace"}));
                status[key] = json!(list[1..]);
            }
            _ if value.is_null() => {
                status.as_object_mut().unwrap().remove(key);
            }
            _ => status[key] = value.clone(),
        }
    }
}

fn answered(code: u16, value: &Value) -> Answer {
    let body = Full::new(Bytes::from(value.to_string())).boxed_unsync();
    Response::builder().status(code).body(body).unwrap()
}

fn refused(code: u16, reason: &str) -> Answer {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "reason": reason, "code": code, "message": reason,
    });
    answered(code, &status)
}

impl tower::Service<Request<Body>> for FakeApi {
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let api = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let query = parts.uri.query().unwrap_or_default();
            let path: Vec<&str> = parts.uri.path().trim_matches('/').split('/').collect();
            Ok(api.answer(&parts.method, &path, query, &body))
        })
    }
}

impl FakeApi {
    fn answer(&self, method: &Method, path: &[&str], query: &str, body: &Value) -> Answer {
        let mut state = self.state();
        if *method != Method::GET && state.refusals > 0 {
            state.refusals -= 1;
            return refused(500, "InternalError");
        }
        match (method.as_str(), path) {
            ("GET", ["api", "v1", "nodes", name]) => {
                answered(200, &json!({"metadata": {"name": name, "uid": "node-uid"}}))
            }
            ("GET", ["api", "v1", "pods"]) if query.contains("sendInitialEvents") => {
                refused(422, "Invalid")
            }
            ("GET", ["api", "v1", "pods"]) if query.contains("watch=true") => {
                let (sender, receiver) = mpsc::unbounded_channel();
                state.watchers.push(sender);
                let receiver = futures::stream::unfold(receiver, |mut receiver| async {
                    Some((receiver.recv().await?, receiver))
                });
                let lines =
                    receiver.map(|line| Ok::<_, Infallible>(Frame::data(Bytes::from(line))));
                Response::new(StreamBody::new(lines).boxed_unsync())
            }
            ("GET", ["api", "v1", "pods"]) => {
                assert!(query.contains("spec.nodeName%3Dn"), "{query}");
                let items: Vec<&Value> = state.pods.values().collect();
                let version = state.version.to_string();
                answered(
                    200,
                    &json!({"kind": "PodList", "apiVersion": "v1",
                            "metadata": {"resourceVersion": version}, "items": items}),
                )
            }
            ("POST", ["api", "v1", "namespaces", _, "pods"]) => {
                let name = body["metadata"]["name"].as_str().unwrap().to_owned();
                if state.pods.contains_key(&name) {
                    return refused(409, "AlreadyExists");
                }
                state.log.push(format!("create {name}"));
                answered(201, &state.store(body.clone(), "ADDED"))
            }
            ("PATCH", ["api", "v1", "namespaces", _, "pods", name, "status"]) => {
                let Some(mut pod) = state.pods.get(*name).cloned() else {
                    return refused(404, "NotFound");
                };
                if pod["metadata"]["uid"] != body["metadata"]["uid"] {
                    return refused(409, "Conflict");
                }
                if pod["status"].is_null() {
                    pod["status"] = json!({});
                }
                merge_status(&mut pod["status"], &body["status"]);
                let phase = pod["status"]["phase"].as_str().unwrap_or_default();
                state.log.push(format!("status {name} {phase}"));
                answered(200, &state.store(pod, "MODIFIED"))
            }
            ("DELETE", ["api", "v1", "namespaces", _, "pods", name]) => {
                assert_eq!(body["gracePeriodSeconds"], json!(0));
                match state.pods.get(*name) {
                    None => refused(404, "NotFound"),
                    Some(pod) if pod["metadata"]["uid"] != body["preconditions"]["uid"] => {
                        refused(409, "Conflict")
                    }
                    Some(_) => {
                        state.log.push(format!("delete {name}"));
                        answered(200, &state.remove(name).unwrap())
                    }
                }
            }
            other => panic!("{other:?} is not known here"),
        }
    }
}
