//! A snapshot of the file: one read transaction, whatever is written or compacted meanwhile.

use std::sync::Arc;
use std::vec::IntoIter;

use async_trait::async_trait;
use bytes::Bytes;

use super::super::snapshot::Rows;
use super::super::{Error, Snapshot, SnapshotEntry};
use super::blocking;
use super::database::Shared;
use super::index::Version;
use super::log::{LogReader, LogTable};

/// Keys per batch.
const CHUNK: usize = 500;

#[derive(Debug)]
struct LogRows {
    shared: Arc<Shared>,
    keys: IntoIter<(Bytes, Version)>,
    /// `None` after a failure.
    log: Option<LogTable>,
}

/// Reads the keys with the prefix as they are now.
pub(super) fn begin(shared: &Arc<Shared>, prefix: &[u8]) -> Result<Snapshot, Error> {
    let ((revision, keys), reader) =
        shared.look_up(|index| Ok((index.current(), index.current_versions(prefix))))?;
    let rows = LogRows {
        shared: Arc::clone(shared),
        keys: keys.into_iter(),
        log: Some(reader.log),
    };
    Ok(Snapshot::new(revision, rows))
}

#[async_trait]
impl Rows for LogRows {
    async fn next_chunk(&mut self) -> Result<Option<Vec<SnapshotEntry>>, Error> {
        let keys: Vec<(Bytes, Version)> = self.keys.by_ref().take(CHUNK).collect();
        let Some(log) = self.log.take().filter(|_| !keys.is_empty()) else {
            return Ok(None);
        };
        let shared = Arc::clone(&self.shared);
        let (entries, log) = blocking(move || {
            let reader = LogReader {
                shared: &shared,
                log,
            };
            let entries = keys.into_iter().map(|(key, version)| {
                Ok(SnapshotEntry {
                    entry: reader.entry(key, version.row)?,
                    expires_at: version.put.map_or(0, |put| put.expires_at),
                })
            });
            let entries = entries.collect::<Result<Vec<SnapshotEntry>, Error>>()?;
            Ok((entries, reader.log))
        })
        .await?;
        self.log = Some(log);
        Ok(Some(entries))
    }
}
