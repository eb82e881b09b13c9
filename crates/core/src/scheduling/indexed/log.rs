//! What has changed since a class was last used.

use super::kinds::KindId;

/// One change of a node's pods, or of the node itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) slot: u32,
    /// The pod's kind; `None` if the node changed and its pods did not.
    pub(super) kind: Option<KindId>,
    /// 1 for a pod that came, -1 for one that left.
    pub(super) by: i64,
}

/// Changes in order, the oldest forgotten.
///
/// A class that is further behind than the log reaches is rebuilt, which costs about as much as
/// following that many changes.
#[derive(Debug, Default)]
pub(super) struct Log {
    entries: Vec<Entry>,
    /// Number of entries forgotten.
    start: u64,
}

/// Entries kept, apart from one for each node.
const KEPT: usize = 4096;

impl Log {
    pub(super) fn push(&mut self, entry: Entry, node_count: usize) {
        let limit = KEPT + node_count;
        if self.entries.len() >= 2 * limit {
            let forgotten = self.entries.len() - limit;
            self.entries.drain(..forgotten);
            self.start += u64::try_from(forgotten).unwrap_or(u64::MAX);
        }
        self.entries.push(entry);
    }

    /// Where the log ends.
    pub(super) fn end(&self) -> u64 {
        self.start + u64::try_from(self.entries.len()).unwrap_or(u64::MAX)
    }

    /// The changes since then; `None` if they were dropped.
    pub(super) fn since(&self, position: u64) -> Option<&[Entry]> {
        let skipped = position.checked_sub(self.start)?;
        self.entries.get(usize::try_from(skipped).ok()?..)
    }
}
