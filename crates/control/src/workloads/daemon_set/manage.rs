//! Pods to make where there should be one, and to delete where there should not.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use plimsoll_core::object::timestamp::Timestamp;

use crate::workloads::note::Note;
use crate::workloads::pod_state;
use crate::workloads::revision::REVISION_HASH;

use super::failed_pods::FailedPods;
use super::fit::{Fit, Fitness};
use super::placement::{Placement, sort_by_age};
use super::rolling::{Work, max_surge};

/// What there is to do, to report and to wait for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Managed {
    /// Pods to make and to delete.
    pub work: Work,
    /// The events to record.
    pub notes: Vec<Note>,
    /// When a failed pod may be replaced that must not be yet.
    pub again_after: Option<Duration>,
}

/// Looks at every node. `hash` is that of the current revision.
pub fn manage(
    set: &DaemonSet,
    nodes: &[&Node],
    placed: &Placement<'_>,
    hash: &str,
    failed: &mut FailedPods,
    now: Timestamp,
) -> Managed {
    let fitness = Fitness::of(set);
    let mut planner = Planner {
        set,
        hash,
        failed,
        now,
        surges: max_surge(set, 1) > 0,
        found: Managed::default(),
    };
    for node in nodes {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        planner.at_node(name, fitness.on(node), placed.get(name).map(Vec::as_slice));
    }
    // A pod that waits for a node which is gone is never bound, so no node ends it.
    let names = nodes
        .iter()
        .filter_map(|node| node.metadata.name.as_deref());
    let known: BTreeSet<&str> = names.collect();
    for (node, pods) in placed {
        if !known.contains(node) {
            let unbound = pods
                .iter()
                .filter(|pod| pod_state::node_name(pod).is_empty());
            planner
                .found
                .work
                .delete
                .extend(unbound.map(|pod| pod_state::name(pod).to_owned()));
        }
    }
    planner.found
}

struct Planner<'a> {
    set: &'a DaemonSet,
    hash: &'a str,
    failed: &'a mut FailedPods,
    now: Timestamp,
    surges: bool,
    found: Managed,
}

impl Planner<'_> {
    fn at_node(&mut self, node: &str, fit: Fit, pods: Option<&[&Pod]>) {
        match (fit, pods) {
            (Fit::Run, None) => self.found.work.create.push(node.to_owned()),
            (Fit::Run | Fit::Stay, pods) => {
                let running = self.clear_ended(node, pods.unwrap_or_default());
                if self.surges {
                    self.keep_two(node, fit, running);
                } else {
                    self.keep_oldest(running);
                }
            }
            (Fit::Leave, pods) => {
                let pods = pods.unwrap_or_default().iter();
                for pod in pods.filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
                    self.delete(pod);
                }
            }
        }
    }

    fn delete(&mut self, pod: &Pod) {
        self.found.work.delete.push(pod_state::name(pod).to_owned());
    }

    /// Deletes pods that have ended, failed ones with back-off, and answers the rest.
    fn clear_ended<'p>(&mut self, node: &str, pods: &[&'p Pod]) -> Vec<&'p Pod> {
        let mut running = Vec::new();
        for pod in pods
            .iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        {
            match pod_state::phase(pod) {
                "Failed" => self.clear_failed(node, pod),
                "Succeeded" => {
                    let message = format!(
                        "Found succeeded daemon pod {} on node {node}, will try to delete it",
                        full_name(pod)
                    );
                    self.found
                        .notes
                        .push(Note::normal("SucceededDaemonPod", message));
                    self.delete(pod);
                }
                _ => running.push(*pod),
            }
        }
        running
    }

    fn clear_failed(&mut self, node: &str, pod: &Pod) {
        let uid = self.set.metadata.uid.as_deref().unwrap_or_default();
        let generation = self
            .set
            .status
            .as_ref()
            .and_then(|s| s.observed_generation)
            .unwrap_or(0);
        if let Some(wait) = self
            .failed
            .ask(&format!("{uid}/{generation}/{node}"), self.now)
        {
            let sooner = self.found.again_after.is_none_or(|known| wait < known);
            self.found.again_after = if sooner {
                Some(wait)
            } else {
                self.found.again_after
            };
            return;
        }
        let message = format!(
            "Found failed daemon pod {} on node {node}, will try to kill it",
            full_name(pod)
        );
        self.found
            .notes
            .push(Note::warning("FailedDaemonPod", message));
        self.delete(pod);
    }

    fn keep_oldest(&mut self, mut running: Vec<&Pod>) {
        sort_by_age(&mut running);
        for pod in running.into_iter().skip(1) {
            self.delete(pod);
        }
    }

    /// While surging, an old pod and its replacement may run side by side: as long as the old one
    /// is ready and the new one not yet available.
    fn keep_two(&mut self, node: &str, fit: Fit, mut running: Vec<&Pod>) {
        if running.is_empty() && fit == Fit::Run {
            self.found.work.create.push(node.to_owned());
        }
        if running.len() <= 1 {
            return;
        }
        sort_by_age(&mut running);
        let (mut newest, mut old) = (None, None);
        for pod in running {
            let is_current = pod_state::label(pod, REVISION_HASH) == Some(self.hash);
            let place = if is_current { &mut newest } else { &mut old };
            match place {
                None => *place = Some(pod),
                Some(_) => self.delete(pod),
            }
        }
        if let (Some(newest), Some(old)) = (newest, old) {
            let min_ready = self
                .set
                .spec
                .as_ref()
                .and_then(|spec| spec.min_ready_seconds)
                .unwrap_or(0);
            if !pod_state::is_ready(old) || pod_state::is_available(newest, min_ready, self.now) {
                self.delete(old);
            }
        }
    }
}

fn full_name(pod: &Pod) -> String {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    format!("{namespace}/{}", pod_state::name(pod))
}
