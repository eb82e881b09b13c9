//! One line of a log file.

use plimsoll_core::object::timestamp::Timestamp;
use serde::Deserialize;

/// Which of its outputs a process wrote to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Stdout,
    Stderr,
}

/// A line taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) time: Timestamp,
    /// The time as it is shown: nine digits of a second, in the zone of the log.
    pub(super) stamp: String,
    /// `None` if the format allows saying something else than the two.
    pub(super) source: Option<Source>,
    /// What the process wrote, with the end of the line unless the line continues.
    pub(super) content: std::borrow::Cow<'a, [u8]>,
}

/// How the lines of a file are written; a file has one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// `2016-10-06T00:17:09.669794202Z stdout F content`.
    Cri,
    /// `{"log":"content\n","stream":"stdout","time":"2016-10-20T18:39:20.57606443Z"}`.
    DockerJson,
}

impl Format {
    /// The format of a line, if it has one of the known ones.
    pub(super) fn of(line: &[u8]) -> Option<Format> {
        let mut all = [Format::Cri, Format::DockerJson].into_iter();
        all.find(|format| format.parse(line).is_some())
    }

    /// Takes a line apart. It ends with its newline, except perhaps the last one of a file.
    pub(super) fn parse(self, line: &[u8]) -> Option<Line<'_>> {
        match self {
            Format::Cri => cri(line),
            Format::DockerJson => docker_json(line),
        }
    }
}

fn cri(line: &[u8]) -> Option<Line<'_>> {
    let (stamp, rest) = word(line)?;
    let (time, stamp) = time(std::str::from_utf8(stamp).ok()?)?;
    let (source, rest) = word(rest)?;
    let source = source_named(source)?;
    let (tags, content) = word(rest)?;
    let is_partial = tags.split(|byte| *byte == b':').next() == Some(b"P");
    let content = match content.strip_suffix(b"\n") {
        Some(cut) if is_partial => cut,
        _ => content,
    };
    Some(Line {
        time,
        stamp,
        source: Some(source),
        content: content.into(),
    })
}

fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = line.iter().position(|byte| *byte == b' ')?;
    Some((&line[..end], &line[end + 1..]))
}

fn source_named(name: &[u8]) -> Option<Source> {
    match name {
        b"stdout" => Some(Source::Stdout),
        b"stderr" => Some(Source::Stderr),
        _ => None,
    }
}

#[derive(Deserialize)]
struct JsonLine {
    #[serde(default)]
    log: String,
    #[serde(default)]
    stream: String,
    time: String,
}

fn docker_json(line: &[u8]) -> Option<Line<'_>> {
    let line: JsonLine = serde_json::from_slice(line).ok()?;
    let (time, stamp) = time(&line.time)?;
    Some(Line {
        time,
        stamp,
        source: source_named(line.stream.as_bytes()),
        content: line.log.into_bytes().into(),
    })
}

/// Reads an RFC 3339 time with up to nine digits of a second and writes it with all nine, as Go's
/// `2006-01-02T15:04:05.000000000Z07:00` does.
fn time(text: &str) -> Option<(Timestamp, String)> {
    const SECONDS: usize = "2006-01-02T15:04:05".len();
    let (whole, rest) = text.split_at_checked(SECONDS)?;
    let fits = whole.bytes().zip("dddd-dd-ddTdd:dd:dd".bytes());
    let mut fits = fits.map(|(byte, shape)| match shape {
        b'd' => byte.is_ascii_digit(),
        shape => byte == shape,
    });
    if !fits.all(|fits| fits) {
        return None;
    }
    let zone_at = rest.find(['Z', '+', '-'])?;
    let (fraction, zone) = rest.split_at_checked(zone_at)?;
    let digits = match fraction.strip_prefix('.') {
        Some(digits) if !digits.is_empty() => digits,
        Some(_) => return None,
        None if fraction.is_empty() => "",
        None => return None,
    };
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let digits = &digits[..digits.len().min(9)];
    let zone = match zone {
        "Z" | "+00:00" | "-00:00" => "Z",
        zone => zone,
    };
    let stamp = format!("{whole}.{digits:0<9}{zone}");
    Some((Timestamp::from_rfc3339(&stamp)?, stamp))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(line: &[u8]) -> Option<(i64, String, Option<Source>, Vec<u8>)> {
        let line = Format::of(line)?.parse(line)?;
        let nanos = line.time.as_nanos();
        Some((nanos, line.stamp, line.source, line.content.into_owned()))
    }

    #[test]
    fn lines_of_both_formats_are_parsed() {
        let (out, err) = (Some(Source::Stdout), Some(Source::Stderr));
        type Case<'a> = (&'a [u8], i64, &'a str, Option<Source>, &'a [u8]);
        let cases: &[Case<'_>] = &[
            (
                b"1970-01-01T00:00:01.5Z stdout F a b\n",
                1_500_000_000,
                "1970-01-01T00:00:01.500000000Z",
                out,
                b"a b\n",
            ),
            (
                b"1970-01-01T02:00:01+02:00 stderr P part\n",
                1_000_000_000,
                "1970-01-01T02:00:01.000000000+02:00",
                err,
                b"part",
            ),
            (
                b"1970-01-01T00:00:00Z stdout F:x \n",
                0,
                "1970-01-01T00:00:00.000000000Z",
                out,
                b"\n",
            ),
            (
                b"1970-01-01T00:00:00Z stdout F cut",
                0,
                "1970-01-01T00:00:00.000000000Z",
                out,
                b"cut",
            ),
            (
                b"{\"log\":\"a\\n\",\"stream\":\"stderr\",\"time\":\"1970-01-01T00:00:00.000000001Z\"}\n",
                1,
                "1970-01-01T00:00:00.000000001Z",
                err,
                b"a\n",
            ),
            (
                b"{\"log\":\"a\",\"time\":\"1970-01-01T00:00:00Z\"}\n",
                0,
                "1970-01-01T00:00:00.000000000Z",
                None,
                b"a",
            ),
        ];
        for (line, nanos, stamp, source, content) in cases {
            let expected = (*nanos, (*stamp).to_owned(), *source, content.to_vec());
            let shown = String::from_utf8_lossy(line);
            assert_eq!(parsed(line), Some(expected), "{shown}");
        }
    }

    #[test]
    fn malformed_lines_are_refused() {
        let cases: &[&[u8]] = &[
            b"",
            b"\n",
            b"text\n",
            b"1970-01-01T00:00:00Z stdout F\n",
            b"1970-01-01T00:00:00Z stdin F x\n",
            b"1970-01-01 00:00:00Z stdout F x\n",
            b"1970-13-01T00:00:00Z stdout F x\n",
            b"1970-01-01T00:00:00.Z stdout F x\n",
            b"1970-01-01T00:00:00 stdout F x\n",
            b"{\"log\":\"a\"}\n",
        ];
        for line in cases {
            assert_eq!(parsed(line), None, "{}", String::from_utf8_lossy(line));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Format::of(&line);
        }

        #[test]
        fn no_malformed_line_causes_a_panic(line in "[0-9TZ:.+-]{0,40} (stdout|stderr|x)? ?[PF]? ?.{0,20}\n?") {
            let _ = Format::of(line.as_bytes());
        }
    }
}
