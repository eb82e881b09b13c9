//! Requests and answers.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::{StreamExt, stream};
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde_json::{Value, json};

use crate::informer::Key;

use super::kinds::{self, KINDS, Kind};
use super::state::{EXPIRED, NOT_FOUND, Refusal};
use super::{Cluster, watch_line};

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

#[derive(Clone)]
pub(super) struct Service(pub(super) Arc<Cluster>);

impl tower::Service<Request<Body>> for Service {
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let cluster = Arc::clone(&self.0);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap_or_default();
            let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
            let answer = answer(&cluster, &parts, body);
            Ok(answer.unwrap_or_else(refused))
        })
    }
}

/// The target of a URL.
struct Target {
    kind: &'static Kind,
    namespace: Option<String>,
    name: Option<String>,
    subresource: Option<String>,
}

impl Target {
    fn key(&self) -> Key {
        let namespace = self.namespace.clone().unwrap_or_default();
        Key::new(namespace, self.name.clone().unwrap_or_default())
    }
}

fn parse(path: &str) -> Option<Target> {
    let mut parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let group = match parts[0] {
        "api" => "",
        "apis" => parts.remove(1),
        _ => return None,
    };
    let mut rest = &parts[2..];
    let mut namespace = None;
    if let ["namespaces", name, _, ..] = rest
        && !matches!(rest[2], "status" | "finalize")
    {
        namespace = Some((*name).to_owned());
        rest = &rest[2..];
    }
    let plural = rest.first()?;
    let mut kinds = KINDS.iter();
    let kind = kinds.find(|kind| kind.group == group && kind.plural == *plural)?;
    Some(Target {
        kind,
        namespace,
        name: rest.get(1).map(|name| (*name).to_owned()),
        subresource: rest.get(2).map(|name| (*name).to_owned()),
    })
}

fn answer(
    cluster: &Arc<Cluster>,
    request: &http::request::Parts,
    body: Value,
) -> Result<Answer, Refusal> {
    let path = request.uri.path();
    if let "/api" | "/apis" = path.trim_end_matches('/') {
        return Ok(json_answer(&kinds::discovery(
            path.starts_with("/api/") || path == "/api",
        )));
    }
    let target = parse(path).ok_or(NOT_FOUND)?;
    let (kind, key) = (target.kind, target.key());
    let subresource = target.subresource.as_deref();
    let content_type = request.headers.get(header::CONTENT_TYPE);
    let is_strategic = content_type.is_some_and(|t| {
        t.as_bytes()
            .starts_with(b"application/strategic-merge-patch+json")
    });
    let object = match (&request.method, &target.name) {
        (&Method::GET, None) => return collection(cluster, request, &target),
        (&Method::GET, Some(_)) => {
            let state = cluster.state();
            state.get(kind, &key).ok_or(NOT_FOUND)?.clone()
        }
        (&Method::POST, _) => {
            let mut object = body;
            if let Some(namespace) = &target.namespace {
                object["metadata"]["namespace"] = namespace.clone().into();
            }
            cluster.published(|state| state.create(kind, object))?
        }
        (&Method::PUT, _) => cluster.published(|s| s.update(kind, &key, subresource, body))?,
        (&Method::PATCH, _) => {
            cluster.published(|s| s.patch(kind, &key, subresource, &body, is_strategic))?
        }
        (&Method::DELETE, Some(_)) => cluster.published(|s| s.delete(kind, &key, &body))?,
        (&Method::DELETE, None) => cluster.published(|state| {
            let within = state.list(kind, target.namespace.as_deref());
            let keys: Vec<Key> = within.map(super::state::key_of).collect();
            for key in keys {
                state.delete(kind, &key, &body)?;
            }
            Ok(json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}))
        })?,
        _ => return Err((405, "MethodNotAllowed")),
    };
    Ok(json_answer(&full_or_metadata(request, object)))
}

