//! What of a log is shown.

use super::line::{Format, Source};
use super::options::{LogOptions, Streams};

/// Turns lines of a file into what the client gets.
#[derive(Debug)]
pub(super) struct Printer {
    options: LogOptions,
    format: Option<Format>,
    /// Bytes that may still be shown.
    room: u64,
    /// Lines that may still be shown; not counted while following.
    lines: Option<u64>,
    /// Whether what follows begins a line.
    at_line_start: bool,
}

/// What follows after a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    More,
    /// Enough has been shown.
    Done,
    /// It cannot be shown; why, in upstream's words.
    Failed(String),
}

impl Printer {
    pub(super) fn new(options: LogOptions) -> Printer {
        Printer {
            options,
            format: None,
            room: options.limit_bytes.unwrap_or(u64::MAX),
            lines: options.tail_lines.filter(|_| !options.follow),
            at_line_start: true,
        }
    }

    /// Whether nothing more is to be shown, whatever comes.
    pub(super) fn is_done(&self) -> bool {
        self.lines == Some(0) || self.room == 0
    }

    /// Shows a line of the file, as far as it is requested.
    pub(super) fn print(&mut self, line: &[u8], out: &mut Vec<u8>) -> Next {
        if self.is_done() {
            return Next::Done;
        }
        let Some(format) = self.format.or_else(|| Format::of(line)) else {
            let line = String::from_utf8_lossy(line);
            return Next::Failed(format!(
                "failed to get parse function: unsupported log format: {line:?}"
            ));
        };
        self.format = Some(format);
        let Some(line) = format.parse(line) else {
            // One damaged line does not spoil the log.
            return Next::More;
        };
        let is_recent = self.options.since.is_none_or(|since| line.time >= since);
        if is_recent {
            let Some(source) = line.source else {
                return Next::Failed("unexpected stream type \"\"".to_owned());
            };
            if self.includes(source) {
                if self.options.timestamps && self.at_line_start {
                    self.put(line.stamp.as_bytes(), out);
                    self.put(b" ", out);
                }
                self.put(&line.content, out);
            }
        }
        self.at_line_start = line.content.last().is_none_or(|last| *last == b'\n');
        if let Some(lines) = &mut self.lines {
            *lines = lines.saturating_sub(1);
        }
        if self.is_done() {
            Next::Done
        } else {
            Next::More
        }
    }

    fn includes(&self, source: Source) -> bool {
        match self.options.streams {
            Streams::All => true,
            Streams::Stdout => source == Source::Stdout,
            Streams::Stderr => source == Source::Stderr,
        }
    }

    fn put(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        let fitting = &bytes[..bytes.len().min(room)];
        out.extend_from_slice(fitting);
        let used = u64::try_from(fitting.len()).unwrap_or(u64::MAX);
        self.room = self.room.saturating_sub(used);
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::object::timestamp::Timestamp;

    use super::*;

    const LOG: &str = "\
1970-01-01T00:00:01Z stdout F one\n\
1970-01-01T00:00:02Z stderr P tw\n\
1970-01-01T00:00:03Z stderr F o\n\
damaged\n\
1970-01-01T00:00:04Z stdout F three\n";

    fn shown(log: &str, options: LogOptions) -> (String, Next) {
        let mut printer = Printer::new(options);
        let mut out = Vec::new();
        let mut next = Next::More;
        for line in log.split_inclusive('\n') {
            next = printer.print(line.as_bytes(), &mut out);
            if next != Next::More {
                break;
            }
        }
        (String::from_utf8(out).unwrap(), next)
    }

    #[test]
    fn parts_of_a_line_become_one() {
        let (text, next) = shown(LOG, LogOptions::default());
        assert_eq!(text, "one\ntwo\nthree\n");
        assert_eq!(next, Next::More);
    }

    #[test]
    fn a_line_has_one_time() {
        let options = LogOptions {
            timestamps: true,
            ..LogOptions::default()
        };
        let expected = "\
1970-01-01T00:00:01.000000000Z one\n\
1970-01-01T00:00:02.000000000Z two\n\
1970-01-01T00:00:04.000000000Z three\n";
        assert_eq!(shown(LOG, options).0, expected);
    }

    #[test]
    fn old_lines_other_streams_and_too_many_bytes_are_left_out() {
        let all = LogOptions::default();
        let since = Some(Timestamp::from_secs(3));
        let cases = [
            (LogOptions { since, ..all }, "o\nthree\n"),
            (
                LogOptions {
                    streams: Streams::Stderr,
                    ..all
                },
                "two\n",
            ),
            (
                LogOptions {
                    limit_bytes: Some(6),
                    ..all
                },
                "one\ntw",
            ),
            (
                LogOptions {
                    tail_lines: Some(2),
                    ..all
                },
                "one\ntw",
            ),
            (
                LogOptions {
                    tail_lines: Some(0),
                    ..all
                },
                "",
            ),
        ];
        for (options, expected) in cases {
            assert_eq!(shown(LOG, options).0, expected, "{options:?}");
        }
    }

    #[test]
    fn unknown_log_format_is_reported() {
        let (text, next) = shown("what\n", LogOptions::default());
        assert_eq!(text, "");
        let expected = "failed to get parse function: unsupported log format: \"what\\n\"";
        assert_eq!(next, Next::Failed(expected.to_owned()));
    }
}
