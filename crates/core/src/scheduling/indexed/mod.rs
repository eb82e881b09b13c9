//! The engine that looks at what has changed, with the same answers as [`reference`].
//!
//! Pods of one shape get the same verdicts and scores, so these are kept per shape, in a class, and
//! brought up to date by a log of changes: a placement touches one node, and only that node is
//! looked at again. What a placement changes about many nodes at once, the number of pods in a
//! zone, is kept in counters and looked up when a decision is made, once for each group of nodes
//! that have it in common. A decision then costs about as much as there are groups and recent
//! changes, and does not grow with the number of nodes.
//!
//! What occurs rarely is not indexed but left to [`reference`], which is asked with the same draws
//! of chance: profiles that look at a part of the nodes or filter in an unusual order, pods that
//! name several nodes, and scores out of bounds.
//!
//! Reading order: `kinds` (existing pods), `topology` (domains), `log`, `shape` (which pods share a
//! class), `counters` (numbers by domain), `groups`, `class` (all of it for one shape), `decide`
//! (the best node), this file.
//!
//! [`reference`]: mod@super::reference

mod class;
mod counters;
mod decide;
mod groups;
mod kinds;
mod log;
mod shape;
mod topology;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cluster::{Change, Cluster, NodeSlot, NodeState};
use super::decision::{Decision, Error, Placement, Unschedulable};
use super::filtered::Filtered;
use super::filters::{FilterState, PreFilter, Seeker};
use super::plugin::{FilterPlugin, Rejection};
use super::plugins::{inter_pod_affinity, pod_topology_spread};
use super::pod::{NamedNodes, SchedulingPod};
use super::profile::Profile;
use super::reference;
use super::tie_break::Attempts;
use class::{Class, World, is_local};
use counters::{Counter, Role};
use groups::NO_GROUP;
use kinds::Kinds;
use log::{Entry, Log};
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
    node_version: u64,
    classes: BTreeMap<u64, Vec<Class>>,
    class_count: usize,
    clock: u64,
}

/// Bytes per node and class, about: cell, static part, place in a group.
const BYTES_PER_CELL: usize = 96;
/// Bytes per node that all classes together may take.
const BYTES_PER_NODE: usize = 1024 - 128;

