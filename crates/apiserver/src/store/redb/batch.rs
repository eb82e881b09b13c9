//! Transactions that wait for a commit.
//!
//! Conditions are checked against the index plus what the batch has staged so far, so transactions
//! in one batch see each other exactly as if they had come one after the other.

use std::collections::HashMap;

use bytes::Bytes;

use super::super::{Change, Entry, Revision, Txn, Write};
use super::clock::millis;
use super::index::{Index, Put, Version};
use super::row::{Row, RowId};

/// The result of a transaction. The caller reads the current entry of a conflict.
#[derive(Debug)]
pub(super) enum Reply {
    Committed { revision: Revision },
    Conflict { key: Bytes },
}

/// A change that is not yet committed.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) key: Bytes,
    value: Option<Bytes>,
    pub(super) version: Version,
    pub(super) previous: Option<RowId>,
}

impl Staged {
    pub(super) fn row(&self) -> Row<'_> {
        let put = self.version.put;
        Row {
            key: &self.key,
            value: self.value.as_deref(),
            create_revision: put.map_or(0, |put| put.create_revision),
            expires_at: put.map_or(0, |put| put.expires_at),
            previous: self.previous,
        }
    }

    pub(super) fn change(&self) -> Change {
        let entry = |value: &Bytes| Entry {
            key: self.key.clone(),
            value: value.clone(),
            create_revision: self.version.put.map_or(0, |put| put.create_revision),
            mod_revision: self.version.row.revision(),
            unreadable: None,
        };
        Change {
            key: self.key.clone(),
            revision: self.version.row.revision(),
            entry: self.value.as_ref().map(entry),
            previous: None,
        }
    }
}

/// The changes of many transactions, to be committed together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) staged: Vec<Staged>,
    /// The position of each staged key.
    latest: HashMap<Bytes, Option<Version>>,
    /// Of the last change.
    pub(super) revision: Revision,
    pub(super) bytes: usize,
    /// By how many bytes the staged changes grow the stored data.
    pub(super) growth: i64,
    /// When the batch began, in milliseconds since 1970.
    pub(super) now: u64,
}

impl Batch {
    pub(super) fn new(index: &Index, now: u64) -> Self {
        Self {
            revision: index.current(),
            now,
            ..Self::default()
        }
    }

    fn latest(&self, index: &Index, key: &[u8]) -> Option<Version> {
        match self.latest.get(key) {
            Some(staged) => *staged,
            None => index.latest(key),
        }
    }

    /// By how many bytes a transaction would grow the stored data.
    pub(super) fn growth_of(&self, index: &Index, txn: &Txn) -> i64 {
        let growths = txn.writes.iter().map(|write| {
            let before = self.latest(index, write.key());
            let after = match write {
                Write::Delete { .. } => 0,
                Write::Put { key, value, .. } => Row {
                    key,
                    value: Some(value),
                    create_revision: 0,
                    expires_at: 0,
                    previous: None,
                }
                .size(),
            };
            growth(before, after)
        });
        growths.sum()
    }

    /// Adds a transaction if its conditions hold.
    pub(super) fn stage(&mut self, index: &Index, txn: Txn) -> Reply {
        for compare in &txn.compares {
            let version = self.latest(index, &compare.key);
            if version.map(|version| version.row.revision()) != compare.mod_revision {
                let key = compare.key.clone();
                return Reply::Conflict { key };
            }
        }
        self.bytes += txn.bytes();
        let revision = self.revision + 1;
        let mut position = 0;
        for write in txn.writes {
            let row = RowId::new(revision, position);
            if self.stage_write(index, write, row) {
                self.revision = revision;
                position += 1;
            }
        }
        let revision = self.revision;
        Reply::Committed { revision }
    }

    /// Whether the write changes anything.
    fn stage_write(&mut self, index: &Index, write: Write, row: RowId) -> bool {
        let before = self.latest(index, write.key());
        let (key, value, put) = match write {
            Write::Delete { .. } if before.is_none() => return false,
            Write::Delete { key } => (key, None, None),
            Write::Put { key, value, ttl } => {
                let put = Put {
                    create_revision: (before.and_then(|version| version.put))
                        .map_or(row.revision(), |put| put.create_revision),
                    expires_at: ttl.map_or(0, |ttl| self.now.saturating_add(millis(ttl))),
                };
                (key, Some(value), Some(put))
            }
        };
        let previous = before.map(|version| version.row);
        let mut version = Version { row, put, size: 0 };
        let mut staged = Staged {
            key,
            value,
            version,
            previous,
        };
        version.size = u32::try_from(staged.row().size()).unwrap_or(u32::MAX);
        staged.version = version;
        let after = staged.value.as_ref().map_or(0, |_| staged.row().size());
        self.growth += growth(before, after);
        let latest = version.put.map(|_| version);
        self.latest.insert(staged.key.clone(), latest);
        self.staged.push(staged);
        true
    }
}

/// By how many bytes a key grows that had a version and has `after` bytes then.
fn growth(before: Option<Version>, after: usize) -> i64 {
    let before = before.map_or(0, |version| i64::from(version.size));
    i64::try_from(after).unwrap_or(i64::MAX) - before
}
