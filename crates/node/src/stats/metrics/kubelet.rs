//! `/metrics`: what the agent did; `recording` has the verbs that count.
//!
//! Matches v1.36 pkg/kubelet/metrics/metrics.go, as far as there is something to count here.

use std::path::Path;

use plimsoll_core::cgroup::Version;
use plimsoll_core::eviction::summary::Summary;
use plimsoll_core::object::timestamp::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use super::exposition::Exposition;
use super::plain_counter::PlainCounter;
use super::probes::ProbeMetrics;
use super::process::add_process;
use super::volumes::add_volumes;

macro_rules! labels {
    ($($name:ident { $($label:ident),+ })+) => {$(
        #[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
        pub(super) struct $name { $(pub(super) $label: String),+ }
    )+};
}
labels! {
    ContainerState { container_state }
    ContainerKind { container_type }
    ContainerError { container_type, code }
    ContainerEnd { container_type, exit_code, reason }
    EvictionSignal { eviction_signal }
    ImageSize { image_size_in_bytes }
    NodeName { node }
    Operation { operation_type }
    PreemptionSignal { preemption_signal }
    Reason { reason }
    Request { long_running, method, path, server_type }
    Static { r#static }
}

pub(super) type Counters<L> = Family<L, PlainCounter>;
pub(super) type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

const DEFAULT_BUCKETS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];
const POD_START_BUCKETS: [f64; 25] = [
    0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 240.0,
    300.0, 360.0, 480.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0,
];
const IMAGE_PULL_BUCKETS: [f64; 18] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0, 600.0, 900.0,
    1200.0, 1800.0, 2700.0, 3600.0,
];
const STATUS_SYNC_BUCKETS: [f64; 11] =
    [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];

pub(super) fn by_default_buckets() -> Histogram {
    Histogram::new(DEFAULT_BUCKETS)
}

fn by_pull_buckets() -> Histogram {
    Histogram::new(IMAGE_PULL_BUCKETS)
}

/// From 5 ms, each 2.5 times the one before.
fn by_runtime_buckets() -> Histogram {
    let bucket = |last: &f64| Some(last * 2.5);
    Histogram::new(std::iter::successors(Some(0.005), bucket).take(14))
}

/// One histogram for each set of labels.
fn each<L: Clone + Eq + std::hash::Hash>(histogram: fn() -> Histogram) -> Histograms<L> {
    Family::new_with_constructor(histogram)
}

macro_rules! metrics {
    ($($field:ident: $type:ty = $metric:expr, $name:literal, $help:literal;)+) => {
        /// Counters and durations of an agent.
        #[derive(Debug)]
        pub struct KubeletMetrics {
            registry: Registry,
            pub(super) probes: ProbeMetrics,
            $(pub(super) $field: $type,)+
        }

        impl KubeletMetrics {
            fn registered() -> KubeletMetrics {
                let mut registry = Registry::default();
                $(
                    let $field: $type = $metric;
                    register(&mut registry, $name, $help, $field.clone());
                )+
                let probes = ProbeMetrics::new();
                KubeletMetrics { registry, probes, $($field,)+ }
            }
        }
    };
}

fn register(registry: &mut Registry, name: &str, help: &str, metric: impl Metric) {
    // The registry ends every help with a full stop.
    let help = format!("[ALPHA] {}", help.trim_end_matches('.'));
    registry.register(format!("kubelet_{name}"), help, metric);
}

