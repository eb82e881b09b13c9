//! The server's metrics, under upstream's names.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_core::admission::pod_security::{Evaluation, Level, Version};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::Server;
use super::audit::Counters;
use super::limits::{Limits, QueueSetCounters};
use crate::http::discovery::KUBERNETES_MINOR;

/// The labels of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    pub verb: &'static str,
    pub dry_run: &'static str,
    pub group: &'static str,
    pub version: &'static str,
    pub resource: &'static str,
    pub subresource: &'static str,
    pub scope: &'static str,
    pub component: &'static str,
    pub code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabels {
    verb: &'static str,
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    subresource: &'static str,
    scope: &'static str,
    component: &'static str,
}

impl From<RequestLabels> for DurationLabels {
    fn from(labels: RequestLabels) -> DurationLabels {
        DurationLabels {
            verb: labels.verb,
            group: labels.group,
            version: labels.version,
            resource: labels.resource,
            subresource: labels.subresource,
            scope: labels.scope,
            component: labels.component,
        }
    }
}

/// The labels of a running watch or stream.
#[derive(Debug)]
pub(crate) struct Running(Gauge);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    request_kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabel {
    resource: String,
}

/// The labels of a PodSecurity evaluation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct PodSecurityRequest {
    pub request_operation: &'static str,
    pub resource: &'static str,
    pub subresource: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EvaluationLabels {
    decision: &'static str,
    policy_level: &'static str,
    policy_version: String,
    mode: &'static str,
    #[prometheus(flatten)]
    request: PodSecurityRequest,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PodSecurityErrorLabels {
    fatal: &'static str,
    #[prometheus(flatten)]
    request: PodSecurityRequest,
}

/// The PodSecurity metrics.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodSecurityMetrics {
    evaluations: Family<EvaluationLabels, Counter>,
    exemptions: Family<PodSecurityRequest, Counter>,
    errors: Family<PodSecurityErrorLabels, Counter>,
}

impl PodSecurityMetrics {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "pod_security_evaluations",
            "Number of policy evaluations that occurred, not counting ignored or exempt requests",
            self.evaluations.clone(),
        );
        registry.register(
            "pod_security_exemptions",
            "Number of exempt requests, not counting ignored or out of scope requests",
            self.exemptions.clone(),
        );
        registry.register(
            "pod_security_errors",
            "Number of errors preventing normal evaluation. Non-fatal errors may result in the \
             latest restricted profile being used for evaluation",
            self.errors.clone(),
        );
    }

    /// Counts an evaluation of a policy.
    pub(crate) fn evaluation(&self, request: &PodSecurityRequest, evaluation: &Evaluation) {
        let policy = evaluation.policy;
        let policy_version = match (policy.level, policy.version) {
            (Level::Privileged, _) | (_, Version::Latest) => "latest".to_owned(),
            (_, Version::Minor(minor)) if minor > KUBERNETES_MINOR => "future".to_owned(),
            (_, version) => version.to_string(),
        };
        let labels = EvaluationLabels {
            decision: if evaluation.is_allowed {
                "allow"
            } else {
                "deny"
            },
            policy_level: policy.level.as_str(),
            policy_version,
            mode: evaluation.mode.as_str(),
            request: request.clone(),
        };
        self.evaluations.get_or_create(&labels).inc();
    }

    /// Counts a request that was exempt.
    pub(crate) fn exemption(&self, request: &PodSecurityRequest) {
        self.exemptions.get_or_create(request).inc();
    }

    /// Counts a request that could not be evaluated, or only against the restricted level.
    pub(crate) fn error(&self, request: &PodSecurityRequest, is_fatal: bool) {
        let labels = PodSecurityErrorLabels {
            fatal: if is_fatal { "true" } else { "false" },
            request: request.clone(),
        };
        self.errors.get_or_create(&labels).inc();
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GroupResourceLabels {
    group: &'static str,
    resource: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FlowLabels {
    priority_level: &'static str,
    request_kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RejectionLabels {
    priority_level: &'static str,
    request_kind: &'static str,
    reason: &'static str,
}

/// The metrics of the concurrency limits.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowControl {
    dispatched: Family<FlowLabels, Counter>,
    rejected: Family<RejectionLabels, Counter>,
    executing: Family<FlowLabels, Gauge>,
    waiting: Family<FlowLabels, Gauge>,
    seats: Family<FlowLabels, Gauge>,
}

impl FlowControl {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "apiserver_flowcontrol_dispatched_requests",
            "Number of requests that got a seat",
            self.dispatched.clone(),
        );
        registry.register(
            "apiserver_flowcontrol_rejected_requests",
            "Number of requests rejected for lack of a seat",
            self.rejected.clone(),
        );
        registry.register(
            "apiserver_flowcontrol_current_executing_requests",
            "Number of requests that have a seat",
            self.executing.clone(),
        );
        registry.register(
            "apiserver_flowcontrol_current_inqueue_requests",
            "Number of requests that wait for a seat",
            self.waiting.clone(),
        );
        registry.register(
            "apiserver_flowcontrol_nominal_limit_seats",
            "Number of seats",
            self.seats.clone(),
        );
    }

    /// The counters of one queue set.
    pub(crate) fn counters(
        &self,
        priority_level: &'static str,
        request_kind: &'static str,
    ) -> QueueSetCounters {
        let rejected = |reason| {
            self.rejected.get_or_create_owned(&RejectionLabels {
                priority_level,
                request_kind,
                reason,
            })
        };
        QueueSetCounters {
            dispatched: self.dispatched.get_or_create_owned(&FlowLabels {
                priority_level,
                request_kind,
            }),
            queue_full: rejected("queue-full"),
            timed_out: rejected("time-out"),
        }
    }

    fn collect(&self, limits: &Limits) {
        for (priority_level, request_kind, queue_set) in limits.queue_sets() {
            let labels = FlowLabels {
                priority_level,
                request_kind,
            };
            let (taken, waiting) = queue_set.load();
            for (gauges, count) in [
                (&self.executing, taken),
                (&self.waiting, waiting),
                (&self.seats, queue_set.seats()),
            ] {
                let gauge = gauges.get_or_create(&labels);
                gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
            }
        }
    }
}

