//! Volumes of pods, as far as hints ask about them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PodSpec, Volume as ApiVolume};

/// Where a volume of a pod comes from; kinds that no hint depends on are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Volume {
    /// A claim.
    Claim {
        /// Its name.
        name: String,
    },
    /// A claim made for this pod.
    Ephemeral {
        /// Its name.
        claim_name: String,
    },
    /// A volume that a driver makes for the pod.
    Csi {
        /// The driver.
        driver: String,
    },
    /// A Google disk.
    GcePersistentDisk {
        /// Its name.
        name: String,
        /// Whether it is only read.
        read_only: bool,
    },
    /// An Amazon disk.
    AwsElasticBlockStore {
        /// Its id.
        volume_id: String,
    },
    /// An iSCSI target.
    Iscsi {
        /// Its name.
        iqn: String,
        /// Whether it is only read.
        read_only: bool,
    },
    /// A Ceph block device.
    Rbd {
        /// The monitors of its cluster.
        monitors: BTreeSet<String>,
        /// The pool.
        pool: String,
        /// The image.
        image: String,
        /// Whether it is only read.
        read_only: bool,
    },
    /// Another kind that a driver has taken over.
    Migrated {
        /// The driver.
        driver: String,
    },
}

impl Volume {
    /// The volumes of a pod of that name that some hint depends on.
    pub(super) fn of_pod(pod_name: &str, spec: &PodSpec) -> Vec<Volume> {
        let volumes = spec.volumes.iter().flatten();
        volumes
            .filter_map(|volume| {
                Volume::claim(pod_name, volume)
                    .or_else(|| Volume::exclusive(volume))
                    .or_else(|| Volume::of_driver(volume))
            })
            .collect()
    }

    /// The name of a claim made for the pod alone follows from the names of the pod and the volume.
    /// Matches v1.36 component-helpers/storage/ephemeral.
    fn claim(pod_name: &str, volume: &ApiVolume) -> Option<Volume> {
        if let Some(claim) = &volume.persistent_volume_claim {
            let name = claim.claim_name.clone();
            return Some(Volume::Claim { name });
        }
        volume.ephemeral.as_ref().map(|_| Volume::Ephemeral {
            claim_name: format!("{pod_name}-{}", volume.name),
        })
    }

    /// Kinds that not all pods can have at once.
    fn exclusive(volume: &ApiVolume) -> Option<Volume> {
        if let Some(disk) = &volume.gce_persistent_disk {
            Some(Volume::GcePersistentDisk {
                name: disk.pd_name.clone(),
                read_only: disk.read_only.unwrap_or(false),
            })
        } else if let Some(disk) = &volume.aws_elastic_block_store {
            Some(Volume::AwsElasticBlockStore {
                volume_id: disk.volume_id.clone(),
            })
        } else if let Some(target) = &volume.iscsi {
            Some(Volume::Iscsi {
                iqn: target.iqn.clone(),
                read_only: target.read_only.unwrap_or(false),
            })
        } else {
            volume.rbd.as_ref().map(|device| Volume::Rbd {
                monitors: device.monitors.iter().cloned().collect(),
                pool: device.pool.clone().unwrap_or_default(),
                image: device.image.clone(),
                read_only: device.read_only.unwrap_or(false),
            })
        }
    }

    /// Matches v1.36 csi-translation-lib, `CanSupportInline` and the names of drivers.
    fn of_driver(volume: &ApiVolume) -> Option<Volume> {
        if let Some(source) = &volume.csi {
            let driver = source.driver.clone();
            return Some(Volume::Csi { driver });
        }
        let taken_over = [
            (volume.cinder.is_some(), "cinder.csi.openstack.org"),
            (volume.azure_disk.is_some(), "disk.csi.azure.com"),
            (volume.azure_file.is_some(), "file.csi.azure.com"),
            (volume.vsphere_volume.is_some(), "csi.vsphere.vmware.com"),
            (volume.portworx_volume.is_some(), "pxd.portworx.com"),
        ];
        let (_, driver) = taken_over.into_iter().find(|(is_it, _)| *is_it)?;
        Some(Volume::Migrated {
            driver: driver.to_owned(),
        })
    }

    /// The claim that the pod waits for.
    pub fn claim_name(&self) -> Option<&str> {
        match self {
            Volume::Claim { name } => Some(name),
            Volume::Ephemeral { claim_name } => Some(claim_name),
            _ => None,
        }
    }

    /// The driver that serves a kind which was once built in.
    pub fn migrated_driver(&self) -> Option<&str> {
        match self {
            Volume::GcePersistentDisk { .. } => Some("pd.csi.storage.gke.io"),
            Volume::AwsElasticBlockStore { .. } => Some("ebs.csi.aws.com"),
            Volume::Migrated { driver } => Some(driver),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn volumes(sources: Value) -> Vec<Volume> {
        let spec = json!({"containers": [], "volumes": sources});
        Volume::of_pod("pod", &serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn claims_are_named_or_made_for_the_pod() {
        let read = volumes(json!([
            {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "b", "emptyDir": {}},
            {"name": "c", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        ]));
        let names: Vec<_> = read.iter().map(Volume::claim_name).collect();
        assert_eq!(names, [Some("c"), Some("pod-c")]);
    }

    #[test]
    fn kinds_that_drivers_serve_know_their_driver() {
        for (source, driver) in [
            (
                json!({"gcePersistentDisk": {"pdName": "d"}}),
                "pd.csi.storage.gke.io",
            ),
            (
                json!({"awsElasticBlockStore": {"volumeID": "v"}}),
                "ebs.csi.aws.com",
            ),
            (
                json!({"cinder": {"volumeID": "v"}}),
                "cinder.csi.openstack.org",
            ),
            (
                json!({"azureDisk": {"diskName": "d", "diskURI": "u"}}),
                "disk.csi.azure.com",
            ),
            (
                json!({"azureFile": {"secretName": "s", "shareName": "s"}}),
                "file.csi.azure.com",
            ),
            (
                json!({"vsphereVolume": {"volumePath": "p"}}),
                "csi.vsphere.vmware.com",
            ),
            (
                json!({"portworxVolume": {"volumeID": "v"}}),
                "pxd.portworx.com",
            ),
        ] {
            let mut volume = source;
            volume["name"] = json!("v");
            let read = volumes(json!([volume]));
            assert_eq!(read[0].migrated_driver(), Some(driver), "{read:?}");
        }
        let own = volumes(json!([{"name": "v", "csi": {"driver": "example.com"}}]));
        let driver = "example.com".to_owned();
        assert_eq!(own, [Volume::Csi { driver }]);
    }

    #[test]
    fn network_volumes_keep_their_identity() {
        let read = volumes(json!([
            {"name": "a", "iscsi": {"targetPortal": "p", "iqn": "iqn", "lun": 0, "readOnly": true}},
            {"name": "b", "rbd": {"monitors": ["m"], "image": "i", "pool": "p"}},
        ]));
        let expected = [
            Volume::Iscsi {
                iqn: "iqn".to_owned(),
                read_only: true,
            },
            Volume::Rbd {
                monitors: ["m".to_owned()].into(),
                pool: "p".to_owned(),
                image: "i".to_owned(),
                read_only: false,
            },
        ];
        assert_eq!(read, expected);
    }
}
