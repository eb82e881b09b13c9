//! A pod whose volumes are in other zones than the nodes.

use std::collections::BTreeSet;

use super::super::facts::{PersistentVolumeFacts, Volume};
use super::{Action, Change, Hint, Object, PodFacts, Registration, Resource};

pub(super) const EVENTS: &[Registration] = &[
    (Resource::StorageClass, Action::ADD),
    (Resource::Node, Action::ADD.or(Action::UPDATE_NODE_LABEL)),
    (
        Resource::PersistentVolumeClaim,
        Action::ADD.or(Action::UPDATE),
    ),
    (Resource::PersistentVolume, Action::ADD.or(Action::UPDATE)),
];

const TOPOLOGY_LABELS: [&str; 4] = [
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
];

/// Unlike other plugins, this one looks at claims given by name only.
pub(super) fn hint(pod: &PodFacts, object: &Object) -> Hint {
    Hint::queue_if(match object {
        Object::StorageClass(change) => change
            .after()
            .is_some_and(|class| class.waits_for_first_consumer),
        Object::PersistentVolumeClaim(change) => change.after().is_some_and(|claim| {
            let is_it =
                |volume: &Volume| matches!(volume, Volume::Claim { name } if *name == claim.name);
            claim.namespace == pod.pod_ref.namespace && pod.volumes.iter().any(is_it)
        }),
        Object::PersistentVolume(Change::Updated { old, new }) => zones(old) != zones(new),
        _ => true,
    })
}

/// The zones and regions that the labels of a volume name. A label that lists several separates
/// them by `__`; one with an empty part is not a list and is ignored.
fn zones(volume: &PersistentVolumeFacts) -> Vec<(&'static str, BTreeSet<&str>)> {
    let zones = |label| {
        let value = volume.labels.get(label)?;
        let zones: BTreeSet<&str> = value.split("__").map(str::trim).collect();
        (!zones.contains("")).then_some((label, zones))
    };
    TOPOLOGY_LABELS.into_iter().filter_map(zones).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::facts::{PersistentVolumeClaimFacts, StorageClassFacts};
    use super::super::tests::{added, labels, node_added, pod_named, updated};
    use super::*;

    #[test]
    fn a_class_counts_if_binding_waits_for_pods() {
        let class = |waits_for_first_consumer| {
            Object::StorageClass(added(StorageClassFacts {
                waits_for_first_consumer,
                ..StorageClassFacts::default()
            }))
        };
        assert_eq!(hint(&pod_named("a"), &class(true)), Hint::Queue);
        assert_eq!(hint(&pod_named("a"), &class(false)), Hint::Skip);
        assert_eq!(hint(&pod_named("a"), &node_added(|_| ())), Hint::Queue);
    }

    #[test]
    fn only_claims_that_the_pod_names_count() {
        let claim = |name: &str| {
            Object::PersistentVolumeClaim(added(PersistentVolumeClaimFacts {
                namespace: "default".to_owned(),
                name: name.to_owned(),
            }))
        };
        let mut pod = pod_named("a");
        pod.volumes.push(Volume::Claim {
            name: "c".to_owned(),
        });
        pod.volumes.push(Volume::Ephemeral {
            claim_name: "e".to_owned(),
        });
        assert_eq!(hint(&pod, &claim("c")), Hint::Queue);
        assert_eq!(hint(&pod, &claim("d")), Hint::Skip);
        assert_eq!(hint(&pod, &claim("e")), Hint::Skip);
    }

    #[test]
    fn a_volume_counts_when_made_or_when_its_zones_change() {
        let volume = |zone: &str| PersistentVolumeFacts {
            labels: labels(&[("topology.kubernetes.io/zone", zone), ("other", zone)]),
        };
        let pod = pod_named("a");
        let made = Object::PersistentVolume(added(volume("a")));
        assert_eq!(hint(&pod, &made), Hint::Queue);
        let change = |old, new| Object::PersistentVolume(updated(volume(old), volume(new)));
        assert_eq!(hint(&pod, &change("a", "b")), Hint::Queue);
        assert_eq!(hint(&pod, &change("a__b", "b__a")), Hint::Skip);
        assert_eq!(hint(&pod, &change("", "a__")), Hint::Skip);
    }
}
