//! Which row of the log holds which key at which revision, in memory.
//!
//! The index is derived: it is rebuilt from the log on opening. Only the writer changes it, after
//! a commit for what was added and before a commit for what is removed, so a row found here is
//! always in the file.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use bytes::Bytes;

use super::super::entry::prefix_end;
use super::super::{Error, RangeRequest, Revision};
use super::row::RowId;

/// One state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) row: RowId,
    /// `None` if the key was deleted here.
    pub(super) put: Option<Put>,
    /// Bytes of the row.
    pub(super) size: u32,
}

/// What the index remembers of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Put {
    pub(super) create_revision: Revision,
    pub(super) expires_at: u64,
}

/// A row that no read at or above a revision can see.
#[derive(Debug)]
struct Superseded {
    at: Revision,
    row: RowId,
    key: Bytes,
    size: u32,
}

/// What a superseded row costs in memory, beside its bytes on disk.
const ROW_OVERHEAD: u64 = 128;

/// The state of a key at a revision.
pub(super) type Located = (Bytes, RowId);

/// The index. See the module documentation.
#[derive(Debug)]
pub(super) struct Index {
    /// Versions of each key, oldest first, never empty.
    keys: BTreeMap<Bytes, Vec<Version>>,
    current: Revision,
    compacted: Revision,
    /// In order of `at`, since that is the order of commits.
    superseded: VecDeque<Superseded>,
    superseded_cost: u64,
    /// Bytes of the rows that hold what keys have now.
    live_bytes: u64,
    expiries: BTreeSet<(u64, Bytes)>,
}

impl Index {
    /// An empty index of a store that was compacted at `compacted` (zero for never).
    pub(super) fn new(compacted: Revision) -> Self {
        Self {
            keys: BTreeMap::new(),
            // Revision 1 is that of an empty etcd too. Rows at or below the compacted revision may
            // all be gone, so that revision counts as used.
            current: compacted.max(1),
            compacted,
            superseded: VecDeque::new(),
            superseded_cost: 0,
            live_bytes: 0,
            expiries: BTreeSet::new(),
        }
    }

    pub(super) fn current(&self) -> Revision {
        self.current
    }

    pub(super) fn compacted(&self) -> Revision {
        self.compacted
    }

    /// Bytes that compaction could free.
    pub(super) fn superseded_cost(&self) -> u64 {
        self.superseded_cost
    }

