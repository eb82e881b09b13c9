//! The actions on an object, as a set of bits.

/// One kind of change, or several where a plugin registers for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action(u16);

impl Action {
    /// The object is added.
    pub const ADD: Action = Action(1);
    /// The object is deleted.
    pub const DELETE: Action = Action(1 << 1);
    /// The allocatable resources of a node change.
    pub const UPDATE_NODE_ALLOCATABLE: Action = Action(1 << 2);
    /// Labels of a node change.
    pub const UPDATE_NODE_LABEL: Action = Action(1 << 3);
    /// Taints of a node change, or it is uncordoned.
    pub const UPDATE_NODE_TAINT: Action = Action(1 << 4);
    /// Conditions of a node change.
    pub const UPDATE_NODE_CONDITION: Action = Action(1 << 5);
    /// Features that a node declares change. Bit 6 is upstream's event of node annotations.
    pub const UPDATE_NODE_DECLARED_FEATURE: Action = Action(1 << 7);
    /// Labels of a pod change.
    pub const UPDATE_POD_LABEL: Action = Action(1 << 8);
    /// A pod requests less.
    pub const UPDATE_POD_SCALE_DOWN: Action = Action(1 << 9);
    /// A pod tolerates more.
    pub const UPDATE_POD_TOLERATION: Action = Action(1 << 10);
    /// The last scheduling gate of a pod is removed.
    pub const UPDATE_POD_SCHEDULING_GATES_ELIMINATED: Action = Action(1 << 11);
    /// A resource claim is generated for a pod.
    pub const UPDATE_POD_GENERATED_RESOURCE_CLAIM: Action = Action(1 << 12);
    /// Any update.
    pub const UPDATE: Action = Action((1 << 13) - 1 - 0b11);

    /// Whether a registration for these actions includes the incoming one.
    ///
    /// The general update must be registered as such: an update of which nothing is known does not
    /// concern plugins that registered for one aspect. Upstream compares the numbers, which the
    /// bits are chosen for (v1.36 pkg/scheduler/framework/types.go, `MatchClusterEvents`).
    pub fn includes(self, incoming: Action) -> bool {
        self.0 & incoming.0 != 0 && incoming.0 <= self.0
    }

    /// The name in labels; empty for a set.
    pub(super) fn name(self) -> &'static str {
        match self {
            Action::ADD => "Add",
            Action::DELETE => "Delete",
            Action::UPDATE_NODE_ALLOCATABLE => "UpdateNodeAllocatable",
            Action::UPDATE_NODE_LABEL => "UpdateNodeLabel",
            Action::UPDATE_NODE_TAINT => "UpdateNodeTaint",
            Action::UPDATE_NODE_CONDITION => "UpdateNodeCondition",
            Action::UPDATE_NODE_DECLARED_FEATURE => "UpdateNodeDeclaredFeature",
            Action::UPDATE_POD_LABEL => "UpdatePodLabel",
            Action::UPDATE_POD_SCALE_DOWN => "UpdatePodScaleDown",
            Action::UPDATE_POD_TOLERATION => "UpdatePodToleration",
            Action::UPDATE_POD_SCHEDULING_GATES_ELIMINATED => "UpdatePodSchedulingGatesEliminated",
            Action::UPDATE_POD_GENERATED_RESOURCE_CLAIM => "UpdatePodGeneratedResourceClaim",
            Action::UPDATE => "Update",
            _ => "",
        }
    }

    /// Both.
    #[must_use]
    pub const fn or(self, other: Action) -> Action {
        Action(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_update_concerns_only_plugins_registered_for_any_update() {
        let aspects = Action::ADD.or(Action::DELETE).or(Action::UPDATE_POD_LABEL);
        assert!(aspects.includes(Action::UPDATE_POD_LABEL));
        assert!(!aspects.includes(Action::UPDATE_POD_TOLERATION));
        assert!(!aspects.includes(Action::UPDATE));
        assert!(Action::UPDATE.includes(Action::UPDATE_POD_LABEL));
        assert!(Action::ADD.or(Action::UPDATE).includes(Action::UPDATE));
        assert!(!Action::UPDATE.includes(Action::ADD));
    }
}
