//! The database file: its permissions, and whether its data reached the disk.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::ops::Bound;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::redb::backends::FileBackend;
use ::redb::{BackendError, DatabaseError, StorageBackend, StorageError};

/// Only the owner: the store holds secrets.
const MODE: u32 = 0o600;

/// Opens the file, creating it if needed.
pub(super) fn open(path: &Path) -> io::Result<Box<dyn StorageBackend>> {
    let file = (OpenOptions::new().read(true).write(true))
        .create(true)
        .truncate(false)
        .mode(MODE)
        .open(path)?;
    if file.metadata()?.permissions().mode() & 0o7777 != MODE {
        file.set_permissions(Permissions::from_mode(MODE))?;
    }
    // The file's name has to survive a crash as well as its content.
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    let backend = FileBackend::new(file).map_err(|error| match error {
        DatabaseError::Storage(StorageError::Io(error)) => error,
        other => io::Error::other(other),
    })?;
    Ok(Box::new(backend))
}

/// Opens the file without changing it.
pub(super) fn open_to_read(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// A file with an in-memory overlay for changes: a database can be opened, repaired and
/// checked without touching the file.
#[derive(Debug)]
pub(super) struct Overlay {
    file: File,
    changes: Mutex<Changes>,
}

#[derive(Debug)]
struct Changes {
    /// Of what reads see.
    len: u64,
    /// Of the file, as far as it still counts.
    file_len: u64,
    blocks: HashMap<u64, Vec<u8>>,
}

const BLOCK: u64 = 4096;

impl Overlay {
    pub(super) fn new(file: File) -> Self {
        let len = file.metadata().map_or(0, |metadata| metadata.len());
        let changes = Changes {
            len,
            file_len: len,
            blocks: HashMap::new(),
        };
        Self {
            file,
            changes: Mutex::new(changes),
        }
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block as it is.
    fn block(&self, changes: &Changes, number: u64) -> io::Result<Vec<u8>> {
        if let Some(block) = changes.blocks.get(&number) {
            return Ok(block.clone());
        }
        let mut block = vec![0; usize::try_from(BLOCK).unwrap_or(0)];
        let start = number * BLOCK;
        let there = changes.file_len.saturating_sub(start).min(BLOCK);
        let there = usize::try_from(there).unwrap_or(0);
        self.file.read_exact_at(&mut block[..there], start)?;
        Ok(block)
    }
}

/// The parts of a stretch that lie in one block each: block, first byte in it, and length.
fn blocks_of(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut at = offset;
    let end = offset + len as u64;
    std::iter::from_fn(move || {
        let (number, start) = (at / BLOCK, at % BLOCK);
        let len = (BLOCK - start).min(end - at);
        at += len;
        let small = |number: u64| usize::try_from(number).unwrap_or(0);
        (len > 0).then(|| (number, small(start), small(len)))
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changes().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let changes = self.changes();
        if offset + out.len() as u64 > changes.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut rest = out;
        for (number, start, len) in blocks_of(offset, rest.len()) {
            let block = self.block(&changes, number)?;
            let (here, after) = rest.split_at_mut(len);
            here.copy_from_slice(&block[start..start + len]);
            rest = after;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut changes = self.changes();
        if len < changes.len {
            changes.file_len = changes.file_len.min(len);
            changes.blocks.retain(|number, _| *number * BLOCK < len);
        }
        changes.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut changes = self.changes();
        let mut rest = data;
        for (number, start, len) in blocks_of(offset, data.len()) {
            let mut block = self.block(&changes, number)?;
            let (here, after) = rest.split_at(len);
            block[start..start + len].copy_from_slice(here);
            changes.blocks.insert(number, block);
            rest = after;
        }
        Ok(())
    }
}

/// Forwards all calls and remembers a failed flush.
///
/// After one the system may have dropped the data while later flushes succeed, so the failure must
/// not be forgotten.
#[derive(Debug)]
pub(super) struct FlushGuard {
    pub(super) inner: Box<dyn StorageBackend>,
    pub(super) flush_failed: Arc<AtomicBool>,
}

impl StorageBackend for FlushGuard {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.inner.sync_data().inspect_err(|_| {
            self.flush_failed.store(true, Ordering::Release);
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.inner.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.lock_shared_range(start, end)
    }
    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.query_lock_range(start, end)
    }
}
