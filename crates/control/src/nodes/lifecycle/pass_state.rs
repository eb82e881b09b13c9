//! The state that the loop keeps from pass to pass.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use plimsoll_core::lifecycle::node_health::Health;
use plimsoll_core::lifecycle::taint_queue::TaintQueue;
use plimsoll_core::lifecycle::zone::{Disruption, Rates, ZoneHealth, Zones};
use plimsoll_core::object::identity::NodeName;
use plimsoll_core::object::timestamp::Timestamp;

use super::{name_of, zone_of};

#[derive(Debug)]
pub(super) struct Record {
    rates: Rates,
    /// Names of the nodes seen in the last pass, with their uids.
    known: BTreeMap<String, Option<String>>,
    health: BTreeMap<String, Health>,
    zones: Zones,
    queues: BTreeMap<String, TaintQueue>,
    /// Nodes whose pods could not all be marked as not ready.
    pub(super) unmarked: BTreeSet<String>,
}

/// Nodes that came and went since the last pass.
#[derive(Debug, Default)]
pub(super) struct NodeChanges {
    pub(super) added: Vec<Arc<Node>>,
    /// Names and uids.
    pub(super) deleted: Vec<(String, Option<String>)>,
}

impl Record {
    pub(super) fn new(rates: Rates) -> Record {
        Record {
            rates,
            known: BTreeMap::new(),
            health: BTreeMap::new(),
            zones: Zones::default(),
            queues: BTreeMap::new(),
            unmarked: BTreeSet::new(),
        }
    }

    /// Compares the nodes with those of the last pass. Every zone there is gets a queue; what was
    /// remembered of nodes that are gone is forgotten.
    pub(super) fn compare_nodes(&mut self, nodes: &[Arc<Node>]) -> NodeChanges {
        let mut node_changes = NodeChanges::default();
        let mut names = BTreeSet::new();
        for node in nodes {
            names.insert(name_of(node));
            let zone = zone_of(node);
            if !self.zones.contains(&zone) {
                self.zones.add(&zone);
                self.queues.insert(zone, TaintQueue::new(self.rates.normal));
            }
            if !self.known.contains_key(name_of(node)) {
                let uid = node.metadata.uid.clone();
                self.known.insert(name_of(node).to_owned(), uid);
                node_changes.added.push(Arc::clone(node));
            }
        }
        self.known.retain(|name, uid| {
            let is_there = names.contains(name.as_str());
            if !is_there {
                node_changes.deleted.push((name.clone(), uid.take()));
            }
            is_there
        });
        for (name, _) in &node_changes.deleted {
            self.health.remove(name);
            self.unmarked.remove(name);
            let name = NodeName::from(name.as_str());
            for queue in self.queues.values_mut() {
                queue.remove(&name);
            }
        }
        node_changes
    }

    pub(super) fn health(&self, node: &str) -> Option<&Health> {
        self.health.get(node)
    }

    pub(super) fn set_health(&mut self, node: &str, health: Health) {
        self.health.insert(node.to_owned(), health);
    }

    /// Queues a node for its `NoExecute` taint. One that still lacks it is queued again in every
    /// pass, behind those that came later, as it is upstream.
    pub(super) fn queue(&mut self, node: &Node, is_tainted: bool, now: Timestamp) {
        let name = NodeName::from(name_of(node));
        if let Some(queue) = self.queues.get_mut(&zone_of(node)) {
            if !is_tainted {
                queue.remove(&name);
            }
            queue.add(name, now);
        }
    }

    pub(super) fn unqueue(&mut self, node: &Node) {
        if let Some(queue) = self.queues.get_mut(&zone_of(node)) {
            queue.remove(&NodeName::from(name_of(node)));
        }
    }

    /// Takes the next node to be tainted, with its zone.
    pub(super) fn take(&mut self, now: Timestamp) -> Option<(String, NodeName)> {
        let mut queues = self.queues.iter_mut();
        queues.find_map(|(zone, queue)| Some((zone.clone(), queue.take(now)?)))
    }

    pub(super) fn queue_of(&mut self, zone: &str) -> Option<&mut TaintQueue> {
        self.queues.get_mut(zone)
    }

    /// Acts on the state of the zones. Returns whether all nodes are silent, in
    /// which case no node is to be given up.
    pub(super) fn step_zones(
        &mut self,
        zones: &BTreeMap<String, ZoneHealth>,
        now: Timestamp,
    ) -> bool {
        match self.zones.step(zones, self.rates) {
            Disruption::AllGone => {
                for queue in self.queues.values_mut() {
                    queue.set_rate(0.0, now);
                }
                return true;
            }
            Disruption::Back(rates) => {
                for health in self.health.values_mut() {
                    health.reset(now);
                }
                self.set_rates(rates, now);
            }
            Disruption::Rates(rates) => self.set_rates(rates, now),
        }
        let zones = &self.zones;
        self.queues.retain(|zone, _| zones.contains(zone));
        false
    }

    fn set_rates(&mut self, rates: Vec<(String, f32)>, now: Timestamp) {
        for (zone, rate) in rates {
            let normal = self.rates.normal;
            let queue = self.queues.entry(zone);
            let queue = queue.or_insert_with(|| TaintQueue::new(normal));
            queue.set_rate(rate, now);
        }
    }
}