fn collection(
    cluster: &Arc<Cluster>,
    request: &http::request::Parts,
    target: &Target,
) -> Result<Answer, Refusal> {
    let query = request.uri.query().unwrap_or_default();
    let parameter = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    if parameter("watch") == Some("true") {
        let is_streamed = parameter("sendInitialEvents") == Some("true");
        if is_streamed && !cluster.streams_lists {
            return Err((422, "Invalid"));
        }
        let version = parameter("resourceVersion").and_then(|v| v.parse().ok());
        if !is_streamed && version.unwrap_or(0) < cluster.state().compacted {
            return Err(EXPIRED);
        }
        return Ok(watch(
            cluster,
            request,
            target,
            is_streamed,
            version.unwrap_or(0),
        ));
    }
    let state = cluster.state();
    let objects = state.list(target.kind, target.namespace.as_deref());
    let items: Vec<Value> = objects
        .map(|o| full_or_metadata(request, o.clone()))
        .collect();
    Ok(json_answer(&json!({
        "apiVersion": target.kind.api_version(),
        "kind": format!("{}List", target.kind.name),
        "metadata": {"resourceVersion": state.revision().to_string()},
        "items": items,
    })))
}

fn watch(
    cluster: &Arc<Cluster>,
    request: &http::request::Parts,
    target: &Target,
    is_streamed: bool,
    version: u64,
) -> Answer {
    let mut first = Vec::new();
    let mut from = version;
    if is_streamed {
        let state = cluster.state();
        from = state.revision();
        let objects = state.list(target.kind, target.namespace.as_deref());
        first.extend(objects.map(|o| watch_line("ADDED", &full_or_metadata(request, o.clone()))));
        let end = json!({
            "apiVersion": target.kind.api_version(),
            "kind": target.kind.name,
            "metadata": {
                "resourceVersion": from.to_string(),
                "annotations": {"k8s.io/initial-events-end": "true"},
            },
        });
        first.push(watch_line("BOOKMARK", &end));
    }
    let (kind, namespace) = (target.kind, target.namespace.clone());
    let parts = request.clone();
    let changes = stream::unfold(
        (Arc::clone(cluster), cluster.revision.subscribe(), from),
        move |(cluster, mut revisions, from)| {
            let (namespace, parts) = (namespace.clone(), parts.clone());
            async move {
                loop {
                    let (events, revision) = {
                        let state = cluster.state();
                        if from < state.compacted {
                            let line = watch_line("ERROR", &status(EXPIRED));
                            drop(state);
                            return Some((vec![line], (cluster, revisions, u64::MAX)));
                        }
                        let of_kind = state.since(from).filter(|e| e.kind == kind);
                        let within = of_kind.filter(|e| {
                            let own = e.object["metadata"]["namespace"].as_str();
                            namespace.as_deref().is_none_or(|n| own == Some(n))
                        });
                        let written = |e: &super::state::Event| {
                            let object = full_or_metadata(&parts, e.object.clone());
                            watch_line(e.change, &object)
                        };
                        (within.map(written).collect::<Vec<_>>(), state.revision())
                    };
                    if !events.is_empty() {
                        return Some((events, (cluster, revisions, revision)));
                    }
                    revisions.changed().await.ok()?;
                }
            }
        },
    );
    let events = stream::iter([first]).chain(changes).flat_map(stream::iter);
    let lines = events.map(|line| Ok(Frame::data(Bytes::from(line))));
    Response::new(StreamBody::new(lines).boxed_unsync())
}

/// The whole object, or its metadata if the request accepts only that.
fn full_or_metadata(request: &http::request::Parts, object: Value) -> Value {
    let accept = request.headers.get(header::ACCEPT);
    let accept = accept.and_then(|a| a.to_str().ok()).unwrap_or_default();
    match accept.contains("PartialObjectMetadata") {
        true => json!({
            "apiVersion": "meta.k8s.io/v1",
            "kind": "PartialObjectMetadata",
            "metadata": object["metadata"],
        }),
        false => object,
    }
}

fn json_answer(value: &Value) -> Answer {
    Response::new(Full::new(Bytes::from(value.to_string())).boxed_unsync())
}

fn refused(refusal: Refusal) -> Answer {
    let mut answer = json_answer(&status(refusal));
    *answer.status_mut() = http::StatusCode::from_u16(refusal.0).unwrap();
    answer
}

fn status((code, reason): Refusal) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "message": reason,
        "reason": reason,
        "code": code,
    })
}
