//! The program as the first process of a container, which the kernel spares most signals.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::toolbox::{PROGRAM, Toolbox, output, wait_until};

/// A command as process 1 of new namespaces.
fn first(toolbox: &Toolbox, words: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child"]);
    command.arg(toolbox.bin().join(words[0])).args(&words[1..]);
    command.env("PATH", format!("{}:/usr/bin:/bin", toolbox.bin().display()));
    command.current_dir(toolbox.work());
    command
}

/// The process id, outside, of the child of `unshare`, once it is our program and not unshare.
fn child_of(process: u32) -> Option<i32> {
    let children = format!("/proc/{process}/task/{process}/children");
    let child: i32 = std::fs::read_to_string(children)
        .ok()?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    let program = std::fs::read_link(format!("/proc/{child}/exe")).ok()?;
    (program == std::fs::canonicalize(PROGRAM).ok()?).then_some(child)
}

#[test]
#[ignore = "tier: root"]
fn ends_on_sigterm_without_a_trap() {
    let toolbox = Toolbox::new();
    for words in [
        vec!["sleep", "infinity"],
        vec!["sh", "-c", "sleep 1000"],
        vec!["sh", "-c", "sleep 1000; echo"],
        vec!["sh", "-c", "sleep 1000 & wait"],
        vec!["sh", "-c", "while :; do :; done"],
        vec!["sh", "-c", "exec sleep 1000"],
        vec![
            "sh",
            "-c",
            "trap : USR1; trap - TERM; echo ready > ready; while :; do sleep 100; done",
        ],
        vec!["tail", "-f", "/dev/null"],
        vec!["httpd", "-p", "127.0.0.1:0"],
        vec!["hog", "--rate", "1Mi", "--limit", "1Mi"],
    ] {
        let mut child = first(&toolbox, &words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut inner = 0;
        wait_until("the first process", || {
            inner = child_of(child.id()).unwrap_or(0);
            inner != 0
        });
        // Its handlers are there when SIGTERM, the 15th, is among the signals caught.
        wait_until("its handlers", || {
            let status =
                std::fs::read_to_string(format!("/proc/{inner}/status")).unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = caught.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
            caught.is_some_and(|caught| caught & (1 << 14) != 0)
        });
        let started = Instant::now();
        assert!(
            Command::new("kill")
                .args(["-TERM", &inner.to_string()])
                .status()
                .unwrap()
                .success()
        );
        let status = child.wait().unwrap();
        let ended = status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        assert_eq!(ended, 143, "{words:?}");
        assert!(
            started.elapsed().as_secs() < 5,
            "{words:?}: {:?}",
            started.elapsed()
        );
    }
}

#[test]
#[ignore = "tier: root"]
fn traps_work_in_the_first_process() {
    let toolbox = Toolbox::new();
    for (script, expected, status) in [
        (
            "echo $$; trap 'echo term; exit 7' TERM; kill -TERM 1; echo no",
            "1\nterm\n",
            7,
        ),
        (
            "trap 'echo bye' EXIT; trap 'exit 3' TERM; sleep 100 & (sleep 0.2; kill 1) & wait",
            "bye\n",
            3,
        ),
        ("trap '' TERM; kill 1; echo alive", "alive\n", 0),
        ("kill -INT 1; echo no", "", 130),
    ] {
        let output = output(&mut first(&toolbox, &["sh", "-c", script]), b"");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            expected,
            "{script}"
        );
        assert_eq!(output.status.code(), Some(status), "{script}");
    }
}

#[test]
#[ignore = "tier: root"]
fn orphans_are_reaped() {
    let toolbox = Toolbox::new();
    // The inner shell leaves a child behind, which process 1 inherits.
    let script = "sh -c 'sleep 0.1 & exit'; sleep 0.4; ps | grep -c '\\[sleep\\]'";
    let output = output(&mut first(&toolbox, &["sh", "-c", script]), b"");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n");
}