metrics! {
    active_pods: Family<Static, Gauge> = Default::default(),
        "active_pods",
        "The number of pods the kubelet considers active and which are being considered \
         when admitting new pods. static is true if the pod is not from the apiserver.";
    admission_rejections: Counters<Reason> = Default::default(),
        "admission_rejections_total",
        "Cumulative number pod admission rejections by the Kubelet.";
    cgroup_operations: Histograms<Operation> = each(by_default_buckets),
        "cgroup_manager_duration_seconds",
        "Duration in seconds for cgroup manager operations. Broken down by method.";
    desired_pods: Family<Static, Gauge> = Default::default(),
        "desired_pods",
        "The number of pods the kubelet is being instructed to run. static is true if the \
         pod is not from the apiserver.";
    eviction_stats_age: Histograms<EvictionSignal> = each(by_default_buckets),
        "eviction_stats_age_seconds",
        "Time between when stats are collected, and when pod is evicted based on those \
         stats by eviction signal";
    evictions: Counters<EvictionSignal> = Default::default(),
        "evictions",
        "Cumulative number of pod evictions by eviction signal";
    image_pulls: Histograms<ImageSize> = each(by_pull_buckets),
        "image_pull_duration_seconds",
        "Duration in seconds to pull an image.";
    images_collected: Counters<Reason> = Default::default(),
        "image_garbage_collected_total",
        "Total number of images garbage collected by the kubelet, whether through disk \
         usage or image age.";
    mirror_pods: Gauge = Default::default(),
        "mirror_pods",
        "The number of mirror pods the kubelet will try to create (one per admitted \
         static pod)";
    pleg_last_seen: Gauge = Default::default(),
        "pleg_last_seen_seconds",
        "Timestamp in seconds when PLEG was last seen active.";
    pleg_relist_durations: Histogram = by_default_buckets(),
        "pleg_relist_duration_seconds",
        "Duration in seconds for relisting pods in PLEG.";
    pleg_relist_intervals: Histogram = by_default_buckets(),
        "pleg_relist_interval_seconds",
        "Interval in seconds between relisting in PLEG.";
    pod_starts: Histogram = Histogram::new(POD_START_BUCKETS),
        "pod_start_duration_seconds",
        "Duration in seconds from kubelet seeing a pod for the first time to the pod \
         starting to run";
    pod_starts_sli: Histogram = Histogram::new(POD_START_BUCKETS),
        "pod_start_sli_duration_seconds",
        "Duration in seconds to start a pod, excluding time to pull images and run init \
         containers, measured from pod creation timestamp to when all its containers are \
         reported as started and observed via watch";
    pod_starts_total: Histogram = Histogram::new(POD_START_BUCKETS),
        "pod_start_total_duration_seconds",
        "Duration in seconds to start a pod since creation, including time to pull images \
         and run init containers, measured from pod creation timestamp to when all its \
         containers are reported as started and observed via watch";
    pod_status_syncs: Histogram = Histogram::new(STATUS_SYNC_BUCKETS),
        "pod_status_sync_duration_seconds",
        "Duration in seconds to sync a pod status update. Measures time from detection of \
         a change to pod status until the API is successfully updated for that pod, even \
         if multiple intevening changes to pod status occur.";
    pod_worker_starts: Histogram = by_default_buckets(),
        "pod_worker_start_duration_seconds",
        "Duration in seconds from kubelet seeing a pod to starting a worker.";
    pod_workers: Histograms<Operation> = each(by_default_buckets),
        "pod_worker_duration_seconds",
        "Duration in seconds to sync a single pod. Broken down by operation type: create, \
         update, or sync";
    preemptions: Counters<PreemptionSignal> = Default::default(),
        "preemptions",
        "Cumulative number of pod preemptions by preemption resource";
    request_durations: Histograms<Request> = each(by_default_buckets),
        "http_requests_duration_seconds",
        "Duration in seconds to serve http requests";
    requests: Counters<Request> = Default::default(),
        "http_requests_total",
        "Number of the http requests received since the server started";
    running_containers: Family<ContainerState, Gauge> = Default::default(),
        "running_containers",
        "Number of containers currently running";
    running_pods: Gauge = Default::default(),
        "running_pods",
        "Number of pods that have a running pod sandbox";
    runtime_durations: Histograms<Operation> = each(by_runtime_buckets),
        "runtime_operations_duration_seconds",
        "Duration in seconds of runtime operations. Broken down by operation type.";
    runtime_errors: Counters<Operation> = Default::default(),
        "runtime_operations_errors_total",
        "Cumulative number of runtime operation errors by operation type.";
    runtime_operations: Counters<Operation> = Default::default(),
        "runtime_operations_total",
        "Cumulative number of runtime operations by operation type.";
    started_containers: Counters<ContainerKind> = Default::default(),
        "started_containers_total",
        "Cumulative number of containers started";
    started_containers_errors: Counters<ContainerError> = Default::default(),
        "started_containers_errors_total",
        "Cumulative number of errors when starting containers";
    started_pods: PlainCounter = Default::default(),
        "started_pods_total",
        "Cumulative number of pods started";
    started_pods_errors: PlainCounter = Default::default(),
        "started_pods_errors_total",
        "Cumulative number of errors when starting pods";
    terminated_containers: Counters<ContainerEnd> = Default::default(),
        "terminated_containers_total",
        "Cumulative number of container terminations.";
    cgroup_version: Gauge = Default::default(),
        "cgroup_version",
        "cgroup version on the hosts.";
    node_name: Family<NodeName, Gauge> = Default::default(),
        "node_name",
        "The node's name. The count is always 1.";
}

impl KubeletMetrics {
    /// Nothing counted yet.
    pub fn new(node: &str, cgroups: Version) -> KubeletMetrics {
        let metrics = KubeletMetrics::registered();
        let node = node.to_owned();
        metrics.node_name.get_or_create(&NodeName { node }).set(1);
        metrics.cgroup_version.set(match cgroups {
            Version::V1 => 1,
            Version::V2 => 2,
        });
        metrics
    }

    /// The text of `/metrics`, with the volumes of the summary. `proc_self` is `/proc/self`, and
    /// `started` is when the agent was.
    pub fn text(&self, summary: &Summary, proc_self: &Path, started: Timestamp) -> String {
        let mut rest = Exposition::default();
        add_volumes(&mut rest, summary);
        add_process(&mut rest, proc_self, started);
        let mut text = String::new();
        // Writing to a text cannot fail.
        let _ = encode_registry(&mut text, &self.registry);
        let _ = encode_registry(&mut text, plimsoll_client::watching::metrics());
        let _ = encode_registry(&mut text, plimsoll_client::restarts::metrics());
        text.push_str(&rest.into_text());
        text
    }
}
