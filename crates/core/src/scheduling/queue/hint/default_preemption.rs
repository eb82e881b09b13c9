//! A pod held while its victims are being deleted.

use super::{Action, Hint, Object, PodFacts, Registration, Resource};

/// Registered so that a deletion makes the queue look at the pod at all; the plugins that rejected
/// it before the preemption decide whether to requeue it.
pub(super) const EVENTS: &[Registration] = &[(Resource::Pod, Action::DELETE)];

pub(super) fn hint(_pod: &PodFacts, _object: &Object) -> Hint {
    Hint::Skip
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assigned, deleted, pod_named};
    use super::*;

    #[test]
    fn default_preemption_never_requeues_by_itself() {
        let object = Object::Pod(deleted(assigned("victim", |_| ())));
        assert_eq!(hint(&pod_named("a"), &object), Hint::Skip);
    }
}
