//! The writes that the loop orders.

use std::time::Duration;

use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use plimsoll_core::object::identity::{NodeName, PodRef};
use plimsoll_core::scheduling::preemption::PREEMPTION_CONDITION_REASON;
use plimsoll_core::scheduling::queue::PodFacts;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::action::{StatusPatch, Victim};
use super::input::Eviction;

/// How often a write that the server could not carry out is tried.
const TRIES: u32 = 4;
/// The wait before the second try; each further wait is longer by the factor.
const FIRST_WAIT: Duration = Duration::from_millis(10);
const WAIT_FACTOR: u32 = 5;
/// The longest wait.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Why a write did not succeed.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    /// The server refused it.
    #[error("{code}: {message}")]
    Stated { code: u16, message: String },
    /// Whether it was carried out is not known.
    #[error("no answer: {0}")]
    Unanswered(kube::Error),
}

impl Refusal {
    fn is(&self, status: StatusCode) -> bool {
        matches!(self, Refusal::Stated { code, .. } if *code == status.as_u16())
    }

    /// Whether the same write may succeed later.
    fn is_passing(&self) -> bool {
        match self {
            Refusal::Stated { code, .. } => *code == 429 || *code >= 500,
            Refusal::Unanswered(_) => true,
        }
    }
}

/// Binds a pod, or returns why that failed.
///
/// It does not return before it is known whether the pod is bound: a request without an answer is
/// retried, since a pod that is given up may still be bound to its node.
pub(super) async fn bind(client: &Client, pod: &PodFacts, node: &NodeName) -> Result<(), String> {
    let pod_ref = &pod.pod_ref;
    let path = format!("{}/binding", path_of(pod_ref));
    let body = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {
            "namespace": pod_ref.namespace, "name": pod_ref.name, "uid": pod.uid.as_str(),
        },
        "target": {"kind": "Node", "name": node.as_str()},
    });
    let body = body.to_string().into_bytes();
    let mut wait = FIRST_WAIT;
    let mut tries = 0;
    loop {
        tries += 1;
        let request = request(Method::POST, &path, "application/json", body.clone());
        let refusal = match send(client, request).await {
            Ok(()) => return Ok(()),
            Err(refusal) => refusal,
        };
        let is_enough = tries >= TRIES || !refusal.is_passing();
        if let (true, Refusal::Stated { code, message }) = (is_enough, refusal) {
            // An earlier try may have been carried out without an answer.
            let may_be_bound = code == 409 || code >= 500;
            return match may_be_bound && is_bound(client, pod, node).await {
                true => Ok(()),
                false => Err(message),
            };
        }
        sleep(wait).await;
        wait = (wait * WAIT_FACTOR).min(LAST_WAIT);
    }
}

/// Whether the pod is on that node. Retried until the server answers.
async fn is_bound(client: &Client, pod: &PodFacts, node: &NodeName) -> bool {
    let pods = kube::Api::<k8s_openapi::api::core::v1::Pod>::namespaced(
        client.clone(),
        &pod.pod_ref.namespace,
    );
    let mut wait = FIRST_WAIT;
    loop {
        match pods.get_opt(&pod.pod_ref.name).await {
            Ok(found) => {
                return found.is_some_and(|found| {
                    let own_node = found.spec.as_ref().and_then(|s| s.node_name.as_deref());
                    found.metadata.uid.as_deref() == Some(pod.uid.as_str())
                        && own_node == Some(node.as_str())
                });
            }
            Err(kube::Error::Api(status)) if status.code < 500 && status.code != 429 => {
                return false;
            }
            Err(error) => {
                tracing::warn!(
                    pod = %pod.pod_ref, %error, "could not check whether pod is bound, retrying"
                )
            }
        }
        sleep(wait).await;
        wait = (wait * WAIT_FACTOR).min(LAST_WAIT);
    }
}

