//! When to compact.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::super::Revision;
use super::RedbOptions;
use super::index::Index;

/// Samples of the revision within the retention time.
const SAMPLES: u32 = 30;

/// Decides the revision to compact to, by the retention time and by a size limit.
#[derive(Debug)]
pub(super) struct Compactor {
    keep_for: Duration,
    keep_bytes: u64,
    /// Which revision was current when, oldest first.
    samples: VecDeque<(Instant, Revision)>,
}

impl Compactor {
    pub(super) fn new(options: &RedbOptions, current: Revision) -> Self {
        Self {
            keep_for: options.keep_history_for,
            keep_bytes: options.keep_history_bytes,
            samples: VecDeque::from([(Instant::now(), current)]),
        }
    }

    /// The revision to compact to because of time or size, if any is due. `room` is how many bytes
    /// of history there is room for.
    pub(super) fn target(&mut self, index: &Index, room: u64) -> Option<Revision> {
        let now = Instant::now();
        let last = self.samples.back().map(|(taken, _)| *taken);
        if last.is_none_or(|taken| now.duration_since(taken) >= self.keep_for / SAMPLES) {
            self.samples.push_back((now, index.current()));
        }
        let mut target = index.compacted();
        while let Some((taken, revision)) = self.samples.front()
            && now.duration_since(*taken) >= self.keep_for
        {
            target = target.max(*revision);
            self.samples.pop_front();
        }
        let target = target.max(self.size_target(index, room).unwrap_or(0));
        (target > index.compacted()).then_some(target)
    }

    /// The revision to compact to because of the size alone; cheap enough to ask at every commit.
    pub(super) fn size_target(&self, index: &Index, room: u64) -> Option<Revision> {
        let keep_bytes = self.keep_bytes.min(room);
        // Some room, so that not every write compacts.
        let keep = keep_bytes / 10 * 9;
        (index.superseded_cost() > keep_bytes).then(|| index.revision_to_keep(keep))
    }
}
