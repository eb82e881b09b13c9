//! Thresholds on the disk of the writable layers.
//!
//! That disk is either the nodefs or the imagefs, so its thresholds are not the operator's to set:
//! they follow the ones of the disk it is. Matches v1.36 UpdateContainerFsThresholds.

use super::{Signal, Threshold};

/// Which of the node's file systems are one and the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskLayout {
    /// Everything on the nodefs.
    Single,
    /// Images and writable layers on an imagefs of their own.
    DedicatedImageFs,
    /// Images on an imagefs of their own, writable layers on the nodefs.
    SplitImageFs,
    /// Writable layers apart, images on the nodefs. No runtime reports this; thresholds stay as
    /// they are.
    DedicatedContainerFs,
}

impl DiskLayout {
    /// The layout by what the runtime reports: an imagefs apart from the nodefs, and writable
    /// layers apart from the images.
    pub fn from_dedicated(image_fs: bool, container_fs: bool) -> DiskLayout {
        match (image_fs, container_fs) {
            (false, false) => DiskLayout::Single,
            (true, false) => DiskLayout::DedicatedImageFs,
            (true, true) => DiskLayout::SplitImageFs,
            (false, true) => DiskLayout::DedicatedContainerFs,
        }
    }

    /// The signals for bytes and inodes that the containerfs follows.
    fn followed_signals(self) -> Option<(Signal, Signal)> {
        match self {
            DiskLayout::Single | DiskLayout::SplitImageFs => {
                Some((Signal::NodeFsAvailable, Signal::NodeFsInodesFree))
            }
            DiskLayout::DedicatedImageFs => {
                Some((Signal::ImageFsAvailable, Signal::ImageFsInodesFree))
            }
            DiskLayout::DedicatedContainerFs => None,
        }
    }
}

/// Thresholds with those on the containerfs derived.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    /// All thresholds.
    pub thresholds: Vec<Threshold>,
    /// Upstream's warning about a configured containerfs threshold; only the last one is named.
    pub warning: Option<String>,
}

/// Puts the thresholds of the followed disk on the containerfs too, in place of configured ones.
///
/// Where the followed disk has no such threshold the derived one is inert: it is listed, with an
/// empty operator, and never met.
pub fn derive_container_fs(mut thresholds: Vec<Threshold>, layout: DiskLayout) -> Derived {
    let warning = thresholds.iter().rev().find_map(warning_about);
    if let Some((available, inodes_free)) = layout.followed_signals() {
        let pairs = [
            (available, Signal::ContainerFsAvailable),
            (inodes_free, Signal::ContainerFsInodesFree),
        ];
        for (followed, derived) in pairs {
            for is_hard in [true, false] {
                follow(&mut thresholds, followed, derived, is_hard);
            }
        }
    }
    Derived {
        thresholds,
        warning,
    }
}

fn warning_about(threshold: &Threshold) -> Option<String> {
    let is_container_fs = matches!(
        threshold.signal,
        Signal::ContainerFsAvailable | Signal::ContainerFsInodesFree
    );
    let kind = if threshold.is_hard() { "hard" } else { "soft" };
    is_container_fs.then(|| format!("found {} for {kind} eviction. ignoring", threshold.signal))
}

/// Of several thresholds on a signal, which a soft one without grace makes possible, the last
/// counts.
fn follow(thresholds: &mut Vec<Threshold>, followed: Signal, derived: Signal, is_hard: bool) {
    let last = |list: &[Threshold], signal| {
        list.iter()
            .rposition(|t| t.signal == signal && t.is_hard() == is_hard)
    };
    let threshold = match last(thresholds, followed) {
        Some(index) => Threshold {
            signal: derived,
            ..thresholds[index].clone()
        },
        None => Threshold::inert(derived),
    };
    match last(thresholds, derived) {
        Some(index) => thresholds[index] = threshold,
        None => thresholds.push(threshold),
    }
}
