//! `/metrics/resource`: cpu, memory and swap of the node, pods and containers.
//!
//! Matches v1.36 pkg/kubelet/metrics/collectors/resource_metrics.go. This is what metrics-server
//! reads, and so `kubectl top`.

use plimsoll_core::eviction::summary::{CpuStats, MemoryStats, Summary, SwapStats};
use plimsoll_core::object::timestamp::Timestamp;

use super::super::collector::Collector;
use super::exposition::{Exposition, Kind, float, seconds, unix_seconds};
use super::labels::Labels;

/// A number and when it was measured.
type Sample = (f64, Option<Timestamp>);

impl Collector {
    /// The text of `/metrics/resource`, from the last measurement.
    pub fn resource_metrics(&self) -> String {
        render(&self.cpu_and_memory())
    }
}

/// One kind of sample, for the node, pods or containers.
struct Metric {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    value: fn(&Measured<'_>) -> Option<Sample>,
}

/// What is read of the node, a pod or a container.
struct Measured<'a> {
    labels: Labels,
    started: Option<Timestamp>,
    cpu: Option<&'a CpuStats>,
    memory: Option<&'a MemoryStats>,
    swap: Option<&'a SwapStats>,
}

const CONTAINER: [Metric; 5] = [
    Metric {
        name: "container_cpu_usage_seconds_total",
        kind: Kind::Counter,
        help: "[STABLE] Cumulative cpu time consumed by the container in core-seconds",
        value: cpu,
    },
    Metric {
        name: "container_memory_working_set_bytes",
        kind: Kind::Gauge,
        help: "[STABLE] Current working set of the container in bytes",
        value: memory,
    },
    Metric {
        name: "container_start_time_seconds",
        kind: Kind::Gauge,
        help: "[STABLE] Start time of the container since unix epoch in seconds",
        value: start_time,
    },
    Metric {
        name: "container_swap_limit_bytes",
        kind: Kind::Gauge,
        help: "[ALPHA] Current amount of the container swap limit in bytes. Reported only on \
               non-windows systems",
        value: swap_limit,
    },
    Metric {
        name: "container_swap_usage_bytes",
        kind: Kind::Gauge,
        help: "[ALPHA] Current amount of the container swap usage in bytes. Reported only on \
               non-windows systems",
        value: swap,
    },
];
const NODE: [Metric; 3] = [
    Metric {
        name: "node_cpu_usage_seconds_total",
        kind: Kind::Counter,
        help: "[STABLE] Cumulative cpu time consumed by the node in core-seconds",
        value: cpu,
    },
    Metric {
        name: "node_memory_working_set_bytes",
        kind: Kind::Gauge,
        help: "[STABLE] Current working set of the node in bytes",
        value: memory,
    },
    Metric {
        name: "node_swap_usage_bytes",
        kind: Kind::Gauge,
        help: "[ALPHA] Current swap usage of the node in bytes. Reported only on non-windows \
               systems",
        value: swap,
    },
];
const POD: [Metric; 3] = [
    Metric {
        name: "pod_cpu_usage_seconds_total",
        kind: Kind::Counter,
        help: "[STABLE] Cumulative cpu time consumed by the pod in core-seconds",
        value: cpu,
    },
    Metric {
        name: "pod_memory_working_set_bytes",
        kind: Kind::Gauge,
        help: "[STABLE] Current working set of the pod in bytes",
        value: memory,
    },
    Metric {
        name: "pod_swap_usage_bytes",
        kind: Kind::Gauge,
        help: "[ALPHA] Current amount of the pod swap usage in bytes. Reported only on \
               non-windows systems",
        value: swap,
    },
];

