//! Pages that only show: pods, usage, measurements, configuration.

use std::borrow::Borrow;

use http::{Response, StatusCode};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::answer;
use super::body::Body;
use super::node::{Metrics, Node};
use super::query::Query;

/// `/pods`.
pub(super) fn pods(node: &dyn Node) -> Response<Body> {
    pod_list(&node.pods())
}

/// `/runningpods/`.
pub(super) async fn running_pods(node: &dyn Node) -> Response<Body> {
    match node.running_pods().await {
        Ok(pods) => pod_list(&pods),
        Err(error) => answer::text(StatusCode::INTERNAL_SERVER_ERROR, error.chain()),
    }
}

/// `/stats/summary`.
pub(super) async fn summary(node: &dyn Node, query: &Query) -> Response<Body> {
    let asked: Vec<&str> = query.all("only_cpu_and_memory").collect();
    match node.summary(asked == ["true"]).await {
        Ok(summary) => answer::json(summary),
        Err(error) => {
            let text = format!("Internal Error: {error}");
            answer::text(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
    }
}

/// `/metrics` and those below it.
pub(super) async fn metrics(node: &dyn Node, page: Metrics) -> Response<Body> {
    match node.metrics(page).await {
        Ok(text) => answer::metrics(text),
        Err(error) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// `/configz`.
pub(super) fn configuration(node: &dyn Node) -> Response<Body> {
    let page = json!({ "kubeletconfig": node.configuration() });
    answer::json(page.to_string().into_bytes())
}

/// A `PodList` as the kubelet encodes it: without a version, and null rather than empty.
fn pod_list<P: Borrow<Pod>>(pods: &[P]) -> Response<Body> {
    let mut page = br#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":"#.to_vec();
    if pods.is_empty() {
        page.extend_from_slice(b"null");
    } else {
        page.push(b'[');
        for (index, pod) in pods.iter().enumerate() {
            if index > 0 {
                page.push(b',');
            }
            if let Err(error) = write_pod(&mut page, pod.borrow()) {
                return answer::text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
            }
        }
        page.push(b']');
    }
    page.extend_from_slice(b"}\n");
    answer::json(page)
}

/// Items of a list do not say what they are.
fn write_pod(page: &mut Vec<u8>, pod: &Pod) -> Result<(), serde_json::Error> {
    let mut pod = serde_json::to_value(pod)?;
    if let Some(fields) = pod.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    serde_json::to_writer(page, &pod)
}
