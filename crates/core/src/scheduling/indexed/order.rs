//! The node order, kept while no node comes, goes or changes its zone.

use crate::scheduling::cluster::{Cluster, NodeSlot};

/// Nodes by their rank in the node order, and back.
#[derive(Debug, Default)]
pub(super) struct Order {
    slots: Vec<NodeSlot>,
    ranks: Vec<u32>,
}

impl Order {
    pub(super) fn new(cluster: &Cluster) -> Order {
        let slots = cluster.node_order();
        let slot_count = usize::try_from(cluster.slot_count()).expect("32 bits fit in an index");
        let mut ranks = vec![0; slot_count];
        for (rank, slot) in (0u32..).zip(&slots) {
            ranks[slot.index()] = rank;
        }
        Order { slots, ranks }
    }

    /// Number of nodes.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The nodes, in order.
    pub(super) fn slots(&self) -> &[NodeSlot] {
        &self.slots
    }

    /// The rank of a node that is there.
    pub(super) fn rank(&self, slot: NodeSlot) -> usize {
        usize::try_from(self.ranks[slot.index()]).expect("32 bits fit in an index")
    }
}
