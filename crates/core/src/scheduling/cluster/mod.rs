//! The cluster as the scheduler keeps it: nodes, the pods on them, and what else decides.
//!
//! A [`Cluster`] is built up from events, each applied in time that grows with the object and not
//! with the cluster. Every change of nodes and pods is returned to the caller as a [`Change`], so
//! that an index can be kept beside it.
//!
//! Reading order: `node` (one node and its sums), `order` (the order in which nodes are evaluated),
//! `images`, `budget` (disruption budgets), `owners` (services and controllers), `pods` (the events
//! about pods), `nodes` (those about nodes).

mod budget;
mod images;
mod node;
mod nodes;
mod order;
mod owners;
mod pods;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::object::identity::{NodeName, PodUid};
use crate::object::node::NodeView;

use super::pod::SchedulingPod;
use budget::Budgets;
use order::NodeTree;
use pods::Place;

pub use budget::DisruptionBudget;
pub use images::ImageStates;
pub use node::NodeState;
pub use owners::Owners;
pub use pods::Nomination;

/// Where a node is kept. Slots are dense, and those of removed nodes are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeSlot(pub u32);

impl NodeSlot {
    /// The slot as an index.
    pub fn index(self) -> usize {
        usize::try_from(self.0).expect("32 bits fit in an index")
    }
}

/// The change that an event made.
#[derive(Clone, Debug)]
pub enum Change {
    /// A node appeared. Pods that were bound to it before it was known are on it already.
    NodeAdded(NodeSlot),
    /// A node changed; its pods did not.
    NodeUpdated {
        /// Which.
        slot: NodeSlot,
        /// The node as it was.
        old: Arc<NodeView>,
    },
    /// A node is gone, and its slot free.
    NodeRemoved {
        /// Where it was.
        slot: NodeSlot,
        /// The node with its pods as it was.
        node: Box<NodeState>,
    },
    /// A pod came to a node.
    PodAdded {
        /// The node.
        slot: NodeSlot,
        /// The pod.
        pod: Arc<SchedulingPod>,
    },
    /// A pod left a node.
    PodRemoved {
        /// The node.
        slot: NodeSlot,
        /// The pod.
        pod: Arc<SchedulingPod>,
    },
    /// Room on a node is for other pending pods than before.
    NominationChanged(NodeSlot),
    /// Nothing about nodes, their pods and nominations: namespaces, owners, budgets.
    Other,
}

/// The state of the cluster that the scheduler knows.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    slots: Vec<Option<NodeState>>,
    free: Vec<NodeSlot>,
    by_name: BTreeMap<NodeName, NodeSlot>,
    tree: NodeTree,
    images: ImageStates,
    places: BTreeMap<PodUid, Place>,
    /// Pods bound to nodes that are not known, or not any more.
    homeless: BTreeMap<NodeName, Vec<Arc<SchedulingPod>>>,
    nominated: BTreeMap<NodeName, Vec<Arc<SchedulingPod>>>,
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
    namespace_version: u64,
    /// Services and controllers, which define what pods are of one kind.
    pub owners: Owners,
    budgets: Budgets,
}

impl Cluster {
    /// A cluster without anything in it.
    pub fn new() -> Cluster {
        Cluster::default()
    }

    /// The node in a slot, `None` if the slot is free.
    pub fn node(&self, slot: NodeSlot) -> Option<&NodeState> {
        self.slots.get(slot.index())?.as_ref()
    }

    /// The slot of a node.
    pub fn slot(&self, name: &NodeName) -> Option<NodeSlot> {
        self.by_name.get(name).copied()
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.by_name.len()
    }

    /// One more than the highest slot ever used.
    pub fn slot_count(&self) -> u32 {
        u32::try_from(self.slots.len()).expect("slots are numbered with 32 bits")
    }

    /// Nodes in slot order.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeSlot, &NodeState)> {
        let slots = (0..self.slot_count()).map(NodeSlot);
        slots.filter_map(|slot| Some((slot, self.node(slot)?)))
    }

    /// Nodes in the order in which upstream evaluates them: round robin over the zones.
    pub fn node_order(&self) -> Vec<NodeSlot> {
        self.tree.list()
    }

    /// Images by name.
    pub fn images(&self) -> &ImageStates {
        &self.images
    }

    /// Pending pods for which room was made on the node, in the order of nomination.
    pub fn nominated_pods(&self, node: &NodeName) -> &[Arc<SchedulingPod>] {
        self.nominated.get(node).map_or(&[], Vec::as_slice)
    }

    /// Nodes on which room was made, with the pods that it is for.
    pub fn nominations(&self) -> impl Iterator<Item = (&NodeName, &[Arc<SchedulingPod>])> {
        let all = self.nominated.iter();
        all.map(|(node, pods)| (node, pods.as_slice()))
    }

    /// A number that changes with the labels of namespaces.
    pub fn namespace_version(&self) -> u64 {
        self.namespace_version
    }

    /// Labels of a namespace; an unknown one has none.
    pub fn namespace_labels(&self, namespace: &str) -> &BTreeMap<String, String> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        self.namespaces.get(namespace).unwrap_or(&NONE)
    }

    /// Namespaces with their labels.
    pub fn namespaces(&self) -> impl Iterator<Item = (&str, &BTreeMap<String, String>)> {
        let all = self.namespaces.iter();
        all.map(|(name, labels)| (name.as_str(), labels))
    }

    /// Learns a namespace or its new labels.
    pub fn set_namespace(&mut self, name: &str, labels: BTreeMap<String, String>) -> Change {
        let old = self.namespaces.insert(name.to_owned(), labels);
        if old.as_ref() != self.namespaces.get(name) {
            self.namespace_version += 1;
        }
        Change::Other
    }

    /// Removes a namespace.
    pub fn remove_namespace(&mut self, name: &str) -> Change {
        if self.namespaces.remove(name).is_some() {
            self.namespace_version += 1;
        }
        Change::Other
    }

    /// Disruption budgets, by namespace and name.
    pub fn budgets(&self) -> impl Iterator<Item = &DisruptionBudget> {
        self.budgets.iter()
    }

    /// Disruption budgets for the pods of a namespace, by name.
    pub fn budgets_in(&self, namespace: &str) -> impl Iterator<Item = &DisruptionBudget> {
        self.budgets.in_namespace(namespace)
    }

    /// A number that changes with the disruption budgets.
    pub fn budget_version(&self) -> u64 {
        self.budgets.version()
    }

    /// Of the budgets that have changed since that version, the least that one allows or allowed.
    ///
    /// `None` if budgets came, went or cover other pods than before, or if the log does not go back
    /// so far.
    pub fn least_allowed_since(&self, budget_version: u64) -> Option<i32> {
        self.budgets.least_allowed_since(budget_version)
    }

    /// Learns a disruption budget or its new state.
    pub fn set_budget(&mut self, budget: DisruptionBudget) -> Change {
        self.budgets.set(budget);
        Change::Other
    }

    /// Removes a disruption budget.
    pub fn remove_budget(&mut self, namespace: &str, name: &str) -> Change {
        self.budgets.remove(namespace, name);
        Change::Other
    }

    fn node_mut(&mut self, slot: NodeSlot) -> Option<&mut NodeState> {
        self.slots.get_mut(slot.index())?.as_mut()
    }
}

#[cfg(test)]
mod tests;
