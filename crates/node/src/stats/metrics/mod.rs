//! Texts that Prometheus scrapes, under upstream's names.
//!
//! [`resource_metrics`](super::Collector::resource_metrics) is `/metrics/resource`,
//! [`cadvisor_metrics`](super::Collector::cadvisor_metrics) is `/metrics/cadvisor`, and
//! [`KubeletMetrics`] is `/metrics` and `/metrics/probes`. All are in Prometheus' own format rather than OpenMetrics:
//! upstream's counters do not all end in `_total`, and samples bear the time of their measurement.

mod cadvisor;
mod details;
mod devices;
mod exposition;
mod kubelet;
mod labels;
mod plain_counter;
mod probes;
mod process;
mod recording;
mod resource;
mod series;
mod volumes;

pub use exposition::CONTENT_TYPE;
pub use kubelet::KubeletMetrics;
pub(crate) use probes::{ProbeResult, Probed};
pub(crate) use recording::{
    Answered, CgroupOperation, ContainerType, PodCounts, PodStart, SyncType,
};
