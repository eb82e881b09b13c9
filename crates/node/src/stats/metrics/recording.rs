//! What the agent reports about itself, event by event.
//!
//! Recorders are private to the crate, so that the compiler reports those that nothing calls.

use std::time::Duration;

use plimsoll_core::object::timestamp::Timestamp;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::kubelet::{
    ContainerEnd, ContainerError, ContainerKind, ContainerState, EvictionSignal, ImageSize,
    KubeletMetrics, Operation, PreemptionSignal, Reason, Request, Static,
};
use super::probes::{ProbeResult, Probed};

/// Which of a pod's containers one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContainerType {
    /// A regular one.
    Container,
    /// One that runs before.
    InitContainer,
    /// One that was added later.
    EphemeralContainer,
}

/// Why a worker looked at its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncType {
    /// For the first time.
    Create,
    /// The pod was changed.
    Update,
    /// Something of it changed on the node, or it was due.
    Sync,
}

/// What was done to a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CgroupOperation {
    /// Made, or brought up to date with its pod.
    Create,
    /// Given other limits.
    Update,
    /// Removed.
    Destroy,
}

/// How long a pod took to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PodStart {
    /// Since the agent first saw it.
    pub(crate) since_seen: Duration,
    /// Since it was created.
    pub(crate) since_created: Duration,
    /// Of that, what images and init containers took.
    pub(crate) pulling_and_initializing: Duration,
}

impl SyncType {
    fn as_str(self) -> &'static str {
        match self {
            SyncType::Create => "create",
            SyncType::Update => "update",
            SyncType::Sync => "sync",
        }
    }
}

impl CgroupOperation {
    fn as_str(self) -> &'static str {
        match self {
            CgroupOperation::Create => "create",
            CgroupOperation::Update => "update",
            CgroupOperation::Destroy => "destroy",
        }
    }
}

/// Pods from the API and pods from files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodCounts {
    /// From the API.
    pub(crate) from_api: usize,
    /// From files.
    pub(crate) from_files: usize,
}

/// A request that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answered<'a> {
    /// Its method; `other` for an unusual one.
    pub(crate) method: &'a str,
    /// The first part of its path: `stats`, `exec`; `other` if no page has it.
    pub(crate) path: &'a str,
    /// Whether it is a stream.
    pub(crate) is_long_running: bool,
    /// How long it took.
    pub(crate) duration: Duration,
}

/// Sizes from which an image counts as the next larger kind, as upstream's.
const IMAGE_SIZES: [(u64, &str); 12] = [
    (0, "0-10MB"),
    (10 << 20, "10MB-100MB"),
    (100 << 20, "100MB-500MB"),
    (500 << 20, "500MB-1GB"),
    (1 << 30, "1GB-5GB"),
    (5 << 30, "5GB-10GB"),
    (10 << 30, "10GB-20GB"),
    (20 << 30, "20GB-30GB"),
    (30 << 30, "30GB-40GB"),
    (40 << 30, "40GB-60GB"),
    (60 << 30, "60GB-100GB"),
    (100 << 30, "GT100GB"),
];

impl ContainerType {
    fn as_str(self) -> &'static str {
        match self {
            ContainerType::Container => "container",
            ContainerType::InitContainer => "init_container",
            ContainerType::EphemeralContainer => "ephemeral_container",
        }
    }
}

fn operation(name: &str) -> Operation {
    let operation_type = name.to_owned();
    Operation { operation_type }
}

fn reason(text: &str) -> Reason {
    let reason = text.to_owned();
    Reason { reason }
}

