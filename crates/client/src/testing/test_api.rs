//! A small Kubernetes API in memory, for tests: objects of any kind with resource versions, lists,
//! watches, merge patches and bindings. No validation, no selectors.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use http::{Method, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::watch_line;

/// Decides that a request fails, by its method and path, with that status. Below a hundred it is
/// carried out, and the connection breaks before the answer.
type Fault = Box<dyn FnMut(&Method, &str) -> Option<u16> + Send>;

/// The API; clones are the same one.
#[derive(Clone, Default)]
pub struct TestApi(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    revision: u64,
    /// By group and version, plural, namespace and name.
    objects: BTreeMap<Key, Value>,
    watches: Vec<Watch>,
    fault: Option<Fault>,
    requests: Vec<String>,
    /// How long a request and its answer take, at most.
    latency: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    group: String,
    plural: String,
    namespace: String,
    name: String,
}

struct Watch {
    key: Key,
    sender: mpsc::UnboundedSender<String>,
}

impl TestApi {
    /// A client of this API.
    pub fn client(&self) -> Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let api = api.clone();
            async move { api.respond(request).await }
        });
        Client::new(service, "default")
    }

    /// Decides which requests fail.
    pub fn set_fault(&self, fault: impl FnMut(&Method, &str) -> Option<u16> + Send + 'static) {
        self.0.lock().unwrap().fault = Some(Box::new(fault));
    }

    /// Lets requests and answers take up to this long, by chance.
    pub fn set_latency(&self, latency: Duration) {
        self.0.lock().unwrap().latency = latency;
    }

    /// The object at a path such as `/api/v1/namespaces/default/pods/a`.
    pub fn get(&self, path: &str) -> Option<Value> {
        let (key, _) = parse(path);
        self.0.lock().unwrap().objects.get(&key).cloned()
    }

    /// All objects of a collection, over all namespaces if the path names none.
    pub fn list(&self, path: &str) -> Vec<Value> {
        let (key, _) = parse(path);
        let state = self.0.lock().unwrap();
        let all = state.objects.iter().filter(|(own, _)| key.includes(own));
        all.map(|(_, object)| object.clone()).collect()
    }

    /// Sets an object, as another client would.
    pub fn put(&self, path: &str, object: Value) {
        let (key, _) = parse(path);
        self.0.lock().unwrap().store(key, object);
    }

    /// How many requests there were whose method and path contain the text.
    pub fn requests(&self, containing: &str) -> usize {
        let state = self.0.lock().unwrap();
        let requests = state.requests.iter();
        requests.filter(|line| line.contains(containing)).count()
    }

    async fn respond(
        &self,
        request: Request<kube::client::Body>,
    ) -> std::io::Result<Response<BoxBody<Bytes, Infallible>>> {
        let latency = self.0.lock().unwrap().latency;
        sleep(latency.mul_f64(fastrand::f64())).await;
        let answer = self.carry_out(request).await;
        sleep(latency.mul_f64(fastrand::f64())).await;
        answer
    }

    async fn carry_out(
        &self,
        request: Request<kube::client::Body>,
    ) -> std::io::Result<Response<BoxBody<Bytes, Infallible>>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let path = parts.uri.path();
        let (key, subresource) = parse(path);
        let mut state = self.0.lock().unwrap();
        state.requests.push(format!("{} {path}", parts.method));
        let fault = state.fault.as_mut().and_then(|f| f(&parts.method, path));
        if let Some(code @ 100..) = fault {
            return Ok(failed(code, "Fault"));
        }
        let query = parts.uri.query().unwrap_or_default();
        if parts.method == Method::GET && query.contains("watch=true") {
            return Ok(state.watch(key, query));
        }
        let response = state.change(&parts.method, key, subresource.as_deref(), body);
        match fault {
            Some(_) => Err(std::io::ErrorKind::ConnectionReset.into()),
            None => Ok(response),
        }
    }
}

impl State {
    fn change(
        &mut self,
        method: &Method,
        mut key: Key,
        subresource: Option<&str>,
        body: Value,
    ) -> Response<BoxBody<Bytes, Infallible>> {
        if *method == Method::POST && subresource.is_none() {
            key.name = text(&body, "/metadata/name");
            if self.objects.contains_key(&key) {
                return failed(409, "AlreadyExists");
            }
            return answer(201, &self.store(key, body));
        }
        if *method == Method::GET && key.name.is_empty() {
            let all = self.objects.iter().filter(|(own, _)| key.includes(own));
            let items: Vec<&Value> = all.map(|(_, object)| object).collect();
            let metadata = json!({"resourceVersion": self.revision.to_string()});
            return answer(200, &json!({"metadata": metadata, "items": items}));
        }
        let Some(old) = self.objects.get(&key).cloned() else {
            return failed(404, "NotFound");
        };
        match (method.as_str(), subresource) {
            ("GET", _) => answer(200, &old),
            ("DELETE", _) => {
                self.remove(&key);
                answer(200, &old)
            }
            ("PUT", _) => {
                let version = text(&body, "/metadata/resourceVersion");
                if !version.is_empty() && version != text(&old, "/metadata/resourceVersion") {
                    return failed(409, "Conflict");
                }
                answer(200, &self.store(key, body))
            }
            ("PATCH", _) => {
                let mut object = old;
                merge(&mut object, body);
                answer(200, &self.store(key, object))
            }
            ("POST", Some("binding")) => {
                let mut object = old;
                let is_bound = !text(&object, "/spec/nodeName").is_empty();
                if is_bound || text(&body, "/metadata/uid") != text(&object, "/metadata/uid") {
                    return failed(409, "Conflict");
                }
                object["spec"]["nodeName"] = body["target"]["name"].clone();
                self.store(key, object);
                answer(201, &json!({"kind": "Status", "status": "Success"}))
            }
            _ => failed(405, "MethodNotAllowed"),
        }
    }

