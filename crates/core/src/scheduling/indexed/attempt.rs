//! What becomes of a pod, by its class.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::scheduling::cluster::NodeSlot;
use crate::scheduling::decision::{Decision, Grounds, Placement, Unschedulable};
use crate::scheduling::diagnosis::Diagnosis;
use crate::scheduling::filters::Seeker;
use crate::scheduling::plugin::{FilterPlugin, Rejection};
use crate::scheduling::pod::SchedulingPod;
use crate::scheduling::preemption::{
    Preemption, Room, ineligibility, no_room_message, not_eligible_message, switched_off,
};
use crate::scheduling::reference;
use crate::scheduling::tie_break::PreemptionOffsets;

use super::Engine;
use super::class::{Class, World};
use super::order::Order;

/// Nodes on which pods that go first wait for room, with the verdicts on them.
type Ahead = BTreeMap<NodeSlot, Option<Rejection>>;

impl Engine {
    /// Decides by the class; `None` if a score is out of bounds.
    pub(super) fn decide(
        &mut self,
        class: &mut Class,
        profile: usize,
        pod: &Arc<SchedulingPod>,
    ) -> Option<Decision> {
        let seeker = Seeker {
            cluster: &self.cluster,
            profile: &self.profiles[profile],
            pod,
        };
        if pod.nominated_node_name.is_some()
            && let Some(slot) =
                reference::nominated_slot(&seeker, &self.filter_state(class, &seeker))
        {
            return Some(Decision::Place(Placement::without_choice(slot)));
        }
        let ahead = self.heed_nominations(class, profile, pod);
        let decision = self.choose(class, profile, pod, &ahead);
        self.unheed_nominations(class, profile, &ahead);
        decision
    }

    /// What a decision that the pod waits would rest on.
    pub(super) fn grounds_of(
        &mut self,
        class: &mut Class,
        profile: usize,
        pod: &Arc<SchedulingPod>,
    ) -> Grounds {
        let ahead = self.heed_nominations(class, profile, pod);
        let seeker = Seeker {
            cluster: &self.cluster,
            profile: &self.profiles[profile],
            pod,
        };
        let mut attempts = self.attempts;
        let start = attempts
            .draw_for_preemption(self.cluster.slot_count())
            .start;
        let filtered = self.filtered(class, &seeker, &ahead);
        let grounds = if class.is_local && seeker.profile.preempts() {
            let code_of = |slot: NodeSlot| filtered.rejection(slot).map(|own| own.code);
            let preemption = match ineligibility(&seeker, code_of) {
                Some(reason) => Preemption::NotEligible(reason),
                None => class.rooms.search_in_full(&seeker, &self.order, start),
            };
            Grounds {
                filtered,
                preemption,
            }
        } else {
            Grounds::new(&seeker, filtered, start)
        };
        self.unheed_nominations(class, profile, &ahead);
        grounds
    }

    /// Sees to it that the class says of nodes with nominations what holds for this very pod.
    ///
    /// A local class heeds nominations itself, but for those of the pod: only the node on which
    /// room was made for it is looked at anew. Other classes are told of every such node.
    fn heed_nominations(&self, class: &mut Class, profile: usize, pod: &SchedulingPod) -> Ahead {
        let world = self.world(profile);
        let seeker = Seeker {
            cluster: world.cluster,
            profile: world.profile,
            pod,
        };
        if class.is_local {
            let own = world.cluster.nomination(&pod.uid);
            let Some(slot) = own.and_then(|node| world.cluster.slot(node)) else {
                return Ahead::new();
            };
            class.refresh(slot.0, Some(&pod.uid), world, &self.topology);
            let verdict = class.cells[slot.index()].verdict;
            let verdict = verdict.map(|id| class.reasons.get(id).clone());
            return Ahead::from([(slot, verdict)]);
        }
        let ahead = self.verdicts_with_nominated(class, &seeker);
        for (slot, rejection) in &ahead {
            if rejection.is_some() {
                class.set_aside(*slot);
            }
        }
        ahead
    }

    fn unheed_nominations(&self, class: &mut Class, profile: usize, ahead: &Ahead) {
        for slot in ahead.keys() {
            class.refresh(slot.0, None, self.world(profile), &self.topology);
        }
    }

    fn world(&self, profile: usize) -> World<'_> {
        World {
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
        ahead: &Ahead,
    ) -> Option<Decision> {
        let seeker = Seeker {
            cluster: &self.cluster,
            profile: &self.profiles[profile],
            pod,
        };
        let slot_count = self.cluster.slot_count();
        let feasible = class.feasible(seeker.profile);
        match feasible.count {
            0 => {
                let offsets = self.attempts.draw_for_preemption(slot_count);
                let waiting = if class.is_local {
                    class.wait(&seeker, &self.order, offsets)
                } else {
                    let filtered = self.filtered(class, &seeker, ahead);
                    let grounds = Grounds::new(&seeker, filtered, offsets.start);
                    grounds.conclude(seeker.cluster, offsets.choice)
                };
                Some(Decision::Wait(Box::new(waiting)))
            }
            1 => feasible
                .first()
                .map(|slot| Decision::Place(Placement::without_choice(slot))),
            _ if class.invalid > 0 => None,
            count => feasible.best(seeker.profile).and_then(|best| {
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
        seeker: &Seeker<'_>,
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
        if let Some(told) = switched_off(seeker.profile) {
            let room = Room::SwitchedOff(told);
            return Unschedulable::new(seeker.cluster, &diagnosis, plugins, room, told);
        }
        let (room, message) = match ineligibility(seeker, code_of) {
            Some(reason) => (Room::NotEligible(reason), not_eligible_message(reason)),
            None => match self.rooms.cheapest(seeker, order, offsets) {
                Some(candidate) => (Room::At(candidate), String::new()),
                None => {
                    let message = no_room_message(node_count, self.rooms.obstacles());
                    (Room::None, message)
                }
            },
        };
        Unschedulable::new(seeker.cluster, &diagnosis, plugins, room, &message)
    }
}
