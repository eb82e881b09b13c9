//! Numbers of pods by domain, kept instead of counted.
//!
//! A class of pods depends on other pods through its spread constraints and affinity terms, and
//! through the terms of others that select it. Each such dependency is a [`Counter`]: how many
//! pods, or how much weight, in each domain of a topology key. What a pod adds to which counters
//! depends on its kind alone, so it is computed once per kind.

use std::collections::BTreeMap;

use crate::scheduling::cluster::Cluster;
use crate::scheduling::plugin_names::{FilterPlugin, ScorePlugin};
use crate::scheduling::plugins::inter_pod_affinity::{
    incoming_term_matches, with_selected_namespaces,
};
use crate::scheduling::plugins::pod_topology_spread::is_counted;
use crate::scheduling::pod::{AffinityTerm, SchedulingPod, SpreadConstraint};
use crate::scheduling::profile::{HOSTNAME_LABEL, Profile};

use super::topology::{ABSENT, KeyId, Topology};

/// The purpose of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The hard spread constraint of that number.
    HardSpread(usize),
    /// Pods that match all required affinity terms.
    Affinity,
    /// Pods that match a required anti-affinity term.
    AntiAffinity,
    /// Pods with a required anti-affinity term that means the class.
    ExistingAntiAffinity,
    /// The soft spread constraint of that number.
    SoftSpread(usize),
    /// The score of the domain by preferred terms, the class's and others'.
    Worth,
}

impl Role {
    /// Whether nodes can be rejected for it.
    pub(super) fn rejects(self) -> bool {
        match self {
            Role::HardSpread(_)
            | Role::Affinity
            | Role::AntiAffinity
            | Role::ExistingAntiAffinity => true,
            Role::SoftSpread(_) | Role::Worth => false,
        }
    }
}

/// How a counter divides the nodes into groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grain {
    /// By domain: many nodes each, whose count changes together.
    Domain,
    /// By count: domains of few nodes, which change groups when their count changes.
    Count,
    /// By the count on the node itself.
    Node,
}

/// Numbers by domain, or by node.
#[derive(Debug)]
pub(super) struct Counter {
    pub(super) role: Role,
    pub(super) key: KeyId,
    pub(super) grain: Grain,
    counts: Vec<i64>,
    /// By slot, whether the node's pods count; empty if all do.
    included: Vec<bool>,
    /// Of hard spread constraints: the domains that exist, by their count.
    domains: Option<Domains>,
    /// Of soft ones over zones and the like: the domain of nodes without the label.
    unlabelled: Option<u32>,
}

/// The domains that a hard spread constraint balances.
#[derive(Debug, Default)]
struct Domains {
    nodes: Vec<u32>,
    existing: usize,
    by_count: BTreeMap<i64, u32>,
}

/// What one pod of a kind adds to a counter, on a node that has the label and is included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effect {
    pub(super) counter: usize,
    pub(super) weight: i64,
}

/// A key has domains of few nodes if there are at most so many nodes to a domain.
const FEW_NODES: usize = 8;

impl Counter {
    fn new(role: Role, key: KeyId, grain: Grain) -> Counter {
        Counter {
            role,
            key,
            grain,
            counts: Vec::new(),
            included: Vec::new(),
            domains: None,
            unlabelled: None,
        }
    }

    /// The place of a node's count; `ABSENT` if it has none.
    pub(super) fn place(&self, slot: u32, topology: &Topology) -> u32 {
        let domain = topology.key(self.key).domain(slot);
        match (self.grain, self.unlabelled) {
            (_, Some(unlabelled)) if domain == ABSENT => unlabelled,
            (Grain::Node, _) if domain != ABSENT => slot,
            _ => domain,
        }
    }

    /// The count at a place.
    pub(super) fn count(&self, place: u32) -> i64 {
        self.counts.get(index(place)).copied().unwrap_or(0)
    }

    /// Adds to the count of a node; the place that changed, if any.
    pub(super) fn add(&mut self, slot: u32, amount: i64, topology: &Topology) -> Option<u32> {
        let place = self.place(slot, topology);
        let is_excluded = !self.included.is_empty() && !self.is_included(slot);
        if place == ABSENT || is_excluded {
            return None;
        }
        if self.counts.len() <= index(place) {
            self.counts.resize(index(place) + 1, 0);
        }
        let count = &mut self.counts[index(place)];
        let old = *count;
        *count = old.wrapping_add(amount);
        let new = *count;
        if let Some(domains) = &mut self.domains {
            domains.change(old, new);
        }
        Some(place)
    }

