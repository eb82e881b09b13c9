//! What the kubelet API needs of the agent.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::eviction::record::Record;
use plimsoll_core::eviction::record::lines::LinesRecord;
use plimsoll_core::eviction::record::ranking::RankingRecord;
use plimsoll_core::threshold::Signal;
use plimsoll_runtime::{self as runtime, Runtime};
use serde_json::Value;

/// Why the agent cannot answer. The text is what the client sees.
pub type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// One of the pages of measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metrics {
    /// `/metrics`: the agent about itself.
    Agent,
    /// `/metrics/resource`: cpu and memory of node, pods and containers.
    Resource,
    /// `/metrics/cadvisor`: everything about every cgroup.
    Cadvisor,
    /// `/metrics/probes`: how probes went.
    Probes,
}

/// The agent behind the kubelet API.
#[async_trait]
pub trait Node: Debug + Send + Sync {
    /// The pods that should run here, static ones included, each with the newest status known here.
    fn pods(&self) -> Vec<Arc<Pod>>;

    /// One of them. The pod behind a mirror pod is the static one.
    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        let named = |pod: &Arc<Pod>| {
            pod.metadata.namespace.as_deref() == Some(namespace)
                && pod.metadata.name.as_deref() == Some(name)
        };
        self.pods().into_iter().find(named)
    }

    /// The uid under which the runtime knows a pod: a mirror pod's is that of its static pod.
    fn translate_uid(&self, uid: &str) -> String {
        uid.to_owned()
    }

    /// The pods that the runtime has, wanted or not.
    async fn running_pods(&self) -> Result<Vec<Pod>, runtime::Error>;

    /// Where containers run.
    fn runtime(&self) -> Arc<dyn Runtime>;

    /// The summary of all usage as JSON, or of cpu and memory only.
    async fn summary(&self, only_cpu_and_memory: bool) -> Result<Vec<u8>, Trouble>;

    /// A page of measurements in the text format of Prometheus.
    async fn metrics(&self, page: Metrics) -> Result<String, Trouble>;

    /// The configuration that is in effect, as a `KubeletConfiguration`.
    fn configuration(&self) -> Value;

    /// The latest decisions about evictions, oldest first.
    fn decisions(&self) -> Vec<Arc<Record>> {
        Vec::new()
    }

    /// How far the eviction thresholds are.
    fn lines(&self) -> LinesRecord {
        LinesRecord::default()
    }

    /// The order in which pods would be evicted for a signal; `None` before the node was measured.
    fn ranking(&self, _signal: Signal) -> Option<RankingRecord> {
        None
    }

    /// Whether the loop over the pods still turns; else why not.
    fn sync_loop(&self) -> Result<(), String>;
}
