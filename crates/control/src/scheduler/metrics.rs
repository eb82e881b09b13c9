//! Metrics, under upstream's names.
//!
//! Matches v1.36 pkg/scheduler/metrics/metrics.go.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use plimsoll_client::{restarts, watching};
use plimsoll_core::scheduling::queue::{Incoming, Sizes};

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Scheduled,
    Unschedulable,
    Error,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    result: &'static str,
    profile: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    queue: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct IncomingLabels {
    queue: String,
    event: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PointLabels {
    extension_point: &'static str,
    status: &'static str,
    profile: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PluginLabels {
    plugin: &'static str,
    profile: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SizeLabels {
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SliLabels {
    attempts: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

/// All metrics of a scheduler.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    profiles: Vec<OfProfile>,
    algorithm: Histogram,
    pod_attempts: Histogram,
    sli: Family<SliLabels, Histogram, fn() -> Histogram>,
    after_flush: Counter,
    preemption_attempts: Counter,
    preemption_victims: Histogram,
    preemptions: Family<ResultLabels, Counter>,
    pending: Family<QueueLabels, Gauge>,
    incoming: Family<IncomingLabels, Counter>,
    unschedulable: Family<PluginLabels, Gauge>,
    sizes: Family<SizeLabels, Gauge>,
}

#[derive(Debug)]
struct OfProfile {
    name: String,
    attempts: [Counter; 3],
    durations: [Histogram; 3],
    bind: [Histogram; 2],
}

/// How many objects the scheduler keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ObjectCounts {
    pub(super) nodes: usize,
    pub(super) pods: usize,
    pub(super) assumed_pods: usize,
}

const RESULTS: [&str; 3] = ["scheduled", "unschedulable", "error"];

fn attempt_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

fn point_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 2.0, 12))
}

fn sli_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.01, 2.0, 20))
}

