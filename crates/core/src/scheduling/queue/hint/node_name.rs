//! A pod that names a node which is not there.

use super::{Action, Hint, Object, PodFacts, Registration, Resource};

pub(super) const EVENTS: &[Registration] = &[(Resource::Node, Action::ADD)];

/// Any new node may be the one.
pub(super) fn hint(_pod: &PodFacts, _object: &Object) -> Hint {
    Hint::Queue
}

#[cfg(test)]
mod tests {
    use super::super::tests::{node_added, pod_named};
    use super::*;

    #[test]
    fn new_node_requeues_pod() {
        assert_eq!(hint(&pod_named("a"), &node_added(|_| ())), Hint::Queue);
    }
}