    fn is_included(&self, slot: u32) -> bool {
        self.included.get(index(slot)).copied().unwrap_or(false)
    }

    /// Sets which nodes' pods count, before anything is counted.
    pub(super) fn include(&mut self, slot: u32, topology: &Topology) {
        if self.included.len() <= index(slot) {
            self.included.resize(index(slot) + 1, false);
        }
        self.included[index(slot)] = true;
        let place = self.place(slot, topology);
        if let Some(domains) = &mut self.domains {
            domains.add_node(place);
        }
    }

    /// Makes sure that including no node at all is not taken for including every one.
    pub(super) fn begin_inclusion(&mut self, slots: u32) {
        self.included = vec![false; index(slots)];
    }

    /// The least count of a hard constraint's domains; `None` if there are none.
    pub(super) fn least(&self) -> Option<i64> {
        let domains = self.domains.as_ref()?;
        domains.by_count.keys().next().copied()
    }

    /// How many domains a hard constraint has.
    pub(super) fn domain_count(&self) -> usize {
        self.domains.as_ref().map_or(0, |domains| domains.existing)
    }

    /// The domains of a hard constraint, with their counts.
    pub(super) fn spread_counts(&self, topology: &Topology) -> BTreeMap<String, i64> {
        let key = topology.key(self.key);
        let nodes = self.domains.iter().flat_map(|domains| domains.nodes.iter());
        let existing = (0u32..).zip(nodes).filter(|(_, nodes)| **nodes > 0);
        existing
            .map(|(domain, _)| (key.value(domain).to_owned(), self.count(domain)))
            .collect()
    }

    /// Domains with a count other than zero.
    pub(super) fn non_zero(&self) -> impl Iterator<Item = (u32, i64)> {
        let counts = (0u32..).zip(&self.counts);
        counts
            .filter(|(_, n)| **n != 0)
            .map(|(place, n)| (place, *n))
    }
}

impl Domains {
    fn add_node(&mut self, domain: u32) {
        if domain == ABSENT {
            return;
        }
        if self.nodes.len() <= index(domain) {
            self.nodes.resize(index(domain) + 1, 0);
        }
        let nodes = &mut self.nodes[index(domain)];
        if *nodes == 0 {
            self.existing += 1;
            *self.by_count.entry(0).or_insert(0) += 1;
        }
        *nodes += 1;
    }

    fn change(&mut self, old: i64, new: i64) {
        if let Some(domains) = self.by_count.get_mut(&old) {
            *domains -= 1;
            if *domains == 0 {
                self.by_count.remove(&old);
            }
        }
        *self.by_count.entry(new).or_insert(0) += 1;
    }
}

/// The constraints of a class on other pods, with namespaces looked up.
#[derive(Debug)]
pub(super) struct InterPodConstraints {
    pub(super) hard: Vec<SpreadConstraint>,
    pub(super) soft: Vec<SpreadConstraint>,
    /// Whether nodes that lack the key of a soft constraint are left out of spreading.
    pub(super) requires_all_keys: bool,
    affinity: Vec<AffinityTerm>,
    anti_affinity: Vec<AffinityTerm>,
    preferences: Vec<(AffinityTerm, i64)>,
    namespace_labels: BTreeMap<String, String>,
    hard_pod_affinity_weight: i64,
    filters_by_affinity: bool,
    scores_by_affinity: bool,
}

/// The addition of a kind, before counters are looked up.
struct Addition<'a> {
    role: Role,
    key: &'a str,
    weight: i64,
}

