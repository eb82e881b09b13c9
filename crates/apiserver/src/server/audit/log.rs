//! The audit log file and its rotated predecessors.
//!
//! A thread of its own writes, so that no other client's request waits for the disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use plimsoll_core::object::timestamp::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::metrics::Counters;
use crate::server::request::{call, respond};

/// Lines that may wait in the queue; upstream's `--audit-log-batch-buffer-size`.
const QUEUE: usize = 10_000;

const MEBIBYTE: u64 = 1 << 20;
const DAY_NANOS: i64 = 24 * 60 * 60 * 1_000_000_000;

/// How long a request waits for its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Not at all. An event that finds the queue full is dropped and counted.
    Batch,
    /// Until its events have been written, or writing has failed.
    #[default]
    Blocking,
    /// As `Blocking`; in addition the request is rejected if its first event cannot be written.
    BlockingStrict,
}

/// When a file is rotated and how long it is kept. Zero means unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Size in mebibytes at which the file is rotated.
    pub max_mebibytes: u64,
    /// Days after which a rotated file is deleted, by the time in its name.
    pub max_age_days: u64,
    /// Maximum number of rotated files.
    pub max_backups: usize,
}

impl Default for Rotation {
    fn default() -> Rotation {
        Rotation {
            max_mebibytes: 100,
            max_age_days: 366,
            max_backups: 100,
        }
    }
}

/// A line to write, and the request that waits for it.
#[derive(Debug)]
struct Line {
    text: String,
    written: Option<oneshot::Sender<bool>>,
}

/// The audit log.
#[derive(Clone, Debug)]
pub(super) struct Log {
    lines: mpsc::Sender<Line>,
    pub(super) mode: Mode,
    counters: Counters,
}

impl Log {
    /// Opens the file, readable by its owner only, for appending.
    pub(super) fn open(
        path: &Path,
        mode: Mode,
        rotation: Rotation,
        counters: Counters,
    ) -> io::Result<Log> {
        let file = LogFile::open(path, rotation)?;
        let (lines, queue) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new().name("audit".to_owned());
        let counted = counters.clone();
        thread.spawn(move || write(file, queue, &counted))?;
        Ok(Log {
            lines,
            mode,
            counters,
        })
    }

    /// Writes a line as the mode requires; returns whether that succeeded, as far as it is known.
    pub(super) async fn write(&self, text: String) -> bool {
        if self.mode == Mode::Batch {
            return self.write_later(text);
        }
        let (written, outcome) = oneshot::channel();
        let line = Line {
            text,
            written: Some(written),
        };
        if self.lines.send(line).await.is_err() {
            self.counters.failed();
            return false;
        }
        outcome.await.unwrap_or(false)
    }

    /// Queues the last line of a finished request. No request waits for it.
    pub(super) fn write_at_end(&self, text: String) {
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if self.mode != Mode::Batch => {
                let log = self.clone();
                runtime.spawn(async move { log.write(text).await });
            }
            _ => drop(self.write_later(text)),
        }
    }

    /// Queues a line; returns false if the queue is full.
    fn write_later(&self, text: String) -> bool {
        let line = Line {
            text,
            written: None,
        };
        let is_taken = self.lines.try_send(line).is_ok();
        if !is_taken {
            self.counters.failed();
            tracing::warn!("audit log queue is full, dropped event");
        }
        is_taken
    }
}

fn write(mut file: LogFile, mut queue: mpsc::Receiver<Line>, counters: &Counters) {
    while let Some(line) = queue.blocking_recv() {
        let written = file.write(&line.text);
        if let Err(error) = &written {
            counters.failed();
            tracing::error!(%error, path = %file.path.display(), "failed to write audit log");
        }
        // The request may have been cancelled meanwhile.
        if let Some(outcome) = line.written {
            let _ = outcome.send(written.is_ok());
        }
    }
}

/// The current file.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    rotation: Rotation,
    file: File,
    bytes: u64,
}

impl LogFile {
    fn open(path: &Path, rotation: Rotation) -> io::Result<LogFile> {
        let file = append_to(path)?;
        Ok(LogFile {
            path: path.to_owned(),
            rotation,
            bytes: file.metadata()?.len(),
            file,
        })
    }

