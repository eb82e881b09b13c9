//! `metrics.k8s.io`: resource usage that node agents report.
//!
//! Objects are in the form of metrics-server, from the kubelet's summary: CPU in nanocores over
//! the window, memory as the working set.

use http::header::HOST;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use plimsoll_core::quantity::{Format, Quantity};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::connector::{Channel, NodeConnector};
use super::error_response::ErrorResponse;
use super::exchange::{send, transport_text};
use crate::body::empty;

/// A summary of a node full of pods is about a megabyte.
const MAX_SUMMARY_BYTES: usize = 32 << 20;

/// The window over which kubelets average CPU usage.
const WINDOW: &str = "30s";

/// A node's usage is not available.
#[derive(Debug, thiserror::Error)]
pub enum SummaryError {
    /// It has no address.
    #[error("{}", .0.message)]
    NoAddress(ErrorResponse),
    /// It cannot be reached, or the connection breaks.
    #[error("{0}")]
    Unreachable(String),
    /// It does not respond in time.
    #[error("timed out waiting for the node's summary")]
    TimedOut,
    /// It responds with another status.
    #[error("request failed, status: {0}")]
    Refused(StatusCode),
    /// The response is not JSON, or too large.
    #[error("the node's summary is not JSON")]
    Malformed(#[source] serde_json::Error),
}

impl NodeConnector {
    /// The `/stats/summary` of a node.
    pub async fn summary(&self, node: &Value) -> Result<Value, SummaryError> {
        timeout(self.timeouts.summary, self.read_summary(node))
            .await
            .unwrap_or(Err(SummaryError::TimedOut))
    }

    async fn read_summary(&self, node: &Value) -> Result<Value, SummaryError> {
        let endpoint = self.endpoint(node).map_err(SummaryError::NoAddress)?;
        let stream = self.dial(&endpoint, Channel::Agent).await;
        let stream = stream.map_err(|error| SummaryError::Unreachable(error.to_string()))?;
        let request = Request::get("/stats/summary")
            .header(HOST, endpoint.to_string())
            .body(empty())
            .map_err(|error| SummaryError::Unreachable(error.to_string()))?;
        let (response, _connection) = send(stream, request)
            .await
            .map_err(|error| SummaryError::Unreachable(transport_text(&error)))?;
        if response.status() != StatusCode::OK {
            return Err(SummaryError::Refused(response.status()));
        }
        let body = Limited::new(response.into_body(), MAX_SUMMARY_BYTES).collect();
        let body = body.await;
        let body = body.map_err(|error| SummaryError::Unreachable(error.to_string()))?;
        serde_json::from_slice(&body.to_bytes()).map_err(SummaryError::Malformed)
    }
}

/// The `NodeMetrics` of a node; `None` until its agent has a measurement. Labels are the
/// node's.
pub fn node_metrics(summary: &Value, node: &Value) -> Option<Value> {
    let sample = Sample::read(summary.get("node")?)?;
    let mut metadata = json!({
        "name": node["metadata"]["name"],
        "creationTimestamp": sample.time,
    });
    if let Some(labels) = node["metadata"].get("labels") {
        metadata["labels"] = labels.clone();
    }
    Some(json!({
        "kind": "NodeMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": metadata,
        "timestamp": sample.time,
        "window": WINDOW,
        "usage": sample.usage(),
    }))
}

/// The `PodMetrics` of a node's pods. A pod is left out while one of its containers has no
/// measurement: part of a pod's usage would look like all of it.
pub fn pod_metrics(summary: &Value) -> Vec<Value> {
    let pods = summary["pods"].as_array().map_or(&[][..], Vec::as_slice);
    pods.iter().filter_map(metrics_of_pod).collect()
}

fn metrics_of_pod(pod: &Value) -> Option<Value> {
    let containers = pod["containers"].as_array()?;
    let samples: Option<Vec<(&Value, Sample<'_>)>> = containers
        .iter()
        .map(|container| Some((container.get("name")?, Sample::read(container)?)))
        .collect();
    let samples = samples?;
    // The pod is as old as its oldest sample; the texts are all in UTC and of the same length.
    let time = samples.iter().map(|(_, sample)| sample.time).min()?;
    let containers: Vec<Value> = samples
        .iter()
        .map(|(name, sample)| json!({"name": name, "usage": sample.usage()}))
        .collect();
    Some(json!({
        "kind": "PodMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {
            "name": pod["podRef"]["name"],
            "namespace": pod["podRef"]["namespace"],
            "creationTimestamp": time,
        },
        "timestamp": time,
        "window": WINDOW,
        "containers": containers,
    }))
}

/// One measurement, of a node or of a container.
struct Sample<'a> {
    time: &'a str,
    nanocores: u64,
    working_set: u64,
}

