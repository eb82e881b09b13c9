//! A pod whose claims could not be bound to volumes.

use super::super::facts::Volume;
use super::{Action, Change, Hint, Object, PodFacts, Registration, Resource, uses_claim};

pub(super) const EVENTS: &[Registration] = &[
    (Resource::StorageClass, Action::ADD.or(Action::UPDATE)),
    (
        Resource::PersistentVolumeClaim,
        Action::ADD.or(Action::UPDATE),
    ),
    (Resource::PersistentVolume, Action::ADD.or(Action::UPDATE)),
    (Resource::Node, Action::ADD.or(Action::UPDATE_NODE_LABEL)),
    (Resource::CsiNode, Action::ADD.or(Action::UPDATE)),
    (Resource::CsiDriver, Action::UPDATE),
    (Resource::CsiStorageCapacity, Action::ADD.or(Action::UPDATE)),
];

pub(super) fn hint(pod: &PodFacts, object: &Object) -> Hint {
    Hint::queue_if(match object {
        Object::StorageClass(Change::Updated { old, new }) => {
            old.allowed_topologies != new.allowed_topologies
        }
        Object::PersistentVolumeClaim(change) => uses_claim(pod, change),
        Object::CsiNode(Change::Updated { old, new }) => {
            old.migrated_plugins.as_deref().unwrap_or_default()
                != new.migrated_plugins.as_deref().unwrap_or_default()
        }
        Object::CsiDriver(Change::Updated { old, new }) => {
            let uses =
                |volume: &Volume| matches!(volume, Volume::Csi { driver } if *driver == new.name);
            old.tracks_capacity && !new.tracks_capacity && pod.volumes.iter().any(uses)
        }
        Object::CsiStorageCapacity(Change::Updated { old, new }) => new
            .volume_limit
            .is_some_and(|limit| old.volume_limit.is_none_or(|before| limit > before)),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::facts::{
        CsiDriverFacts, CsiNodeFacts, CsiStorageCapacityFacts, PersistentVolumeClaimFacts,
        PersistentVolumeFacts, StorageClassFacts,
    };
    use super::super::tests::{added, node_added, pod_named, updated};
    use super::*;

    fn with(volume: Volume) -> PodFacts {
        PodFacts {
            volumes: vec![volume],
            ..pod_named("a")
        }
    }

    #[test]
    fn new_object_requeues_pod() {
        for object in [
            Object::StorageClass(added(StorageClassFacts::default())),
            Object::PersistentVolume(added(PersistentVolumeFacts::default())),
            Object::CsiNode(added(CsiNodeFacts::default())),
            Object::CsiStorageCapacity(added(CsiStorageCapacityFacts::default())),
            node_added(|_| ()),
        ] {
            assert_eq!(hint(&pod_named("a"), &object), Hint::Queue, "{object:?}");
        }
    }

    #[test]
    fn only_claims_of_the_pod_count() {
        let pod = with(Volume::Claim {
            name: "c".to_owned(),
        });
        let claim = |namespace: &str, name: &str| PersistentVolumeClaimFacts {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let changed = |claim: PersistentVolumeClaimFacts| {
            Object::PersistentVolumeClaim(updated(claim.clone(), claim))
        };
        assert_eq!(hint(&pod, &changed(claim("default", "c"))), Hint::Queue);
        assert_eq!(hint(&pod, &changed(claim("default", "d"))), Hint::Skip);
        assert_eq!(hint(&pod, &changed(claim("elsewhere", "c"))), Hint::Skip);
    }

    #[test]
    fn a_class_counts_when_its_topologies_change() {
        let class = |zone: &str| StorageClassFacts {
            allowed_topologies: vec![vec![("zone".to_owned(), vec![zone.to_owned()])]],
            ..StorageClassFacts::default()
        };
        let change = |old, new| Object::StorageClass(updated(class(old), class(new)));
        assert_eq!(hint(&pod_named("a"), &change("a", "b")), Hint::Queue);
        assert_eq!(hint(&pod_named("a"), &change("a", "a")), Hint::Skip);
    }

    #[test]
    fn driver_counts_with_migrated_volume_kinds() {
        let node = |plugins: Option<&str>| CsiNodeFacts {
            migrated_plugins: plugins.map(ToOwned::to_owned),
            ..CsiNodeFacts::default()
        };
        let change = |old, new| Object::CsiNode(updated(node(old), node(new)));
        assert_eq!(hint(&pod_named("a"), &change(None, Some("x"))), Hint::Queue);
        assert_eq!(hint(&pod_named("a"), &change(None, Some(""))), Hint::Skip);
    }

    #[test]
    fn driver_that_stops_tracking_capacity_requeues_pod() {
        let driver = |tracks_capacity| CsiDriverFacts {
            name: "driver".to_owned(),
            tracks_capacity,
        };
        let change = |old, new| Object::CsiDriver(updated(driver(old), driver(new)));
        let using = |name: &str| {
            with(Volume::Csi {
                driver: name.to_owned(),
            })
        };
        assert_eq!(hint(&using("driver"), &change(true, false)), Hint::Queue);
        assert_eq!(hint(&using("driver"), &change(false, false)), Hint::Skip);
        assert_eq!(hint(&using("other"), &change(true, false)), Hint::Skip);
    }

    #[test]
    fn capacity_counts_when_it_grows() {
        let capacity = |volume_limit| CsiStorageCapacityFacts { volume_limit };
        let change = |old, new| Object::CsiStorageCapacity(updated(capacity(old), capacity(new)));
        let pod = pod_named("a");
        assert_eq!(hint(&pod, &change(Some(1), Some(2))), Hint::Queue);
        assert_eq!(hint(&pod, &change(None, Some(1))), Hint::Queue);
        assert_eq!(hint(&pod, &change(Some(2), Some(2))), Hint::Skip);
        assert_eq!(hint(&pod, &change(Some(2), None)), Hint::Skip);
    }
}
