//! All that is known for one shape of pods, about every node.
//!
//! A class keeps, per node, the verdict of the filters that look at the node alone, the score that
//! the node has by itself, and the group it is in. After a change, only the nodes that it touches
//! are looked at again.
//!
//! The key of a group holds what its nodes have in common: the raw scores for taints and node
//! affinity, and for each counter the domain or the count, see [`Grain`].

use std::sync::Arc;

use crate::object::identity::PodUid;
use crate::scheduling::cluster::{Cluster, NodeSlot, NodeState};
use crate::scheduling::filters::{Cycle, FilterState};
use crate::scheduling::plugin_names::{Code, FilterPlugin, ScorePlugin};
use crate::scheduling::plugins::{MAX_NODE_SCORE, pod_topology_spread};
use crate::scheduling::pod::{SchedulingPod, SpreadConstraint};
use crate::scheduling::profile::Profile;
use crate::scheduling::scores::ScoreState;

use super::counters::{Counters, Effect, Grain, InterPodConstraints, MissingCounter, Role};
use super::groups::{GroupId, Groups, NO_GROUP};
use super::kinds::{KindId, Kinds};
use super::log::Log;
use super::order::Order;
use super::preemption_index::PreemptionIndex;
use super::reasons::{ReasonId, Reasons};
use super::topology::{ABSENT, Topology};

/// Number of members of a group key before those of counters.
pub(super) const KEY_PREFIX: usize = 2;

/// In a group key: the node lacks the label.
pub(super) const NO_LABEL: i64 = i64::MIN;

/// Bytes per node, about: cell, static part, place in a group.
const BYTES_PER_CELL: usize = 96;

/// The inputs that classes are built from.
#[derive(Clone, Copy)]
pub(super) struct ClassContext<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) profile: &'a Profile,
    pub(super) kinds: &'a Kinds,
    pub(super) log: &'a Log,
    pub(super) order: &'a Order,
    /// Changes when nodes come, go, or change otherwise than by their pods and resources.
    pub(super) node_version: u64,
}

/// One shape of pods.
#[derive(Debug)]
pub(super) struct Class {
    /// Any pod of the shape.
    pub(super) pod: Arc<SchedulingPod>,
    pub(super) profile: usize,
    pub(super) last_used: u64,
    pub(super) constraints: InterPodConstraints,
    pub(super) counters: Counters,
    pub(super) groups: Groups,
    /// Which filters reject nodes by themselves.
    pub(super) reasons: Reasons,
    pub(super) cells: Vec<Cell>,
    /// Whether nothing but the node itself decides if it will do.
    ///
    /// Then verdicts consider the pods that wait for room on the node, and the cost of preemption
    /// is kept.
    pub(super) is_local: bool,
    pub(super) preemption_index: PreemptionIndex,
    /// Sum of the counters of required affinity: zero if no pod matches anywhere.
    pub(super) near: i64,
    /// How often a preferred term matched anywhere: zero if no preference applies.
    pub(super) opinions: i64,
    /// Nodes whose own score is out of bounds.
    pub(super) invalid: usize,
    statics: Vec<Static>,
    effects: Vec<Option<Box<[Effect]>>>,
    dirty: Vec<u32>,
    node_version: u64,
    namespace_version: u64,
    owners_version: u64,
    position: u64,
}

/// The state of a node for the class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) group: GroupId,
    /// Why the node is rejected by itself.
    pub(super) verdict: Option<ReasonId>,
    is_dirty: bool,
    is_invalid: bool,
    score: i64,
}

/// The part of it that does not change while the node stays as it is.
#[derive(Clone, Copy, Debug, Default)]
struct Static {
    verdict: Option<ReasonId>,
    taints: i64,
    affinity: i64,
    images: i64,
}

impl Cell {
    const EMPTY: Cell = Cell {
        group: NO_GROUP,
        verdict: None,
        is_dirty: false,
        is_invalid: false,
        score: 0,
    };
}

/// A state for filters and scores that look at one node alone, and do not ask it.
pub(super) const NO_FILTER_STATE: FilterState = FilterState {
    spread: None,
    affinity: None,
};
const NO_SCORE_STATE: ScoreState = ScoreState {
    spread: None,
    affinity: None,
};