    /// Whole lines only: a partial line is truncated, so that the next line can be parsed.
    fn write(&mut self, text: &str) -> io::Result<()> {
        let line = [text.as_bytes(), b"\n"].concat();
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        let max = self.rotation.max_mebibytes.saturating_mul(MEBIBYTE);
        if max > 0 && self.bytes > 0 && self.bytes.saturating_add(length) > max {
            self.rotate()?;
        }
        if let Err(error) = self.file.write_all(&line) {
            let _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += length;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let mut time = respond::now();
        while backup(&self.path, time).exists() {
            time = Timestamp::from_nanos(time.as_nanos().saturating_add(1_000_000));
        }
        std::fs::rename(&self.path, backup(&self.path, time))?;
        self.file = append_to(&self.path)?;
        self.bytes = self.file.metadata()?.len();
        if let Err(error) = self.remove_old() {
            tracing::warn!(%error, path = %self.path.display(), "failed to remove old audit logs");
        }
        Ok(())
    }

    fn remove_old(&self) -> io::Result<()> {
        let Rotation {
            max_age_days,
            max_backups,
            ..
        } = self.rotation;
        let mut backups = backups(&self.path)?;
        backups.sort();
        let keep = if max_backups > 0 {
            max_backups
        } else {
            backups.len()
        };
        let too_many = backups.len().saturating_sub(keep);
        let age = i64::try_from(max_age_days).unwrap_or(i64::MAX);
        let oldest = respond::now()
            .as_nanos()
            .checked_sub(age.saturating_mul(DAY_NANOS));
        let oldest = oldest.filter(|_| max_age_days > 0);
        let oldest = oldest.map(|oldest| backup(&self.path, Timestamp::from_nanos(oldest)));
        for (index, path) in backups.iter().enumerate() {
            let is_old = oldest.as_ref().is_some_and(|oldest| path < oldest);
            if index < too_many || is_old {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

/// `audit-2026-11-19T15-04-05.678.log` for `audit.log`, as upstream names them: sorted by time.
fn backup(path: &Path, time: Timestamp) -> PathBuf {
    let (stem, extension) = parts(path);
    let text = call::time_text(time);
    let text = text.trim_end_matches('Z').replace(':', "-");
    let millis = time.as_nanos().rem_euclid(1_000_000_000) / 1_000_000;
    path.with_file_name(format!("{stem}-{text}.{millis:03}{extension}"))
}

fn parts(path: &Path) -> (String, String) {
    let text =
        |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let extension = match path.extension() {
        None => String::new(),
        some => format!(".{}", text(some)),
    };
    (text(path.file_stem()), extension)
}

fn backups(path: &Path) -> io::Result<Vec<PathBuf>> {
    let (stem, extension) = parts(path);
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let time = name.strip_prefix(&format!("{stem}-"));
        let time = time.and_then(|rest| rest.strip_suffix(&extension));
        if time.is_some_and(is_time) {
            found.push(path.with_file_name(name));
        }
    }
    Ok(found)
}

/// Whether a text is a time in the format of [`backup`]. Other files are not touched.
fn is_time(text: &str) -> bool {
    let shape = "dddd-dd-ddTdd-dd-dd.ddd".bytes();
    text.len() == shape.len()
        && shape
            .zip(text.bytes())
            .all(|(expected, found)| match expected {
                b'd' => found.is_ascii_digit(),
                other => other == found,
            })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn full_file_is_rotated_and_old_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        for name in [
            "audit-2001-02-03T04-05-06.789.log",
            "audit-notes.log",
            "other-2001-02-03T04-05-06.789.log",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let rotation = Rotation {
            max_mebibytes: 1,
            max_age_days: 10,
            max_backups: 2,
        };
        let mut file = LogFile::open(&path, rotation).unwrap();
        let line = "x".repeat(600 * 1024);
        for expected in [1, 1, 2, 2, 2] {
            file.write(&line).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{line}\n"));
            let kept = backups(&path).unwrap();
            let kept = kept
                .iter()
                .filter(|kept| kept.to_string_lossy().contains("T"));
            assert!(kept.count() <= expected, "{:?}", names(folder.path()));
        }
        let left = names(folder.path());
        assert_eq!(left.len(), 5, "{left:?}");
        assert!(
            !left.contains(&"audit-2001-02-03T04-05-06.789.log".to_owned()),
            "{left:?}"
        );
        assert!(left.contains(&"audit-notes.log".to_owned()), "{left:?}");
        let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn unlimited_log_has_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        let rotation = Rotation {
            max_mebibytes: 0,
            max_age_days: 0,
            max_backups: 0,
        };
        let mut file = LogFile::open(&path, rotation).unwrap();
        for _ in 0..3 {
            file.write(&"x".repeat(600 * 1024)).unwrap();
        }
        assert_eq!(names(folder.path()), ["audit"]);
    }
}
