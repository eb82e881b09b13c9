//! Logs in CRI format.

use std::path::Path;

use crate::scene::{Scene, log_path, named, script, until};

/// One line of a log file.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    stream: String,
    tag: String,
    text: String,
}

pub(crate) async fn lines_have_time_stream_and_tag(scene: &Scene) {
    let config = script("echo one; echo two words >&2; sleep 0.2; echo; echo '  indented'");
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &config).await;
    scene.ended(&id).await;
    let lines = lines(&log_path(&sandbox, &config), 4).await;
    let of = |stream: &str| {
        let of_stream = lines.iter().filter(|line| line.stream == stream);
        of_stream
            .map(|line| (line.tag.as_str(), line.text.as_str()))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("stdout"), [("F", "one"), ("F", ""), ("F", "  indented")]);
    assert_eq!(of("stderr"), [("F", "two words")]);
}

pub(crate) async fn long_lines_are_cut_into_parts(scene: &Scene) {
    let config = script("head -c 40000 /dev/zero | tr '\\0' x; echo; echo end");
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &config).await;
    scene.ended(&id).await;
    let lines = lines(&log_path(&sandbox, &config), 4).await;
    let shape: Vec<(&str, usize)> = lines
        .iter()
        .map(|line| (line.tag.as_str(), line.text.len()))
        .collect();
    assert_eq!(shape, [("P", 16384), ("P", 16384), ("F", 7232), ("F", 3)]);
}

pub(crate) async fn a_last_line_without_end_is_kept(scene: &Scene) {
    let config = script("echo whole; printf 'no end'");
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &config).await;
    scene.ended(&id).await;
    let lines = lines(&log_path(&sandbox, &config), 2).await;
    assert_eq!(lines[1].text, "no end");
}

pub(crate) async fn bytes_that_are_no_text_are_kept(scene: &Scene) {
    let config = script(r"printf 'a\377\000b\n'");
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &config).await;
    scene.ended(&id).await;
    let path = log_path(&sandbox, &config);
    let bytes = until("the log is whole", async || {
        let bytes = std::fs::read(&path).unwrap_or_default();
        bytes.ends_with(b"\n").then_some(bytes)
    })
    .await;
    assert!(bytes.ends_with(b" stdout F a\xff\x00b\n"), "{bytes:?}");
}

pub(crate) async fn nothing_is_lost_of_much_output(scene: &Scene) {
    // It has to live on: containerd gives a container's last words two seconds, which is not
    // always enough for so many.
    let config = script("seq 1 20000; exec sleep 1000");
    let sandbox = scene.run_pod().await;
    scene.start(&sandbox, &config).await;
    let lines = lines(&log_path(&sandbox, &config), 20_000).await;
    let numbers = lines.iter().map(|line| line.text.parse::<i32>().unwrap());
    assert!(numbers.eq(1..=20_000));
}

pub(crate) async fn renamed_log_is_reopened(scene: &Scene) {
    let config =
        script("echo before; while ! test -e /tmp/go; do sleep 0.05; done; echo after; sleep 1000");
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &config).await;
    scene.has_printed(&sandbox, &config, "before").await;
    let path = log_path(&sandbox, &config);
    let rotated = path.with_extension("rotated");
    std::fs::rename(&path, &rotated).unwrap();
    scene.runtime().reopen_container_log(&id).await.unwrap();
    scene.shell(&id, "touch /tmp/go").await;
    scene.has_printed(&sandbox, &config, "after").await;
    let old = std::fs::read_to_string(rotated).unwrap();
    assert!(old.ends_with("before\n"), "{old}");
    let new = std::fs::read_to_string(path).unwrap();
    assert!(!new.contains("before"), "{new}");

    let ended = scene
        .start(&sandbox, &named(script("exit 0"), "ended", 0))
        .await;
    scene.ended(&ended).await;
    assert!(scene.runtime().reopen_container_log(&ended).await.is_err());
}

pub(crate) async fn a_terminal_has_one_stream(scene: &Scene) {
    let mut config = script("test -t 1 && echo terminal; echo error >&2");
    config.tty = true;
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &config).await;
    scene.ended(&id).await;
    let lines = lines(&log_path(&sandbox, &config), 2).await;
    let texts: Vec<&str> = lines.iter().map(|line| line.text.trim_end()).collect();
    assert_eq!(texts, ["terminal", "error"]);
    assert!(
        lines.iter().all(|line| line.stream == "stdout"),
        "{lines:?}"
    );
}

/// The lines of a log, once it has that many.
async fn lines(path: &Path, count: usize) -> Vec<Line> {
    let text = until("the log is whole", async || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        (text.lines().count() >= count).then_some(text)
    })
    .await;
    let lines: Vec<Line> = text.lines().map(parse).collect();
    assert_eq!(lines.len(), count, "{lines:?}");
    lines
}

fn parse(line: &str) -> Line {
    let mut parts = line.splitn(4, ' ');
    let mut part = || parts.next().unwrap().to_owned();
    let time = part();
    assert_is_time(&time);
    Line {
        stream: part(),
        tag: part(),
        text: part(),
    }
}

/// As Go prints RFC 3339 with nanoseconds, without trailing zeros.
fn assert_is_time(text: &str) {
    let (day, clock) = text.split_once('T').unwrap();
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    assert!(day.len() == 10 && day.split('-').all(is_digits), "{text}");
    let (clock, zone) = match clock.split_once('Z') {
        Some((clock, "")) => (clock, "+00:00"),
        _ => clock.split_at(clock.len() - 6),
    };
    assert!(
        zone.starts_with(['+', '-']) && zone[1..].split(':').all(is_digits),
        "{text}"
    );
    let (seconds, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    assert!(
        seconds.len() == 8 && seconds.split(':').all(is_digits),
        "{text}"
    );
    assert!(fraction.len() <= 9 && is_digits(fraction), "{text}");
}
