//! The database file: who may read it, and whether its data reached the disk.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::ops::Bound;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Passes everything on and remembers a failed flush.
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
