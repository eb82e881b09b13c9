//! What has to be done again and again while pods run.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ContainerImage;
use plimsoll_client::events::EventType;
use plimsoll_core::object::pod::PodView;
use plimsoll_runtime::Runtime;
use plimsoll_runtime::cgroup::{Enforcement, EventKind, NodeCgroups, NodeEvent, QOS_UPDATE_PERIOD};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::heartbeat::Heartbeat;
use super::host::NodeHost;
use crate::pods::Pods;

/// How often the runtime's status is read.
const RUNTIME_CHECK_PERIOD: Duration = Duration::from_secs(5);
/// How often images are listed for the node's status, as upstream.
const IMAGE_PERIOD: Duration = Duration::from_secs(30);

/// The pods that hold resources, as cgroups are computed from them.
pub(super) fn active_pods(pods: &Pods) -> Vec<PodView> {
    let active = pods.active().into_iter();
    active
        .filter_map(|pod| PodView::from_api(&pod).ok())
        .collect()
}

/// Keeps the QoS cgroups current: whenever pods change, and each minute.
pub(super) async fn keep_tiers(
    cgroups: Arc<NodeCgroups>,
    pods: Pods,
    changed: Arc<Notify>,
    stop: CancellationToken,
) {
    loop {
        let active = active_pods(&pods);
        let cgroups = Arc::clone(&cgroups);
        let done = tokio::task::spawn_blocking(move || cgroups.update_tiers(&active)).await;
        if let Ok(Err(error)) = done {
            tracing::warn!(%error, "failed to update QoS cgroups");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = changed.notified() => {}
            () = tokio::time::sleep(QOS_UPDATE_PERIOD) => {}
        }
    }
}

/// Writes the limit of all pods until it works.
pub(super) async fn enforce_limit(
    cgroups: Arc<NodeCgroups>,
    pods: Pods,
    heartbeat: Arc<Heartbeat>,
    stop: CancellationToken,
) {
    loop {
        let active = active_pods(&pods);
        let writer = Arc::clone(&cgroups);
        let done = tokio::task::spawn_blocking(move || writer.enforce_pods(&active)).await;
        match done {
            Ok(Enforcement::Done(event)) => return record_event(&heartbeat, event),
            Ok(Enforcement::Retry(event)) => record_event(&heartbeat, event),
            Err(_) => return,
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(Enforcement::RETRY_AFTER) => {}
        }
    }
}

/// Records a cgroup event of the node.
pub(super) fn record_event(heartbeat: &Heartbeat, event: NodeEvent) {
    let event_type = match event.kind {
        EventKind::Normal => EventType::Normal,
        EventKind::Warning => EventType::Warning,
    };
    heartbeat.record_event(event_type, event.reason, event.message);
}

/// The health of the container runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RuntimeHealth {
    /// Why it cannot run containers, if so.
    pub(super) runtime: Option<String>,
    /// Why it cannot connect them, if so.
    pub(super) network: Option<String>,
}

impl RuntimeHealth {
    /// What keeps the node from being ready, as upstream lists it.
    pub(super) fn problems(&self) -> Vec<String> {
        [&self.runtime, &self.network]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }
}

/// Asks a runtime how it is. Matches v1.36 pkg/kubelet/runtime.go and kubelet.go.
pub(super) async fn ask_runtime(runtime: &dyn Runtime) -> RuntimeHealth {
    let status = match runtime.status().await {
        Ok(status) => status,
        Err(error) => {
            let problem = format!("container runtime is down: {}", error.chain());
            return RuntimeHealth {
                runtime: Some(problem),
                network: None,
            };
        }
    };
    let find = |name: &str| {
        status
            .conditions
            .iter()
            .find(|condition| condition.r#type == name)
    };
    let problem = |what: &str, name: &str| match find(name) {
        Some(condition) if condition.status => None,
        Some(condition) => Some(format!(
            "{what} not ready: {name}=false reason:{} message:{}",
            condition.reason, condition.message
        )),
        None => Some(format!(
            "{what} not ready: condition {name} is not reported"
        )),
    };
    RuntimeHealth {
        runtime: problem("container runtime", "RuntimeReady"),
        network: problem("container runtime network", "NetworkReady"),
    }
}

/// Keeps asking, and has the node's status written when the answer changes.
pub(super) async fn watch_runtime(
    host: Arc<NodeHost>,
    health: watch::Sender<RuntimeHealth>,
    at_once: Arc<Notify>,
    stop: CancellationToken,
) {
    loop {
        let now = ask_runtime(&*host.runtime).await;
        host.set_network_problem(now.network.clone());
        let is_changed = health.send_if_modified(|before| {
            let is_changed = *before != now;
            *before = now;
            is_changed
        });
        if is_changed {
            at_once.notify_one();
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RUNTIME_CHECK_PERIOD) => {}
        }
    }
}

/// The images as the node's status lists them.
pub(super) async fn list_images(runtime: &dyn Runtime) -> Vec<ContainerImage> {
    let images = runtime.list_images().await.unwrap_or_default();
    let listed = images.into_iter().map(|image| ContainerImage {
        names: Some([image.repo_digests, image.repo_tags].concat()),
        size_bytes: i64::try_from(image.size).ok(),
    });
    listed.collect()
}

/// Keeps the list of images, so that no status has to wait for it.
pub(super) async fn watch_images(
    runtime: Arc<dyn Runtime>,
    images: watch::Sender<Vec<ContainerImage>>,
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(IMAGE_PERIOD) => {}
        }
        images.send_replace(list_images(&*runtime).await);
    }
}
