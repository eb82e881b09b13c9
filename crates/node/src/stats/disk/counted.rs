//! A directory of which the kernel keeps count, and whether that is to be believed.
//!
//! Containers that share the node's user namespace may put files of theirs into another project:
//! their use is then not counted, or counted for another directory. A walk from time to time
//! detects that.

use std::path::Path;

use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_runtime::walk::Usage;

use crate::project_quota::{ProjectId, ProjectQuotas};

/// How much a walk may find more or less in a directory that changes meanwhile: an eighth, and so
/// many bytes and inodes.
const SLACK: Usage = Usage {
    bytes: 1 << 20,
    inodes: 64,
};

/// A directory with a project.
#[derive(Debug)]
pub(super) struct Counted {
    project: ProjectId,
    /// The least and the most that it held since the walk under way began.
    range: Option<(Usage, Usage)>,
    /// When it is to be walked over again; `None` for at once.
    pub(super) check_due: Option<Timestamp>,
}

impl Counted {
    pub(super) fn find(quotas: &ProjectQuotas, path: &Path) -> Option<Counted> {
        let project = quotas.project_of(path)?;
        Some(Counted {
            project,
            range: None,
            check_due: None,
        })
    }

    /// The usage of the directory, if the kernel counts it.
    pub(super) fn ask(&mut self, quotas: &ProjectQuotas, path: &Path) -> Option<Usage> {
        let held = quotas.held(path, self.project)?;
        let usage = Usage {
            bytes: held.bytes,
            inodes: held.inodes,
        };
        let (least, most) = self.range.unwrap_or((usage, usage));
        self.range = Some((least.least(usage), most.most(usage)));
        Some(usage)
    }

    /// Forgets what it held before: a walk begins.
    pub(super) fn begin_check(&mut self, usage: Usage) {
        self.range = Some((usage, usage));
    }

    /// Whether a walk has found what the kernel counted meanwhile.
    pub(super) fn agrees_with(&self, walked: Usage) -> bool {
        self.range
            .is_some_and(|(least, most)| is_within(walked, least, most))
    }
}

fn is_within(walked: Usage, least: Usage, most: Usage) -> bool {
    let is_between = |walked: u64, least: u64, most: u64, slack: u64| {
        let slack = slack.saturating_add(most / 8);
        walked.saturating_add(slack) >= least && walked <= most.saturating_add(slack)
    };
    is_between(walked.bytes, least.bytes, most.bytes, SLACK.bytes)
        && is_between(walked.inodes, least.inodes, most.inodes, SLACK.inodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walk_detects_uncounted_files_despite_concurrent_changes() {
        const MIB: u64 = 1 << 20;
        let of = |mebibytes: u64, inodes| Usage {
            bytes: mebibytes * MIB,
            inodes,
        };
        let (least, most) = (of(80, 100), of(160, 1000));
        for fine in [of(80, 100), of(120, 500), of(180, 1100), of(60, 40)] {
            assert!(is_within(fine, least, most), "{fine:?}");
        }
        for wrong in [of(58, 100), of(182, 100), of(100, 1190), of(0, 1)] {
            assert!(!is_within(wrong, least, most), "{wrong:?}");
        }
    }
}
