//! A pod for whose volumes nodes had no room.

use super::super::facts::{CsiNodeFacts, Volume};
use super::{Action, Change, Hint, Object, PodFacts, Registration, Resource, uses_claim};

pub(super) const EVENTS: &[Registration] = &[
    (Resource::CsiNode, Action::ADD.or(Action::UPDATE)),
    (Resource::Pod, Action::DELETE),
    (Resource::PersistentVolumeClaim, Action::ADD),
    (Resource::VolumeAttachment, Action::DELETE),
];

pub(super) fn hint(pod: &PodFacts, object: &Object) -> Hint {
    Hint::queue_if(match object {
        Object::CsiNode(Change::Updated { old, new }) => raises_a_limit(old, new),
        Object::Pod(Change::Deleted(deleted)) => {
            let takes_room = |volume: &Volume| {
                volume.claim_name().is_some() || volume.migrated_driver().is_some()
            };
            deleted.is_on_a_node() && deleted.volumes.iter().any(takes_room)
        }
        Object::PersistentVolumeClaim(change) => uses_claim(pod, change),
        Object::VolumeAttachment(Change::Deleted(attachment)) => {
            pod.volumes.iter().any(|volume| match volume {
                Volume::Claim { .. } => true,
                other => other.migrated_driver() == Some(attachment.attacher.as_str()),
            })
        }
        _ => true,
    })
}

fn raises_a_limit(old: &CsiNodeFacts, new: &CsiNodeFacts) -> bool {
    let before = |driver| old.limits.get(driver).copied().unwrap_or(0);
    let mut limits = new.limits.iter();
    limits.any(|(driver, limit)| *limit > before(driver))
}

#[cfg(test)]
mod tests {
    use super::super::super::facts::{PersistentVolumeClaimFacts, VolumeAttachmentFacts};
    use super::super::tests::{added, assigned, deleted, placed, pod_named, updated};
    use super::*;

    fn with(volume: Volume) -> PodFacts {
        PodFacts {
            volumes: vec![volume],
            ..pod_named("a")
        }
    }

    fn migrated(driver: &str) -> Volume {
        Volume::Migrated {
            driver: driver.to_owned(),
        }
    }

    fn ephemeral() -> Volume {
        Volume::Ephemeral {
            claim_name: "a-data".to_owned(),
        }
    }

    #[test]
    fn new_drivers_and_raised_limits_requeue_pod() {
        let node = |limit| CsiNodeFacts {
            limits: [("driver".to_owned(), limit)].into(),
            ..CsiNodeFacts::default()
        };
        let pod = pod_named("a");
        assert_eq!(hint(&pod, &Object::CsiNode(added(node(1)))), Hint::Queue);
        let change = |old, new| Object::CsiNode(updated(old, new));
        assert_eq!(hint(&pod, &change(node(1), node(2))), Hint::Queue);
        assert_eq!(hint(&pod, &change(node(2), node(2))), Hint::Skip);
        assert_eq!(
            hint(&pod, &change(CsiNodeFacts::default(), node(1))),
            Hint::Queue
        );
    }

    #[test]
    fn deletion_of_pod_with_volumes_on_a_node_counts() {
        let pod = pod_named("a");
        let delete = |pod| Object::Pod(deleted(pod));
        let holder = with(ephemeral());
        assert_eq!(hint(&pod, &delete(placed(holder.clone()))), Hint::Queue);
        assert_eq!(hint(&pod, &delete(holder)), Hint::Skip);
        let inline = placed(with(migrated("x")));
        assert_eq!(hint(&pod, &delete(inline)), Hint::Queue);
        assert_eq!(hint(&pod, &delete(assigned("b", |_| ()))), Hint::Skip);
    }

    #[test]
    fn a_claim_made_for_the_pod_counts() {
        let made = |name: &str| {
            Object::PersistentVolumeClaim(added(PersistentVolumeClaimFacts {
                namespace: "default".to_owned(),
                name: name.to_owned(),
            }))
        };
        assert_eq!(hint(&with(ephemeral()), &made("a-data")), Hint::Queue);
        assert_eq!(hint(&with(ephemeral()), &made("data")), Hint::Skip);
    }

    #[test]
    fn a_detached_volume_counts_for_claims_and_for_volumes_of_its_driver() {
        let detached = Object::VolumeAttachment(deleted(VolumeAttachmentFacts {
            attacher: "ebs.csi.aws.com".to_owned(),
        }));
        let claim = Volume::Claim {
            name: "c".to_owned(),
        };
        assert_eq!(hint(&with(claim), &detached), Hint::Queue);
        assert_eq!(hint(&with(migrated("x")), &detached), Hint::Skip);
        let block = Volume::AwsElasticBlockStore {
            volume_id: "v".to_owned(),
        };
        assert_eq!(hint(&with(block), &detached), Hint::Queue);
        assert_eq!(hint(&with(ephemeral()), &detached), Hint::Skip);
    }
}
