//! A pod whose volumes another pod has to itself.

use super::super::facts::Volume;
use super::{Action, Change, Hint, Object, PodFacts, Registration, Resource};

pub(super) const EVENTS: &[Registration] = &[
    (Resource::Pod, Action::DELETE),
    (Resource::Node, Action::ADD),
    (Resource::PersistentVolumeClaim, Action::ADD),
];

pub(super) fn hint(pod: &PodFacts, object: &Object) -> Hint {
    let claims = |name: &str| {
        let mut volumes = pod.volumes.iter();
        volumes.any(|volume| matches!(volume, Volume::Claim { name: own } if own == name))
    };
    Hint::queue_if(match object {
        Object::Pod(Change::Deleted(deleted)) => {
            deleted.pod_ref.namespace == pod.pod_ref.namespace && frees_volume(deleted, pod)
        }
        Object::PersistentVolumeClaim(Change::Added(claim)) => {
            claim.namespace == pod.pod_ref.namespace && claims(&claim.name)
        }
        _ => true,
    })
}

fn frees_volume(deleted: &PodFacts, pod: &PodFacts) -> bool {
    let mut volumes = pod.volumes.iter();
    volumes.any(|wanted| deleted.volumes.iter().any(|held| excludes(held, wanted)))
}

/// Whether two pods cannot have these volumes on one node. A claim counts with any access mode: it
/// may be one for a single pod.
fn excludes(held: &Volume, wanted: &Volume) -> bool {
    match (held, wanted) {
        (Volume::Claim { name }, Volume::Claim { name: other }) => name == other,
        (
            Volume::GcePersistentDisk { name, read_only },
            Volume::GcePersistentDisk {
                name: other,
                read_only: other_reads,
            },
        ) => name == other && !(*read_only && *other_reads),
        (
            Volume::AwsElasticBlockStore { volume_id },
            Volume::AwsElasticBlockStore { volume_id: other },
        ) => volume_id == other,
        (
            Volume::Iscsi { iqn, read_only },
            Volume::Iscsi {
                iqn: other,
                read_only: other_reads,
            },
        ) => iqn == other && !(*read_only && *other_reads),
        (
            Volume::Rbd {
                monitors,
                pool,
                image,
                read_only,
            },
            Volume::Rbd {
                monitors: other_monitors,
                pool: other_pool,
                image: other_image,
                read_only: other_reads,
            },
        ) => {
            !monitors.is_disjoint(other_monitors)
                && (pool, image) == (other_pool, other_image)
                && !(*read_only && *other_reads)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::facts::PersistentVolumeClaimFacts;
    use super::super::tests::{added, but, deleted, node_added, placed, pod_named};
    use super::*;

    fn disk(name: &str, read_only: bool) -> Volume {
        Volume::GcePersistentDisk {
            name: name.to_owned(),
            read_only,
        }
    }

    fn claim(name: &str) -> Volume {
        Volume::Claim {
            name: name.to_owned(),
        }
    }

    fn rbd(monitors: &[&str], image: &str) -> Volume {
        Volume::Rbd {
            monitors: monitors.iter().map(|m| (*m).to_owned()).collect(),
            pool: "pool".to_owned(),
            image: image.to_owned(),
            read_only: false,
        }
    }

    #[test]
    fn a_deleted_pod_counts_if_it_had_a_volume_that_excludes_others() {
        let iscsi = |read_only| Volume::Iscsi {
            iqn: "iqn".to_owned(),
            read_only,
        };
        let block = || Volume::AwsElasticBlockStore {
            volume_id: "v".to_owned(),
        };
        for (held, wanted, expected) in [
            (disk("d", false), disk("d", true), Hint::Queue),
            (disk("d", true), disk("d", true), Hint::Skip),
            (disk("d", false), disk("e", false), Hint::Skip),
            (claim("c"), claim("c"), Hint::Queue),
            (claim("c"), claim("d"), Hint::Skip),
            (block(), block(), Hint::Queue),
            (iscsi(false), iscsi(true), Hint::Queue),
            (iscsi(true), iscsi(true), Hint::Skip),
            (rbd(&["a", "b"], "i"), rbd(&["b"], "i"), Hint::Queue),
            (rbd(&["a"], "i"), rbd(&["b"], "i"), Hint::Skip),
            (rbd(&["a"], "i"), rbd(&["a"], "j"), Hint::Skip),
        ] {
            let mut pod = pod_named("a");
            pod.volumes.push(wanted);
            let mut holder = placed(pod_named("b"));
            holder.volumes.push(held);
            assert_eq!(hint(&pod, &Object::Pod(deleted(holder.clone()))), expected);
            let foreign = but(holder, |pod| {
                pod.pod_ref.namespace = "elsewhere".to_owned();
            });
            assert_eq!(hint(&pod, &Object::Pod(deleted(foreign))), Hint::Skip);
        }
    }

    #[test]
    fn creation_of_own_claim_requeues_pod() {
        let mut pod = pod_named("a");
        pod.volumes.push(claim("c"));
        let made = |namespace: &str, name: &str| {
            Object::PersistentVolumeClaim(added(PersistentVolumeClaimFacts {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            }))
        };
        assert_eq!(hint(&pod, &made("default", "c")), Hint::Queue);
        assert_eq!(hint(&pod, &made("default", "d")), Hint::Skip);
        assert_eq!(hint(&pod, &made("elsewhere", "c")), Hint::Skip);
        assert_eq!(hint(&pod, &node_added(|_| ())), Hint::Queue);
    }
}
