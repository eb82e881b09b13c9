//! The order in which nodes are evaluated.

use super::NodeSlot;

/// Nodes by zone, zones in the order in which they appeared.
///
/// Matches v1.36 pkg/scheduler/backend/cache/node_tree.go.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeTree {
    zones: Vec<Zone>,
}

#[derive(Clone, Debug)]
struct Zone {
    key: String,
    nodes: Vec<NodeSlot>,
}

impl NodeTree {
    pub(super) fn add(&mut self, zone: String, slot: NodeSlot) {
        match self.zones.iter_mut().find(|known| known.key == zone) {
            Some(known) => known.nodes.push(slot),
            None => self.zones.push(Zone {
                key: zone,
                nodes: vec![slot],
            }),
        }
    }

    pub(super) fn remove(&mut self, zone: &str, slot: NodeSlot) {
        let Some(index) = self.zones.iter().position(|known| known.key == zone) else {
            return;
        };
        let nodes = &mut self.zones[index].nodes;
        nodes.retain(|known| *known != slot);
        if nodes.is_empty() {
            self.zones.remove(index);
        }
    }

    /// The first node of each zone, then the second of each, and so on.
    pub(super) fn list(&self) -> Vec<NodeSlot> {
        let mut list = Vec::new();
        let mut zones: Vec<&Zone> = self.zones.iter().collect();
        let mut round = 0;
        while !zones.is_empty() {
            zones.retain(|zone| round < zone.nodes.len());
            list.extend(zones.iter().map(|zone| zone.nodes[round]));
            round += 1;
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_take_turns_until_each_is_exhausted() {
        let mut tree = NodeTree::default();
        for (slot, zone) in ["b", "b", "a", "b", "", "a"].into_iter().enumerate() {
            let slot = NodeSlot(u32::try_from(slot).unwrap());
            tree.add(zone.to_owned(), slot);
        }
        let list = |tree: &NodeTree| -> Vec<u32> { tree.list().iter().map(|s| s.0).collect() };
        assert_eq!(list(&tree), [0, 2, 4, 1, 5, 3]);
        tree.remove("", NodeSlot(4));
        tree.remove("b", NodeSlot(0));
        tree.add(String::new(), NodeSlot(6));
        assert_eq!(list(&tree), [1, 2, 6, 3, 5]);
    }
}
