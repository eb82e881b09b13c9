//! Texts that Prometheus scrapes, under upstream's names.
//!
//! [`resource_metrics`](super::Collector::resource_metrics) is `/metrics/resource`,
//! [`cadvisor_metrics`](super::Collector::cadvisor_metrics) is `/metrics/cadvisor`, and
//! [`KubeletMetrics`] is `/metrics`. All are in Prometheus' own format rather than OpenMetrics:
//! upstream's counters do not all end in `_total`, and samples bear the time of their measurement.

mod cadvisor;
mod details;
mod devices;
mod exposition;
mod kubelet;
mod labels;
mod plain_counter;
mod process;
mod recording;
mod resource;
mod series;
mod volumes;

pub use exposition::CONTENT_TYPE;
pub use kubelet::KubeletMetrics;
pub use recording::{Answered, ContainerType, PodCounts, PodStart};