fn render(summary: &Summary) -> String {
    let node = &summary.node;
    let node = [Measured {
        labels: Labels::default(),
        started: None,
        cpu: node.cpu.as_ref(),
        memory: node.memory.as_ref(),
        swap: node.swap.as_ref(),
    }];
    let mut containers = Vec::new();
    let mut pods = Vec::new();
    for pod in &summary.pods {
        let (name, namespace) = (&*pod.pod_ref.name, &*pod.pod_ref.namespace);
        for container in &pod.containers {
            let labels = [
                ("container", &*container.name),
                ("namespace", namespace),
                ("pod", name),
            ];
            containers.push(Measured {
                labels: Labels::new(labels),
                started: container.start_time,
                cpu: container.cpu.as_ref(),
                memory: container.memory.as_ref(),
                swap: container.swap.as_ref(),
            });
        }
        pods.push(Measured {
            labels: Labels::new([("namespace", namespace), ("pod", name)]),
            started: None,
            cpu: pod.cpu.as_ref(),
            memory: pod.memory.as_ref(),
            swap: pod.swap.as_ref(),
        });
    }
    let mut text = Exposition::default();
    add_all(&mut text, &CONTAINER, &containers);
    add_all(&mut text, &NODE, &node);
    add_all(&mut text, &POD, &pods);
    let help = "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise";
    let has_failed = summary.node.cpu.is_none() || summary.node.memory.is_none();
    text.family("resource_scrape_error", Kind::Gauge, help).add(
        "",
        f64::from(u8::from(has_failed)),
        None,
    );
    text.into_text()
}

fn add_all(text: &mut Exposition, metrics: &[Metric], measured: &[Measured<'_>]) {
    for metric in metrics {
        let mut family = text.family(metric.name, metric.kind, metric.help);
        for one in measured {
            if let Some((value, time)) = (metric.value)(one) {
                family.add(one.labels.as_str(), value, time);
            }
        }
    }
}

fn cpu(measured: &Measured<'_>) -> Option<Sample> {
    let cpu = measured.cpu?;
    Some((seconds(cpu.usage_core_nano_seconds?), cpu.time))
}

fn memory(measured: &Measured<'_>) -> Option<Sample> {
    let memory = measured.memory?;
    Some((float(memory.working_set_bytes?), memory.time))
}

fn swap(measured: &Measured<'_>) -> Option<Sample> {
    let swap = measured.swap?;
    Some((float(swap.swap_usage_bytes?), swap.time))
}

fn swap_limit(measured: &Measured<'_>) -> Option<Sample> {
    let swap = measured.swap?;
    let usage = swap.swap_usage_bytes.unwrap_or(0);
    Some((float(swap.swap_available_bytes?) + float(usage), swap.time))
}

fn start_time(measured: &Measured<'_>) -> Option<Sample> {
    let started = measured.started?;
    (started.as_nanos() > 0).then(|| (unix_seconds(started), None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::eviction::summary::{ContainerStats, NodeStats, PodReference, PodStats};

    #[test]
    fn samples_have_upstreams_names_labels_and_times() {
        let time = Some(Timestamp::from_secs(100));
        let cpu = Some(CpuStats {
            time,
            usage_core_nano_seconds: Some(2_500_000_000),
            ..CpuStats::default()
        });
        let memory = Some(MemoryStats {
            time,
            working_set_bytes: Some(4096),
            ..MemoryStats::default()
        });
        let container = ContainerStats {
            name: "c".to_owned(),
            start_time: Some(Timestamp::from_nanos(50_500_000_000)),
            cpu: cpu.clone(),
            swap: Some(SwapStats {
                time,
                swap_available_bytes: Some(3),
                swap_usage_bytes: Some(4),
            }),
            ..ContainerStats::default()
        };
        let summary = Summary {
            node: NodeStats {
                cpu,
                memory: memory.clone(),
                ..NodeStats::default()
            },
            pods: vec![PodStats {
                pod_ref: PodReference {
                    name: "p".to_owned(),
                    namespace: "n".to_owned(),
                    uid: "u".to_owned(),
                },
                containers: vec![container],
                memory,
                ..PodStats::default()
            }],
        };
        let text = render(&summary);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                "container_cpu_usage_seconds_total{container=\"c\",namespace=\"n\",pod=\"p\"} 2.5 100000",
                "container_start_time_seconds{container=\"c\",namespace=\"n\",pod=\"p\"} 50.5",
                "container_swap_limit_bytes{container=\"c\",namespace=\"n\",pod=\"p\"} 7 100000",
                "container_swap_usage_bytes{container=\"c\",namespace=\"n\",pod=\"p\"} 4 100000",
                "node_cpu_usage_seconds_total 2.5 100000",
                "node_memory_working_set_bytes 4096 100000",
                "pod_memory_working_set_bytes{namespace=\"n\",pod=\"p\"} 4096 100000",
                "resource_scrape_error 0",
            ]
        );
        let titles = "# HELP node_memory_working_set_bytes [STABLE] Current working set of the node \
                      in bytes\n# TYPE node_memory_working_set_bytes gauge\n";
        assert!(text.contains(titles), "{text}");
    }
}
