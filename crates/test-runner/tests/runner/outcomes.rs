//! The reports of tests that pass, fail and are flaky.

use crate::bench::Bench;

#[test]
fn tests_that_pass_are_counted_in_the_last_line() {
    let bench = Bench::new();
    let ran = bench.run("good");
    assert_eq!(ran.code, 0, "{}", ran.text);
    assert_eq!(ran.last_line(), "2 passed, 0 failed");
    assert!(!ran.text.contains("flaky:"), "{}", ran.text);
    assert!(ran.text.contains("slowest tests:"), "{}", ran.text);
    assert!(ran.section("time of each step and tier:").contains("unit"));
}

#[test]
fn a_flaky_test_passes_and_is_listed_with_both_outputs() {
    let bench = Bench::new();
    let ran = bench.run("good fails_the_first_time");
    assert_eq!(ran.code, 0, "{}", ran.text);
    assert_eq!(ran.last_line(), "3 passed, 0 failed");
    let flaky = ran.section("flaky:");
    assert!(
        flaky.contains("fixture/tests flaky::fails_the_first_time"),
        "{flaky}"
    );
    assert!(
        flaky.contains("fixture.tests.flaky.fails_the_first_time/{1,2}.log"),
        "{flaky}"
    );
    let first = bench.log("flaky::fails_the_first_time", 1);
    assert!(first.contains("nothing is there yet"), "{first}");
    let second = bench.log("flaky::fails_the_first_time", 2);
    assert!(second.contains("runs before this one: 1"), "{second}");
}

#[test]
fn a_failing_test_is_run_twice_and_shown_with_its_output() {
    let bench = Bench::new();
    let ran = bench.run("good bad::fails");
    assert_eq!(ran.code, 1, "{}", ran.text);
    assert_eq!(ran.last_line(), "2 passed, 1 failed");
    let failed = ran.section("failed:");
    assert!(
        failed.contains("fixture/tests bad::fails: 2 of 2 failed"),
        "{failed}"
    );
    assert!(failed.contains("two and two are five"), "{failed}");
    for round in [1, 2] {
        let log = bench.log("bad::fails", round);
        assert!(log.contains("said before the end"), "{log}");
        assert!(log.contains("two and two are five"), "{log}");
    }
}

#[test]
fn a_crash_is_the_failure_of_one_test() {
    let bench = Bench::new();
    let ran = bench.run("crashes ends_its_process good");
    assert_eq!(ran.code, 1, "{}", ran.text);
    assert_eq!(ran.last_line(), "2 passed, 2 failed");
    let failed = ran.section("failed:");
    assert!(failed.contains("bad::crashes: 2 of 2 failed; its process ended with signal: 6"));
    assert!(failed.contains("bad::ends_its_process: 2 of 2 failed; its process ended with exit"));
}

#[test]
fn repeated_tests_are_not_retried() {
    let bench = Bench::new();
    let ran = bench.run("--repeat 7 good fails_every_third_time");
    assert_eq!(ran.code, 1, "{}", ran.text);
    assert_eq!(ran.last_line(), "19 passed, 2 failed");
    let failed = ran.section("failed:");
    assert!(
        failed.contains("flaky::fails_every_third_time: 2 of 7 failed"),
        "{failed}"
    );
    assert!(
        bench
            .log("flaky::fails_every_third_time", 3)
            .contains("the third time")
    );
    assert!(
        bench
            .log("flaky::fails_every_third_time", 6)
            .contains("the third time")
    );
}

#[test]
fn tests_pass_on_a_busy_machine() {
    let bench = Bench::new();
    let ran = bench.run("--busy --repeat 2 good");
    assert_eq!(ran.code, 0, "{}", ran.text);
    assert_eq!(ran.last_line(), "4 passed, 0 failed");
}
