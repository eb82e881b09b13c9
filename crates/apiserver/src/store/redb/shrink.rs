//! Shrinking a file: compacts history, and truncates the file.

use std::path::Path;

use ::redb::Database;

use super::super::Error;
use super::RedbStore;
use super::database::{load_index, open_error, open_path};
use super::format::{COMPACTED, META};
use super::log::{LOG, guarded};

/// Rows removed in one commit.
const ROWS_PER_COMMIT: usize = 10_000;

impl RedbStore {
    /// Compacts all history of a file and makes it as small as possible. Returns its size before
    /// and after.
    ///
    /// Blocks. Fails if another process has the file open.
    pub fn compact_file(path: &Path) -> Result<(u64, u64), Error> {
        let name = path.display().to_string();
        let failed = |error| open_error(&name, error);
        let size = || std::fs::metadata(path).map(|metadata| metadata.len());
        let before = size().map_err(|error| failed(error.into()))?;
        let compacted = guarded(|| {
            let mut database = open_path(path)?;
            forget_history(&database, &name)?;
            shrink(&mut database)
        });
        compacted.map_err(failed)?;
        let after = size().map_err(|error| failed(error.into()))?;
        Ok((before, after))
    }
}

fn forget_history(database: &Database, name: &str) -> Result<(), ::redb::Error> {
    let mut index = load_index(database, name)?;
    index.compact(index.current());
    loop {
        let rows = index.take_garbage(ROWS_PER_COMMIT);
        let txn = database.begin_write()?;
        {
            let mut log = txn.open_table(LOG)?;
            for row in &rows {
                log.remove(row.0)?;
            }
            txn.open_table(META)?.insert(COMPACTED, index.compacted())?;
        }
        txn.commit()?;
        if rows.is_empty() {
            return Ok(());
        }
    }
}

/// Moves pages to the front of the file until nothing more can be truncated.
pub(super) fn shrink(database: &mut Database) -> Result<(), ::redb::Error> {
    while database.compact()? {}
    Ok(())
}