impl Class {
    /// Looks at every node.
    pub(super) fn build(
        pod: Arc<SchedulingPod>,
        profile: usize,
        context: ClassContext<'_>,
        topology: &mut Topology,
    ) -> Class {
        let cluster = context.cluster;
        let (hard, soft) = spread_constraints(&pod, context);
        let constraints = InterPodConstraints::new(&pod, context.profile, cluster, hard, soft);
        let with_terms = context.kinds.with_terms().iter();
        let with_terms = with_terms.map(|kind| &**context.kinds.pod(*kind));
        let mut counters = Counters::new(&pod, &constraints, with_terms, cluster, topology);
        if !constraints.requires_all_keys {
            counters.count_unlabelled(topology);
        }
        let is_local = !counters.all.iter().any(|counter| counter.role.rejects());
        let slots = usize::try_from(cluster.slot_count()).expect("32 bits fit in an index");
        let mut class = Class {
            pod,
            profile,
            last_used: 0,
            constraints,
            counters,
            groups: Groups::default(),
            reasons: Reasons::default(),
            cells: vec![Cell::EMPTY; slots],
            is_local,
            preemption_index: PreemptionIndex::new(context.order.len()),
            near: 0,
            opinions: 0,
            invalid: 0,
            statics: vec![Static::default(); slots],
            effects: Vec::new(),
            dirty: Vec::new(),
            node_version: context.node_version,
            namespace_version: cluster.namespace_version(),
            owners_version: cluster.owners.version(),
            position: context.log.end(),
        };
        class.include_nodes(context, topology);
        for (slot, node) in cluster.nodes() {
            class.read_static(slot, node, context);
            for (kind, pods) in context.kinds.on(slot) {
                let known = class.apply(slot.0, *kind, i64::from(*pods), context, topology);
                known.expect("counters were made for all kinds that are there");
            }
        }
        class.dirty.clear();
        for (slot, _) in cluster.nodes() {
            class.refresh(slot.0, None, context, topology);
        }
        class
    }

    /// Catches up with the log; false if the class must be rebuilt.
    pub(super) fn catch_up(&mut self, context: ClassContext<'_>, topology: &Topology) -> bool {
        let cluster = context.cluster;
        if self.node_version != context.node_version
            || self.namespace_version != cluster.namespace_version()
            || self.groups.needs_rebuild()
        {
            return false;
        }
        if self.owners_version != cluster.owners.version() {
            let (hard, soft) = spread_constraints(&self.pod, context);
            if hard != self.constraints.hard || soft != self.constraints.soft {
                return false;
            }
            self.owners_version = cluster.owners.version();
        }
        let Some(entries) = context.log.since(self.position) else {
            return false;
        };
        for entry in entries {
            if let Some(kind) = entry.kind
                && self
                    .apply(entry.slot, kind, entry.by, context, topology)
                    .is_err()
            {
                return false;
            }
            self.mark(entry.slot);
        }
        self.position = context.log.end();
        let mut dirty = std::mem::take(&mut self.dirty);
        for slot in dirty.drain(..) {
            self.refresh(slot, None, context, topology);
        }
        self.dirty = dirty;
        true
    }

    /// Bytes that it takes per node, about.
    pub(super) fn bytes_per_node(&self) -> usize {
        match self.preemption_index.is_in_use() {
            true => BYTES_PER_CELL + PreemptionIndex::BYTES_PER_NODE,
            false => BYTES_PER_CELL,
        }
    }

    /// Takes a node out of its group until it is refreshed.
    pub(super) fn set_aside(&mut self, slot: NodeSlot) {
        let cell = &mut self.cells[slot.index()];
        if cell.group != NO_GROUP {
            self.groups.remove(cell.group, slot.0, cell.score);
            cell.group = NO_GROUP;
        }
    }

    fn cycle<'a>(&'a self, context: ClassContext<'a>) -> Cycle<'a> {
        Cycle {
            cluster: context.cluster,
            profile: context.profile,
            pod: &self.pod,
        }
    }

    fn mark(&mut self, slot: u32) {
        let cell = &mut self.cells[index(slot)];
        if !cell.is_dirty {
            cell.is_dirty = true;
            self.dirty.push(slot);
        }
    }