/// All metrics.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Family<RequestLabels, Counter>,
    durations: Family<DurationLabels, Histogram, fn() -> Histogram>,
    long_running: Family<DurationLabels, Gauge>,
    in_flight: Family<KindLabel, Gauge>,
    objects: Family<ResourceLabel, Gauge>,
    decode_errors: Family<GroupResourceLabels, Counter>,
    resident: Gauge,
    pub(crate) pod_security: PodSecurityMetrics,
    pub(super) audit: Counters,
    pub(crate) flow_control: FlowControl,
}

/// Buckets in seconds, a selection of upstream's.
const BOUNDS: [f64; 12] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 1.0, 2.0, 5.0, 15.0, 60.0,
];

impl Default for Metrics {
    fn default() -> Metrics {
        let mut registry = Registry::default();
        let requests = Family::default();
        registry.register(
            "apiserver_request",
            "Counter of apiserver requests broken out for each verb, group, version, resource, \
             scope and HTTP response code",
            requests.clone(),
        );
        let durations: Family<DurationLabels, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(BOUNDS));
        registry.register(
            "apiserver_request_duration_seconds",
            "Response latency distribution in seconds for each verb, group, version, resource, \
             subresource and scope",
            durations.clone(),
        );
        let long_running = Family::default();
        registry.register(
            "apiserver_longrunning_requests",
            "Gauge of all active long-running apiserver requests broken out by verb, group, \
             version, resource, scope and component",
            long_running.clone(),
        );
        let in_flight = Family::default();
        registry.register(
            "apiserver_current_inflight_requests",
            "Number of requests currently in flight, by kind",
            in_flight.clone(),
        );
        let objects = Family::default();
        registry.register(
            "apiserver_storage_objects",
            "Number of stored objects at the time of last check split by kind",
            objects.clone(),
        );
        let decode_errors = Family::default();
        registry.register(
            "apiserver_storage_decode_errors",
            "Number of stored object decode errors split by object type",
            decode_errors.clone(),
        );
        let resident = Gauge::default();
        registry.register(
            "process_resident_memory_bytes",
            "Resident memory size in bytes",
            resident.clone(),
        );
        let pod_security = PodSecurityMetrics::default();
        pod_security.register(&mut registry);
        let audit = Counters::default();
        audit.register(&mut registry);
        let flow_control = FlowControl::default();
        flow_control.register(&mut registry);
        Metrics {
            registry: Arc::new(registry),
            requests,
            durations,
            long_running,
            in_flight,
            objects,
            decode_errors,
            resident,
            pod_security,
            audit,
            flow_control,
        }
    }
}

impl Metrics {
    /// Counts a completed request; watches have no meaningful duration.
    pub(crate) fn observe(&self, labels: RequestLabels, took: Option<Duration>) {
        if let Some(took) = took {
            let durations = self.durations.get_or_create(&labels.clone().into());
            durations.observe(took.as_secs_f64());
        }
        self.requests.get_or_create(&labels).inc();
    }

    /// Counts a watch or a stream until its response is dropped.
    pub(crate) fn long_running(&self, labels: RequestLabels) -> Running {
        let gauge = self.long_running.get_or_create_owned(&labels.into());
        gauge.inc();
        Running(gauge)
    }

    /// All metrics as text.
    pub(crate) fn text(&self, server: &Server) -> String {
        let (reads, writes) = server.limits.in_flight();
        for (request_kind, count) in [("readOnly", reads), ("mutating", writes)] {
            let gauge = self.in_flight.get_or_create(&KindLabel { request_kind });
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.flow_control.collect(&server.limits);
        for collection in server.cache.collections() {
            let resource = collection.kind().group_resource();
            let gauge = self.objects.get_or_create(&ResourceLabel { resource });
            gauge.set(i64::try_from(collection.len()).unwrap_or(i64::MAX));
            let (group, resource) = (collection.kind().group, collection.kind().plural);
            let labels = GroupResourceLabels { group, resource };
            let counter = self.decode_errors.get_or_create(&labels);
            counter
                .inner()
                .store(collection.decode_errors(), Ordering::Relaxed);
        }
        self.resident.set(resident_bytes());
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Zero if the system does not report it.
fn resident_bytes() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
    kib.unwrap_or(0_i64) * 1024
}
