//! The engine that looks at what has changed, with the same answers as [`reference`].
//!
//! Pods of one shape get the same verdicts and scores, so these are kept per shape, in a class, and
//! brought up to date by a log of changes: a placement touches one node, and only that node is
//! looked at again. What a placement changes about many nodes at once, the number of pods in a
//! zone, is kept in counters and looked up when a decision is made, once for each group of nodes
//! that have it in common. A decision then costs about as much as there are groups and recent
//! changes, and does not grow with the number of nodes.
//!
//! The same goes for pods that nothing will do for: how many nodes are rejected for which reasons is
//! kept, and so is what making room on each node would cost, unless other nodes' pods matter too.
//!
//! What occurs rarely is not indexed but left to [`reference`], with the same random draws:
//! profiles that look at a part of the nodes or filter in an unusual order, pods that name several
//! nodes, and scores out of bounds.
//!
//! Reading order: `kinds` (existing pods), `topology` (domains), `order` (of nodes), `log`, `shape`
//! (which pods share a class), `counters` (numbers by domain), `groups`, `reasons` (of rejections),
//! `preemption_index` (what making room costs), `class` (all of it for one shape), `decide` (the best node),
//! `verdicts` (on all nodes), `attempt` (what becomes of a pod), `named` (pods that name their
//! node), this file.
//!
//! [`reference`]: mod@super::reference

mod attempt;
mod bits;
mod class;
mod counters;
mod decide;
mod groups;
mod kinds;
mod log;
mod named;
mod order;
mod preemption_index;
mod reasons;
mod shape;
mod topology;
mod verdicts;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cluster::{Change, Cluster, NodeSlot, NodeState};
use super::decision::{Decision, Error, Rationale};
use super::filters::Cycle;
use super::plugin_names::FilterPlugin;
use super::pod::{NamedNodes, SchedulingPod};
use super::profile::Profile;
use super::reference;
use super::tie_break::Attempts;
use class::{Class, ClassContext, is_local};
use kinds::Kinds;
use log::{Entry, Log};
use order::Order;
use topology::Topology;

/// A scheduler that keeps indexes.
#[derive(Debug)]
pub struct Engine {
    cluster: Cluster,
    profiles: Vec<Profile>,
    attempts: Attempts,
    kinds: Kinds,
    topology: Topology,
    log: Log,
    order: Order,
    node_version: u64,
    /// The version that the order is of.
    order_version: u64,
    classes: BTreeMap<u64, Vec<Class>>,
    /// Bytes per node that the classes take.
    class_bytes: usize,
    clock: u64,
}

/// Bytes per node that all classes together may take.
const BYTES_PER_NODE: usize = 1024 - 128;
/// Bytes that the classes of even a small cluster may take.
const FREE_BYTES: usize = 16 << 20;

impl Engine {
    /// An engine for an empty cluster. Ties are broken by the seed.
    pub fn new(profiles: Vec<Profile>, seed: u64) -> Engine {
        Engine {
            cluster: Cluster::new(),
            profiles,
            attempts: Attempts::new(seed),
            kinds: Kinds::default(),
            topology: Topology::default(),
            log: Log::default(),
            order: Order::default(),
            node_version: 0,
            order_version: 0,
            classes: BTreeMap::new(),
            class_bytes: 0,
            clock: 0,
        }
    }

    /// The state of the cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The profiles, in order.
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// The number of the profile that a pod requests; `None` if it is not for this scheduler.
    pub fn profile_of(&self, pod: &SchedulingPod) -> Option<usize> {
        let mut profiles = self.profiles.iter();
        profiles.position(|profile| profile.scheduler_name == pod.scheduler_name)
    }

    /// Applies an event to the cluster and logs what it changed.
    pub fn change<C: IntoIterator<Item = Change>>(
        &mut self,
        event: impl FnOnce(&mut Cluster) -> C,
    ) {
        for change in event(&mut self.cluster) {
            self.note(change);
        }
        if self.kinds.needs_rebuild() {
            self.kinds = Kinds::rebuilt(&self.cluster);
            self.classes.clear();
            self.class_bytes = 0;
        }
    }

    fn note(&mut self, change: Change) {
        match change {
            Change::NodeAdded(slot) => {
                if let Some(node) = self.cluster.node(slot) {
                    for pod in node.pods() {
                        self.kinds.add(slot, pod);
                    }
                }
                self.node_changed(slot);
            }
            Change::NodeUpdated { slot, old } => match self.cluster.node(slot) {
                Some(node) if is_same_but_for_resources(&old, node) => {
                    self.log(slot, None, 0);
                }
                _ => self.node_changed(slot),
            },
            Change::NodeRemoved { slot, .. } => {
                self.kinds.remove_all(slot);
                self.node_changed(slot);
            }
            Change::PodAdded { slot, pod } => {
                let kind = self.kinds.add(slot, &pod);
                self.log(slot, Some(kind), 1);
            }
            Change::PodRemoved { slot, pod } => {
                let kind = self.kinds.remove(slot, &pod);
                self.log(slot, Some(kind), -1);
            }
            Change::NominationChanged(slot) => self.log(slot, None, 0),
            Change::Other => {}
        }
    }

    fn node_changed(&mut self, slot: NodeSlot) {
        self.node_version += 1;
        self.topology.set(slot, self.cluster.node(slot));
    }

