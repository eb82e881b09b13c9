//! Reading the log of all changes.

use std::sync::Arc;

use ::redb::{ReadOnlyTable, ReadTransaction, TableDefinition};
use bytes::Bytes;

use super::super::panics::catch_panic;
use super::super::{Change, Entry, Error};
use super::database::Shared;
use super::row::{BAD_HEADER, Row, RowId};

/// Row number to change; see [`super::row`].
pub(super) const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");

/// The log as a table.
pub(super) type LogTable = ReadOnlyTable<u64, &'static [u8]>;

pub(super) fn open(txn: ReadTransaction) -> Result<LogTable, ::redb::Error> {
    Ok(txn.open_table(LOG)?)
}

/// Runs a call of the database; a panic means that the file is corrupt.
pub(super) fn guarded<T>(
    call: impl FnOnce() -> Result<T, ::redb::Error>,
) -> Result<T, ::redb::Error> {
    catch_panic(call).unwrap_or_else(|panic| Err(::redb::Error::Corrupted(panic)))
}

/// The entry that the row wrote, marked if it is corrupt; `None` for a delete.
fn entry_of(key: Bytes, row_id: RowId, bytes: &[u8]) -> Option<Entry> {
    match Row::parse(row_id, bytes) {
        Ok((row, is_intact)) => row.entry(key, row_id, is_intact),
        Err(problem) => Some(damaged(key, row_id, problem)),
    }
}

/// A key that has a value which cannot be read.
pub(super) fn damaged(key: Bytes, row_id: RowId, problem: &str) -> Entry {
    Entry {
        key,
        value: Bytes::new(),
        create_revision: 0,
        mod_revision: row_id.revision(),
        unreadable: Some(Arc::from(problem)),
    }
}

/// The log as of one moment.
#[derive(Debug)]
pub(super) struct LogReader<'a> {
    pub(super) shared: &'a Shared,
    pub(super) log: LogTable,
}

impl LogReader<'_> {
    /// The entry that a put wrote, marked if it is corrupt.
    pub(super) fn entry(&self, key: Bytes, row: RowId) -> Result<Entry, Error> {
        let found = guarded(|| {
            let bytes = self.log.get(row.0)?;
            Ok(match bytes {
                None => Some(damaged(key.clone(), row, "its row is missing")),
                Some(bytes) => entry_of(key.clone(), row, bytes.value()),
            })
        });
        let found = found.map_err(|error| self.shared.read_error(error))?;
        Ok(found.unwrap_or_else(|| damaged(key, row, "its row is a delete")))
    }

    /// The changes of a prefix from row `from` to row `to`, reading no more than `limit` rows;
    /// and the row to continue from, if there may be more.
    pub(super) fn changes(
        &self,
        range: (RowId, RowId),
        prefix: &[u8],
        with_previous: bool,
        limit: usize,
    ) -> Result<(Vec<Change>, Option<RowId>), Error> {
        let found = guarded(|| Ok(self.read_changes(range, prefix, limit)));
        let found = found.and_then(|read| read);
        let (found, next) = found.map_err(|error| self.shared.read_error(error))?;
        let mut changes = Vec::with_capacity(found.len());
        for found in found {
            let (mut change, previous) = found.map_err(|row| Error::Damaged {
                store: self.shared.name.clone(),
                row: row.0,
                problem: BAD_HEADER,
            })?;
            if let Some(previous) = previous.filter(|_| with_previous) {
                change.previous = Some(self.entry(change.key.clone(), previous)?);
            }
            changes.push(change);
        }
        Ok((changes, next))
    }

    fn read_changes(
        &self,
        (from, to): (RowId, RowId),
        prefix: &[u8],
        limit: usize,
    ) -> Result<(Vec<FoundChange>, Option<RowId>), ::redb::Error> {
        let mut found = Vec::new();
        for (seen, item) in self.log.range(from.0..to.0)?.enumerate() {
            let (row_id, bytes) = item?;
            let row_id = RowId(row_id.value());
            if seen == limit {
                return Ok((found, Some(row_id)));
            }
            found.extend(change(row_id, bytes.value(), prefix));
        }
        Ok((found, None))
    }
}

/// A change and the row it supersedes; the number of a row without a known key.
type FoundChange = Result<(Change, Option<RowId>), RowId>;

/// A row as a change, its previous entry left out; `None` if it is of another prefix.
fn change(row_id: RowId, bytes: &[u8], prefix: &[u8]) -> Option<FoundChange> {
    let repaired;
    let (row, is_intact) = match Row::parse(row_id, bytes) {
        Ok(parsed) => parsed,
        Err(_) => {
            repaired = Row::repaired(row_id, bytes);
            match repaired
                .as_deref()
                .and_then(|bytes| Row::parse(row_id, bytes).ok())
            {
                Some((row, _)) => (row, false),
                None => return Some(Err(row_id)),
            }
        }
    };
    if !row.key.starts_with(prefix) {
        return None;
    }
    let key = Bytes::copy_from_slice(row.key);
    let change = Change {
        entry: row.entry(key.clone(), row_id, is_intact),
        key,
        revision: row_id.revision(),
        previous: None,
    };
    Some(Ok((change, row.previous)))
}
