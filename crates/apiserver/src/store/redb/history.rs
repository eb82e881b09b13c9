//! Past changes, read from the log in batches.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::super::watch::History;
use super::super::{Change, Error};
use super::blocking;
use super::database::Shared;
use super::row::RowId;

/// Rows read per batch.
const CHUNK_ROWS: usize = 500;

#[derive(Clone, Debug)]
pub(super) struct LogHistory {
    pub(super) shared: Arc<Shared>,
    pub(super) prefix: Bytes,
    pub(super) with_previous: bool,
    /// The next row to read.
    pub(super) from: RowId,
    /// The first row that is delivered live.
    pub(super) to: RowId,
}

impl LogHistory {
    fn read_chunk(&self) -> Result<(Vec<Change>, Option<RowId>), Error> {
        let ((), log) = self.shared.look_up(|index| {
            // The rest of this revision, and what its changes superseded, must still be there.
            if self.from.revision() <= index.compacted() {
                let requested = self.from.revision();
                return Err(Error::Compacted { requested });
            }
            Ok(())
        })?;
        log.changes(
            (self.from, self.to),
            &self.prefix,
            self.with_previous,
            CHUNK_ROWS,
        )
    }
}

#[async_trait]
impl History for LogHistory {
    async fn next_chunk(&mut self) -> Result<Option<Vec<Change>>, Error> {
        if self.from >= self.to {
            return Ok(None);
        }
        let reader = self.clone();
        let (changes, next) = blocking(move || reader.read_chunk()).await?;
        self.from = next.unwrap_or(self.to);
        Ok(Some(changes))
    }
}
