//! Pods.

use plimsoll_core::object::timestamp::Timestamp;
use serde_json::json;

use super::super::column::{AGE, Column, NAME};
use super::super::printer::{Printer, Row, row};
use super::super::view::{NONE, View, or};

pub(super) const POD: Printer = Printer {
    columns: &[
        NAME,
        Column::text(
            "Ready",
            "The aggregate readiness state of this pod for accepting traffic.",
        ),
        Column::text(
            "Status",
            "The aggregate status of the containers in this pod.",
        ),
        Column::text(
            "Restarts",
            "The number of times the containers in this pod have been restarted and when the \
             last container in this pod has restarted.",
        ),
        AGE,
        Column::field("IP", STATUS, "podIP").wide(),
        Column::field("Node", SPEC, "nodeName").wide(),
        Column::field("Nominated Node", STATUS, "nominatedNodeName").wide(),
        Column::field("Readiness Gates", SPEC, "readinessGates").wide(),
    ],
    row: pod,
};

const SPEC: &str = "api.core.v1.PodSpec";
const STATUS: &str = "api.core.v1.PodStatus";

fn pod(pod: View<'_>) -> Row {
    let mut summary = Summary::new(pod);
    let is_initializing = summary.add_init_containers(pod);
    if !is_initializing || pod.condition("Initialized") == Some("True") {
        summary.add_containers(pod);
    }
    let phase = pod.text("/status/phase");
    let is_terminal = matches!(phase, "Failed" | "Succeeded");
    if pod.is_being_deleted() && pod.text("/status/reason") == "NodeLost" {
        summary.reason = "Unknown".to_owned();
    } else if pod.is_being_deleted() && !is_terminal {
        summary.reason = "Terminating".to_owned();
    }
    let mut row = row![
        pod.name(),
        format!("{}/{}", summary.ready, total_containers(pod)),
        summary.reason,
        summary.restarts.print(pod),
        pod.age(),
        or(pod.first(&["/status/podIP", "/status/podIPs/0/ip"]), NONE),
        or(pod.text("/spec/nodeName"), NONE),
        or(pod.text("/status/nominatedNodeName"), NONE),
        readiness_gates(pod),
    ];
    let outcome = match phase {
        "Succeeded" => Some("The pod has completed successfully."),
        "Failed" => Some("The pod failed."),
        _ => None,
    };
    row.conditions.extend(outcome.map(
        |message| json!({"type": "Completed", "status": "True", "reason": phase, "message": message}),
    ));
    row
}

/// Containers and sidecars.
fn total_containers(pod: View<'_>) -> usize {
    let sidecars = pod.items("/spec/initContainers").filter(|c| is_sidecar(*c));
    pod.items("/spec/containers").len() + sidecars.count()
}

fn is_sidecar(container: View<'_>) -> bool {
    container.text("/restartPolicy") == "Always"
}

fn readiness_gates(pod: View<'_>) -> String {
    let gates = pod.items("/spec/readinessGates");
    let total = gates.len();
    if total == 0 {
        return NONE.to_owned();
    }
    let open = gates.filter(|gate| pod.condition(gate.text("/conditionType")) == Some("True"));
    format!("{}/{total}", open.count())
}

/// Restarts, and when the last restarted container had terminated.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: View<'_>) {
        self.count = self.count.saturating_add(status.integer("/restartCount"));
        self.last = self
            .last
            .max(status.time("/lastState/terminated/finishedAt"));
    }

    fn print(self, pod: View<'_>) -> String {
        match self.last {
            Some(_) if self.count != 0 => {
                format!("{} ({} ago)", self.count, pod.since_time(self.last))
            }
            _ => self.count.to_string(),
        }
    }
}

/// The state of a pod while its containers are visited.
struct Summary {
    ready: usize,
    reason: String,
    restarts: Restarts,
    /// The restarts of sidecars.
    sidecar_restarts: Restarts,
}

impl Summary {
    fn new(pod: View<'_>) -> Summary {
        let phase = pod.text("/status/phase");
        let mut conditions = pod.items("/status/conditions");
        let is_gated = conditions.any(|condition| {
            condition.text("/type") == "PodScheduled"
                && condition.text("/reason") == "SchedulingGated"
        });
        let reason = if is_gated {
            "SchedulingGated"
        } else {
            pod.text_or("/status/reason", phase)
        };
        Summary {
            ready: 0,
            reason: reason.to_owned(),
            restarts: Restarts::default(),
            sidecar_restarts: Restarts::default(),
        }
    }

    /// Visits init containers up to the first unfinished one; returns whether there is one.
    fn add_init_containers(&mut self, pod: View<'_>) -> bool {
        for (index, status) in pod.items("/status/initContainerStatuses").enumerate() {
            self.restarts.add(status);
            let name = status.text("/name");
            let mut specs = pod.items("/spec/initContainers").rev();
            let is_sidecar = specs
                .find(|c| c.text("/name") == name)
                .is_some_and(is_sidecar);
            if is_sidecar {
                self.sidecar_restarts.add(status);
            }
            let terminated = status.at("/state/terminated");
            let waiting = status.text("/state/waiting/reason");
            self.reason = match terminated {
                Some(state) if state.integer("/exitCode") == 0 => continue,
                _ if is_sidecar && status.flag("/started") => {
                    self.ready += usize::from(status.flag("/ready"));
                    continue;
                }
                Some(state) => format!("Init:{}", termination(state)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => {
                    format!("Init:{waiting}")
                }
                None => format!("Init:{index}/{}", pod.items("/spec/initContainers").len()),
            };
            return true;
        }
        false
    }

    /// Visits the regular containers; the restarts of finished init containers no longer count.
    fn add_containers(&mut self, pod: View<'_>) {
        self.restarts = self.sidecar_restarts;
        let mut has_running = false;
        let mut failure = None;
        for status in pod.items("/status/containerStatuses").rev() {
            self.restarts.add(status);
            let waiting = status.text("/state/waiting/reason");
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if let Some(state) = status.at("/state/terminated") {
                self.reason = termination(state);
                if state.integer("/exitCode") != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if status.flag("/ready") && status.has("/state/running") {
                has_running = true;
                self.ready += 1;
            }
        }
        if self.reason != "Completed" {
            return;
        }
        // One container has completed, but the pod has not while others still run.
        let is_ready = pod
            .items("/status/conditions")
            .any(|c| c.text("/type") == "Ready" && c.text("/status") == "True");
        if has_running && is_ready {
            self.reason = "Running".to_owned();
        } else if let Some(failure) = failure {
            self.reason = failure;
        } else if has_running {
            self.reason = "NotReady".to_owned();
        }
    }
}

/// Why a container terminated.
fn termination(state: View<'_>) -> String {
    match (state.text("/reason"), state.integer("/signal")) {
        ("", 0) => format!("ExitCode:{}", state.integer("/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
