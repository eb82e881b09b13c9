//! The opened file with its index: what readers and the writer share.

use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use ::redb::{Database, ReadableDatabase, ReadableTable, StorageBackend, WriteTransaction};
use bytes::Bytes;

use super::super::hub::Hub;
use super::super::{Change, Error};
use super::RedbOptions;
use super::file::{self, FlushGuard};
use super::format::{self, COMPACTED, META};
use super::index::{Index, Put, Version};
use super::log::{self, LogReader, guarded};
use super::row::{BAD_HEADER, BAD_VALUE, Row, RowId};

/// Opens the storage, each time the database is opened.
pub(super) type Opener = dyn Fn() -> io::Result<Box<dyn StorageBackend>> + Send + Sync;

pub(super) struct Shared {
    state: RwLock<State>,
    pub(super) hub: Hub,
    opener: Box<Opener>,
    /// The file, for messages.
    pub(super) name: String,
    cache_bytes: usize,
    pub(super) flush_failed: Arc<AtomicBool>,
    /// Why the store is not fully operational, if so.
    condition: Mutex<Option<Error>>,
    /// A read that failed; the database refuses everything until it is opened again.
    read_failure: Mutex<Option<Error>>,
    /// Set when the writer has failed: until when it is not known to be well.
    writer_unwell_until: Mutex<Option<Instant>>,
}

