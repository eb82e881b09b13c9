//! The opened file with its index: what readers and the writer share.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ::redb::{
    Database, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition, WriteTransaction,
};
use bytes::Bytes;

use super::super::hub::Hub;
use super::super::{Change, Error};
use super::file::FlushGuard;
use super::index::{Index, Put, Version};
use super::log::{self, LOG, LogReader};
use super::row::RowId;

/// A few numbers about the store.
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
pub(super) const COMPACTED: &str = "compacted";
const FORMAT: &str = "format";

/// How the tables are laid out. A file of another format is refused, never guessed at.
const FORMAT_VERSION: u64 = 1;

/// Gives the storage to open, on every opening anew.
pub(super) type Opener = dyn Fn() -> io::Result<Box<dyn StorageBackend>> + Send + Sync;

pub(super) struct Shared {
    state: RwLock<State>,
    pub(super) hub: Hub,
    opener: Box<Opener>,
    /// The file, for messages.
    pub(super) name: String,
    cache_bytes: usize,
    pub(super) flush_failed: Arc<AtomicBool>,
    /// A read that failed; the database refuses everything until it is opened again.
    read_failure: Mutex<Option<Error>>,
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
        cache_bytes: usize,
        watch_buffer: usize,
    ) -> Result<Self, Error> {
        let flush_failed = Arc::new(AtomicBool::new(false));
        let database = open_database(&opener, &flush_failed, cache_bytes);
        let database = database.map_err(|source| open_error(&name, source))?;
        let index = load_index(&database, &name)?;
        Ok(Self {
            hub: Hub::new(index.current(), watch_buffer),
            state: RwLock::new(State {
                index,
                database: Ok(database),
            }),
            opener,
            name,
            cache_bytes,
            flush_failed,
            read_failure: Mutex::new(None),
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
        let txn = database.begin_read();
        drop(state);
        let log = txn.map_err(::redb::Error::from).and_then(log::open);
        let log = log.map_err(|error| self.read_error(error))?;
        Ok((found, LogReader { shared: self, log }))
    }

    pub(super) fn begin_write(&self) -> Result<WriteTransaction, ::redb::Error> {
        match &self.read().database {
            Ok(database) => Ok(database.begin_write()?),
            Err(_) => Err(::redb::Error::DatabaseClosed),
        }
    }

    /// Remembers that the database has to be opened again.
    pub(super) fn read_error(&self, error: ::redb::Error) -> Error {
        let error = Error::Read {
            store: self.name.clone(),
            source: Arc::new(error),
        };
        self.read_failure().get_or_insert_with(|| error.clone());
        error
    }

    fn read_failure(&self) -> MutexGuard<'_, Option<Error>> {
        self.read_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the database has to be opened again before it can be used, if it has to.
    pub(super) fn trouble(&self) -> Option<Error> {
        let down = self.read().database.as_ref().err().cloned();
        down.or_else(|| self.read_failure().clone())
    }

    /// Closes the database and opens it again, since it refuses everything after a failed
    /// operation.
    ///
    /// With `reload` the file's content counts: commits that failed and took place all the same
    /// become visible, and are returned for publishing. Otherwise what was visible stays so.
    pub(super) fn reopen(&self, because: &Error, reload: bool) -> Result<Vec<Change>, Error> {
        let mut state = self.write();
        // The file's lock has to be released before it can be taken again.
        state.database = Err(because.clone());
        match self.open_again(&mut state.index, reload) {
            Ok((database, missed)) => {
                state.database = Ok(database);
                *self.read_failure() = None;
                Ok(missed)
            }
            Err(error) => {
                let down = Error::Unavailable {
                    store: self.name.clone(),
                    source: Arc::new(error),
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
        let database = open_database(&self.opener, &self.flush_failed, self.cache_bytes)
            .map_err(|source| open_error(&self.name, source))?;
        if !reload {
            return Ok((database, Vec::new()));
        }
        let mut loaded = load_index(&database, &self.name)?;
        loaded.compact(index.compacted());
        let log = database
            .begin_read()
            .map_err(::redb::Error::from)
            .and_then(log::open);
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

fn open_database(
    opener: &Opener,
    flush_failed: &Arc<AtomicBool>,
    cache_bytes: usize,
) -> Result<Database, ::redb::Error> {
    let guard = FlushGuard {
        inner: opener()?,
        flush_failed: Arc::clone(flush_failed),
    };
    let database = Database::builder()
        .set_cache_size(cache_bytes)
        .set_repair_callback(|session| {
            let percent = session.progress() * 100.0;
            tracing::info!(percent, "checking the store after an unclean stop");
        })
        .create_with_backend(guard)?;
    let txn = database.begin_write()?;
    {
        txn.open_table(LOG)?;
        let mut meta = txn.open_table(META)?;
        let format = meta.get(FORMAT)?.map(|format| format.value());
        match format {
            Some(FORMAT_VERSION) => {}
            Some(other) => return Err(unknown_format(other)),
            None => {
                meta.insert(FORMAT, FORMAT_VERSION)?;
            }
        }
    }
    txn.commit()?;
    Ok(database)
}

fn unknown_format(format: u64) -> ::redb::Error {
    ::redb::Error::Io(io::Error::new(
        io::ErrorKind::Unsupported,
        format!("the file has format {format}, this program reads format {FORMAT_VERSION}"),
    ))
}

/// Why a file does not open, as far as somebody can do something about it.
fn open_error(name: &str, error: ::redb::Error) -> Error {
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

/// Whether the content is not what a store writes.
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

/// Rebuilds the index from the log.
fn load_index(database: &Database, name: &str) -> Result<Index, Error> {
    let failed = |error: ::redb::Error| open_error(name, error);
    let txn = database
        .begin_read()
        .map_err(|error| failed(error.into()))?;
    let meta = txn.open_table(META).map_err(|error| failed(error.into()))?;
    let compacted = meta.get(COMPACTED).map_err(|error| failed(error.into()))?;
    let mut index = Index::new(compacted.map_or(0, |compacted| compacted.value()));
    let log = log::open(txn).map_err(failed)?;
    for item in log.iter().map_err(|error| failed(error.into()))? {
        let (row_id, bytes) = item.map_err(|error| failed(error.into()))?;
        let row_id = RowId(row_id.value());
        let row = log::parse(name, row_id, bytes.value())?;
        let version = Version {
            row: row_id,
            put: row.value.map(|_| Put {
                create_revision: row.create_revision,
                expires_at: row.expires_at,
            }),
            size: u32::try_from(bytes.value().len()).unwrap_or(u32::MAX),
        };
        index.apply(Bytes::copy_from_slice(row.key), version);
    }
    Ok(index)
}
