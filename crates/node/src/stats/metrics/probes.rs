//! `/metrics/probes`: how probes went.
//!
//! Matches v1.36 pkg/kubelet/prober/prober_manager.go.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::kubelet::{Counters, Histograms, by_default_buckets};

/// What is probed: a container, by one of its probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probed<'a> {
    /// `Liveness`, `Readiness` or `Startup`.
    pub(crate) probe_type: &'a str,
    /// The container.
    pub(crate) container: &'a str,
    /// The pod's name.
    pub(crate) pod: &'a str,
    /// The pod's namespace.
    pub(crate) namespace: &'a str,
    /// The pod's uid.
    pub(crate) pod_uid: &'a str,
}

/// What came of one probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeResult {
    /// The container is well.
    Successful,
    /// It is not.
    Failed,
    /// The probe could not be made.
    Unknown,
}

impl ProbeResult {
    const ALL: [ProbeResult; 3] = [Self::Successful, Self::Failed, Self::Unknown];

    fn as_str(self) -> &'static str {
        match self {
            ProbeResult::Successful => "successful",
            ProbeResult::Failed => "failed",
            ProbeResult::Unknown => "unknown",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Counted {
    probe_type: String,
    result: String,
    container: String,
    pod: String,
    namespace: String,
    pod_uid: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Timed {
    probe_type: String,
    container: String,
    pod: String,
    namespace: String,
}

/// Results and durations of probes.
#[derive(Debug)]
pub(super) struct ProbeMetrics {
    registry: Registry,
    results: Counters<Counted>,
    durations: Histograms<Timed>,
}

impl ProbeMetrics {
    pub(super) fn new() -> ProbeMetrics {
        let mut registry = Registry::default();
        let results = Counters::<Counted>::default();
        let durations: Histograms<Timed> = Family::new_with_constructor(by_default_buckets);
        registry.register(
            "prober_probe_total",
            "[BETA] Cumulative number of a liveness, readiness or startup probe for a container \
             by result",
            results.clone(),
        );
        registry.register(
            "prober_probe_duration_seconds",
            "[ALPHA] Duration in seconds for a probe response",
            durations.clone(),
        );
        ProbeMetrics {
            registry,
            results,
            durations,
        }
    }

    pub(super) fn record(&self, probed: Probed<'_>, result: ProbeResult, duration: Duration) {
        self.results.get_or_create(&counted(probed, result)).add(1);
        let histogram: &Histogram = &self.durations.get_or_create(&timed(probed));
        histogram.observe(duration.as_secs_f64());
    }

    /// Forgets a container whose pod is over: its series would stay for ever.
    pub(super) fn forget(&self, probed: Probed<'_>) {
        for result in ProbeResult::ALL {
            self.results.remove(&counted(probed, result));
        }
        self.durations.remove(&timed(probed));
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a text cannot fail.
        let _ = encode_registry(&mut text, &self.registry);
        text
    }
}

fn counted(probed: Probed<'_>, result: ProbeResult) -> Counted {
    Counted {
        probe_type: probed.probe_type.to_owned(),
        result: result.as_str().to_owned(),
        container: probed.container.to_owned(),
        pod: probed.pod.to_owned(),
        namespace: probed.namespace.to_owned(),
        pod_uid: probed.pod_uid.to_owned(),
    }
}

fn timed(probed: Probed<'_>) -> Timed {
    Timed {
        probe_type: probed.probe_type.to_owned(),
        container: probed.container.to_owned(),
        pod: probed.pod.to_owned(),
        namespace: probed.namespace.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_is_over_leaves_no_series() {
        let metrics = ProbeMetrics::new();
        let of = |pod| Probed {
            probe_type: "Liveness",
            container: "main",
            pod,
            namespace: "default",
            pod_uid: pod,
        };
        metrics.record(of("a"), ProbeResult::Failed, Duration::from_millis(20));
        metrics.record(of("b"), ProbeResult::Successful, Duration::from_millis(20));
        let failed = "prober_probe_total{probe_type=\"Liveness\",result=\"failed\",\
                      container=\"main\",pod=\"a\",namespace=\"default\",pod_uid=\"a\"} 1";
        assert!(metrics.text().contains(failed), "{}", metrics.text());
        metrics.forget(of("a"));
        let text = metrics.text();
        assert!(!text.contains("pod=\"a\""), "{text}");
        assert!(text.contains("pod=\"b\""), "{text}");
    }
}