pub(super) struct State {
    pub(super) index: Index,
    /// The open database, or why there is none.
    pub(super) database: Result<Database, Error>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn open(
        opener: Box<Opener>,
        name: String,
        options: &RedbOptions,
    ) -> Result<Self, Error> {
        let cache_bytes = options.cache_bytes;
        let flush_failed = Arc::new(AtomicBool::new(false));
        let database = open_database(&opener, &flush_failed, cache_bytes, &name);
        let database = database.map_err(|source| open_error(&name, source))?;
        let index = load_index(&database, &name).map_err(|source| open_error(&name, source))?;
        Ok(Self {
            hub: Hub::new(index.current(), options.watch_buffer),
            state: RwLock::new(State {
                index,
                database: Ok(database),
            }),
            opener,
            name,
            cache_bytes,
            flush_failed,
            condition: Mutex::new(None),
            read_failure: Mutex::new(None),
            writer_unwell_until: Mutex::new(None),
        })
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        // The index is changed by plain inserts and removals; a panic between two of them is a bug
        // that poisoning would only hide behind another message.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks something up in the index, and opens the file as of the same moment or later.
    pub(super) fn look_up<T>(
        &self,
        look: impl FnOnce(&Index) -> Result<T, Error>,
    ) -> Result<(T, LogReader<'_>), Error> {
        let state = self.read();
        let found = look(&state.index)?;
        let database = state.database.as_ref().map_err(Clone::clone)?;
        let txn = guarded(|| Ok(database.begin_read()?));
        drop(state);
        let log = txn.and_then(|txn| guarded(|| log::open(txn)));
        let log = log.map_err(|error| self.read_error(error))?;
        Ok((found, LogReader { shared: self, log }))
    }

    pub(super) fn begin_write(&self) -> Result<WriteTransaction, ::redb::Error> {
        match &self.read().database {
            Ok(database) => Ok(database.begin_write()?),
            Err(_) => Err(::redb::Error::DatabaseClosed),
        }
    }

    /// Records that the database has to be reopened, unless that would not help.
    pub(super) fn read_error(&self, error: ::redb::Error) -> Error {
        if let ::redb::Error::Corrupted(problem) = error {
            return self.corrupt(problem);
        }
        let error = Error::Read {
            store: self.name.clone(),
            source: Arc::new(error),
        };
        self.read_failure().get_or_insert_with(|| error.clone());
        error
    }

    /// Why the store is not fully operational, if so.
    pub(super) fn condition(&self) -> Option<Error> {
        let down = self.read().database.as_ref().err().cloned();
        down.or_else(|| {
            let condition = self.condition.lock();
            condition.unwrap_or_else(PoisonError::into_inner).clone()
        })
    }

    pub(super) fn set_condition(&self, condition: Option<Error>) {
        let mut place = self
            .condition
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *place = condition;
    }

    /// Records that the writer has failed: of its last batch, only the content of the file is known,
    /// and some watchers may have got a change that others did not.
    pub(super) fn writer_failed(&self, error: &Error, unwell_until: Instant) {
        let until = self.writer_unwell_until.lock();
        *until.unwrap_or_else(PoisonError::into_inner) = Some(unwell_until);
        self.read_failure().get_or_insert_with(|| error.clone());
        self.hub.interrupt(error, 0);
    }

    /// Whether the writer has not failed lately.
    pub(super) fn writer_is_well(&self) -> bool {
        let until = self.writer_unwell_until.lock();
        let until = *until.unwrap_or_else(PoisonError::into_inner);
        until.is_none_or(|until| Instant::now() >= until)
    }

    /// The error of a file whose structure is corrupt.
    pub(super) fn corrupt(&self, problem: String) -> Error {
        let store = self.name.clone();
        tracing::error!(store, problem, "store file is damaged");
        Error::Corrupt { store, problem }
    }

    fn read_failure(&self) -> MutexGuard<'_, Option<Error>> {
        self.read_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The error after which the database has to be reopened before it can be used, if reopening
    /// may help.
    pub(super) fn trouble(&self) -> Option<Error> {
        let down = self.read().database.as_ref().err().cloned();
        let down = match down {
            Some(Error::Corrupt { .. }) => return None,
            down => down,
        };
        down.or_else(|| self.read_failure().clone())
    }

    /// Closes the database and reopens it, since it refuses everything after a failed
    /// operation.
    ///
    /// With `reload` the file's content counts: commits that were reported as failed but took place
    /// become visible, and are returned for publishing. Otherwise the visible state stays.
    pub(super) fn reopen(&self, because: &Error, reload: bool) -> Result<Vec<Change>, Error> {
        let mut state = self.write();
        // The file's lock has to be released before it can be taken again.
        let old = std::mem::replace(&mut state.database, Err(because.clone()));
        let _ = guarded(|| {
            drop(old);
            Ok(())
        });
        match self.open_again(&mut state.index, reload) {
            Ok((database, missed)) => {
                state.database = Ok(database);
                *self.read_failure() = None;
                Ok(missed)
            }
            Err(error) => {
                let down = match error {
                    Error::NotAStore { source, .. } => self.corrupt(source.to_string()),
                    error => Error::Unavailable {
                        store: self.name.clone(),
                        source: Arc::new(error),
                    },
                };
                state.database = Err(down.clone());
                Err(down)
            }
        }
    }

    fn open_again(
        &self,
        index: &mut Index,
        reload: bool,
    ) -> Result<(Database, Vec<Change>), Error> {
        let opened = open_database(
            &self.opener,
            &self.flush_failed,
            self.cache_bytes,
            &self.name,
        );
        let database = opened.map_err(|source| open_error(&self.name, source))?;
        if !reload {
            return Ok((database, Vec::new()));
        }
        let loaded = load_index(&database, &self.name);
        let mut loaded = loaded.map_err(|error| open_error(&self.name, error))?;
        loaded.compact(index.compacted());
        let log = guarded(|| log::open(database.begin_read()?));
        let log = log.map_err(|error| open_error(&self.name, error))?;
        let log = LogReader { shared: self, log };
        let unseen = (RowId::first_of(self.hub.published() + 1), RowId(u64::MAX));
        let (missed, _) = log.changes(unseen, b"", true, usize::MAX)?;
        *index = loaded;
        Ok((database, missed))
    }

    pub(super) fn close(&self) {
        self.hub.close();
        self.write().database = Err(Error::Closed);
    }
}

/// Opens a file alone, without an index or a writer.
pub(super) fn open_path(path: &Path) -> Result<Database, ::redb::Error> {
    let name = path.display().to_string();
    let path = path.to_owned();
    let opener = move || file::open(&path);
    let cache_bytes = RedbOptions::default().cache_bytes;
    open_database(&opener, &Arc::default(), cache_bytes, &name)
}

fn open_database(
    opener: &Opener,
    flush_failed: &Arc<AtomicBool>,
    cache_bytes: usize,
    name: &str,
) -> Result<Database, ::redb::Error> {
    let guard = FlushGuard {
        inner: opener()?,
        flush_failed: Arc::clone(flush_failed),
    };
    guarded(|| {
        let database = Database::builder()
            .set_cache_size(cache_bytes)
            .set_repair_callback(|session| {
                let percent = session.progress() * 100.0;
                tracing::info!(percent, "checking store after unclean shutdown");
            })
            .create_with_backend(guard)?;
        format::migrate(&database, name)?;
        Ok(database)
    })
}

/// Why a file cannot be opened, if a user can do something about it.
pub(super) fn open_error(name: &str, error: ::redb::Error) -> Error {
    let store = name.to_owned();
    let is_full = is_full(&error);
    let is_no_store = is_no_store(&error);
    if matches!(error, ::redb::Error::DatabaseAlreadyOpen) {
        return Error::InUse { store };
    }
    let source = Arc::new(error);
    match (is_full, is_no_store) {
        (true, _) => Error::Full { store, source },
        (false, true) => Error::NotAStore { store, source },
        (false, false) => Error::Open { store, source },
    }
}

/// Whether the content was not written by a store.
fn is_no_store(error: &::redb::Error) -> bool {
    match error {
        ::redb::Error::Corrupted(_) | ::redb::Error::UpgradeRequired(_) => true,
        ::redb::Error::Io(error) => matches!(
            error.kind(),
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
        ),
        _ => false,
    }
}

/// Whether the system lacked space.
pub(super) fn is_full(error: &::redb::Error) -> bool {
    matches!(error, ::redb::Error::Io(error)
        if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
}

/// Rebuilds the index from the log. Corrupt rows are logged, and kept with the numbers in their
/// keys, so that nothing older appears in their place.
pub(super) fn load_index(database: &Database, name: &str) -> Result<Index, ::redb::Error> {
    guarded(|| {
        let txn = database.begin_read()?;
        let compacted = (txn.open_table(META)?.get(COMPACTED)?).map(|revision| revision.value());
        let mut index = Index::new(compacted.unwrap_or(0));
        let mut last = RowId(0);
        for item in log::open(txn)?.iter()? {
            let (row_id, bytes) = item?;
            let (row_id, bytes) = (RowId(row_id.value()), bytes.value());
            if let Some((key, version)) = indexed(name, row_id, bytes, last) {
                last = row_id;
                index.apply(key, version);
            }
        }
        Ok(index)
    })
}

/// The largest gap between two rows of a store; a number further ahead is itself corrupt.
const MAX_GAP: u64 = 1 << 32;

/// The index entry of a row; `None` if its key is unknown.
pub(super) fn indexed(
    name: &str,
    row_id: RowId,
    bytes: &[u8],
    last: RowId,
) -> Option<(Bytes, Version)> {
    let repaired;
    let (row, problem) = match Row::parse(row_id, bytes) {
        Ok((row, true)) => (Some(row), None),
        Ok((row, false)) => (Some(row), Some(BAD_VALUE)),
        Err(_) => {
            repaired = Row::repaired(row_id, bytes);
            let row = match &repaired {
                Some(repaired) => Row::parse_unchecked(repaired).ok(),
                None => {
                    let gap = row_id.revision().checked_sub(last.revision());
                    let is_in_place = row_id > last && gap.is_some_and(|gap| gap < MAX_GAP);
                    Row::parse_unchecked(bytes).ok().filter(|_| is_in_place)
                }
            };
            (row, Some(BAD_HEADER))
        }
    };
    if let Some(problem) = problem {
        let key = row.map(|row| String::from_utf8_lossy(row.key).into_owned());
        let (row, key) = (row_id.0, key.as_deref().unwrap_or("unknown"));
        tracing::error!(store = name, row, key, problem, "stored row is damaged");
    }
    let row = row?;
    let version = Version {
        row: row_id,
        put: row.value.map(|_| Put {
            create_revision: row.create_revision,
            expires_at: row.expires_at,
        }),
        size: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
    };
    Some((Bytes::copy_from_slice(row.key), version))
}