    /// Sets which nodes' pods the spread constraints count.
    fn include_nodes(&mut self, context: ClassContext<'_>, topology: &Topology) {
        let (pod, constraints) = (&self.pod, &self.constraints);
        let comparison = context.profile.comparison_operators;
        for counter in &mut self.counters.all {
            let (constraint, all, needs_all) = match (counter.role, counter.grain) {
                (Role::HardSpread(i), _) => (&constraints.hard[i], &constraints.hard, true),
                (Role::SoftSpread(i), Grain::Domain) => (
                    &constraints.soft[i],
                    &constraints.soft,
                    constraints.requires_all_keys,
                ),
                _ => continue,
            };
            counter.begin_inclusion(context.cluster.slot_count());
            for (slot, node) in context.cluster.nodes() {
                let labels = &node.view.labels;
                let has_keys = !needs_all || pod_topology_spread::has_all_keys(labels, all);
                if has_keys
                    && pod_topology_spread::is_included(constraint, pod, &node.view, comparison)
                {
                    counter.include(slot.0, topology);
                }
            }
        }
    }

    /// Counts pods of a kind on a node.
    fn apply(
        &mut self,
        slot: u32,
        kind: KindId,
        pods: i64,
        context: ClassContext<'_>,
        topology: &Topology,
    ) -> Result<(), MissingCounter> {
        let place = index(kind);
        if self.effects.len() <= place {
            self.effects
                .resize_with(context.kinds.len().max(place + 1), || None);
        }
        let effects = match self.effects[place].take() {
            Some(effects) => effects,
            None => {
                let existing = context.kinds.pod(kind);
                self.counters
                    .effects_of(&self.pod, &self.constraints, existing, topology)?
            }
        };
        for effect in &effects {
            let counter = &mut self.counters.all[effect.counter];
            let amount = effect.weight.wrapping_mul(pods);
            let Some(changed) = counter.add(slot, amount, topology) else {
                continue;
            };
            match counter.role {
                Role::Affinity => self.near += amount,
                Role::Worth => self.opinions += pods,
                _ => {}
            }
            if counter.grain == Grain::Count {
                let key = counter.key;
                for neighbour in topology.key(key).slots(changed) {
                    let cell = &mut self.cells[index(*neighbour)];
                    if !cell.is_dirty {
                        cell.is_dirty = true;
                        self.dirty.push(*neighbour);
                    }
                }
            }
        }
        self.effects[place] = Some(effects);
        Ok(())
    }

    /// Reads what does not change while the node stays as it is.
    fn read_static(&mut self, slot: NodeSlot, node: &NodeState, context: ClassContext<'_>) {
        let cycle = self.cycle(context);
        let mut filters = context.profile.filters.iter().filter(|f| is_static(**f));
        let rejection = filters.find_map(|f| cycle.filter_by(*f, node, &NO_FILTER_STATE));
        let raw = |plugin| cycle.raw_score(plugin, node, &NO_SCORE_STATE);
        let mut known = Static {
            verdict: None,
            taints: raw(ScorePlugin::TaintToleration),
            affinity: raw(ScorePlugin::NodeAffinity),
            images: raw(ScorePlugin::ImageLocality),
        };
        known.verdict = rejection.map(|rejection| self.reasons.intern(rejection));
        self.statics[slot.index()] = known;
    }

    /// Looks at a node again.
    ///
    /// `own` is a pod of the class for which room was made there, if it is about that pod alone.
    pub(super) fn refresh(
        &mut self,
        slot: u32,
        own: Option<&PodUid>,
        context: ClassContext<'_>,
        topology: &Topology,
    ) {
        let number = NodeSlot(slot);
        self.set_aside(number);
        let cell = std::mem::replace(&mut self.cells[index(slot)], Cell::EMPTY);
        self.invalid -= usize::from(cell.is_invalid);
        if let Some(verdict) = cell.verdict {
            self.reasons.remove(verdict);
        }
        let Some(node) = context.cluster.node(number) else {
            return;
        };
        let verdict = match self.statics[index(slot)].verdict {
            Some(verdict) => Some(verdict),
            None => self.changing_verdict(node, own, context),
        };
        let code = verdict.map(|verdict| self.reasons.get(verdict).code);
        let rank = context.order.rank(number);
        self.preemption_index
            .reset(rank, code == Some(Code::Unschedulable));
        if let Some(verdict) = verdict {
            self.reasons.add(verdict);
            self.cells[index(slot)].verdict = Some(verdict);
            return;
        }
        let own = self.own_score(slot, node, context);
        let key = self.group_key(slot, topology);
        let group = self.groups.intern(&key);
        let score = own.unwrap_or(0);
        self.groups.insert(group, slot, score);
        self.invalid += usize::from(own.is_none());
        self.cells[index(slot)] = Cell {
            group,
            score,
            is_invalid: own.is_none(),
            ..Cell::EMPTY
        };
    }

