//! How queues are doing, under upstream's names.
//!
//! Matches v1.36 staging/src/k8s.io/component-base/metrics/prometheus/workqueue/metrics.go. As
//! there, the queues of a process are known by their names; the counts of two queues with one name
//! add up.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use plimsoll_client::{restarts, watching};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

static METRICS: LazyLock<Metrics> = LazyLock::new(Metrics::new);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    name: &'static str,
}

/// A queue as it is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct QueueState {
    pub(super) depth: usize,
    /// How long all keys that workers have were with them so far, and the longest of them.
    pub(super) unfinished: Duration,
    pub(super) longest: Duration,
}

/// A queue with readable figures.
pub(super) trait Visible: Send + Sync {
    fn name(&self) -> &'static str;
    fn state(&self) -> QueueState;
}

/// The metrics of a queue.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    pub(super) adds: Counter,
    pub(super) retries: Counter,
    pub(super) waited: Histogram,
    pub(super) worked: Histogram,
}

impl Meter {
    pub(super) fn of(name: &'static str) -> Meter {
        let labels = Labels { name };
        Meter {
            adds: METRICS.adds.get_or_create(&labels).clone(),
            retries: METRICS.retries.get_or_create(&labels).clone(),
            waited: METRICS.waited.get_or_create(&labels).clone(),
            worked: METRICS.worked.get_or_create(&labels).clone(),
        }
    }
}

/// Has a queue read whenever metrics are requested.
pub(super) fn show(queue: Weak<dyn Visible>) {
    let mut queues = METRICS.queues();
    queues.retain(|queue| queue.strong_count() > 0);
    queues.push(queue);
}

/// The metrics of all queues, in the text form of OpenMetrics.
pub fn text() -> String {
    METRICS.text()
}

type Durations = Family<Labels, Histogram, fn() -> Histogram>;
type Seconds = Family<Labels, Gauge<f64, AtomicU64>>;

struct Metrics {
    registry: Registry,
    adds: Family<Labels, Counter>,
    retries: Family<Labels, Counter>,
    waited: Durations,
    worked: Durations,
    depth: Family<Labels, Gauge>,
    unfinished: Seconds,
    longest: Seconds,
    queues: Mutex<Vec<Weak<dyn Visible>>>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Metrics").finish_non_exhaustive()
    }
}

fn durations() -> Histogram {
    Histogram::new(exponential_buckets(10e-9, 10.0, 12))
}

impl Metrics {
    fn new() -> Metrics {
        let mut metrics = Metrics {
            registry: Registry::with_prefix("workqueue"),
            adds: Family::default(),
            retries: Family::default(),
            waited: Family::new_with_constructor(durations),
            worked: Family::new_with_constructor(durations),
            depth: Family::default(),
            unfinished: Family::default(),
            longest: Family::default(),
            queues: Mutex::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("depth", "Current depth of workqueue", self.depth.clone());
        registry.register(
            "adds",
            "Total number of adds handled by workqueue",
            self.adds.clone(),
        );
        registry.register_with_unit(
            "queue_duration",
            "How long in seconds an item stays in workqueue before being requested.",
            Unit::Seconds,
            self.waited.clone(),
        );
        registry.register_with_unit(
            "work_duration",
            "How long in seconds processing an item from workqueue takes.",
            Unit::Seconds,
            self.worked.clone(),
        );
        registry.register_with_unit(
            "unfinished_work",
            "How many seconds of work has done that is in progress and hasn't been observed by \
             work_duration. Large values indicate stuck threads. One can deduce the number of stuck \
             threads by observing the rate at which this increases.",
            Unit::Seconds,
            self.unfinished.clone(),
        );
        registry.register_with_unit(
            "longest_running_processor",
            "How many seconds has the longest running processor for workqueue been running.",
            Unit::Seconds,
            self.longest.clone(),
        );
        registry.register(
            "retries",
            "Total number of retries handled by workqueue",
            self.retries.clone(),
        );
    }

    /// Held for a few operations on a list only.
    fn queues(&self) -> MutexGuard<'_, Vec<Weak<dyn Visible>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(&self) -> String {
        for queue in self.queues().iter().filter_map(Weak::upgrade) {
            let labels = Labels { name: queue.name() };
            let state = queue.state();
            let depth = i64::try_from(state.depth).unwrap_or(i64::MAX);
            self.depth.get_or_create(&labels).set(depth);
            let seconds = |gauge: &Seconds, time: Duration| {
                gauge.get_or_create(&labels).set(time.as_secs_f64());
            };
            seconds(&self.unfinished, state.unfinished);
            seconds(&self.longest, state.longest);
        }
        let mut text = String::new();
        // Writing into a text does not fail.
        let _ = encode_registry(&mut text, watching::metrics());
        let _ = encode_registry(&mut text, restarts::metrics());
        let _ = encode(&mut text, &self.registry);
        text
    }
}
