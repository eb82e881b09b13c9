//! A pod held while its victims are being deleted.

use super::{Action, Hint, Object, PodFacts, Registration, Resource};

/// Registered so that a deletion makes the queue look at the pod at all; what is worth another
/// attempt is for the plugins to say that rejected it before the preemption.
pub(super) const EVENTS: &[Registration] = &[(Resource::Pod, Action::DELETE)];

pub(super) fn hint(_pod: &PodFacts, _object: &Object) -> Hint {
    Hint::Skip
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assigned, deleted, pod_named};
    use super::*;

    #[test]
    fn the_plugin_itself_never_asks_for_another_attempt() {
        let object = Object::Pod(deleted(assigned("victim", |_| ())));
        assert_eq!(hint(&pod_named("a"), &object), Hint::Skip);
    }
}