impl InterPodConstraints {
    pub(super) fn new(
        pod: &SchedulingPod,
        profile: &Profile,
        cluster: &Cluster,
        hard: Vec<SpreadConstraint>,
        soft: Vec<SpreadConstraint>,
    ) -> InterPodConstraints {
        let filters = |plugin| profile.filters.contains(&plugin);
        let scores = |plugin| profile.scores.iter().any(|(own, _)| *own == plugin);
        let args = profile.inter_pod_affinity;
        let filters_by_affinity = filters(FilterPlugin::InterPodAffinity);
        let scores_by_affinity = scores(ScorePlugin::InterPodAffinity)
            && (!args.ignore_preferred_terms_of_existing_pods || pod.affinity.has_preferences());
        let expand = |term: &AffinityTerm| with_selected_namespaces(term, cluster);
        let required = |terms: &[AffinityTerm]| -> Vec<AffinityTerm> {
            let terms = terms.iter().filter(|_| filters_by_affinity);
            terms.map(expand).collect()
        };
        let affinity = &pod.affinity;
        let for_it = affinity
            .preferred
            .iter()
            .map(|w| (&w.term, i64::from(w.weight)));
        let against = affinity.preferred_anti.iter();
        let against = against.map(|w| (&w.term, -i64::from(w.weight)));
        let preferences = for_it.chain(against).filter(|_| scores_by_affinity);
        InterPodConstraints {
            hard,
            soft,
            requires_all_keys: pod.spread.is_stated || !profile.spread.is_system,
            affinity: required(&affinity.required),
            anti_affinity: required(&affinity.required_anti),
            preferences: preferences.map(|(term, w)| (expand(term), w)).collect(),
            namespace_labels: cluster.namespace_labels(&pod.pod_ref.namespace).clone(),
            hard_pod_affinity_weight: i64::from(args.hard_pod_affinity_weight),
            filters_by_affinity,
            scores_by_affinity,
        }
    }

    /// Whether the class has required affinity terms and a pod matches all of them.
    pub(super) fn matches_all_affinity_terms(&self, other: &SchedulingPod) -> bool {
        let mut terms = self.affinity.iter();
        !self.affinity.is_empty() && terms.all(|term| incoming_term_matches(term, other))
    }

    /// The counters that the class itself needs, independent of other pods.
    fn own(&self) -> impl Iterator<Item = (Role, &str)> {
        let hard = self.hard.iter().enumerate();
        let hard = hard.map(|(i, c)| (Role::HardSpread(i), c.topology_key.as_str()));
        let soft = self.soft.iter().enumerate();
        let soft = soft.map(|(i, c)| (Role::SoftSpread(i), c.topology_key.as_str()));
        let near = self.affinity.iter();
        let near = near.map(|term| (Role::Affinity, term.topology_key.as_str()));
        let far = self.anti_affinity.iter();
        let far = far.map(|term| (Role::AntiAffinity, term.topology_key.as_str()));
        let worth = self.preferences.iter();
        let worth = worth.map(|(term, _)| (Role::Worth, term.topology_key.as_str()));
        hard.chain(near).chain(far).chain(soft).chain(worth)
    }

    /// The additions of an existing pod to counters.
    fn additions<'a>(
        &'a self,
        pod: &SchedulingPod,
        existing: &'a SchedulingPod,
    ) -> Vec<Addition<'a>> {
        let mut additions = Vec::new();
        let mut add = |role: Role, key: &'a str, weight: i64| {
            additions.push(Addition { role, key, weight });
        };
        let namespace = &pod.pod_ref.namespace;
        for (i, constraint) in self.hard.iter().enumerate() {
            if is_counted(constraint, namespace, existing) {
                add(Role::HardSpread(i), &constraint.topology_key, 1);
            }
        }
        for (i, constraint) in self.soft.iter().enumerate() {
            if is_counted(constraint, namespace, existing) {
                add(Role::SoftSpread(i), &constraint.topology_key, 1);
            }
        }
        if self.matches_all_affinity_terms(existing) {
            for term in &self.affinity {
                add(Role::Affinity, &term.topology_key, 1);
            }
        }
        for term in &self.anti_affinity {
            if incoming_term_matches(term, existing) {
                add(Role::AntiAffinity, &term.topology_key, 1);
            }
        }
        for (term, weight) in &self.preferences {
            if incoming_term_matches(term, existing) {
                add(Role::Worth, &term.topology_key, *weight);
            }
        }
        self.add_terms_of(pod, existing, &mut add);
        additions
    }

    /// The effect of the existing pod's own terms on the class.
    fn add_terms_of<'a>(
        &self,
        pod: &SchedulingPod,
        existing: &'a SchedulingPod,
        add: &mut impl FnMut(Role, &'a str, i64),
    ) {
        let means_pod =
            |term: &AffinityTerm| term.matches(&pod.pod_ref, &pod.labels, &self.namespace_labels);
        let affinity = &existing.affinity;
        if self.filters_by_affinity {
            for term in affinity.required_anti.iter().filter(|t| means_pod(t)) {
                add(Role::ExistingAntiAffinity, &term.topology_key, 1);
            }
        }
        if !self.scores_by_affinity {
            return;
        }
        if self.hard_pod_affinity_weight > 0 {
            for term in affinity.required.iter().filter(|t| means_pod(t)) {
                add(
                    Role::Worth,
                    &term.topology_key,
                    self.hard_pod_affinity_weight,
                );
            }
        }
        for weighted in affinity.preferred.iter().filter(|w| means_pod(&w.term)) {
            let weight = i64::from(weighted.weight);
            add(Role::Worth, &weighted.term.topology_key, weight);
        }
        for weighted in affinity
            .preferred_anti
            .iter()
            .filter(|w| means_pod(&w.term))
        {
            let weight = -i64::from(weighted.weight);
            add(Role::Worth, &weighted.term.topology_key, weight);
        }
    }
}