    fn changing_verdict(
        &mut self,
        node: &NodeState,
        own: Option<&PodUid>,
        context: ClassContext<'_>,
    ) -> Option<ReasonId> {
        let cycle = self.cycle(context);
        let filter = |node: &NodeState| {
            let filters = context.profile.filters.iter();
            let mut filters = filters.filter(|f| is_local(**f) && !is_static(**f));
            filters.find_map(|f| cycle.filter_by(*f, node, &NO_FILTER_STATE))
        };
        let with_nominated = match self.is_local {
            true => cycle.with_nominated(node, &NO_FILTER_STATE, own),
            false => None,
        };
        let rejection = with_nominated.and_then(|trial| filter(&trial.node));
        let rejection = rejection.or_else(|| filter(node))?;
        Some(self.reasons.intern(rejection))
    }

    /// The weighted scores that depend on the node alone; `None` if one is out of bounds.
    fn own_score(&self, slot: u32, node: &NodeState, context: ClassContext<'_>) -> Option<i64> {
        let cycle = self.cycle(context);
        let mut sum = 0i64;
        for (plugin, weight) in &context.profile.scores {
            let score = match plugin {
                ScorePlugin::ImageLocality => self.statics[index(slot)].images,
                ScorePlugin::NodeResourcesFit | ScorePlugin::NodeResourcesBalancedAllocation
                    if !cycle.skips_score(*plugin, &NO_SCORE_STATE) =>
                {
                    cycle.raw_score(*plugin, node, &NO_SCORE_STATE)
                }
                _ => continue,
            };
            if !(0..=MAX_NODE_SCORE).contains(&score) {
                return None;
            }
            sum = sum.wrapping_add(score.wrapping_mul(*weight));
        }
        Some(sum)
    }

    fn group_key(&self, slot: u32, topology: &Topology) -> Vec<i64> {
        let known = &self.statics[index(slot)];
        let mut key = Vec::with_capacity(KEY_PREFIX + self.counters.all.len());
        key.extend([known.taints, known.affinity]);
        for counter in &self.counters.all {
            let place = counter.place(slot, topology);
            let has_label = topology.key(counter.key).domain(slot) != ABSENT;
            key.push(match (counter.grain, counter.role) {
                // Soft constraints may count nodes without the label, and must distinguish them.
                (Grain::Domain, Role::SoftSpread(_)) if place != ABSENT => {
                    2 * i64::from(place) + i64::from(has_label)
                }
                _ if place == ABSENT => NO_LABEL,
                (Grain::Domain, _) => i64::from(place),
                (
                    Grain::Count,
                    Role::Affinity | Role::AntiAffinity | Role::ExistingAntiAffinity,
                ) => i64::from(counter.count(place) > 0),
                (Grain::Count | Grain::Node, _) => counter.count(place),
            });
        }
        key
    }
}

/// The constraints in force for a pod: its own, or the profile's for its owners.
fn spread_constraints(
    pod: &SchedulingPod,
    context: ClassContext<'_>,
) -> (Vec<SpreadConstraint>, Vec<SpreadConstraint>) {
    let ClassContext {
        cluster, profile, ..
    } = context;
    let filters = profile.filters.contains(&FilterPlugin::PodTopologySpread);
    let mut scores = profile.scores.iter();
    let scores = scores.any(|(plugin, _)| *plugin == ScorePlugin::PodTopologySpread);
    let (defaults, owners) = (&profile.spread, &cluster.owners);
    let hard = pod_topology_spread::hard_constraints(pod, defaults, owners).into_owned();
    let soft = pod_topology_spread::soft_constraints(pod, defaults, owners).into_owned();
    (
        if filters { hard } else { Vec::new() },
        if scores { soft } else { Vec::new() },
    )
}

/// Whether the verdict stays while the node's labels, taints and name do.
fn is_static(plugin: FilterPlugin) -> bool {
    matches!(
        plugin,
        FilterPlugin::NodeUnschedulable
            | FilterPlugin::NodeName
            | FilterPlugin::TaintToleration
            | FilterPlugin::NodeAffinity
    )
}

/// Whether the filter looks at the node alone.
pub(super) fn is_local(plugin: FilterPlugin) -> bool {
    !matches!(
        plugin,
        FilterPlugin::PodTopologySpread | FilterPlugin::InterPodAffinity
    )
}

fn index(number: u32) -> usize {
    usize::try_from(number).expect("32 bits fit in an index")
}
