//! Transactions: writes and their conditions.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;

use super::error::readable;
use super::{Entry, Error, Revision};

/// Comparisons, and writes, in one transaction: etcd's default limit, so that both stores refuse
/// the same.
pub const MAX_TXN_OPERATIONS: usize = 128;

/// Keys and values of one transaction: etcd's default limit.
pub const MAX_TXN_BYTES: usize = 1536 * 1024;

/// A condition on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compare {
    /// The key.
    pub key: Bytes,
    /// The revision of its last put; `None` requires that the key does not exist.
    pub mod_revision: Option<Revision>,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Sets a value.
    Put {
        /// The key.
        key: Bytes,
        /// Its value.
        value: Bytes,
        /// Deletes the key after this time unless it is put again before. Expiry is never early
        /// and may be late by a few seconds (on etcd by 5 % of the time, at most a minute).
        ttl: Option<Duration>,
    },
    /// Removes a key if it exists.
    Delete {
        /// The key.
        key: Bytes,
    },
}

impl Write {
    /// The key that is written.
    pub fn key(&self) -> &Bytes {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Put { key, value, .. } => key.len() + value.len(),
            Self::Delete { key } => key.len(),
        }
    }
}

/// Writes that take place together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    /// All must hold.
    pub compares: Vec<Compare>,
    /// Each key at most once.
    pub writes: Vec<Write>,
    /// Whether this takes place even if the store is full, as deletes do.
    pub is_urgent: bool,
}

impl Txn {
    /// A transaction that does nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a key that must not exist.
    pub fn create(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        let key = key.into();
        Self::new().if_absent(key.clone()).put(key, value)
    }

    /// Puts a key whose last put must have been at `mod_revision`.
    pub fn update(key: impl Into<Bytes>, mod_revision: Revision, value: impl Into<Bytes>) -> Self {
        let key = key.into();
        Self::new().if_at(key.clone(), mod_revision).put(key, value)
    }

    /// Deletes a key whose last put must have been at `mod_revision`.
    pub fn remove(key: impl Into<Bytes>, mod_revision: Revision) -> Self {
        let key = key.into();
        Self::new().if_at(key.clone(), mod_revision).delete(key)
    }

    /// Takes place even if the store is full, as deletes do. For writes that lead to
    /// deletes, and for events about missing space.
    #[must_use]
    pub fn urgent(mut self) -> Self {
        self.is_urgent = true;
        self
    }

    /// Requires that the key does not exist.
    #[must_use]
    pub fn if_absent(mut self, key: impl Into<Bytes>) -> Self {
        self.compares.push(Compare {
            key: key.into(),
            mod_revision: None,
        });
        self
    }

    /// Requires that the key was last put at `mod_revision`.
    #[must_use]
    pub fn if_at(mut self, key: impl Into<Bytes>, mod_revision: Revision) -> Self {
        self.compares.push(Compare {
            key: key.into(),
            mod_revision: Some(mod_revision),
        });
        self
    }

    /// Sets a value.
    #[must_use]
    pub fn put(self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        self.write(key, value, None)
    }

    /// Sets a value that expires.
    #[must_use]
    pub fn put_for(self, ttl: Duration, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        self.write(key, value, Some(ttl))
    }

    /// Removes a key if it exists.
    #[must_use]
    pub fn delete(mut self, key: impl Into<Bytes>) -> Self {
        self.writes.push(Write::Delete { key: key.into() });
        self
    }

    fn write(
        mut self,
        key: impl Into<Bytes>,
        value: impl Into<Bytes>,
        ttl: Option<Duration>,
    ) -> Self {
        self.writes.push(Write::Put {
            key: key.into(),
            value: value.into(),
            ttl,
        });
        self
    }

    /// Keys and values together.
    pub(super) fn bytes(&self) -> usize {
        let compared: usize = self.compares.iter().map(|compare| compare.key.len()).sum();
        compared + self.writes.iter().map(Write::bytes).sum::<usize>()
    }

    /// Checks the limits of a transaction.
    pub(super) fn check(&self) -> Result<(), Error> {
        let count = self.compares.len().max(self.writes.len());
        if count > MAX_TXN_OPERATIONS {
            let limit = MAX_TXN_OPERATIONS;
            return Err(Error::TooManyOperations { count, limit });
        }
        let bytes = self.bytes();
        if bytes > MAX_TXN_BYTES {
            let limit = MAX_TXN_BYTES;
            return Err(Error::TooLarge { bytes, limit });
        }
        if self.writes.len() > 1 {
            let mut keys = BTreeSet::new();
            if let Some(twice) = self.writes.iter().find(|write| !keys.insert(write.key())) {
                let key = readable(twice.key());
                return Err(Error::DuplicateKey { key });
            }
        }
        Ok(())
    }
}

/// The result of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All comparisons held and the changes are durable.
    Committed {
        /// The revision of the changes; the current one if there were none.
        revision: Revision,
    },
    /// A comparison failed and nothing was changed.
    Conflict {
        /// The first key whose comparison failed.
        key: Bytes,
        /// The key as it was at the comparison or later.
        current: Option<Entry>,
    },
}