/// Patches a pod's status; false if that failed.
pub(super) async fn patch(client: &Client, patch: &StatusPatch) -> bool {
    let mut status = json!({});
    if let Some(condition) = &patch.condition {
        let mut own = json!({
            "type": "PodScheduled", "status": "False",
            "reason": condition.reason, "message": condition.message,
            "observedGeneration": condition.observed_generation,
        });
        if condition.is_new {
            own["lastTransitionTime"] = now();
        }
        status["conditions"] = json!([own]);
    }
    if let Some(node) = &patch.nominated_node_name {
        status["nominatedNodeName"] = json!(node.as_ref().map(NodeName::as_str));
    }
    let result = patch_status(client, &patch.pod_ref, patch.uid.as_str(), status).await;
    match result {
        Ok(()) => true,
        Err(refusal) if refusal.is(StatusCode::NOT_FOUND) => true,
        Err(refusal) => {
            tracing::warn!(pod = %patch.pod_ref, error = %refusal, "failed to update pod status");
            false
        }
    }
}

/// Marks a victim and deletes it.
pub(super) async fn evict(client: &Client, victim: &Victim) -> Eviction {
    let uid = victim.uid.as_str();
    if !victim.is_marked {
        let status = json!({"conditions": [{
            "type": "DisruptionTarget", "status": "True",
            "reason": PREEMPTION_CONDITION_REASON, "message": victim.message,
            "observedGeneration": victim.generation, "lastTransitionTime": now(),
        }]});
        let marked = patch_status(client, &victim.pod_ref, uid, status).await;
        if let Err(refusal) = marked {
            return eviction(victim, &refusal);
        }
    }
    let body = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid},
    });
    let body = body.to_string().into_bytes();
    let path = path_of(&victim.pod_ref);
    let request = request(Method::DELETE, &path, "application/json", body);
    match send(client, request).await {
        Ok(()) => Eviction::Deleted,
        Err(refusal) => eviction(victim, &refusal),
    }
}

/// A conflict is about the id: another pod has the name.
fn eviction(victim: &Victim, refusal: &Refusal) -> Eviction {
    if refusal.is(StatusCode::NOT_FOUND) || refusal.is(StatusCode::CONFLICT) {
        return Eviction::Gone;
    }
    tracing::warn!(pod = %victim.pod_ref, error = %refusal, "failed to preempt pod");
    Eviction::Failed
}

/// The id in the patch keeps it from a pod that has taken the name over.
async fn patch_status(
    client: &Client,
    pod_ref: &PodRef,
    uid: &str,
    status: Value,
) -> Result<(), Refusal> {
    const CONTENT_TYPE: &str = "application/strategic-merge-patch+json";
    let path = format!("{}/status", path_of(pod_ref));
    let body = json!({"metadata": {"uid": uid}, "status": status});
    let body = body.to_string().into_bytes();
    let mut wait = FIRST_WAIT;
    for _ in 1..TRIES {
        let request = request(Method::PATCH, &path, CONTENT_TYPE, body.clone());
        match send(client, request).await {
            Err(refusal) if refusal.is_passing() => {}
            result => return result,
        }
        sleep(wait).await;
        wait *= WAIT_FACTOR;
    }
    send(client, request(Method::PATCH, &path, CONTENT_TYPE, body)).await
}

fn path_of(pod_ref: &PodRef) -> String {
    let PodRef { namespace, name } = pod_ref;
    format!("/api/v1/namespaces/{namespace}/pods/{name}")
}

fn now() -> Value {
    json!(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
        Timestamp::now()
    ))
}

fn request(
    method: Method,
    path: &str,
    content_type: &'static str,
    body: Vec<u8>,
) -> http::Result<Request<Body>> {
    Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, content_type)
        .header(http::header::ACCEPT, "application/json")
        .body(Body::from(body))
}

/// Sends a request whose answer is of no interest unless it is a refusal.
async fn send(client: &Client, request: http::Result<Request<Body>>) -> Result<(), Refusal> {
    let unanswered = Refusal::Unanswered;
    let request = request.map_err(|error| Refusal::Stated {
        code: 400,
        message: error.to_string(),
    })?;
    let response = client.send(request).await.map_err(unanswered)?;
    let status = response.status();
    // The connection can be used again only when the answer has been read.
    let body = response.into_body().collect().await;
    if status.is_success() {
        return Ok(());
    }
    let body = body.map(http_body_util::Collected::to_bytes);
    let stated = body.ok().and_then(|body| {
        let value: Value = serde_json::from_slice(&body).ok()?;
        Some(value.get("message")?.as_str()?.to_owned())
    });
    Err(Refusal::Stated {
        code: status.as_u16(),
        message: stated.unwrap_or_else(|| status.to_string()),
    })
}
