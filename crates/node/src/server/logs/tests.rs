//! Reading a file gives what the simplest possible reader would give.

use std::sync::Arc;

use futures::StreamExt;
use plimsoll_core::object::timestamp::Timestamp;
use proptest::prelude::*;

use super::options::{LogOptions, Streams};
use super::reader::LogReader;
use crate::server::tests::runtime::FakeRuntime;

/// A line as a runtime writes it, or one that something else has damaged.
#[derive(Clone, Debug)]
enum Entry {
    Line {
        second: u8,
        is_stderr: bool,
        is_partial: bool,
        text: String,
    },
    Damaged(String),
}

impl Entry {
    fn render(&self) -> String {
        match self {
            Entry::Line {
                second,
                is_stderr,
                is_partial,
                text,
            } => {
                let source = if *is_stderr { "stderr" } else { "stdout" };
                let tag = if *is_partial { "P" } else { "F" };
                format!("1970-01-01T00:00:{second:02}.5Z {source} {tag} {text}\n")
            }
            Entry::Damaged(text) => format!("{text}\n"),
        }
    }
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let line = (0_u8..60, any::<bool>(), any::<bool>(), "[a-z ]{0,12}").prop_map(
        |(second, is_stderr, is_partial, text)| Entry::Line {
            second,
            is_stderr,
            is_partial,
            text,
        },
    );
    let damaged = "[a-z]{0,12}".prop_map(Entry::Damaged);
    proptest::collection::vec(prop_oneof![9 => line, 1 => damaged], 0..40)
}

fn options() -> impl Strategy<Value = LogOptions> {
    let some = |range: std::ops::Range<u64>| proptest::option::of(range);
    let streams = prop_oneof![
        4 => Just(Streams::All),
        1 => Just(Streams::Stdout),
        1 => Just(Streams::Stderr),
    ];
    let since = proptest::option::of(0_i64..60);
    (any::<bool>(), since, some(0..20), some(1..200), streams).prop_map(
        |(timestamps, since, tail_lines, limit_bytes, streams)| LogOptions {
            timestamps,
            since: since.map(Timestamp::from_secs),
            tail_lines,
            limit_bytes,
            streams,
            ..LogOptions::default()
        },
    )
}

/// The last entry has no end of line if it is cut.
fn expected(entries: &[Entry], is_cut: bool, options: &LogOptions) -> Vec<u8> {
    let whole = entries.len() - usize::from(is_cut);
    let tail = options
        .tail_lines
        .map(|lines| usize::try_from(lines).unwrap());
    let start = tail.map_or(0, |lines| whole.saturating_sub(lines));
    let mut shown = Vec::new();
    let mut left = tail.unwrap_or(usize::MAX);
    let mut begins = true;
    let limit = options
        .limit_bytes
        .map(|limit| usize::try_from(limit).unwrap());
    for (at, entry) in entries.iter().enumerate().skip(start) {
        if left == 0 || limit.is_some_and(|limit| shown.len() >= limit) {
            break;
        }
        let is_last = is_cut && at + 1 == entries.len();
        let Entry::Line {
            second,
            is_stderr,
            is_partial,
            text,
        } = entry
        else {
            if at == start {
                let line = entry.render();
                let line = if is_last { line.trim_end() } else { &line };
                if line.is_empty() {
                    break;
                }
                let why = "failed to get parse function: unsupported log format:";
                return format!("{why} {line:?}").into_bytes();
            }
            continue;
        };
        let wanted = match options.streams {
            Streams::All => true,
            Streams::Stdout => !is_stderr,
            Streams::Stderr => *is_stderr,
        };
        let ends = !is_partial && !is_last;
        let content = format!("{text}{}", if ends { "\n" } else { "" });
        let time = i64::from(*second) * 1_000_000_000 + 500_000_000;
        if wanted && options.since.is_none_or(|since| since.as_nanos() <= time) {
            if options.timestamps && begins {
                let stamp = format!("1970-01-01T00:00:{second:02}.500000000Z ");
                shown.extend_from_slice(stamp.as_bytes());
            }
            shown.extend_from_slice(content.as_bytes());
        }
        begins = content.is_empty() || content.ends_with('\n');
        left -= 1;
    }
    shown.truncate(limit.unwrap_or(usize::MAX));
    shown
}

thread_local! {
    static TOKIO: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
}

fn read(text: &[u8], options: LogOptions) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("0.log");
    std::fs::write(&path, text).unwrap();
    let runtime = FakeRuntime::with_app(path.to_str().unwrap());
    runtime.stop("c1");
    TOKIO.with(|tokio| {
        tokio.block_on(async {
            let reader = LogReader::open(Arc::new(runtime), "fake://c1", options).await;
            let pieces: Vec<_> = reader.unwrap().pieces().collect().await;
            pieces.concat()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn log_reader_matches_the_model(
        entries in entries(),
        options in options(),
        is_cut in any::<bool>(),
    ) {
        let mut text: String = entries.iter().map(Entry::render).collect();
        let is_cut = is_cut && !entries.is_empty();
        if is_cut {
            text.pop();
        }
        let shown = read(text.as_bytes(), options);
        let expected = expected(&entries, is_cut, &options);
        prop_assert_eq!(
            String::from_utf8_lossy(&shown),
            String::from_utf8_lossy(&expected),
            "{:?}", text
        );
    }

    #[test]
    fn any_file_can_be_read_to_its_end(
        bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b' ')], 0..2000),
        follow in proptest::bool::weighted(0.1),
        tail_lines in proptest::option::of(0_u64..9),
    ) {
        let options = LogOptions { tail_lines, follow, ..LogOptions::default() };
        let _ = read(&bytes, options);
    }
}

#[test]
fn overlong_line_is_skipped() {
    let line = |text: &str| format!("1970-01-01T00:00:00Z stdout F {text}\n");
    let text = [line("a"), line(&"x".repeat(3 << 20)), line("b")].concat();
    let shown = read(text.as_bytes(), LogOptions::default());
    assert_eq!(String::from_utf8_lossy(&shown), "a\nb\n");
}