/// Classes kept whatever the size of the cluster.
const MIN_CLASSES: usize = BYTES_PER_NODE / BYTES_PER_CELL;
/// Bytes for classes that a small cluster may take all the same.
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
            node_version: 0,
            classes: BTreeMap::new(),
            class_count: 0,
            clock: 0,
        }
    }

    /// What it knows.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The profiles, in order.
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// The number of the profile that a pod asks for; `None` if it is not for this scheduler.
    pub fn profile_of(&self, pod: &SchedulingPod) -> Option<usize> {
        let mut profiles = self.profiles.iter();
        profiles.position(|profile| profile.scheduler_name == pod.scheduler_name)
    }

    /// Applies an event to the cluster and takes note of what it changed.
    pub fn change<C: IntoIterator<Item = Change>>(
        &mut self,
        event: impl FnOnce(&mut Cluster) -> C,
    ) {
        for change in event(&mut self.cluster) {
            self.note(change);
        }
        if self.kinds.is_worn() {
            self.kinds = Kinds::rebuilt(&self.cluster);
            self.classes.clear();
            self.class_count = 0;
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
        self.classes
            .entry(shape::hash(pod))
            .or_default()
            .push(class);
        match decision {
            Some(decision) => Ok(decision),
            None => self.ask_reference(profile, pod),
        }
    }

    fn ask_reference(&mut self, profile: usize, pod: &SchedulingPod) -> Result<Decision, Error> {
        let seeker = Seeker {
            cluster: &self.cluster,
            profile: &self.profiles[profile],
            pod,
        };
        reference::schedule(&seeker, &mut self.attempts)
    }

    /// A pod that names its node, as those of daemon sets do, is tried there alone.
    fn schedule_named(
        &mut self,
        profile: usize,
        pod: &Arc<SchedulingPod>,
    ) -> Result<Decision, Error> {
        let seeker = Seeker {
            cluster: &self.cluster,
            profile: &self.profiles[profile],
            pod,
        };
        if let NamedNodes::Only(names) = &pod.node_rules.named
            && names.len() == 1
            && pod.nominated_node_name.is_none()
            && !self.asks_about_others(&seeker)
            && let Some(slot) = names.first().and_then(|name| self.cluster.slot(name))
            && let Some(node) = self.cluster.node(slot)
        {
            let state = FilterState {
                spread: None,
                affinity: None,
            };
            if seeker.filter_with_nominated(node, &state).is_none() {
                return Ok(Decision::Place(Placement::without_choice(slot)));
            }
        }
        self.ask_reference(profile, pod)
    }

    /// Whether other pods decide where this one may go.
    fn asks_about_others(&self, seeker: &Seeker<'_>) -> bool {
        let Seeker {
            cluster,
            profile,
            pod,
        } = seeker;
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

    /// The class of the pod's shape, up to date.
    fn take_class(&mut self, profile: usize, pod: &Arc<SchedulingPod>) -> Class {
        self.clock += 1;
        let world = World {
            cluster: &self.cluster,
            profile: &self.profiles[profile],
            kinds: &self.kinds,
            log: &self.log,
            node_version: self.node_version,
        };
        let same_hash = self.classes.entry(shape::hash(pod)).or_default();
        let known = same_hash
            .iter()
            .position(|class| class.profile == profile && shape::is_same(&class.pod, pod));
        let mut class = match known.map(|place| same_hash.swap_remove(place)) {
            Some(mut class) => {
                if !class.catch_up(world, &self.topology) {
                    let representative = Arc::clone(&class.pod);
                    class = Class::build(representative, profile, world, &mut self.topology);
                }
                class
            }
            None => {
                let class = Class::build(Arc::clone(pod), profile, world, &mut self.topology);
                self.class_count += 1;
                self.forget_old_classes();
                class
            }
        };
        class.last_used = self.clock;
        class
    }

    /// Keeps the memory for classes within bounds; those least recently used go.
    fn forget_old_classes(&mut self) {
        let nodes = self.cluster.node_count().max(1);
        let allowed = (FREE_BYTES / (nodes * BYTES_PER_CELL)).max(MIN_CLASSES);
        while self.class_count > allowed {
            let all = self.classes.values().flatten();
            let Some(oldest) = all.map(|class| class.last_used).min() else {
                return;
            };
            for classes in self.classes.values_mut() {
                classes.retain(|class| class.last_used != oldest);
            }
            self.classes.retain(|_, classes| !classes.is_empty());
            self.class_count -= 1;
        }
    }

    /// Decides by the class; `None` if a score is out of bounds.
    fn decide(
        &mut self,
        class: &mut Class,
        profile: usize,
        pod: &Arc<SchedulingPod>,
    ) -> Option<Decision> {
        let world = World {
            cluster: &self.cluster,
            profile: &self.profiles[profile],
            kinds: &self.kinds,
            log: &self.log,
            node_version: self.node_version,
        };
        let seeker = Seeker {
            cluster: world.cluster,
            profile: world.profile,
            pod,
        };
        if pod.nominated_node_name.is_some()
            && let Some(slot) =
                reference::nominated_slot(&seeker, &self.filter_state(class, &seeker))
        {
            return Some(Decision::Place(Placement::without_choice(slot)));
        }
        let ahead = self.verdicts_with_nominated(class, &seeker);
        for (slot, rejection) in &ahead {
            if rejection.is_some() {
                class.set_aside(*slot);
            }
        }
        let feasible = class.feasible(world.profile);
        let slot_count = world.cluster.slot_count();
        let decision = match feasible.count {
            0 => {
                let filtered = self.filtered(class, &seeker, &ahead);
                let waiting = Unschedulable::new(&seeker, filtered, &mut self.attempts);
                Some(Decision::Wait(Box::new(waiting)))
            }
            1 => feasible
                .first()
                .map(|slot| Decision::Place(Placement::without_choice(slot))),
            _ if class.invalid > 0 => None,
            count => feasible.best(world.profile).and_then(|best| {
                let offset = self.attempts.draw_offset(slot_count);
                let slot = best.choose(offset, slot_count)?;
                Some(Decision::Place(Placement {
                    slot,
                    feasible: count,
                    total: Some(best.total),
                }))
            }),
        };
        for slot in ahead.keys() {
            class.refresh(slot.0, world, &self.topology);
        }
        decision
    }

    /// The verdicts on nodes where pods of the same or a higher priority wait for room.
    fn verdicts_with_nominated(
        &self,
        class: &Class,
        seeker: &Seeker<'_>,
    ) -> BTreeMap<NodeSlot, Option<Rejection>> {
        let pod = seeker.pod;
        let nominations = seeker.cluster.nominations();
        let ahead = nominations.filter(|(_, pods)| {
            let mut pods = pods.iter();
            pods.any(|other| other.priority >= pod.priority && other.uid != pod.uid)
        });
        let mut ahead = ahead.peekable();
        if ahead.peek().is_none() {
            return BTreeMap::new();
        }
        let state = self.filter_state(class, seeker);
        ahead
            .filter_map(|(name, _)| {
                let slot = seeker.cluster.slot(name)?;
                let node = seeker.cluster.node(slot)?;
                Some((slot, seeker.filter_with_nominated(node, &state)))
            })
            .collect()
    }

    /// The counts of a class as the filters know them.
    fn filter_state(&self, class: &Class, seeker: &Seeker<'_>) -> FilterState {
        let counters = || class.counters.all.iter();
        let hard = class.questions.hard.clone();
        let counts = counters().filter(|c| matches!(c.role, Role::HardSpread(_)));
        let counts = counts.map(|counter| counter.spread_counts(&self.topology));
        let spread = (!hard.is_empty())
            .then(|| pod_topology_spread::FilterState::new(hard, counts.collect()));
        let by_value = |role: Role| {
            let all = counters().filter(move |counter| counter.role == role);
            all.flat_map(|counter| self.named_counts(counter))
        };
        let filters = &seeker.profile.filters;
        let affinity = filters.contains(&FilterPlugin::InterPodAffinity).then(|| {
            inter_pod_affinity::FilterState::with_counts(
                seeker.pod,
                seeker.cluster,
                by_value(Role::Affinity),
                by_value(Role::AntiAffinity),
                by_value(Role::ExistingAntiAffinity),
            )
        });
        FilterState {
            spread,
            affinity: affinity.flatten(),
        }
    }

    fn named_counts<'a>(
        &'a self,
        counter: &'a Counter,
    ) -> impl Iterator<Item = (String, String, i64)> + 'a {
        let key = self.topology.key(counter.key);
        let counts = counter.non_zero();
        counts.map(|(domain, n)| (key.name.clone(), key.value(domain).to_owned(), n))
    }

    /// All verdicts of a class, for a pod that nothing will do for.
    fn filtered(
        &self,
        class: &Class,
        seeker: &Seeker<'_>,
        ahead: &BTreeMap<NodeSlot, Option<Rejection>>,
    ) -> Filtered {
        let state = self.filter_state(class, seeker);
        let pre_filter = PreFilter::new(seeker.profile, seeker.pod, &state);
        let verdict = |slot: NodeSlot| {
            if let Some(verdict) = ahead.get(&slot) {
                return verdict.clone();
            }
            let cell = &class.cells[slot.index()];
            match cell.verdict {
                Some(number) => class.rejections.get(usize::from(number)).cloned(),
                None if cell.group == NO_GROUP => None,
                None => {
                    let key = &class.groups.get(cell.group).key;
                    class.reject_group(key, seeker.profile)
                }
            }
        };
        let order = seeker.cluster.node_order().into_iter();
        Filtered {
            nodes: order.map(|slot| (slot, verdict(slot))).collect(),
            pre_filter,
            state,
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