fn gauge_value(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl KubeletMetrics {
    /// How many sandboxes run.
    pub(crate) fn set_running_pods(&self, count: usize) {
        self.running_pods.set(gauge_value(count));
    }

    /// How many containers are in a state: `running`, `exited`, `created`, `unknown`.
    pub(crate) fn set_containers(&self, state: &str, count: usize) {
        let container_state = state.to_owned();
        let labels = ContainerState { container_state };
        self.running_containers
            .get_or_create(&labels)
            .set(gauge_value(count));
    }

    /// How many pods the node is to run.
    pub(crate) fn set_desired_pods(&self, pods: PodCounts) {
        set_pods(&self.desired_pods, pods);
    }

    /// How many pods count when another is admitted.
    pub(crate) fn set_active_pods(&self, pods: PodCounts) {
        set_pods(&self.active_pods, pods);
    }

    /// How many mirror pods there should be.
    pub(crate) fn set_mirror_pods(&self, count: usize) {
        self.mirror_pods.set(gauge_value(count));
    }

    /// A pod was evicted for a signal, by figures of that age.
    pub(crate) fn evicted(&self, signal: &str, stats_age: Option<Duration>) {
        let eviction_signal = signal.to_owned();
        let labels = EvictionSignal { eviction_signal };
        self.evictions.get_or_create(&labels).add(1);
        if let Some(age) = stats_age {
            let ages = self.eviction_stats_age.get_or_create(&labels);
            ages.observe(age.as_secs_f64());
        }
    }

    /// A pod made room for a critical one, by a resource.
    pub(crate) fn preempted(&self, resource: &str) {
        let preemption_signal = resource.to_owned();
        let labels = PreemptionSignal { preemption_signal };
        self.preemptions.get_or_create(&labels).add(1);
    }

    /// A pod was not admitted. Resources have any names, so those that the node itself has no word
    /// for share a label.
    pub(crate) fn admission_rejected(&self, why: &str) {
        const OWN: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pods"];
        let why = match why.strip_prefix("OutOf") {
            Some(resource) if !OWN.contains(&resource) => "OutOfExtendedResources",
            _ => why,
        };
        self.admission_rejections.get_or_create(&reason(why)).add(1);
    }

    /// The pods of the runtime were listed; `interval` is since the time before.
    pub(crate) fn relisted(&self, at: Timestamp, duration: Duration, interval: Option<Duration>) {
        self.pleg_relist_durations.observe(duration.as_secs_f64());
        if let Some(interval) = interval {
            self.pleg_relist_intervals.observe(interval.as_secs_f64());
        }
        let seconds = at.as_nanos().div_euclid(1_000_000_000);
        self.pleg_last_seen.set(seconds);
    }

    /// A pod runs.
    pub(crate) fn pod_started(&self, start: &PodStart) {
        self.pod_starts.observe(start.since_seen.as_secs_f64());
        let total = start.since_created;
        self.pod_starts_total.observe(total.as_secs_f64());
        let sli = total.saturating_sub(start.pulling_and_initializing);
        self.pod_starts_sli.observe(sli.as_secs_f64());
    }

    /// A worker began that long after its pod was seen.
    pub(crate) fn pod_worker_started(&self, waited: Duration) {
        self.pod_worker_starts.observe(waited.as_secs_f64());
    }

    /// A worker brought its pod one step further.
    pub(crate) fn pod_synced(&self, sync: SyncType, duration: Duration) {
        let durations = self.pod_workers.get_or_create(&operation(sync.as_str()));
        durations.observe(duration.as_secs_f64());
    }

    /// The status of a pod reached the API that long after it changed.
    pub(crate) fn pod_status_synced(&self, duration: Duration) {
        self.pod_status_syncs.observe(duration.as_secs_f64());
    }

    /// A call to the runtime ended; its name is upstream's, `run_podsandbox`.
    pub(crate) fn runtime_called(&self, name: &str, duration: Duration, is_ok: bool) {
        let labels = operation(name);
        self.runtime_operations.get_or_create(&labels).add(1);
        let durations = self.runtime_durations.get_or_create(&labels);
        durations.observe(duration.as_secs_f64());
        if !is_ok {
            self.runtime_errors.get_or_create(&labels).add(1);
        }
    }

    /// A cgroup was changed.
    pub(crate) fn cgroup_changed(&self, done: CgroupOperation, duration: Duration) {
        let labels = operation(done.as_str());
        let durations = self.cgroup_operations.get_or_create(&labels);
        durations.observe(duration.as_secs_f64());
    }

    /// A sandbox was made, or was not.
    pub(crate) fn sandbox_started(&self, is_ok: bool) {
        self.started_pods.add(1);
        if !is_ok {
            self.started_pods_errors.add(1);
        }
    }

    /// A container was started, or was not for a reason.
    pub(crate) fn container_started(&self, kind: ContainerType, error: Option<&str>) {
        let container_type = kind.as_str().to_owned();
        if let Some(code) = error {
            let labels = ContainerError {
                container_type: container_type.clone(),
                code: code.to_owned(),
            };
            self.started_containers_errors.get_or_create(&labels).add(1);
        }
        let labels = ContainerKind { container_type };
        self.started_containers.get_or_create(&labels).add(1);
    }

    /// A container ended.
    pub(crate) fn container_terminated(&self, kind: ContainerType, exit_code: i32, why: &str) {
        let labels = ContainerEnd {
            container_type: kind.as_str().to_owned(),
            exit_code: exit_code.to_string(),
            reason: why.to_owned(),
        };
        self.terminated_containers.get_or_create(&labels).add(1);
    }

    /// An image of that size was pulled.
    pub(crate) fn image_pulled(&self, bytes: u64, duration: Duration) {
        let mut sizes = IMAGE_SIZES.iter().rev();
        let size = sizes.find(|(least, _)| bytes >= *least);
        let image_size_in_bytes = size.map_or("N/A", |(_, name)| *name).to_owned();
        let durations = self.image_pulls.get_or_create(&ImageSize {
            image_size_in_bytes,
        });
        durations.observe(duration.as_secs_f64());
    }

    /// An unused image was removed, for its `age` or for `space`.
    pub(crate) fn image_collected(&self, why: &str) {
        self.images_collected.get_or_create(&reason(why)).add(1);
    }

    /// A probe was made.
    pub(crate) fn probed(&self, probed: Probed<'_>, result: ProbeResult, duration: Duration) {
        self.probes.record(probed, result, duration);
    }

    /// A container is probed no more.
    pub(crate) fn forget_probes(&self, probed: Probed<'_>) {
        self.probes.forget(probed);
    }

    /// The text of `/metrics/probes`.
    pub fn probes_text(&self) -> String {
        self.probes.text()
    }

    /// A request to the agent was answered.
    pub(crate) fn answered(&self, answered: &Answered<'_>) {
        let labels = Request {
            long_running: answered.is_long_running.to_string(),
            method: answered.method.to_owned(),
            path: answered.path.to_owned(),
            server_type: "readwrite".to_owned(),
        };
        self.requests.get_or_create(&labels).add(1);
        let durations = self.request_durations.get_or_create(&labels);
        durations.observe(answered.duration.as_secs_f64());
    }
}

fn set_pods(gauges: &Family<Static, Gauge>, pods: PodCounts) {
    for (r#static, count) in [("", pods.from_api), ("true", pods.from_files)] {
        let labels = Static {
            r#static: r#static.to_owned(),
        };
        gauges.get_or_create(&labels).set(gauge_value(count));
    }
}