impl Sample<'_> {
    /// `None` unless both CPU and memory are measured. A sample without memory is of a container
    /// that has just ended.
    fn read(stats: &Value) -> Option<Sample<'_>> {
        let working_set = stats["memory"]["workingSetBytes"].as_u64()?;
        Some(Sample {
            time: stats["cpu"]["time"].as_str()?,
            nanocores: stats["cpu"]["usageNanoCores"].as_u64()?,
            working_set,
        })
        .filter(|sample| sample.working_set > 0)
    }

    fn usage(&self) -> Value {
        let cpu = format!("{}n", self.nanocores).parse::<Quantity>();
        let cpu = cpu.map_or_else(|_| "0".to_owned(), |cpu| cpu.canonical());
        let memory = i64::try_from(self.working_set).unwrap_or(i64::MAX);
        let memory = Quantity::new(memory, Format::BinarySi).canonical();
        json!({"cpu": cpu, "memory": memory})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(time: &str, nanocores: u64, bytes: u64) -> Value {
        json!({
            "cpu": {"time": time, "usageNanoCores": nanocores},
            "memory": {"time": time, "workingSetBytes": bytes},
        })
    }

    #[test]
    fn node_metrics_have_the_labels_of_the_node() {
        let summary = json!({"node": stats("2026-01-01T00:00:10Z", 123_456_789, 1_048_576)});
        let node = json!({"metadata": {"name": "n1", "labels": {"a": "b"}}});
        assert_eq!(
            node_metrics(&summary, &node),
            Some(json!({
                "kind": "NodeMetrics",
                "apiVersion": "metrics.k8s.io/v1beta1",
                "metadata": {
                    "name": "n1", "labels": {"a": "b"},
                    "creationTimestamp": "2026-01-01T00:00:10Z",
                },
                "timestamp": "2026-01-01T00:00:10Z",
                "window": "30s",
                "usage": {"cpu": "123456789n", "memory": "1Mi"},
            }))
        );
        assert_eq!(node_metrics(&json!({}), &node), None);
        assert_eq!(node_metrics(&json!({"node": {"cpu": {}}}), &node), None);
    }

    #[test]
    fn pod_metrics_need_all_containers_measured() {
        let container = |name: &str, mut stats: Value| {
            stats["name"] = json!(name);
            stats
        };
        let summary = json!({"pods": [
            {
                "podRef": {"name": "web", "namespace": "default"},
                "containers": [
                    container("a", stats("2026-01-01T00:00:12Z", 1_000_000, 2048)),
                    container("b", stats("2026-01-01T00:00:10Z", 0, 4097)),
                ],
            },
            {
                "podRef": {"name": "new", "namespace": "default"},
                "containers": [
                    container("a", stats("2026-01-01T00:00:12Z", 1, 2048)),
                    {"name": "b", "cpu": {"time": "2026-01-01T00:00:12Z"}},
                ],
            },
        ]});
        let pods = pod_metrics(&summary);
        assert_eq!(pods.len(), 1);
        assert_eq!(pods[0]["metadata"]["name"], "web");
        assert_eq!(pods[0]["timestamp"], "2026-01-01T00:00:10Z");
        assert_eq!(
            pods[0]["containers"],
            json!([
                {"name": "a", "usage": {"cpu": "1m", "memory": "2Ki"}},
                {"name": "b", "usage": {"cpu": "0", "memory": "4097"}},
            ])
        );
    }
}
