//! Pods that outgrew their own disk limits. They go whether the node is short of disk or not.
//!
//! Matches v1.36 `localStorageEviction` of pkg/kubelet/eviction/eviction_manager.go.

use crate::quantity::Quantity;
use crate::threshold::DiskLayout;

use super::candidate::Candidate;
use super::message;
use super::usage::{FsUsage, PodUsage};

/// Which limit was outgrown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalLimit {
    /// The size limit of an emptyDir.
    EmptyDir,
    /// The sum of the pod's limits.
    Pod,
    /// The limit of a container.
    Container,
}

impl LocalLimit {
    /// All there are.
    pub const ALL: [LocalLimit; 3] = [LocalLimit::EmptyDir, LocalLimit::Pod, LocalLimit::Container];

    /// The `eviction_signal` label of the eviction metric.
    pub fn as_str(self) -> &'static str {
        match self {
            LocalLimit::EmptyDir => "emptydirfs.limit",
            LocalLimit::Pod => "ephemeralpodfs.limit",
            LocalLimit::Container => "ephemeralcontainerfs.limit",
        }
    }
}

/// The first limit that the pod outgrew, with the message for its status.
pub fn find_violation(
    candidate: &Candidate,
    usage: &PodUsage,
    layout: DiskLayout,
) -> Option<(LocalLimit, String)> {
    outgrown_empty_dir(candidate, usage)
        .map(|message| (LocalLimit::EmptyDir, message))
        .or_else(|| Some((LocalLimit::Pod, outgrown_pod(candidate, usage)?)))
        .or_else(|| {
            Some((
                LocalLimit::Container,
                outgrown_container(candidate, usage, layout)?,
            ))
        })
}

fn outgrown_empty_dir(candidate: &Candidate, usage: &PodUsage) -> Option<String> {
    let outgrown = candidate.empty_dir_limits.iter().find(|(name, limit)| {
        // Of several measurements of one volume the last counts.
        let mut measured = usage.volumes.iter().rev();
        let volume = measured.find(|volume| volume.name == *name);
        volume.is_some_and(|volume| used(&volume.fs) > *limit)
    });
    outgrown.map(|(name, limit)| message::empty_dir(name, limit))
}

fn outgrown_pod(candidate: &Candidate, usage: &PodUsage) -> Option<String> {
    let limit = candidate.storage_limit.as_ref()?;
    let used = usage.ephemeral_storage.unwrap_or_default().to_quantity();
    (used > *limit).then(|| message::pod_storage(limit))
}

/// Writable layers count only where they share the disk with the logs.
fn outgrown_container(
    candidate: &Candidate,
    usage: &PodUsage,
    layout: DiskLayout,
) -> Option<String> {
    let shares_disk = matches!(
        layout,
        DiskLayout::Single | DiskLayout::DedicatedContainerFs
    );
    usage.containers.iter().find_map(|measured| {
        // Of several containers of one name the last counts.
        let mut limited = candidate.containers.iter().rev();
        let limit = limited.find_map(|container| {
            let limit = container.storage_limit.as_ref()?;
            (container.name == measured.name).then_some(limit)
        })?;
        let mut sum = used(&measured.logs);
        if shares_disk {
            sum.add(&used(&measured.root_fs));
        }
        (sum > *limit).then(|| message::container_storage(&measured.name, limit))
    })
}

fn used(fs: &FsUsage) -> Quantity {
    fs.used.unwrap_or_default().to_quantity()
}
