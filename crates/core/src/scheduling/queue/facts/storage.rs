//! Objects about storage.

use std::collections::BTreeMap;

/// A persistent volume.
#[derive(Clone, Debug, Default)]
pub struct PersistentVolumeFacts {
    /// Labels, among them those of its zones.
    pub labels: BTreeMap<String, String>,
}

/// A claim for a volume.
#[derive(Clone, Debug, Default)]
pub struct PersistentVolumeClaimFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A storage class.
#[derive(Clone, Debug, Default)]
pub struct StorageClassFacts {
    /// Whether binding waits for the first pod.
    pub waits_for_first_consumer: bool,
    /// Where volumes may be, term by term: labels and their values.
    pub allowed_topologies: Vec<Vec<(String, Vec<String>)>>,
}

/// The capabilities of a node's storage drivers.
#[derive(Clone, Debug, Default)]
pub struct CsiNodeFacts {
    /// How many volumes each driver can attach; none stated is 0.
    pub limits: BTreeMap<String, i32>,
    /// The annotation that lists kinds of volumes which drivers have taken over.
    pub migrated_plugins: Option<String>,
}

/// A storage driver.
#[derive(Clone, Debug, Default)]
pub struct CsiDriverFacts {
    /// Its name.
    pub name: String,
    /// Whether free space is checked before a volume is created.
    pub tracks_capacity: bool,
}

/// How much a driver can still give somewhere.
#[derive(Clone, Debug, Default)]
pub struct CsiStorageCapacityFacts {
    /// The largest volume in bytes, or else the free space; `None` if neither is stated.
    pub volume_limit: Option<i64>,
}

/// A volume attached to a node.
#[derive(Clone, Debug, Default)]
pub struct VolumeAttachmentFacts {
    /// The driver.
    pub attacher: String,
}
