//! The end of processes: of tests that hang, of their leftovers, of a runner that is stopped.

use rustix::process::{Pid, Signal, kill_process};

use crate::bench::{Bench, is_alive, until};

#[test]
fn hanging_test_is_killed_with_its_children_and_a_backtrace() {
    let bench = Bench::new();
    let ran = bench.run("--timeout 3 bad::hangs good");
    assert_eq!(ran.code, 1, "{}", ran.text);
    assert_eq!(ran.last_line(), "2 passed, 1 failed");
    let failed = ran.section("failed:");
    assert!(
        failed.contains("bad::hangs: 2 of 2 failed; timed out after 3 s"),
        "{failed}"
    );
    let log = bench.log("bad::hangs", 2);
    assert!(log.contains("waiting for what never happens"), "{log}");
    assert!(log.contains("timed out after 3 s; its processes:"), "{log}");
    assert!(log.contains("sleep 1000"), "{log}");
    assert!(log.contains("nanosleep"), "{log}");
    assert!(!is_alive(bench.process("child")));
}

#[test]
fn leftover_processes_are_ended_and_reported() {
    let bench = Bench::new();
    let ran = bench.run("leaves_a_process_behind");
    assert_eq!(ran.code, 0, "{}", ran.text);
    let left = ran.section("left running, and ended:");
    assert!(
        left.contains("bad::leaves_a_process_behind"),
        "{}",
        ran.text
    );
    assert!(left.contains("sleep 1000"), "{left}");
    assert!(!is_alive(bench.process("left")));
}

#[test]
fn stopped_runner_ends_its_children() {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let bench = Bench::new();
        let mut runner = bench.start("bad::hangs --busy");
        let child = bench.process("child");
        assert!(is_alive(child));
        let id = Pid::from_raw(i32::try_from(runner.id()).unwrap()).unwrap();
        kill_process(id, signal).unwrap();
        assert!(!runner.wait().unwrap().success());
        until("its child is gone", || !is_alive(child));
    }
}
