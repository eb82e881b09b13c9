//! The loop as a value: inputs in, actions out, with the time passed in.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::object::identity::{NodeName, PodRef, PodUid};
use plimsoll_core::scheduling::configuration::Configuration;
use plimsoll_core::scheduling::decision::Placement;
use plimsoll_core::scheduling::indexed::Engine;
use plimsoll_core::scheduling::queue::{NodeFacts, QueuedPod, SchedulingQueue, Time};

use super::action::Action;
use super::input::{Input, Name};
use super::known_pod::KnownPod;
use super::metrics::{Metrics, ObjectCounts};
use super::preemption::Preempting;
use super::records::Records;
use super::store::Store;

/// The scheduler, without its connection to the world.
///
/// The owner passes every input to [`observe`](Loop::observe), lets it try pods with
/// [`attempt`](Loop::attempt) for as long as that returns true, calls [`flush`](Loop::flush) at
/// [`next_deadline`](Loop::next_deadline), and carries out the [actions](Loop::take_actions).
#[derive(Debug)]
pub struct Loop {
    pub(super) engine: Engine,
    pub(super) queue: SchedulingQueue,
    pub(super) pods: Store<PodRef, KnownPod>,
    pub(super) nodes: Store<NodeName, Arc<NodeFacts>>,
    pub(super) namespaces: Store<String, ()>,
    pub(super) budgets: Store<Name, ()>,
    pub(super) services: Store<Name, ()>,
    pub(super) replication_controllers: Store<Name, ()>,
    pub(super) replica_sets: Store<Name, ()>,
    pub(super) stateful_sets: Store<Name, ()>,
    /// Bindings under way.
    pub(super) binding: BTreeMap<PodUid, Binding>,
    /// Preemptions under way, by preemptor.
    pub(super) preempting: BTreeMap<PodUid, Preempting>,
    pub(super) actions: Vec<Action>,
    /// Writes under way that will be answered.
    pub(super) writes: usize,
    pub(super) max_writes: usize,
    pub(super) metrics: Arc<Metrics>,
    pub(super) records: Arc<Records>,
}

/// A binding under way.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) queued: QueuedPod,
    pub(super) node: NodeName,
    pub(super) placement: Placement,
    pub(super) profile: usize,
    pub(super) resource_version: Arc<str>,
    pub(super) started: Time,
}

impl Loop {
    /// A loop that knows nothing yet. Ties are broken by the seed; no pod is tried while
    /// `max_writes` writes are under way.
    pub fn new(configuration: &Configuration, seed: u64, max_writes: usize, now: Time) -> Loop {
        let profiles = configuration.profiles.clone();
        let names = profiles
            .iter()
            .map(|profile| profile.scheduler_name.as_str());
        Loop {
            metrics: Arc::new(Metrics::new(names)),
            engine: Engine::new(profiles, seed),
            queue: SchedulingQueue::new(configuration.queue_settings(), now),
            pods: Store::new(),
            nodes: Store::new(),
            namespaces: Store::new(),
            budgets: Store::new(),
            services: Store::new(),
            replication_controllers: Store::new(),
            replica_sets: Store::new(),
            stateful_sets: Store::new(),
            binding: BTreeMap::new(),
            preempting: BTreeMap::new(),
            actions: Vec::new(),
            writes: 0,
            max_writes,
            records: Arc::new(Records::default()),
        }
    }

    /// Counts what happens.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The latest decisions.
    pub fn records(&self) -> &Arc<Records> {
        &self.records
    }

    /// The engine with all that is known of the cluster.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The queue.
    pub fn queue(&self) -> &SchedulingQueue {
        &self.queue
    }

    /// Whether all lists have been seen, so that pods may be tried.
    pub fn is_synced(&self) -> bool {
        self.pods.is_listed()
            && self.nodes.is_listed()
            && self.namespaces.is_listed()
            && self.budgets.is_listed()
            && self.services.is_listed()
            && self.replication_controllers.is_listed()
            && self.replica_sets.is_listed()
            && self.stateful_sets.is_listed()
    }

    /// Observes an input.
    pub fn observe(&mut self, input: Input, now: Time) {
        match input {
            Input::Pod(seen) => self.on_pod(seen, now),
            Input::Node(seen) => self.on_node(seen, now),
            Input::Bound { uid, result } => {
                self.writes = self.writes.saturating_sub(1);
                self.on_bound(&uid, result, now);
            }
            Input::Patched {
                pod_ref,
                is_written,
            } => {
                self.writes = self.writes.saturating_sub(1);
                self.on_patched(&pod_ref, is_written);
            }
            Input::Evicted {
                preemptor,
                victim,
                outcome,
            } => {
                self.writes = self.writes.saturating_sub(1);
                self.on_evicted(&preemptor, &victim, outcome, now);
            }
            other => self.on_other(other),
        }
    }

    /// Does what the passing of time demands.
    pub fn flush(&mut self, now: Time) {
        self.queue.flush(now);
    }

    /// When [`flush`](Loop::flush) has something to do at the latest.
    pub fn next_deadline(&self) -> Option<Time> {
        self.queue.next_deadline()
    }

    /// The pending actions, in order.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Brings the metrics that describe a state up to date.
    pub fn publish(&self) {
        self.metrics
            .queue(&self.queue.sizes(), self.queue.incoming());
        self.metrics.kept(ObjectCounts {
            nodes: self.nodes.len(),
            pods: self.pods.len(),
            assumed_pods: self.binding.len(),
        });
    }

    /// Brings the metric of unschedulable pods by plugin up to date, which takes looking at all of
    /// them.
    pub fn publish_unschedulable(&self) {
        let mut counts = BTreeMap::<(usize, &'static str), usize>::new();
        for (_, queued) in self.queue.pending() {
            if let Some(profile) = self.engine.profile_of(&queued.pod) {
                for plugin in queued.rejectors.iter() {
                    *counts.entry((profile, plugin.as_str())).or_default() += 1;
                }
            }
        }
        self.metrics.unschedulable(counts);
    }

    /// Orders a write that will be answered.
    pub(super) fn write(&mut self, action: Action) {
        self.writes += 1;
        self.actions.push(action);
    }
}
