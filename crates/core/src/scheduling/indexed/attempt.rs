//! An attempt at a pod, by its class.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::scheduling::cluster::NodeSlot;
use crate::scheduling::decision::{Decision, Placement, Rationale, Unschedulable};
use crate::scheduling::diagnosis::Diagnosis;
use crate::scheduling::filters::Cycle;
use crate::scheduling::plugin_names::{FilterPlugin, Rejection};
use crate::scheduling::pod::SchedulingPod;
use crate::scheduling::preemption::{
    Preemption, PreemptionResult, ineligibility, no_room_message, not_eligible_message,
    switched_off,
};
use crate::scheduling::reference;
use crate::scheduling::tie_break::PreemptionOffsets;

use super::Engine;
use super::class::{Class, ClassContext};
use super::order::Order;

/// Nodes on which pods that go first wait for room, with the verdicts on them.
type NominatedNodes = BTreeMap<NodeSlot, Option<Rejection>>;

impl Engine {
    /// Decides by the class; `None` if a score is out of bounds.
    pub(super) fn decide(
        &mut self,
        class: &mut Class,
        profile: usize,
        pod: &Arc<SchedulingPod>,
    ) -> Option<Decision> {
        let cycle = Cycle {
            cluster: &self.cluster,
            profile: &self.profiles[profile],
            pod,
        };
        if pod.nominated_node_name.is_some()
            && let Some(slot) = reference::nominated_slot(&cycle, &self.filter_state(class, &cycle))
        {
            return Some(Decision::Place(Placement::without_choice(slot)));
        }
        let ahead = self.apply_nominations(class, profile, pod);
        let decision = self.choose(class, profile, pod, &ahead);
        self.revert_nominations(class, profile, &ahead);
        decision
    }

    /// The rationale if the pod stayed pending.
    pub(super) fn rationale_of(
        &mut self,
        class: &mut Class,
        profile: usize,
        pod: &Arc<SchedulingPod>,
    ) -> Rationale {
        let ahead = self.apply_nominations(class, profile, pod);
        let cycle = Cycle {
            cluster: &self.cluster,
            profile: &self.profiles[profile],
            pod,
        };
        let mut attempts = self.attempts;
        let start = attempts
            .draw_for_preemption(self.cluster.slot_count())
            .start;
        let filtered = self.filtered(class, &cycle, &ahead);
        let rationale = if class.is_local && cycle.profile.preempts() {
            let code_of = |slot: NodeSlot| filtered.rejection(slot).map(|own| own.code);
            let preemption = match ineligibility(&cycle, code_of) {
                Some(reason) => Preemption::NotEligible(reason),
                None => class
                    .preemption_index
                    .search_in_full(&cycle, &self.order, start),
            };
            Rationale {
                filtered,
                preemption,
            }
        } else {
            Rationale::new(&cycle, filtered, start)
        };
        self.revert_nominations(class, profile, &ahead);
        rationale
    }

    /// Makes the class's verdicts on nodes with nominations those of this very pod.
    ///
    /// A local class takes nominations into account itself, but for those of the pod: only the node
    /// on which room was made for it is filtered again. Other classes filter every such node again.
    fn apply_nominations(
        &self,
        class: &mut Class,
        profile: usize,
        pod: &SchedulingPod,
    ) -> NominatedNodes {
        let context = self.context(profile);
        let cycle = Cycle {
            cluster: context.cluster,
            profile: context.profile,
            pod,
        };
        if class.is_local {
            let own = context.cluster.nomination(&pod.uid);
            let Some(slot) = own.and_then(|node| context.cluster.slot(node)) else {
                return NominatedNodes::new();
            };
            class.refresh(slot.0, Some(&pod.uid), context, &self.topology);
            let verdict = class.cells[slot.index()].verdict;
            let verdict = verdict.map(|id| class.reasons.get(id).clone());
            return NominatedNodes::from([(slot, verdict)]);
        }
        let ahead = self.verdicts_with_nominated(class, &cycle);
        for (slot, rejection) in &ahead {
            if rejection.is_some() {
                class.set_aside(*slot);
            }
        }
        ahead
    }

    fn revert_nominations(&self, class: &mut Class, profile: usize, ahead: &NominatedNodes) {
        for slot in ahead.keys() {
            class.refresh(slot.0, None, self.context(profile), &self.topology);
        }
    }

    fn context(&self, profile: usize) -> ClassContext<'_> {
        ClassContext {
            cluster: &self.cluster,
            profile: &self.profiles[profile],
            kinds: &self.kinds,
            log: &self.log,
            order: &self.order,
            node_version: self.node_version,
        }
    }

    fn choose(
        &mut self,
        class: &mut Class,
        profile: usize,
        pod: &SchedulingPod,
        ahead: &NominatedNodes,
    ) -> Option<Decision> {
        let cycle = Cycle {
            cluster: &self.cluster,
            profile: &self.profiles[profile],
            pod,
        };
        let slot_count = self.cluster.slot_count();
        let feasible = class.feasible(cycle.profile);
        match feasible.count {
            0 => {
                let offsets = self.attempts.draw_for_preemption(slot_count);
                let waiting = if class.is_local {
                    class.wait(&cycle, &self.order, offsets)
                } else {
                    let filtered = self.filtered(class, &cycle, ahead);
                    let rationale = Rationale::new(&cycle, filtered, offsets.start);
                    rationale.conclude(cycle.cluster, offsets.choice)
                };
                Some(Decision::Wait(Box::new(waiting)))
            }
            1 => feasible
                .first()
                .map(|slot| Decision::Place(Placement::without_choice(slot))),
            _ if class.invalid > 0 => None,
            count => feasible.best(cycle.profile).and_then(|best| {
                let offset = self.attempts.draw_offset(slot_count);
                let slot = best.choose(offset, slot_count)?;
                Some(Decision::Place(Placement {
                    slot,
                    feasible: count,
                    total: Some(best.total),
                }))
            }),
        }
    }
}

impl Class {
    /// Why a pod of a local class waits, when all nodes are rejected by themselves.
    fn wait(
        &mut self,
        cycle: &Cycle<'_>,
        order: &Order,
        offsets: PreemptionOffsets,
    ) -> Unschedulable {
        let node_count = order.len();
        let mut diagnosis = Diagnosis::new(node_count);
        for (rejection, nodes) in self.reasons.in_force() {
            diagnosis.add(rejection, nodes);
        }
        let rejections = self.reasons.in_force();
        let plugins = rejections.filter_map(|(rejection, _)| rejection.plugin);
        let plugins = plugins.map(FilterPlugin::as_str).collect();
        let code_of = |slot: NodeSlot| {
            let verdict = self.cells[slot.index()].verdict?;
            Some(self.reasons.get(verdict).code)
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
            None => match self.preemption_index.cheapest(cycle, order, offsets) {
                Some(candidate) => (PreemptionResult::At(candidate), String::new()),
                None => {
                    let message = no_room_message(node_count, self.preemption_index.obstacles());
                    (PreemptionResult::None, message)
                }
            },
        };
        Unschedulable::new(cycle.cluster, &diagnosis, plugins, room, &message)
    }
}
