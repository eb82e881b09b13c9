//! A pod that waits for devices.

use super::super::facts::ResourceClaimFacts;
use super::{Action, Change, Hint, Object, PodFacts, Registration, Resource, is_own_update};

pub(super) const EVENTS: &[Registration] = &[
    (
        Resource::Node,
        Action::ADD
            .or(Action::UPDATE_NODE_LABEL)
            .or(Action::UPDATE_NODE_ALLOCATABLE),
    ),
    (Resource::ResourceClaim, Action::ADD.or(Action::UPDATE)),
    (Resource::Pod, Action::UPDATE_POD_GENERATED_RESOURCE_CLAIM),
    (Resource::DeviceClass, Action::ADD.or(Action::UPDATE)),
    (Resource::ResourceSlice, Action::ADD.or(Action::UPDATE)),
];

pub(super) fn hint(pod: &PodFacts, object: &Object) -> Hint {
    Hint::queue_if(match object {
        Object::Pod(change) => {
            let has_all_claims = |new: &PodFacts| new.resource_claims.are_all_there();
            is_own_update(pod, change) && change.after().is_some_and(has_all_claims)
        }
        Object::ResourceClaim(change) => {
            pod.resource_claims.are_all_there() && concerns(pod, change)
        }
        _ => true,
    })
}

/// Any claim that gives devices back may help; else it must be one of the pod's own, and more
/// than its metadata must have changed.
fn concerns(pod: &PodFacts, change: &Change<ResourceClaimFacts>) -> bool {
    let (old, Some(new)) = (change.before(), change.after()) else {
        return false;
    };
    let is_own = new.namespace == pod.pod_ref.namespace && pod.resource_claims.includes(&new.name);
    let gives_back = old.is_some_and(|old| old.is_allocated && !new.is_allocated);
    gives_back || is_own && old.is_none_or(|old| old.status != new.status)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{added, node_added, updated};
    use super::*;
    use serde_json::{Value, json};

    /// A pod with claims from templates, generated under those names or not yet.
    fn claiming(claims: &[Option<&str>]) -> PodFacts {
        let mut pod = crate::testing::pod("a").build();
        let names = claims.iter().enumerate();
        let stated = names.clone().map(|(index, _)| {
            json!({"name": index.to_string(), "resourceClaimTemplateName": "template"})
        });
        let generated = names.filter_map(|(index, name)| {
            Some(json!({"name": index.to_string(), "resourceClaimName": name.as_ref()?}))
        });
        let (stated, generated) = (stated.collect(), generated.collect());
        let spec = pod.spec.get_or_insert_default();
        spec.resource_claims = serde_json::from_value(Value::Array(stated)).unwrap();
        let status = pod.status.get_or_insert_default();
        status.resource_claim_statuses = serde_json::from_value(Value::Array(generated)).unwrap();
        PodFacts::from_api(&pod).unwrap()
    }

    fn claim(name: &str, is_allocated: bool, status: &str) -> ResourceClaimFacts {
        ResourceClaimFacts {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            is_allocated,
            status: json!(status),
        }
    }

    #[test]
    fn own_claims_count_when_changed_and_others_when_deallocated() {
        let pod = claiming(&[Some("mine")]);
        let object = |change| Object::ResourceClaim(change);
        for (change, expected) in [
            (added(claim("mine", false, "")), Hint::Queue),
            (added(claim("other", false, "")), Hint::Skip),
            (
                updated(claim("mine", false, ""), claim("mine", true, "x")),
                Hint::Queue,
            ),
            (
                updated(claim("mine", true, "x"), claim("mine", true, "x")),
                Hint::Skip,
            ),
            (
                updated(claim("other", true, "x"), claim("other", false, "")),
                Hint::Queue,
            ),
            (
                updated(claim("other", false, ""), claim("other", true, "x")),
                Hint::Skip,
            ),
        ] {
            assert_eq!(hint(&pod, &object(change.clone())), expected, "{change:?}");
        }
        let waiting = claiming(&[Some("mine"), None]);
        assert_eq!(
            hint(&waiting, &object(added(claim("mine", false, "")))),
            Hint::Skip
        );
    }

    #[test]
    fn the_pod_counts_when_its_last_claim_is_generated() {
        let pod = claiming(&[None]);
        let generated = |claims| Object::Pod(updated(claiming(&[None]), claiming(claims)));
        assert_eq!(hint(&pod, &generated(&[Some("x")])), Hint::Queue);
        assert_eq!(hint(&pod, &generated(&[Some("x"), None])), Hint::Skip);
        assert_eq!(hint(&pod, &node_added(|_| ())), Hint::Queue);
        assert_eq!(hint(&pod, &Object::ResourceSlice(added(()))), Hint::Queue);
    }
}