    fn store(&mut self, key: Key, mut object: Value) -> Value {
        self.revision += 1;
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = json!(self.revision.to_string());
        metadata["name"] = json!(key.name);
        if !key.namespace.is_empty() {
            metadata["namespace"] = json!(key.namespace);
        }
        if metadata.get("uid").is_none() {
            metadata["uid"] = json!(format!("uid-{}", self.revision));
        }
        let is_known = self.objects.insert(key.clone(), object.clone()).is_some();
        self.broadcast(&key, if is_known { "MODIFIED" } else { "ADDED" }, &object);
        object
    }

    fn remove(&mut self, key: &Key) {
        if let Some(mut object) = self.objects.remove(key) {
            self.revision += 1;
            object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
            self.broadcast(key, "DELETED", &object);
        }
    }

    fn broadcast(&mut self, key: &Key, kind: &str, object: &Value) {
        let line = watch_line(kind, object);
        self.watches
            .retain(|watch| !watch.key.includes(key) || watch.sender.send(line.clone()).is_ok());
    }

    /// Watches from now on: tests change objects only after the watches have begun. With
    /// `sendInitialEvents` all objects come first.
    fn watch(&mut self, key: Key, query: &str) -> Response<BoxBody<Bytes, Infallible>> {
        let (sender, receiver) = mpsc::unbounded_channel::<String>();
        if query.contains("sendInitialEvents=true") {
            let all = self.objects.iter().filter(|(own, _)| key.includes(own));
            for (_, object) in all {
                sender.send(watch_line("ADDED", object)).unwrap();
            }
            let bookmark = json!({
                "apiVersion": "v1", "kind": "Unknown",
                "metadata": {
                    "resourceVersion": self.revision.to_string(),
                    "annotations": {"k8s.io/initial-events-end": "true"},
                },
            });
            sender.send(watch_line("BOOKMARK", &bookmark)).unwrap();
        }
        self.watches.push(Watch { key, sender });
        let lines = stream::unfold(receiver, |mut receiver| async move {
            let line = receiver.recv().await?;
            Some((Ok(Frame::data(Bytes::from(line))), receiver))
        });
        Response::new(BodyExt::boxed(StreamBody::new(lines.fuse())))
    }
}

impl Key {
    /// Whether the other key is this one, or in the collection that this one is.
    fn includes(&self, other: &Key) -> bool {
        self.group == other.group
            && self.plural == other.plural
            && (self.namespace.is_empty() || self.namespace == other.namespace)
            && (self.name.is_empty() || self.name == other.name)
    }
}

fn parse(path: &str) -> (Key, Option<String>) {
    let mut parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let group: Vec<&str> = parts
        .drain(..if parts[0] == "api" { 2 } else { 3 })
        .collect();
    let has_namespace = parts[0] == "namespaces" && parts.len() > 2;
    let namespace = if has_namespace { parts[1] } else { "" };
    let parts = &parts[if has_namespace { 2 } else { 0 }..];
    let key = Key {
        group: group.join("/"),
        plural: parts[0].to_owned(),
        namespace: namespace.to_owned(),
        name: parts.get(1).copied().unwrap_or_default().to_owned(),
    };
    (key, parts.get(2).map(|part| (*part).to_owned()))
}

/// A merge patch; lists of conditions are merged by type, as a strategic merge would.
fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    target.remove(&key);
                } else {
                    merge(target.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (Value::Array(target), Value::Array(patch)) => {
            for item in patch {
                target.retain(|own| own.get("type") != item.get("type"));
                target.push(item);
            }
        }
        (target, patch) => *target = patch,
    }
}

fn text(object: &Value, pointer: &str) -> String {
    let value = object.pointer(pointer).and_then(Value::as_str);
    value.unwrap_or_default().to_owned()
}

fn answer(code: u16, body: &Value) -> Response<BoxBody<Bytes, Infallible>> {
    let mut response = Response::new(BodyExt::boxed(Full::new(Bytes::from(body.to_string()))));
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
    response
}

fn failed(code: u16, reason: &str) -> Response<BoxBody<Bytes, Infallible>> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": reason, "reason": reason, "code": code,
    });
    answer(code, &status)
}

impl std::fmt::Debug for TestApi {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("TestApi").finish_non_exhaustive()
    }
}