impl Metrics {
    /// Metrics for profiles of these scheduler names, in order.
    pub fn new<'a>(profiles: impl Iterator<Item = &'a str>) -> Metrics {
        let attempts = Family::<AttemptLabels, Counter>::default();
        let durations = Family::new_with_constructor(attempt_histogram as fn() -> Histogram);
        let points = Family::new_with_constructor(point_histogram as fn() -> Histogram);
        let of_profile = |name: &str| {
            let labels = |result| AttemptLabels {
                result,
                profile: name.to_owned(),
            };
            let bind = |status| PointLabels {
                extension_point: "Bind",
                status,
                profile: name.to_owned(),
            };
            OfProfile {
                name: name.to_owned(),
                attempts: RESULTS.map(|result| attempts.get_or_create(&labels(result)).clone()),
                durations: RESULTS.map(|result| durations.get_or_create(&labels(result)).clone()),
                bind: ["Success", "Error"].map(|s| points.get_or_create(&bind(s)).clone()),
            }
        };
        let profiles = profiles.map(of_profile).collect();
        let mut metrics = Metrics {
            registry: Registry::with_prefix("scheduler"),
            profiles,
            algorithm: attempt_histogram(),
            pod_attempts: Histogram::new(exponential_buckets(1.0, 2.0, 5)),
            sli: Family::new_with_constructor(sli_histogram as fn() -> Histogram),
            after_flush: Counter::default(),
            preemption_attempts: Counter::default(),
            preemption_victims: Histogram::new(exponential_buckets(1.0, 2.0, 7)),
            preemptions: Family::default(),
            pending: Family::default(),
            incoming: Family::default(),
            unschedulable: Family::default(),
            sizes: Family::default(),
        };
        metrics.register(attempts, durations, points);
        metrics
    }

    fn register(
        &mut self,
        attempts: Family<AttemptLabels, Counter>,
        durations: Family<AttemptLabels, Histogram, fn() -> Histogram>,
        points: Family<PointLabels, Histogram, fn() -> Histogram>,
    ) {
        let registry = &mut self.registry;
        registry.register(
            "schedule_attempts",
            "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could \
             not be scheduled, while 'error' means an internal scheduler problem",
            attempts,
        );
        registry.register_with_unit(
            "scheduling_attempt_duration",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
            Unit::Seconds,
            durations,
        );
        registry.register_with_unit(
            "scheduling_algorithm_duration",
            "Scheduling algorithm latency in seconds",
            Unit::Seconds,
            self.algorithm.clone(),
        );
        registry.register_with_unit(
            "framework_extension_point_duration",
            "Latency for running all plugins of a specific extension point",
            Unit::Seconds,
            points,
        );
        registry.register(
            "pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod",
            self.pod_attempts.clone(),
        );
        registry.register_with_unit(
            "pod_scheduling_sli_duration",
            "E2e latency for a pod being scheduled, from the time the pod enters the scheduling \
             queue and might involve multiple scheduling attempts",
            Unit::Seconds,
            self.sli.clone(),
        );
        registry.register(
            "pod_scheduled_after_flush",
            "Number of pods that were scheduled after being flushed from unschedulablePods due to \
             timeout",
            self.after_flush.clone(),
        );
        self.register_preemption();
        self.register_queue();
    }

    fn register_preemption(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "preemption_attempts",
            "Total preemption attempts in the cluster till now",
            self.preemption_attempts.clone(),
        );
        registry.register(
            "preemption_victims",
            "Number of selected preemption victims",
            self.preemption_victims.clone(),
        );
        registry.register(
            "preemption_goroutines_execution",
            "Number of preemption goroutines executed",
            self.preemptions.clone(),
        );
    }

    fn register_queue(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "pending_pods",
            "Number of pending pods, by the queue type",
            self.pending.clone(),
        );
        registry.register(
            "queue_incoming_pods",
            "Number of pods added to scheduling queues by event and queue type",
            self.incoming.clone(),
        );
        registry.register(
            "unschedulable_pods",
            "The number of unschedulable pods broken down by plugin name",
            self.unschedulable.clone(),
        );
        registry.register(
            "cache_size",
            "Number of nodes, pods, and assumed (bound) pods in the scheduler cache",
            self.sizes.clone(),
        );
    }

    /// All of them, as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let of_client = encode_registry(&mut text, watching::metrics())
            .and_then(|()| encode_registry(&mut text, restarts::metrics()));
        if let Err(error) = of_client.and_then(|()| encode(&mut text, &self.registry)) {
            tracing::warn!(%error, "failed to encode metrics");
        }
        text
    }

    pub(super) fn attempt(&self, profile: usize, outcome: Outcome, took: Duration) {
        let index = match outcome {
            Outcome::Scheduled => 0,
            Outcome::Unschedulable => 1,
            Outcome::Error => 2,
        };
        if let Some(of_profile) = self.profiles.get(profile) {
            of_profile.attempts[index].inc();
            of_profile.durations[index].observe(took.as_secs_f64());
        }
    }

    pub(super) fn algorithm(&self, took: Duration) {
        self.algorithm.observe(took.as_secs_f64());
    }

    pub(super) fn bind(&self, profile: usize, is_bound: bool, took: Duration) {
        if let Some(of_profile) = self.profiles.get(profile) {
            of_profile.bind[usize::from(!is_bound)].observe(took.as_secs_f64());
        }
    }

    pub(super) fn scheduled(&self, attempts: u32, waited: Option<Duration>, was_flushed: bool) {
        self.pod_attempts.observe(f64::from(attempts));
        if let Some(waited) = waited {
            let attempts = match attempts {
                15.. => "15+".to_owned(),
                _ => attempts.to_string(),
            };
            let sli = self.sli.get_or_create(&SliLabels { attempts });
            sli.observe(waited.as_secs_f64());
        }
        if was_flushed {
            self.after_flush.inc();
        }
    }

    pub(super) fn preemption_attempt(&self) {
        self.preemption_attempts.inc();
    }

    pub(super) fn preemption_victims(&self, victims: usize) {
        let victims = u32::try_from(victims).unwrap_or(u32::MAX);
        self.preemption_victims.observe(f64::from(victims));
    }

    pub(super) fn preemption_done(&self, is_success: bool) {
        let result = if is_success { "success" } else { "error" };
        let labels = ResultLabels { result };
        self.preemptions.get_or_create(&labels).inc();
    }

    pub(super) fn queue(&self, sizes: &Sizes, incoming: &Incoming) {
        for (queue, size) in [
            ("active", sizes.active),
            ("backoff", sizes.backoff),
            ("unschedulable", sizes.unschedulable),
            ("gated", sizes.gated),
        ] {
            self.pending
                .get_or_create(&QueueLabels { queue })
                .set(number(size));
        }
        for (queue, event, count) in incoming.iter() {
            let labels = IncomingLabels {
                queue: queue.to_string(),
                event: event.to_owned(),
            };
            let counter = self.incoming.get_or_create(&labels);
            counter.inc_by(count.saturating_sub(counter.get()));
        }
    }

    pub(super) fn kept(&self, kept: ObjectCounts) {
        for (r#type, size) in [
            ("nodes", kept.nodes),
            ("pods", kept.pods),
            ("assumed_pods", kept.assumed_pods),
        ] {
            self.sizes
                .get_or_create(&SizeLabels { r#type })
                .set(number(size));
        }
    }

    /// How many unschedulable pods each plugin of each profile is to blame for.
    pub(super) fn unschedulable(
        &self,
        counts: impl IntoIterator<Item = ((usize, &'static str), usize)>,
    ) {
        self.unschedulable.clear();
        for ((profile, plugin), count) in counts {
            if let Some(of_profile) = self.profiles.get(profile) {
                let labels = PluginLabels {
                    plugin,
                    profile: of_profile.name.clone(),
                };
                self.unschedulable.get_or_create(&labels).set(number(count));
            }
        }
    }
}

fn number(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_are_those_of_upstream() {
        let metrics = Metrics::new(["default-scheduler"].into_iter());
        metrics.attempt(0, Outcome::Scheduled, Duration::from_millis(3));
        metrics.bind(0, true, Duration::from_millis(1));
        metrics.scheduled(17, Some(Duration::from_secs(1)), true);
        metrics.preemption_attempt();
        metrics.preemption_victims(2);
        metrics.queue(&Sizes::default(), &Incoming::default());
        metrics.unschedulable([((0, "NodeResourcesFit"), 3)]);
        let text = metrics.text();
        for line in [
            "scheduler_schedule_attempts_total{result=\"scheduled\",profile=\"default-scheduler\"} 1",
            "scheduler_scheduling_attempt_duration_seconds_count{result=\"scheduled\",profile=\"default-scheduler\"} 1",
            "scheduler_framework_extension_point_duration_seconds_count{extension_point=\"Bind\",status=\"Success\",profile=\"default-scheduler\"} 1",
            "scheduler_pod_scheduling_sli_duration_seconds_count{attempts=\"15+\"} 1",
            "scheduler_pod_scheduling_attempts_count 1",
            "scheduler_pod_scheduled_after_flush_total 1",
            "scheduler_preemption_attempts_total 1",
            "scheduler_preemption_victims_sum 2",
            "scheduler_pending_pods{queue=\"gated\"} 0",
            "scheduler_unschedulable_pods{plugin=\"NodeResourcesFit\",profile=\"default-scheduler\"} 3",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }
}