    fn log(&mut self, slot: NodeSlot, kind: Option<kinds::KindId>, by: i64) {
        let slot = slot.0;
        self.log
            .push(Entry { slot, kind, by }, self.cluster.node_count());
    }

    /// Decides about a pod, by the profile of that number. The cluster does not change: a decision
    /// to place it is carried out with [`Cluster::assume_pod`].
    pub fn schedule(
        &mut self,
        profile: usize,
        pod: &Arc<SchedulingPod>,
    ) -> Result<Decision, Error> {
        if self.cluster.node_count() == 0 {
            return Err(Error::NoNodes);
        }
        if !is_indexable(&self.profiles[profile], pod) {
            return self.ask_reference(profile, pod);
        }
        if let NamedNodes::Only(_) = pod.node_rules.named {
            return self.schedule_named(profile, pod);
        }
        let mut class = self.take_class(profile, pod);
        let decision = self.decide(&mut class, profile, pod);
        self.put_class(class);
        match decision {
            Some(decision) => Ok(decision),
            None => self.ask_reference(profile, pod),
        }
    }

    /// The rationale of the decision if the pod stayed pending in the next attempt; no random
    /// numbers are drawn for it.
    ///
    /// Equal to [`reference::rationale`], but from the indexes; it takes looking at every node all
    /// the same.
    pub fn rationale(&mut self, profile: usize, pod: &Arc<SchedulingPod>) -> Rationale {
        let is_named = matches!(pod.node_rules.named, NamedNodes::Only(_));
        if is_named || !is_indexable(&self.profiles[profile], pod) {
            let cycle = Cycle {
                cluster: &self.cluster,
                profile: &self.profiles[profile],
                pod,
            };
            return reference::rationale(&cycle, self.attempts);
        }
        let mut class = self.take_class(profile, pod);
        let rationale = self.rationale_of(&mut class, profile, pod);
        self.put_class(class);
        rationale
    }

    fn ask_reference(&mut self, profile: usize, pod: &SchedulingPod) -> Result<Decision, Error> {
        let cycle = Cycle {
            cluster: &self.cluster,
            profile: &self.profiles[profile],
            pod,
        };
        reference::schedule(&cycle, &mut self.attempts)
    }

    /// The class of the pod's shape, up to date. It is to be put back.
    fn take_class(&mut self, profile: usize, pod: &Arc<SchedulingPod>) -> Class {
        self.clock += 1;
        if self.order_version != self.node_version {
            self.order = Order::new(&self.cluster);
            self.order_version = self.node_version;
        }
        let context = ClassContext {
            cluster: &self.cluster,
            profile: &self.profiles[profile],
            kinds: &self.kinds,
            log: &self.log,
            order: &self.order,
            node_version: self.node_version,
        };
        let same_hash = self.classes.entry(shape::hash(pod)).or_default();
        let known = same_hash
            .iter()
            .position(|class| class.profile == profile && shape::is_same(&class.pod, pod));
        let mut class = match known.map(|place| same_hash.swap_remove(place)) {
            Some(mut class) => {
                self.class_bytes -= class.bytes_per_node();
                if !class.catch_up(context, &self.topology) {
                    let representative = Arc::clone(&class.pod);
                    class = Class::build(representative, profile, context, &mut self.topology);
                }
                class
            }
            None => Class::build(Arc::clone(pod), profile, context, &mut self.topology),
        };
        class.last_used = self.clock;
        class
    }

    /// Keeps a class, and the memory for all within bounds: those least recently used go.
    fn put_class(&mut self, class: Class) {
        self.class_bytes += class.bytes_per_node();
        let same_hash = self.classes.entry(shape::hash(&class.pod)).or_default();
        same_hash.push(class);
        let nodes = self.cluster.node_count().max(1);
        let allowed = (FREE_BYTES / nodes).max(BYTES_PER_NODE);
        while self.class_bytes > allowed {
            let all = self.classes.values().flatten();
            let Some(oldest) = all.map(|class| class.last_used).min() else {
                return;
            };
            for classes in self.classes.values_mut() {
                let going = classes.extract_if(.., |class| class.last_used == oldest);
                let freed = going.map(|class| class.bytes_per_node());
                self.class_bytes -= freed.sum::<usize>();
            }
            self.classes.retain(|_, classes| !classes.is_empty());
        }
    }
}

/// Whether the verdicts of a profile's filters can be kept: those that never change while the node
/// stays as it is come first, those that look beyond the node last, and all nodes are looked at.
fn is_indexable(profile: &Profile, pod: &SchedulingPod) -> bool {
    let rank = |plugin: &FilterPlugin| match plugin {
        FilterPlugin::NodePorts | FilterPlugin::NodeResourcesFit => 1,
        plugin if is_local(*plugin) => 0,
        _ => 2,
    };
    let is_conflict = matches!(&pod.node_rules.named, NamedNodes::Only(names) if names.is_empty());
    profile.percentage_of_nodes_to_score.is_none()
        && profile.filters.is_sorted_by_key(rank)
        && !is_conflict
}

/// Whether an update leaves alone all but how much the node has of what.
fn is_same_but_for_resources(old: &crate::object::node::NodeView, new: &NodeState) -> bool {
    let new = &new.view;
    old.labels == new.labels
        && old.taints == new.taints
        && old.is_unschedulable == new.is_unschedulable
        && old.images == new.images
}

#[cfg(test)]
mod tests;
