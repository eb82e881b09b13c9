//! How often tasks were started again, for the metrics of their process.

use std::sync::OnceLock;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    task: &'static str,
}

struct Metrics {
    registry: Registry,
    restarts: Family<Labels, Counter>,
}

/// What this process counts of its tasks.
pub fn metrics() -> &'static Registry {
    &counted().registry
}

/// How often tasks of that name were started again.
pub fn of(task: &'static str) -> u64 {
    counted().restarts.get_or_create(&Labels { task }).get()
}

pub(crate) fn count(task: &'static str) {
    counted().restarts.get_or_create(&Labels { task }).inc();
}

fn counted() -> &'static Metrics {
    static COUNTED: OnceLock<Metrics> = OnceLock::new();
    COUNTED.get_or_init(|| {
        let restarts = Family::<Labels, Counter>::default();
        let mut registry = Registry::with_prefix("plimsoll");
        registry.register(
            "task_restarts",
            "Number of times that a task of this process failed and was started again, by task",
            restarts.clone(),
        );
        Metrics { registry, restarts }
    })
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode_registry;

    use super::*;

    #[test]
    fn restarts_are_counted_by_task() {
        count("testedTask");
        count("testedTask");
        assert_eq!(of("testedTask"), 2);
        let mut text = String::new();
        encode_registry(&mut text, metrics()).unwrap();
        let line = "plimsoll_task_restarts_total{task=\"testedTask\"} 2";
        assert!(text.contains(line), "{text}");
    }
}
