//! Reading the log of all changes.

use ::redb::{ReadOnlyTable, ReadTransaction, StorageError, TableDefinition};
use bytes::Bytes;

use super::super::{Change, Entry, Error};
use super::database::Shared;
use super::row::{Row, RowId};

/// Row number to change; see [`super::row`].
pub(super) const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");

/// The log as a table.
pub(super) type LogTable = ReadOnlyTable<u64, &'static [u8]>;

pub(super) fn open(txn: ReadTransaction) -> Result<LogTable, ::redb::Error> {
    Ok(txn.open_table(LOG)?)
}

pub(super) fn parse<'a>(name: &str, row: RowId, bytes: &'a [u8]) -> Result<Row<'a>, Error> {
    Row::parse(bytes).map_err(|problem| Error::Damaged {
        store: name.to_owned(),
        row: row.0,
        problem,
    })
}

/// A row as a change, its previous entry left out.
fn change(row: Row<'_>, row_id: RowId) -> Change {
    let key = Bytes::copy_from_slice(row.key);
    Change {
        entry: row.entry(key.clone(), row_id),
        key,
        revision: row_id.revision(),
        previous: None,
    }
}

/// The log as of one moment.
#[derive(Debug)]
pub(super) struct LogReader<'a> {
    pub(super) shared: &'a Shared,
    pub(super) log: LogTable,
}

impl LogReader<'_> {
    /// The entry that a put has made.
    pub(super) fn entry(&self, key: Bytes, row: RowId) -> Result<Entry, Error> {
        let bytes = self.log.get(row.0).map_err(|error| self.failed(error))?;
        let damaged = |problem| Error::Damaged {
            store: self.shared.name.clone(),
            row: row.0,
            problem,
        };
        let bytes = bytes.ok_or_else(|| damaged("the row is missing"))?;
        let parsed = parse(&self.shared.name, row, bytes.value())?;
        parsed
            .entry(key, row)
            .ok_or_else(|| damaged("a put was expected"))
    }

    /// The changes of a prefix from row `from` to row `to`, looking at no more than `limit` rows;
    /// and the row to go on from, if there may be more.
    pub(super) fn changes(
        &self,
        (from, to): (RowId, RowId),
        prefix: &[u8],
        with_previous: bool,
        limit: usize,
    ) -> Result<(Vec<Change>, Option<RowId>), Error> {
        let rows = self
            .log
            .range(from.0..to.0)
            .map_err(|error| self.failed(error))?;
        let mut changes = Vec::new();
        for (seen, item) in rows.enumerate() {
            let (row_id, bytes) = item.map_err(|error| self.failed(error))?;
            let row_id = RowId(row_id.value());
            if seen == limit {
                return Ok((changes, Some(row_id)));
            }
            let row = parse(&self.shared.name, row_id, bytes.value())?;
            if !row.key.starts_with(prefix) {
                continue;
            }
            let mut change = change(row, row_id);
            if let Some(previous) = row.previous.filter(|_| with_previous) {
                change.previous = Some(self.entry(change.key.clone(), previous)?);
            }
            changes.push(change);
        }
        Ok((changes, None))
    }

    fn failed(&self, error: StorageError) -> Error {
        self.shared.read_error(error.into())
    }
}
