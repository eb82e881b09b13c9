//! A pod with scheduling gates.

use super::{Action, Hint, Object, PodFacts, Registration, Resource, is_own_update};

pub(super) const EVENTS: &[Registration] = &[(
    Resource::Pod,
    Action::UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
)];

pub(super) fn hint(pod: &PodFacts, object: &Object) -> Hint {
    match object {
        Object::Pod(change) => Hint::queue_if(is_own_update(pod, change)),
        _ => Hint::Queue,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{pod_named, updated};
    use super::*;

    #[test]
    fn only_the_pod_s_own_gates_matter() {
        let update = |name| Object::Pod(updated(pod_named(name), pod_named(name)));
        assert_eq!(hint(&pod_named("a"), &update("a")), Hint::Queue);
        assert_eq!(hint(&pod_named("a"), &update("b")), Hint::Skip);
    }
}
