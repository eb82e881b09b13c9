//! The layout of the file, and migration from earlier layouts.
//!
//! Format 1 had rows without checksums in the table `log`. Format 2 has them in the table `rows`. A
//! file of another format is rejected.

use std::io;

use ::redb::{Database, ReadableTable, TableDefinition, WriteTransaction};

use super::log::LOG;
use super::row::{Row, RowId};

/// A few numbers about the store.
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// Below which revision nothing can be read.
pub(super) const COMPACTED: &str = "compacted";
const FORMAT: &str = "format";

/// The format that this program writes.
const CURRENT: u64 = 2;

/// The log of format 1.
const LOG_1: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");

/// Creates the tables of a new file, or migrates those of an earlier format. Both take place
/// in one transaction: whatever happens, the file has one format or the other.
pub(super) fn migrate(database: &Database, name: &str) -> Result<(), ::redb::Error> {
    let txn = database.begin_write()?;
    let format = (txn.open_table(META)?.get(FORMAT)?).map(|format| format.value());
    match format {
        Some(CURRENT) => {}
        None => {}
        Some(1) => {
            let rows = migrate_1(&txn)?;
            tracing::info!(
                store = name,
                from = 1,
                to = CURRENT,
                rows,
                "migrated store to current format"
            );
        }
        Some(other) => return Err(unknown(other)),
    }
    txn.open_table(LOG)?;
    if format != Some(CURRENT) {
        txn.open_table(META)?.insert(FORMAT, CURRENT)?;
    }
    txn.commit()?;
    Ok(())
}

/// Writes all rows again, with checksums.
fn migrate_1(txn: &WriteTransaction) -> Result<u64, ::redb::Error> {
    let mut count = 0;
    {
        let old = txn.open_table(LOG_1)?;
        let mut new = txn.open_table(LOG)?;
        for item in old.iter()? {
            let (row_id, bytes) = item?;
            let row_id = RowId(row_id.value());
            match Row::parse_format_1(bytes.value()) {
                Ok(row) => {
                    let mut place = new.insert_reserve(row_id.0, row.size())?;
                    row.write_to(row_id, place.as_mut());
                }
                // Kept unchanged for inspection; it reads as corrupt.
                Err(_) => {
                    new.insert(row_id.0, bytes.value())?;
                }
            }
            count += 1;
        }
    }
    txn.delete_table(LOG_1)?;
    Ok(count)
}

fn unknown(format: u64) -> ::redb::Error {
    ::redb::Error::Io(io::Error::new(
        io::ErrorKind::Unsupported,
        format!(
            "the file has format {format}, this program reads formats 1 to {CURRENT}: \
             a newer version of Plimsoll wrote it"
        ),
    ))
}