    /// Bytes of what keys have now.
    pub(super) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// The keys with a prefix that exist now, in byte order.
    pub(super) fn current_versions(&self, prefix: &[u8]) -> Vec<(Bytes, Version)> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        (self.keys.range::<[u8], _>(from))
            .take_while(|(key, _)| key.starts_with(prefix))
            .filter_map(|(key, versions)| {
                let version = versions.last().filter(|version| version.put.is_some())?;
                Some((key.clone(), *version))
            })
            .collect()
    }

    /// The key as it is, if it exists.
    pub(super) fn latest(&self, key: &[u8]) -> Option<Version> {
        let version = *self.keys.get(key)?.last()?;
        version.put.map(|_| version)
    }

    /// The revision to read at, if it can be read.
    pub(super) fn readable(&self, at: Option<Revision>) -> Result<Revision, Error> {
        match at {
            None => Ok(self.current),
            Some(requested) if requested > self.current => Err(Error::FutureRevision { requested }),
            Some(requested) if requested < self.compacted => Err(Error::Compacted { requested }),
            Some(requested) => Ok(requested),
        }
    }

    /// The row that holds the key at a readable revision.
    pub(super) fn locate(&self, key: &[u8], at: Revision) -> Option<RowId> {
        visible(self.keys.get(key)?, at)
    }

    /// The rows of a range at a readable revision, and how many more there are.
    pub(super) fn locate_range(&self, request: &RangeRequest, at: Revision) -> (Vec<Located>, u64) {
        let end = prefix_end(&request.prefix);
        let first = request.first_key();
        if end.as_deref().is_some_and(|end| first >= end) {
            return (Vec::new(), 0);
        }
        let bounds = (
            Bound::Included(first),
            end.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
        );
        let mut rows = (self.keys.range::<[u8], _>(bounds))
            .filter_map(|(key, versions)| Some((key, visible(versions, at)?)));
        let limit = request.limit.unwrap_or(usize::MAX);
        let page = rows
            .by_ref()
            .take(limit)
            .map(|(key, row)| (key.clone(), row));
        let page: Vec<Located> = page.collect();
        (page, rows.fold(0, |count, _| count + 1))
    }

    /// Adds a version. Versions come in the order of their rows.
    pub(super) fn apply(&mut self, key: Bytes, version: Version) {
        let revision = version.row.revision();
        self.current = self.current.max(revision);
        if let Some(put) = version.put
            && put.expires_at != 0
        {
            self.expiries.insert((put.expires_at, key.clone()));
        }
        let versions = self
            .keys
            .entry(key.clone())
            .or_insert_with(|| Vec::with_capacity(1));
        let before = versions.last().copied();
        versions.push(version);
        if version.put.is_some() {
            self.live_bytes += u64::from(version.size);
        }
        if let Some(before) = before.filter(|before| before.put.is_some()) {
            let expires_at = before.put.map_or(0, |put| put.expires_at);
            let stays = version.put.is_some_and(|put| put.expires_at == expires_at);
            if expires_at != 0 && !stays {
                self.expiries.remove(&(expires_at, key.clone()));
            }
            self.live_bytes -= u64::from(before.size);
            self.supersede(revision, key.clone(), before);
        }
        // A delete is not visible to reads at its revision, so it can be removed with what it
        // deleted.
        if version.put.is_none() {
            self.supersede(revision, key, version);
        }
    }

    fn supersede(&mut self, at: Revision, key: Bytes, version: Version) {
        self.superseded_cost += u64::from(version.size) + ROW_OVERHEAD;
        self.superseded.push_back(Superseded {
            at,
            row: version.row,
            key,
            size: version.size,
        });
    }

    /// The revision to compact to so that at most `bytes` of superseded rows stay.
    pub(super) fn revision_to_keep(&self, bytes: u64) -> Revision {
        let mut excess = self.superseded_cost.saturating_sub(bytes);
        let mut revision = self.compacted;
        for row in &self.superseded {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(u64::from(row.size) + ROW_OVERHEAD);
            revision = row.at;
        }
        revision
    }

    /// Makes revisions below `revision` unreadable.
    pub(super) fn compact(&mut self, revision: Revision) {
        self.compacted = self.compacted.max(revision);
    }

    /// Whether compaction has left rows to remove.
    pub(super) fn has_garbage(&self) -> bool {
        let first = self.superseded.front();
        first.is_some_and(|row| row.at <= self.compacted)
    }

    /// Forgets up to `limit` rows that compaction has made unreadable, oldest first.
    pub(super) fn take_garbage(&mut self, limit: usize) -> Vec<RowId> {
        let mut rows = Vec::new();
        while rows.len() < limit && self.has_garbage() {
            let Some(row) = self.superseded.pop_front() else {
                break;
            };
            self.superseded_cost -= u64::from(row.size) + ROW_OVERHEAD;
            self.forget(&row);
            rows.push(row.row);
        }
        rows
    }

    fn forget(&mut self, row: &Superseded) {
        let Some(versions) = self.keys.get_mut(&row.key) else {
            return;
        };
        versions.retain(|version| version.row != row.row);
        if versions.is_empty() {
            self.keys.remove(&row.key);
        } else if versions.len() == 1 {
            versions.shrink_to_fit();
        }
    }

    /// Up to `limit` expired keys, with the revision of their last put.
    pub(super) fn expired(&self, now: u64, limit: usize) -> Vec<(Bytes, Revision)> {
        (self.expiries.iter())
            .take_while(|(expires_at, _)| *expires_at <= now)
            .take(limit)
            .filter_map(|(_, key)| Some((key.clone(), self.latest(key)?.row.revision())))
            .collect()
    }
}

/// The last version at or before a revision, unless it is a delete.
fn visible(versions: &[Version], at: Revision) -> Option<RowId> {
    let version = versions
        .iter()
        .rfind(|version| version.row.revision() <= at)?;
    version.put.map(|_| version.row)
}
