//! Container logs in CRI's format: `<time> <stream> <F|P> <text>` per line.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use time::OffsetDateTime;

use crate::beneath;

/// Longest line; a longer one is split into partial lines, as containerd does.
const MAX_LINE: usize = 16 * 1024;

/// Where output comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    fn name(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

/// Cuts one stream into log lines.
#[derive(Debug)]
pub(super) struct Framer {
    stream: Stream,
    /// The beginning of a line that is not complete yet; never as long as [`MAX_LINE`].
    pending: Vec<u8>,
}

impl Framer {
    pub(super) fn new(stream: Stream) -> Framer {
        Framer {
            stream,
            pending: Vec::new(),
        }
    }

    /// Appends the log lines of some output. What has no end of line yet is kept.
    pub(super) fn push(&mut self, output: &[u8], now: OffsetDateTime, log: &mut Vec<u8>) {
        for piece in output.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_ended) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            self.pending.extend_from_slice(text);
            while self.pending.len() > MAX_LINE || (!is_ended && self.pending.len() == MAX_LINE) {
                let rest = self.pending.split_off(MAX_LINE);
                self.write_line(now, 'P', log);
                self.pending = rest;
            }
            if is_ended {
                self.write_line(now, 'F', log);
            }
        }
    }

    /// Appends what was kept, once there is no more output.
    pub(super) fn finish(&mut self, now: OffsetDateTime, log: &mut Vec<u8>) {
        if !self.pending.is_empty() {
            self.write_line(now, 'F', log);
        }
    }

    fn write_line(&mut self, now: OffsetDateTime, tag: char, log: &mut Vec<u8>) {
        write_time(now, log);
        log.push(b' ');
        log.extend_from_slice(self.stream.name().as_bytes());
        log.extend_from_slice(&[b' ', u8::try_from(tag).unwrap_or(b'F'), b' ']);
        log.append(&mut self.pending);
        log.push(b'\n');
    }
}

/// RFC 3339 with nanoseconds, in UTC.
fn write_time(now: OffsetDateTime, log: &mut Vec<u8>) {
    let (date, clock) = (now.date(), now.time());
    let written = write!(
        log,
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z",
        date.year(),
        u8::from(date.month()),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second(),
        clock.nanosecond(),
    );
    debug_assert!(written.is_ok(), "memory takes all");
}

/// The log file of a container.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
}

impl LogFile {
    pub(super) fn open(path: &Path) -> io::Result<LogFile> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let (pod, below) = beneath::in_pod(path)?;
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
        let file = beneath::open_file(pod, below, flags, Mode::RUSR | Mode::WUSR | Mode::RGRP)?;
        Ok(LogFile {
            path: path.to_owned(),
            file,
        })
    }

    /// Opens a new file after the old one was renamed.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        *self = LogFile::open(&self.path)?;
        Ok(())
    }

    /// Appends lines. What cannot be written, for a full disk say, is lost: the container must not
    /// stand still for it.
    pub(super) fn append(&mut self, lines: &[u8]) {
        let _ = self.file.write_all(lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(pieces: &[&[u8]]) -> Vec<String> {
        let now = OffsetDateTime::from_unix_timestamp_nanos(1_700_000_000_000_000_042).unwrap();
        let mut framer = Framer::new(Stream::Stderr);
        let mut log = Vec::new();
        for piece in pieces {
            framer.push(piece, now, &mut log);
        }
        framer.finish(now, &mut log);
        let text = String::from_utf8(log).unwrap();
        text.lines()
            .map(|line| {
                let rest = line.strip_prefix("2023-11-14T22:13:20.000000042Z stderr ");
                rest.unwrap().to_owned()
            })
            .collect()
    }

    #[test]
    fn lines_are_put_together_from_pieces() {
        assert_eq!(
            framed(&[b"a", b"b\nc\n", b"\nd"]),
            ["F ab", "F c", "F ", "F d"]
        );
        assert!(framed(&[b""]).is_empty());
    }

    #[test]
    fn long_lines_are_split_into_partial_ones() {
        let long = vec![b'x'; 2 * MAX_LINE + 3];
        let mut line = long.clone();
        line.push(b'\n');
        let lengths: Vec<(String, usize)> = framed(&[&line])
            .iter()
            .map(|line| (line[..1].to_owned(), line.len() - 2))
            .collect();
        let want = [("P", MAX_LINE), ("P", MAX_LINE), ("F", 3)];
        assert_eq!(lengths, want.map(|(tag, length)| (tag.to_owned(), length)));
        assert_eq!(
            framed(&[&long[..MAX_LINE], b"\n"]),
            [format!("P {}", "x".repeat(MAX_LINE)), "F ".to_owned()]
        );
        let exact = [&long[..MAX_LINE], b"\n"].concat();
        assert_eq!(framed(&[&exact]), [format!("F {}", "x".repeat(MAX_LINE))]);
    }

    #[test]
    fn a_renamed_log_is_left_alone_after_reopening() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pod/0.log");
        let mut log = LogFile::open(&path).unwrap();
        log.append(b"one\n");
        std::fs::rename(&path, dir.path().join("0.log.1")).unwrap();
        log.append(b"two\n");
        log.reopen().unwrap();
        log.append(b"three\n");
        assert_eq!(
            std::fs::read(dir.path().join("0.log.1")).unwrap(),
            b"one\ntwo\n"
        );
        assert_eq!(std::fs::read(&path).unwrap(), b"three\n");
    }
}
