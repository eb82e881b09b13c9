//! Events about nodes.

use std::sync::Arc;

use crate::object::identity::NodeName;
use crate::object::node::NodeView;

use super::{Change, Cluster, NodeSlot, NodeState};

impl Cluster {
    /// Learns a node or its new state.
    pub fn set_node(&mut self, view: impl Into<Arc<NodeView>>) -> Change {
        let view = view.into();
        let known = self.slot(&view.name);
        if let Some(slot) = known
            && let Some(node) = self.slots[slot.index()].as_mut()
        {
            let old = Arc::clone(&node.view);
            node.set_view(Arc::clone(&view));
            // In upstream's order: an image that only this node has takes its new size.
            self.images.remove_node(&old);
            self.images.add_node(&view);
            let (old_zone, new_zone) = (old.zone_key(), view.zone_key());
            if old_zone != new_zone {
                self.tree.remove(&old_zone, slot);
                self.tree.add(new_zone, slot);
            }
            return Change::NodeUpdated { slot, old };
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            let slot = NodeSlot(self.slot_count());
            self.slots.push(None);
            slot
        });
        let mut node = NodeState::new(Arc::clone(&view));
        for pod in self.homeless.remove(&view.name).into_iter().flatten() {
            node.add_pod(pod);
        }
        self.images.add_node(&view);
        self.tree.add(view.zone_key(), slot);
        self.by_name.insert(view.name.clone(), slot);
        self.slots[slot.index()] = Some(node);
        Change::NodeAdded(slot)
    }

    /// Removes a node. Its pods are kept until they are removed too, in case it comes back.
    pub fn remove_node(&mut self, name: &NodeName) -> Option<Change> {
        let slot = self.by_name.remove(name)?;
        let node = self.slots[slot.index()].take()?;
        self.tree.remove(&node.view.zone_key(), slot);
        self.images.remove_node(&node.view);
        self.free.push(slot);
        if !node.pods().is_empty() {
            let pods = node.pods().to_vec();
            self.homeless.insert(name.clone(), pods);
        }
        let node = Box::new(node);
        Some(Change::NodeRemoved { slot, node })
    }
}
