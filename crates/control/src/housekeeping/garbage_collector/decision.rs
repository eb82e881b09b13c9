//! The decision about an object once its owners have been looked up.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::PropagationPolicy;

use super::{FOREGROUND, ORPHAN, has_finalizer};

/// How an owner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// It exists, and stays.
    Solid,
    /// It does not exist.
    Dangling,
    /// It waits for its dependents to be deleted.
    Waiting,
}

/// The decision about an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Decision {
    /// It stays as it is.
    Keep,
    /// It stays, and loses the references to these uids.
    RemoveReferences(Vec<String>),
    /// It goes.
    Delete {
        /// The policy for its own dependents.
        policy: PropagationPolicy,
        /// Whether it must not hold its owners up: a dependent of it waits for its own dependents,
        /// and in a circle no object would ever be deleted.
        unblocks_owners: bool,
    },
}

/// Decides about an object that has owners.
///
/// `has_dependents` and `has_waiting_dependent` are about the object's own dependents.
pub(super) fn decide(
    object: &ObjectMeta,
    owners: &[(OwnerReference, Owner)],
    has_dependents: bool,
    has_waiting_dependent: bool,
) -> Decision {
    let is = |state: Owner| owners.iter().any(|(_, owner)| *owner == state);
    if is(Owner::Solid) {
        let gone = owners.iter().filter(|(_, owner)| *owner != Owner::Solid);
        let gone: Vec<String> = gone.map(|(reference, _)| reference.uid.clone()).collect();
        return match gone.is_empty() {
            true => Decision::Keep,
            false => Decision::RemoveReferences(gone),
        };
    }
    if is(Owner::Waiting) && has_dependents {
        return Decision::Delete {
            policy: PropagationPolicy::Foreground,
            unblocks_owners: has_waiting_dependent,
        };
    }
    let policy = if has_finalizer(object, ORPHAN) {
        PropagationPolicy::Orphan
    } else if has_finalizer(object, FOREGROUND) {
        PropagationPolicy::Foreground
    } else {
        PropagationPolicy::Background
    };
    Decision::Delete {
        policy,
        unblocks_owners: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(uid: &str, state: Owner) -> (OwnerReference, Owner) {
        let reference = OwnerReference {
            uid: uid.to_owned(),
            ..OwnerReference::default()
        };
        (reference, state)
    }

    fn object(finalizers: &[&str]) -> ObjectMeta {
        ObjectMeta {
            finalizers: Some(finalizers.iter().map(ToString::to_string).collect()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn one_solid_owner_keeps_object_and_others_are_removed() {
        use Owner::{Dangling, Solid, Waiting};
        let plain = object(&[]);
        let owners = [owner("a", Solid), owner("b", Solid)];
        assert_eq!(decide(&plain, &owners, false, false), Decision::Keep);
        let owners = [owner("a", Dangling), owner("b", Solid), owner("c", Waiting)];
        let forgotten = vec!["a".to_owned(), "c".to_owned()];
        assert_eq!(
            decide(&plain, &owners, true, true),
            Decision::RemoveReferences(forgotten)
        );
    }

    #[test]
    fn object_without_solid_owner_is_deleted_with_matching_policy() {
        use Owner::{Dangling, Waiting};
        let table = [
            (object(&[]), Dangling, true, PropagationPolicy::Background),
            (object(&[ORPHAN]), Dangling, true, PropagationPolicy::Orphan),
            (
                object(&[FOREGROUND]),
                Dangling,
                true,
                PropagationPolicy::Foreground,
            ),
            (object(&[]), Waiting, true, PropagationPolicy::Foreground),
            (object(&[]), Waiting, false, PropagationPolicy::Background),
        ];
        for (object, state, has_dependents, policy) in table {
            let owners = [owner("a", state)];
            let expected = Decision::Delete {
                policy,
                unblocks_owners: false,
            };
            assert_eq!(decide(&object, &owners, has_dependents, false), expected);
        }
        let in_a_circle = decide(&object(&[]), &[owner("a", Waiting)], true, true);
        let expected = Decision::Delete {
            policy: PropagationPolicy::Foreground,
            unblocks_owners: true,
        };
        assert_eq!(in_a_circle, expected);
    }
}
