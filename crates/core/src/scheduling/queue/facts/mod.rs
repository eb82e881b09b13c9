//! The fields of objects that the queue and its hints read.
//!
//! Pods and nodes are the views that all decisions read, with what only hints ask about. Of other
//! objects there is what some hint reads and nothing more. All of them are shared between the log
//! of events and the queues, and are therefore made once per version of an object and not changed.
//!
//! Reading order: `pod` with its parts `volume`, `claims` and `features`, `node`, `storage`,
//! `devices`.

mod claims;
mod devices;
mod features;
mod node;
mod pod;
mod storage;
mod volume;

pub use claims::ResourceClaims;
pub use devices::{DeviceClassFacts, ResourceClaimFacts};
pub use node::NodeFacts;
pub use pod::PodFacts;
pub use storage::{
    CsiDriverFacts, CsiNodeFacts, CsiStorageCapacityFacts, PersistentVolumeClaimFacts,
    PersistentVolumeFacts, StorageClassFacts, VolumeAttachmentFacts,
};
pub use volume::Volume;
