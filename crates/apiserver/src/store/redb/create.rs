//! Creates a file with the content of a snapshot or of another store.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::super::{Error, RESTORED_REVISION_GAP, Revision, SnapshotEntry};
use super::RedbStore;
use super::database::{open_error, open_path};
use super::format::{COMPACTED, META};
use super::log::{LOG, guarded};
use super::row::{Row, RowId};

impl RedbStore {
    /// Writes a new file. Keys keep their revisions; the store continues
    /// [far behind](RESTORED_REVISION_GAP) `revision`, and earlier revisions count as compacted.
    /// Keys that cannot be read are left out. Returns how many keys were written, and the revision.
    ///
    /// Blocks. The file is only complete if this succeeds.
    pub fn create_with(
        path: &Path,
        revision: Revision,
        entries: &mut dyn Iterator<Item = Result<SnapshotEntry, Error>>,
    ) -> Result<(u64, Revision), Error> {
        let name = path.display().to_string();
        let database = open_path(path).map_err(|error| open_error(&name, error))?;
        let mut failed = None;
        let written = guarded(|| {
            let txn = database.begin_write()?;
            let mut keys = 0;
            let mut last = revision;
            {
                let mut log = txn.open_table(LOG)?;
                let mut positions: HashMap<Revision, u8> = HashMap::new();
                for entry in &mut *entries {
                    let SnapshotEntry { entry, expires_at } = match entry {
                        Ok(entry) if entry.entry.unreadable.is_some() => continue,
                        Ok(entry) => entry,
                        Err(error) => {
                            failed = Some(error);
                            return Err(::redb::Error::PreviousIo);
                        }
                    };
                    let next = positions.entry(entry.mod_revision).or_default();
                    let row_id = RowId::new(entry.mod_revision, *next);
                    *next = next.checked_add(1).ok_or_else(too_many)?;
                    last = last.max(entry.mod_revision);
                    let row = Row {
                        key: &entry.key,
                        value: Some(&entry.value),
                        create_revision: entry.create_revision,
                        expires_at,
                        previous: None,
                    };
                    let mut place = log.insert_reserve(row_id.0, row.size())?;
                    row.write_to(row_id, place.as_mut());
                    keys += 1;
                }
            }
            let goes_on_at = last + RESTORED_REVISION_GAP;
            txn.open_table(META)?.insert(COMPACTED, goes_on_at)?;
            txn.commit()?;
            Ok((keys, goes_on_at))
        });
        match (written, failed) {
            (_, Some(error)) => Err(error),
            (Err(error), None) => Err(open_error(&name, error)),
            (Ok(written), None) => Ok(written),
        }
    }
}

fn too_many() -> ::redb::Error {
    ::redb::Error::Io(io::Error::new(
        io::ErrorKind::InvalidData,
        "more than 255 keys were written at one revision",
    ))
}

impl Error {
    /// A failure to read the source of a new store.
    pub fn reading(
        store: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::Read {
            store: store.into(),
            source: Arc::new(source),
        }
    }
}
