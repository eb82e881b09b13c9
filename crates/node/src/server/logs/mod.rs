//! `/containerLogs/{namespace}/{pod}/{container}`.
//!
//! Matches v1.36 pkg/kubelet/server/server.go, pkg/kubelet/kubelet_pods.go and
//! cri-client/pkg/logs. Only the current file of a container is read, as upstream does; while
//! following, a renamed file is read to its end before the next one is opened.
//!
//! Reading order: `options` (the query parameters), `container` (which container that is), `line` and
//! `printer` (what of a file is shown), `tail` and `reader` (the file), `watch` (its changes).

mod container;
mod line;
mod options;
mod printer;
mod reader;
mod tail;

use std::sync::Arc;
use std::time::SystemTime;

use futures::StreamExt;
use http::{Response, StatusCode};
use plimsoll_core::object::timestamp::Timestamp;
use tokio_util::sync::CancellationToken;

use super::answer;
use super::body::{self, Body};
use super::node::Node;
use super::query::Query;
use super::route::ContainerOf;
use container::{has_container, log_of};
use options::LogOptions;
use reader::LogReader;

/// The log of a container; one that is followed ends when the server stops.
pub(super) async fn container_logs(
    node: &Arc<dyn Node>,
    of: &ContainerOf,
    query: &Query,
    stopping: CancellationToken,
) -> Response<Body> {
    let options = match LogOptions::read(query, now()) {
        Ok(options) => options,
        Err(refusal) => return answer::text(refusal.code(), refusal.to_string()),
    };
    let (pod_name, container) = (&of.pod.name, &of.container);
    let Some(pod) = node.pod(&of.pod.namespace, pod_name) else {
        let text = format!("pod {pod_name:?} does not exist");
        return answer::text(StatusCode::NOT_FOUND, text);
    };
    if !has_container(&pod, container) {
        let text = format!("container {container:?} not found in pod {pod_name:?}");
        return answer::text(StatusCode::NOT_FOUND, text);
    }
    let id = match log_of(&pod, container, options.previous) {
        Ok(id) => id,
        Err(error) => return answer::text(StatusCode::BAD_REQUEST, error.to_string()),
    };
    // From here on upstream has already said yes: errors are written into the text.
    answer::streamed(match LogReader::open(node.runtime(), &id, options).await {
        Ok(reader) => body::stream(reader.pieces().take_until(stopping.cancelled_owned())),
        Err(error) => body::full(error.to_string()),
    })
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::default().saturating_add(since.unwrap_or_default())
}

#[cfg(test)]
mod tests;
