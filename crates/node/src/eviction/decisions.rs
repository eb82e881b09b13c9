//! Records of eviction decisions, kept so that each can be explained later.
//!
//! Written by a thread of its own: on a node without memory a write may take seconds, and the next
//! decision must not wait for it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use plimsoll_core::admission::node_admit;
use plimsoll_core::eviction::record::Record;
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::timestamp::Timestamp;

use crate::pods::note::{Note, evicted};
use crate::pods::set::Begun;
use crate::pods::status::Forced;

/// The latest records, oldest first. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Decisions {
    kept: Arc<Mutex<VecDeque<Arc<Record>>>>,
    written: Sender<Arc<Record>>,
    most: usize,
}

impl Decisions {
    /// Keeps `most` of them, in the directory too if there is one: those of earlier runs are read
    /// from it.
    pub(super) fn open(directory: Option<PathBuf>, most: usize) -> io::Result<Decisions> {
        let mut kept = VecDeque::new();
        if let Some(directory) = &directory {
            fs::create_dir_all(directory)?;
            kept = read(directory)?;
            while kept.len() > most {
                kept.pop_front();
            }
        }
        let (written, to_write) = channel();
        if let Some(directory) = directory {
            thread::Builder::new()
                .name("decisions".to_owned())
                .spawn(move || {
                    write_all(&directory, &to_write, |record| {
                        write(&directory, record).and_then(|()| prune(&directory, most))
                    })
                })?;
        }
        Ok(Decisions {
            kept: Arc::new(Mutex::new(kept)),
            written,
            most,
        })
    }

    pub(super) fn add(&self, record: Record) {
        let record = Arc::new(record);
        let mut kept = self.lock();
        kept.push_back(Arc::clone(&record));
        while kept.len() > self.most {
            kept.pop_front();
        }
        drop(kept);
        // Without a directory there is no writer thread.
        let _ = self.written.send(record);
    }

    pub(super) fn all(&self) -> Vec<Arc<Record>> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Record>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes one after the other. A panic costs the record that it was about and none of those that
/// follow.
fn write_all<T>(
    directory: &Path,
    records: &Receiver<Arc<T>>,
    write: impl Fn(&T) -> io::Result<()>,
) {
    for record in records {
        let written = catch_unwind(AssertUnwindSafe(|| write(&record)));
        let Err(error) = written.unwrap_or_else(|_| Err(io::Error::other("writing it panicked")))
        else {
            continue;
        };
        tracing::error!(directory = %directory.display(), %error, "failed to write eviction decision");
    }
}

/// The name sorts by time.
fn write(directory: &Path, record: &Record) -> io::Result<()> {
    let nanos = record.at.map_or(0, |at| at.as_nanos());
    let path = directory.join(name_after(&files(directory)?, nanos));
    let hidden = path.with_extension("json.new");
    fs::write(&hidden, serde_json::to_vec(record)?)?;
    fs::rename(hidden, path)
}

/// The name of a record that follows these files. It is later than theirs, whatever the clock was set
/// to in between.
fn name_after(files: &[PathBuf], nanos: i64) -> String {
    let number = |path: &PathBuf| path.file_stem()?.to_str()?.parse::<i64>().ok();
    let last = files.last().and_then(number);
    let nanos = last.map_or(nanos, |last| nanos.max(last.saturating_add(1)));
    format!("{nanos:020}.json")
}

fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn prune(directory: &Path, most: usize) -> io::Result<()> {
    let files = files(directory)?;
    let beyond = files.len().saturating_sub(most);
    files.iter().take(beyond).try_for_each(fs::remove_file)
}

/// The status message of a pod whose eviction decision is unknown: the agent that had
/// come to it was gone before it had written it down.
const UNRECORDED: &str =
    "The pod was evicted by an agent that was stopped before it could say why. ";

/// Pods that earlier runs have evicted, by uid, and why. `interrupted` are pods whose kill was found half
/// done: only a node that is short of something kills so.
pub fn begun_before(directory: &Path, interrupted: &BTreeSet<PodUid>) -> BTreeMap<String, Begun> {
    let forced = |message: &str, is_disruption| Forced {
        reason: node_admit::REASON.to_owned(),
        message: message.to_owned(),
        is_disruption,
        ..Forced::default()
    };
    let begun = interrupted.iter().map(|uid| {
        let begun = Begun {
            forced: forced(UNRECORDED, true),
            until: Timestamp::default(),
            note: Note::warning(node_admit::REASON, UNRECORDED),
        };
        (uid.as_str().to_owned(), begun)
    });
    let mut all: BTreeMap<String, Begun> = begun.collect();
    for record in read(directory).unwrap_or_default() {
        for eviction in record.carried_out() {
            let grace = match record.is_killed(&eviction.uid) {
                true => 0,
                false => u64::try_from(eviction.grace_period_seconds).unwrap_or_default(),
            };
            let at = record.at.unwrap_or_default();
            let begun = Begun {
                forced: forced(&eviction.message, eviction.is_disruption()),
                until: at.saturating_add(Duration::from_secs(grace)),
                note: evicted(&eviction.message, eviction.annotations.clone(), at),
            };
            all.insert(eviction.uid.clone(), begun);
        }
    }
    all
}

/// The records of earlier runs. A file that cannot be read was not written by the agent.
fn read(directory: &Path) -> io::Result<VecDeque<Arc<Record>>> {
    let texts = files(directory)?;
    let texts = texts.iter().filter_map(|path| fs::read(path).ok());
    let records = texts.filter_map(|text| serde_json::from_slice(&text).ok());
    Ok(records.map(Arc::new).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwritable_record_does_not_affect_others() {
        let (sender, records) = channel();
        for record in ["bad", "too large", "good"] {
            sender.send(Arc::new(record)).unwrap();
        }
        drop(sender);
        let written = Mutex::new(Vec::new());
        write_all(Path::new("/records"), &records, |record| {
            assert_ne!(*record, "bad");
            if *record == "too large" {
                return Err(io::Error::other("the disk is full"));
            }
            written.lock().unwrap().push(*record);
            Ok(())
        });
        assert_eq!(*written.lock().unwrap(), ["good"]);
    }

    #[test]
    fn records_stay_in_order_when_the_clock_is_set_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut names = Vec::new();
        for nanos in [5_000, 7_000, 10, 7_001] {
            let name = name_after(&files(folder.path()).unwrap(), nanos);
            fs::write(folder.path().join(&name), "").unwrap();
            names.push(name);
        }
        assert!(names.is_sorted(), "{names:?}");
    }
}
