//! Which images are on how many nodes.

use std::collections::BTreeMap;

use crate::object::node::NodeView;

/// Images by name.
///
/// Matches v1.36 pkg/scheduler/backend/cache/cache.go, `addNodeImageStates`.
#[derive(Clone, Debug, Default)]
pub struct ImageStates(BTreeMap<String, ImageState>);

#[derive(Clone, Copy, Debug)]
struct ImageState {
    size: i64,
    nodes: u32,
}

impl ImageStates {
    pub(super) fn add_node(&mut self, node: &NodeView) {
        for (name, size) in &node.images {
            match self.0.get_mut(name) {
                // The size that the first node reported stays for all.
                Some(state) => state.nodes += 1,
                None => {
                    let state = ImageState {
                        size: *size,
                        nodes: 1,
                    };
                    self.0.insert(name.clone(), state);
                }
            }
        }
    }

    pub(super) fn remove_node(&mut self, node: &NodeView) {
        for name in node.images.keys() {
            if let Some(state) = self.0.get_mut(name) {
                state.nodes -= 1;
                if state.nodes == 0 {
                    self.0.remove(name);
                }
            }
        }
    }

    /// Size in bytes of the image, and how many nodes have it.
    pub fn get(&self, name: &str) -> Option<(i64, u32)> {
        self.0.get(name).map(|state| (state.size, state.nodes))
    }
}
