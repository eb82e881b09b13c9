//! Checks a file without changing it.

use std::collections::HashSet;
use std::path::Path;

use ::redb::{Database, ReadableDatabase, ReadableTable};
use bytes::Bytes;

use super::super::error::readable;
use super::super::{Error, Revision};
use super::RedbStore;
use super::database::{indexed, open_error};
use super::file::{self, Overlay};
use super::format::{self, COMPACTED, META};
use super::index::Index;
use super::log::{LOG, guarded};
use super::row::{BAD_VALUE, Row, RowId};

/// The result of checking a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The revision of the last change.
    pub revision: Revision,
    /// Below which revision nothing can be read.
    pub compacted: Revision,
    /// Keys that exist.
    pub keys: u64,
    /// Changes in the log: those keys, and history.
    pub rows: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// The problems.
    pub problems: Vec<Problem>,
}

/// A problem of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key, if it is known; otherwise this is about the file.
    pub key: Option<String>,
    /// The problem.
    pub problem: String,
    /// Whether a read of the key shows it. Otherwise it concerns history.
    pub is_current: bool,
}

/// Returns what is wrong with the value of a key, if anything.
pub type CheckValue<'a> = dyn Fn(&[u8], &[u8]) -> Result<(), String> + 'a;

impl RedbStore {
    /// Checks the structure of a file, the checksums of all its rows, that rows and what they
    /// supersede agree, and every current value with `check_value`. The file is not changed.
    ///
    /// Blocks. Fails if the file cannot be opened at all.
    pub fn verify(path: &Path, check_value: &CheckValue<'_>) -> Result<Report, Error> {
        let name = path.display().to_string();
        let failed = |error| open_error(&name, error);
        let file_bytes = std::fs::metadata(path)
            .map_err(|error| failed(error.into()))?
            .len();
        let mut report = Report {
            file_bytes,
            ..Report::default()
        };
        let open = || {
            let overlay = Overlay::new(file::open_to_read(path)?);
            Ok(Database::builder().create_with_backend(overlay)?)
        };
        // A database that has found damage refuses further calls, so rows are read with another.
        let mut database = guarded(open).map_err(failed)?;
        match guarded(|| Ok(database.check_integrity()?)) {
            Ok(true) => {}
            Ok(false) => report.about_file("the structure of the file is inconsistent"),
            Err(error) => report.about_file(&format!("pages of the file are damaged: {error}")),
        }
        drop_guarded(database);
        let database = guarded(open).map_err(failed)?;
        let read = guarded(|| {
            format::migrate(&database, &name)?;
            read_rows(&database, &name, check_value, &mut report)
        });
        drop_guarded(database);
        match read {
            Err(error @ ::redb::Error::Io(_)) => return Err(failed(error)),
            Err(error) => {
                report.about_file(&format!("the rows cannot be read to their end: {error}"));
            }
            Ok(()) => {}
        }
        Ok(report)
    }
}

/// A database that panicked may panic again when it is dropped.
fn drop_guarded(database: Database) {
    let _ = guarded(|| {
        drop(database);
        Ok(())
    });
}

impl Report {
    fn about_file(&mut self, problem: &str) {
        self.problems.push(Problem {
            key: None,
            problem: problem.to_owned(),
            is_current: true,
        });
    }
}

fn read_rows(
    database: &Database,
    name: &str,
    check_value: &CheckValue<'_>,
    report: &mut Report,
) -> Result<(), ::redb::Error> {
    let txn = database.begin_read()?;
    let compacted = (txn.open_table(META)?.get(COMPACTED)?).map(|revision| revision.value());
    let mut index = Index::new(compacted.unwrap_or(0));
    let log = txn.open_table(LOG)?;
    let (mut last, mut rows) = (RowId(0), HashSet::new());
    let mut damaged: Vec<(RowId, Option<Bytes>, &'static str)> = Vec::new();
    for item in log.iter()? {
        let (row_id, bytes) = item?;
        let (row_id, bytes) = (RowId(row_id.value()), bytes.value());
        report.rows += 1;
        rows.insert(row_id);
        let key = indexed(name, row_id, bytes, last).map(|(key, version)| {
            last = row_id;
            index.apply(key.clone(), version);
            key
        });
        match Row::parse(row_id, bytes) {
            Ok((row, is_intact)) => {
                if !is_intact {
                    damaged.push((row_id, key.clone(), BAD_VALUE));
                }
                let is_kept = |previous: &RowId| previous.revision() > index.compacted();
                if let Some(previous) = row.previous.filter(is_kept)
                    && !rows.contains(&previous)
                {
                    damaged.push((row_id, key, "the row that it supersedes is missing"));
                }
            }
            Err(problem) => damaged.push((row_id, key, problem)),
        }
    }
    report.revision = index.current();
    report.compacted = index.compacted();
    for (row_id, key, problem) in damaged {
        let is_current = match &key {
            Some(key) => index
                .latest(key)
                .is_some_and(|version| version.row == row_id),
            None => true,
        };
        report.problems.push(Problem {
            key: key.map(|key| readable(&key)),
            problem: format!("{problem} (row {:#x})", row_id.0),
            is_current,
        });
    }
    for (key, version) in index.current_versions(b"") {
        report.keys += 1;
        let Some(bytes) = log.get(version.row.0)? else {
            continue;
        };
        if let Ok((row, true)) = Row::parse(version.row, bytes.value())
            && let Some(value) = row.value
            && let Err(problem) = check_value(&key, value)
        {
            report.problems.push(Problem {
                key: Some(readable(&key)),
                problem,
                is_current: true,
            });
        }
    }
    Ok(())
}