/// The counters of a class.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) all: Vec<Counter>,
}

/// A pod has a term with a key that had no counter; the class has to be rebuilt.
#[derive(Debug)]
pub(super) struct MissingCounter;

impl Counters {
    /// Counters for the class's own questions and for those of the pods that are there.
    pub(super) fn new<'a>(
        pod: &SchedulingPod,
        constraints: &InterPodConstraints,
        with_terms: impl Iterator<Item = &'a SchedulingPod>,
        cluster: &Cluster,
        topology: &mut Topology,
    ) -> Counters {
        let mut counters = Counters::default();
        for (role, key) in constraints.own() {
            counters.register(role, key, cluster, topology);
        }
        for existing in with_terms {
            constraints.add_terms_of(pod, existing, &mut |role, key, _| {
                counters.register(role, key, cluster, topology);
            });
        }
        counters
    }

    fn register(&mut self, role: Role, key: &str, cluster: &Cluster, topology: &mut Topology) {
        let is_hostname = key == HOSTNAME_LABEL;
        let key = topology.register(key, cluster);
        if self.find(role, key).is_some() {
            return;
        }
        let domains = topology.key(key).domain_count();
        let grain = match role {
            Role::SoftSpread(_) if is_hostname => Grain::Node,
            // Its weight depends on how many domains there are, so they must be distinct.
            Role::SoftSpread(_) => Grain::Domain,
            _ if domains * FEW_NODES >= cluster.node_count() => Grain::Count,
            _ => Grain::Domain,
        };
        let mut counter = Counter::new(role, key, grain);
        if matches!(role, Role::HardSpread(_)) {
            counter.domains = Some(Domains::default());
        }
        self.all.push(counter);
    }

    /// Lets nodes without the label count as a domain of their own, under the empty value.
    pub(super) fn count_unlabelled(&mut self, topology: &Topology) {
        for counter in &mut self.all {
            if matches!(counter.role, Role::SoftSpread(_)) && counter.grain == Grain::Domain {
                let key = topology.key(counter.key);
                let empty = key.domain_of_value("");
                let next = u32::try_from(key.domain_count()).unwrap_or(ABSENT);
                counter.unlabelled = Some(if empty == ABSENT { next } else { empty });
            }
        }
    }

    fn find(&self, role: Role, key: KeyId) -> Option<usize> {
        let mut all = self.all.iter();
        all.position(|counter| counter.role == role && counter.key == key)
    }

    /// The additions of a pod to counters.
    pub(super) fn effects_of(
        &self,
        pod: &SchedulingPod,
        constraints: &InterPodConstraints,
        existing: &SchedulingPod,
        topology: &Topology,
    ) -> Result<Box<[Effect]>, MissingCounter> {
        let additions = constraints.additions(pod, existing).into_iter();
        additions
            .map(|Addition { role, key, weight }| {
                let key = topology.find(key).ok_or(MissingCounter)?;
                let counter = self.find(role, key).ok_or(MissingCounter)?;
                Ok(Effect { counter, weight })
            })
            .collect()
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).expect("32 bits fit in an index")
}
