//! Pods that name their node, as those of daemon sets do.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::scheduling::cluster::NodeSlot;
use crate::scheduling::decision::{Decision, Error, Placement, Unschedulable};
use crate::scheduling::diagnosis::Diagnosis;
use crate::scheduling::filters::{Cycle, PreFilter};
use crate::scheduling::plugin_names::{Code, FilterPlugin, Rejection};
use crate::scheduling::plugins::pod_topology_spread;
use crate::scheduling::pod::SchedulingPod;
use crate::scheduling::preemption::{
    PreemptionResult, ineligibility, no_room_message, not_eligible_message, switched_off, try_node,
};
use crate::scheduling::reference;

use super::Engine;
use super::class::NO_FILTER_STATE;

impl Engine {
    /// A pod that names one node is tried there alone, if no other pods matter to it.
    pub(super) fn schedule_named(
        &mut self,
        profile: usize,
        pod: &Arc<SchedulingPod>,
    ) -> Result<Decision, Error> {
        let cycle = Cycle {
            cluster: &self.cluster,
            profile: &self.profiles[profile],
            pod,
        };
        let pre_filter = PreFilter::new(cycle.profile, pod, &NO_FILTER_STATE);
        let name = match &pre_filter.node_names {
            Some(names) if names.len() == 1 && !self.depends_on_other_pods(&cycle) => names.first(),
            _ => None,
        };
        let Some(slot) = name.and_then(|name| self.cluster.slot(name)) else {
            return self.ask_reference(profile, pod);
        };
        if let Some(slot) = reference::nominated_slot(&cycle, &NO_FILTER_STATE) {
            return Ok(Decision::Place(Placement::without_choice(slot)));
        }
        let node = self.cluster.node(slot).ok_or(Error::NoNodes)?;
        match cycle.filter_with_nominated(node, &NO_FILTER_STATE) {
            None => Ok(Decision::Place(Placement::without_choice(slot))),
            Some(rejection) => {
                // Both offsets are drawn as usual; among one node they choose nothing.
                let slot_count = self.cluster.slot_count();
                let _ = self.attempts.draw_for_preemption(slot_count);
                let waiting = wait_for(&cycle, slot, &rejection);
                Ok(Decision::Wait(Box::new(waiting)))
            }
        }
    }

    /// Whether other pods decide where this one may go.
    fn depends_on_other_pods(&self, cycle: &Cycle<'_>) -> bool {
        let Cycle {
            cluster,
            profile,
            pod,
        } = cycle;
        let hard = pod_topology_spread::hard_constraints(pod, &profile.spread, &cluster.owners);
        let namespace_labels = cluster.namespace_labels(&pod.pod_ref.namespace);
        let mut existing = self.kinds.with_terms().iter();
        !hard.is_empty()
            || !pod.affinity.required.is_empty()
            || !pod.affinity.required_anti.is_empty()
            || existing.any(|kind| {
                let mut terms = self.kinds.pod(*kind).affinity.required_anti.iter();
                terms.any(|term| term.matches(&pod.pod_ref, &pod.labels, namespace_labels))
            })
    }
}

/// Why a pod waits that names a node which is rejected.
fn wait_for(cycle: &Cycle<'_>, slot: NodeSlot, rejection: &Rejection) -> Unschedulable {
    let node_count = cycle.cluster.node_count();
    let mut diagnosis = Diagnosis::new(node_count);
    diagnosis.add(rejection, 1);
    diagnosis.add(&PreFilter::rejection_of_unnamed(), node_count - 1);
    let plugins = [Some(FilterPlugin::NodeAffinity), rejection.plugin];
    let plugins: BTreeSet<&str> = plugins
        .into_iter()
        .flatten()
        .map(FilterPlugin::as_str)
        .collect();
    let code_of = |other: NodeSlot| {
        Some(match other == slot {
            true => rejection.code,
            false => Code::UnschedulableAndUnresolvable,
        })
    };
    if let Some(message) = switched_off(cycle.profile) {
        let room = PreemptionResult::SwitchedOff(message);
        return Unschedulable::new(cycle.cluster, &diagnosis, plugins, room, message);
    }
    let (room, message) = match ineligibility(cycle, code_of) {
        Some(reason) => (
            PreemptionResult::NotEligible(reason),
            not_eligible_message(reason),
        ),
        None => {
            let tried = match rejection.code {
                Code::Unschedulable => try_node(cycle, slot, &NO_FILTER_STATE),
                Code::UnschedulableAndUnresolvable => None,
            };
            match tried {
                Some(Ok(candidate)) => (PreemptionResult::At(candidate), String::new()),
                Some(Err(obstacle)) => {
                    let obstacles = std::iter::once((&obstacle, 1));
                    (
                        PreemptionResult::None,
                        no_room_message(node_count, obstacles),
                    )
                }
                None => {
                    let message = no_room_message(node_count, std::iter::empty());
                    (PreemptionResult::None, message)
                }
            }
        }
    };
    Unschedulable::new(cycle.cluster, &diagnosis, plugins, room, &message)
}
