//! TaintNodesByCondition admission: a new node is not ready until it reports that it is.
//!
//! Matches v1.36 plugin/pkg/admission/nodetaint.

use k8s_openapi::api::core::v1::{Node, Taint};

use crate::object::taint::NODE_NOT_READY;

const NO_SCHEDULE: &str = "NoSchedule";

/// Taints a new node as not ready, so that nothing is placed there before it reports. The node
/// lifecycle controller removes the taint.
pub fn taint_new_node(node: &mut Node) {
    let spec = node.spec.get_or_insert_default();
    let taints = spec.taints.get_or_insert_default();
    let mut own = taints.iter();
    if !own.any(|taint| taint.key == NODE_NOT_READY && taint.effect == NO_SCHEDULE) {
        taints.push(Taint {
            key: NODE_NOT_READY.to_owned(),
            effect: NO_SCHEDULE.to_owned(),
            ..Taint::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_node_is_tainted_once() {
        let mut node = Node::default();
        taint_new_node(&mut node);
        taint_new_node(&mut node);
        let taints = node.spec.unwrap().taints.unwrap();
        assert_eq!(taints.len(), 1);
        assert_eq!(taints[0].key, NODE_NOT_READY);
    }
}
