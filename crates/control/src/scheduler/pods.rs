//! Events about pods.
//!
//! Matches v1.36 pkg/scheduler/eventhandlers.go.

use std::sync::Arc;

use plimsoll_core::object::identity::{NodeName, PodRef};
use plimsoll_core::scheduling::plugins::pod_topology_spread::hard_constraints;
use plimsoll_core::scheduling::pod::SchedulingPod;
use plimsoll_core::scheduling::queue::{Affected, Change, Object, PodFacts, Time};

use super::input::WatchEvent;
use super::known_pod::KnownPod;
use super::state::Loop;

impl Loop {
    pub(super) fn on_pod(&mut self, seen: WatchEvent<KnownPod, PodRef>, now: Time) {
        match seen {
            WatchEvent::ListBegins => self.pods.begin_list(),
            WatchEvent::Is(record) => self.set_pod(record, now),
            WatchEvent::Deleted(pod_ref) => self.remove_pod(&pod_ref, now),
            WatchEvent::ListEnds => {
                for pod_ref in self.pods.end_list() {
                    self.remove_pod(&pod_ref, now);
                }
            }
        }
    }

    fn set_pod(&mut self, mut record: KnownPod, now: Time) {
        // The scheduler does not see finished pods, nor one of the same name that is gone.
        if record.facts.is_finished {
            return self.remove_pod(&record.pod_ref().clone(), now);
        }
        let known = self.pods.get(record.pod_ref());
        if known.is_some_and(|known| known.uid() != record.uid()) {
            self.remove_pod(&record.pod_ref().clone(), now);
        }
        self.set_default_spread(&mut record);
        let new = Arc::clone(&record.facts);
        let version = Arc::clone(&record.resource_version);
        let old = self.pods.insert(new.pod_ref.clone(), record);
        let is_mine = self.engine.profile_of(&new).is_some();
        match old {
            None if new.node_name.is_some() => self.add_assigned(new, now),
            None if is_mine => {
                self.engine
                    .change(|cluster| cluster.set_pod(Arc::clone(&new.view)));
                self.queue.add(new, now);
            }
            Some(old) if old.is_assigned() => self.update_assigned(old.facts, new, now),
            Some(old) if new.node_name.is_some() => {
                self.add_assigned(new, now);
                if is_mine {
                    self.queue.delete(&old.facts);
                }
            }
            Some(old) if is_mine && old.resource_version != version => {
                self.update_pending(&old.facts, &new, now);
            }
            _ => {}
        }
    }

    /// Pods without constraints of their own may have some by their profile; hints need them.
    fn set_default_spread(&self, record: &mut KnownPod) {
        let profile = self.engine.profile_of(&record.facts);
        let Some(profile) = profile.map(|number| &self.engine.profiles()[number]) else {
            return;
        };
        if record.is_assigned() || profile.spread.constraints.hard.is_empty() {
            return;
        }
        let owners = &self.engine.cluster().owners;
        let hard = hard_constraints(&record.facts, &profile.spread, owners).into_owned();
        Arc::make_mut(&mut record.facts).default_spread = hard;
    }

    fn add_assigned(&mut self, pod: Arc<PodFacts>, now: Time) {
        self.engine
            .change(|cluster| cluster.set_pod(Arc::clone(&pod.view)));
        let change = Object::Pod(Change::Added(pod));
        self.queue.on_change(&change, Affected::All, now);
    }

    fn update_assigned(&mut self, old: Arc<PodFacts>, new: Arc<PodFacts>, now: Time) {
        self.engine
            .change(|cluster| cluster.set_pod(Arc::clone(&new.view)));
        if new.is_terminating {
            self.record_departure(&new.pod_ref);
        }
        let change = Object::Pod(Change::Updated { old, new });
        self.queue.on_change(&change, Affected::All, now);
    }

    fn update_pending(&mut self, old: &Arc<PodFacts>, new: &Arc<PodFacts>, now: Time) {
        if self.engine.cluster().is_assumed(&new.uid) {
            if new.is_terminating && !old.is_terminating {
                self.forget_deleted(new, now);
            }
            return;
        }
        self.engine
            .change(|cluster| cluster.set_pod(Arc::clone(&new.view)));
        self.queue.update(old, new, now);
        let nominated = &old.nominated_node_name;
        if nominated.is_some() && *nominated != new.nominated_node_name {
            self.wake_below(old, now);
        }
    }

    fn remove_pod(&mut self, pod_ref: &PodRef, now: Time) {
        let Some(old) = self.pods.remove(pod_ref) else {
            return;
        };
        self.record_departure(pod_ref);
        let facts = old.facts;
        if facts.node_name.is_some() {
            self.engine.change(|cluster| cluster.remove_pod(&facts.uid));
            let change = Object::Pod(Change::Deleted(facts));
            self.queue.on_change(&change, Affected::All, now);
            return;
        }
        if self.engine.profile_of(&facts).is_none() {
            return;
        }
        self.queue.delete(&facts);
        self.end_preemption(&facts.uid);
        if self.engine.cluster().is_assumed(&facts.uid) {
            self.forget_deleted(&facts, now);
            return;
        }
        self.engine.change(|cluster| cluster.remove_pod(&facts.uid));
        if facts.nominated_node_name.is_some() {
            self.wake_below(&facts, now);
        }
    }

    /// A pod is deleted during its binding: its room is free, while the binding is still under way
    /// and will fail.
    fn forget_deleted(&mut self, pod: &Arc<PodFacts>, now: Time) {
        let node = self
            .binding
            .get(&pod.uid)
            .map(|binding| binding.node.clone());
        self.forget(pod, node, now);
    }

    /// Takes an assumed pod off its node, which is to others as if it were deleted.
    pub(super) fn forget(&mut self, pod: &Arc<PodFacts>, node: Option<NodeName>, now: Time) {
        self.engine.change(|cluster| cluster.remove_pod(&pod.uid));
        let change = Object::Pod(Change::Deleted(on_node(pod, node)));
        self.queue.on_change(&change, Affected::All, now);
    }

    /// Room that was reserved for a pod is free for the pods of lower priority.
    fn wake_below(&mut self, pod: &Arc<PodFacts>, now: Time) {
        let change = Object::Pod(Change::Deleted(Arc::clone(pod)));
        let affected = Affected::PriorityAtMost(pod.priority);
        self.queue.on_change(&change, affected, now);
    }
}

/// The pod as it would be on that node.
fn on_node(pod: &Arc<PodFacts>, node: Option<NodeName>) -> Arc<PodFacts> {
    let view = SchedulingPod {
        node_name: node.or_else(|| pod.node_name.clone()),
        ..SchedulingPod::clone(&pod.view)
    };
    Arc::new(PodFacts {
        view: Arc::new(view),
        ..PodFacts::clone(pod)
    })
}
