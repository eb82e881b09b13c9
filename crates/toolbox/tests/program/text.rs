//! Applets about text and about the machine.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Instant;

use crate::toolbox::{Toolbox, write};

#[test]
fn filters_transform_lines() {
    let toolbox = Toolbox::new();
    for (words, input, expected) in [
        (vec!["head", "-n", "2"], "a\nb\nc\n", "a\nb\n"),
        (vec!["head", "-1"], "a\nb\n", "a\n"),
        (vec!["head", "-c", "3"], "abcd", "abc"),
        (vec!["tail", "-n", "1"], "a\nb", "b"),
        (vec!["tail", "-n", "+2"], "a\nb\nc\n", "b\nc\n"),
        (vec!["tail", "-c", "2"], "abc", "bc"),
        (vec!["tail", "-c+3"], "abcd", "cd"),
        (vec!["wc"], "a b\nc\n", "2 3 6\n"),
        (vec!["wc", "-l"], "a\nb", "1\n"),
        (vec!["grep", "-n", "b"], "abc\nx\nb\n", "1:abc\n3:b\n"),
        (vec!["grep", "-vE", "^(a|b)+$"], "ab\nc\n", "c\n"),
        (vec!["grep", "-ic", "A.C"], "abc\nxyxc\n", "1\n"),
        (vec!["grep", "-F", "a.c"], "abc\na.c\n", "a.c\n"),
        (vec!["grep", "-oE", "[0-9]+"], "a1b22\n", "1\n22\n"),
        (vec!["grep", "-x", "a"], "a\nab\n", "a\n"),
        (vec!["grep", "-w", "a"], "a b\nab\n", "a b\n"),
        (vec!["sort"], "b\na\nb\n", "a\nb\nb\n"),
        (vec!["sort", "-rnu"], "2\n10\n2\n", "10\n2\n"),
        (vec!["uniq", "-c"], "a\na\nb\n", "      2 a\n      1 b\n"),
        (vec!["cut", "-d:", "-f1,3"], "a:b:c\nx\n", "a:c\nx\n"),
        (vec!["cut", "-c2-"], "abc\n", "bc\n"),
        (vec!["tr", "a-c", "A-C"], "abcd", "ABCd"),
        (vec!["tr", "-d", "[:space:]"], "a b\n", "ab"),
        (vec!["tr", "-s", " "], "a   b", "a b"),
        (vec!["tee", "copy"], "x\n", "x\n"),
        (vec!["cat", "-", "/dev/null"], "x", "x"),
    ] {
        let output = toolbox.pipe(&words, input);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            expected,
            "{words:?} {errors}"
        );
    }
    assert_eq!(toolbox.print(&["cat", "copy"]), "x\n");
    assert_eq!(
        toolbox.pipe(&["grep", "-q", "x"], "a\n").status.code(),
        Some(1)
    );
    assert_eq!(
        toolbox.pipe(&["grep", "(", "none"], "").status.code(),
        Some(2)
    );
    assert_eq!(
        toolbox.pipe(&["grep", "-E", "("], "").status.code(),
        Some(2)
    );
}

#[test]
fn small_applets_print_results() {
    let toolbox = Toolbox::new();
    for (words, expected) in [
        (vec!["basename", "/a/b.c/", ".c"], "b\n"),
        (vec!["dirname", "/a/b/"], "/a\n"),
        (vec!["dirname", "a"], ".\n"),
        (vec!["seq", "3", "-1", "1"], "3\n2\n1\n"),
        (vec!["env", "-i", "A=1", "sh", "-c", "echo $A"], "1\n"),
        (vec!["env", "-i", "A=1"], "A=1\n"),
        (vec!["printf", "%s\n", "a", "b"], "a\nb\n"),
        (vec!["uname"], "Linux\n"),
        (vec!["kill", "-l", "15"], "TERM\n"),
    ] {
        assert_eq!(toolbox.print(&words), expected, "{words:?}");
    }
    let year: u32 = toolbox.print(&["date", "+%Y"]).trim().parse().unwrap();
    assert!(year >= 2024);
    assert_eq!(toolbox.run(&["env", "no-such"]).status.code(), Some(127));
    assert!(toolbox.print(&["id"]).starts_with("uid="));
    assert!(!toolbox.print(&["hostname"]).trim().is_empty());
}

#[test]
fn ps_lists_itself() {
    let toolbox = Toolbox::new();
    let text = toolbox.print(&["ps", "aux"]);
    assert!(text.lines().any(|line| line.ends_with("ps aux")), "{text}");
}

#[test]
fn sleep_takes_fractions() {
    let toolbox = Toolbox::new();
    let started = Instant::now();
    toolbox.print(&["sleep", "0.2", "0.1s"]);
    assert!(started.elapsed().as_millis() >= 300);
    assert_eq!(toolbox.run(&["sleep", "soon"]).status.code(), Some(2));
}

#[test]
fn tail_follows_appended_lines_and_replaced_files() {
    let toolbox = Toolbox::new();
    let file = toolbox.work().join("log");
    write(&file, "old\nlast\n");
    let mut child = toolbox
        .command("tail")
        .args(["-f", "-n", "1", "log"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "last");
    let mut open = std::fs::OpenOptions::new()
        .append(true)
        .open(&file)
        .unwrap();
    writeln!(open, "more").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "more");
    write(&toolbox.work().join("next"), "rotated\n");
    std::fs::rename(toolbox.work().join("next"), &file).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "rotated");
    child.kill().unwrap();
    child.wait().unwrap();
}
