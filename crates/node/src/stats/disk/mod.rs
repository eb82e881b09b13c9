//! What directories take on disk, without running `du`.
//!
//! Walking a tree costs as much as it has files, so that it is done in steps: each measurement of
//! the node pays for a bounded number of files, a walk continues where the last step ended, and large
//! trees are walked less often, those of pods with a limit more often. What is shown is the
//! last complete walk, and when it ended; nothing, where there was none. A walk that had to leave
//! something out gives a lower bound, no lower than what was shown before, and is logged.
//! Directories with a [project](crate::project_quota) are not walked over but read from the kernel, and walked
//! over now and then to see whether that is true.

mod counted;
mod schedule;

#[cfg(test)]
mod tests;

pub(super) use schedule::{DiskUsage, Wanted};

/// How many inodes a walk over a tree finds.
#[cfg(test)]
pub(super) fn walked_tree(path: &std::path::Path) -> u64 {
    plimsoll_runtime::walk::measure(path).unwrap().inodes
}
