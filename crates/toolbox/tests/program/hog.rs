//! `hog`: how much it takes, and how fast.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Instant;

use crate::toolbox::Toolbox;

#[test]
fn takes_memory_at_the_rate_and_no_more_than_the_limit() {
    let toolbox = Toolbox::new();
    let mut child = toolbox
        .command("hog")
        .args(["--rate", "20Mi", "--start", "10Mi", "--limit", "40Mi"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "growing 10.0 Mi");
    let last = lines
        .by_ref()
        .map(Result::unwrap)
        .find(|line| line.starts_with("holding"))
        .unwrap();
    assert_eq!(last, "holding 40.0 Mi");
    // 30 MiB at 20 MiB per second: never faster, and slower only on a machine that stalls.
    assert!(
        started.elapsed().as_millis() >= 1400,
        "{:?}",
        started.elapsed()
    );
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    let resident: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    assert!((40 << 10..44 << 10).contains(&resident), "{resident} KiB");
    assert_eq!(lines.next().unwrap().unwrap(), "holding 40.0 Mi");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn ends_at_the_limit_with_exit() {
    let toolbox = Toolbox::new();
    let text = toolbox.print(&["hog", "--rate=1Gi", "--limit=8Mi", "--exit"]);
    assert!(text.ends_with("holding 8.0 Mi\n"), "{text}");
}

#[test]
fn wrong_sizes_are_usage_errors() {
    let toolbox = Toolbox::new();
    for words in [
        vec!["hog"],
        vec!["hog", "--rate", "0"],
        vec!["hog", "--rate", "50MB"],
        vec!["hog", "--rate", "1Mi", "--limit", "1Mi", "--start", "2Mi"],
        vec!["hog", "--rate", "1Mi", "--hold", "--exit"],
        vec!["hog", "--rate", "1Mi", "more"],
    ] {
        assert_eq!(toolbox.run(&words).status.code(), Some(2), "{words:?}");
    }
}
