//! Which tests run, and the message for words that select none.

use crate::bench::Bench;

#[test]
fn tiers_are_read_from_the_reasons_to_ignore() {
    let bench = Bench::new();
    let ran = bench.run("--list tiers good");
    assert_eq!(ran.code, 0, "{}", ran.text);
    let expected = "unit  fixture/tests good::passes\n\
                    unit  fixture/tests good::passes_too\n\
                    root  fixture/tests tiers::needs_root\n\
                    tools fixture/tests tiers::needs_tools\n";
    assert_eq!(ran.text, expected);
}

#[test]
fn a_tier_runs_its_tests_and_no_others() {
    let bench = Bench::new();
    let ran = bench.run("root tools");
    assert_eq!(ran.code, 0, "{}", ran.text);
    assert_eq!(ran.last_line(), "2 passed, 0 failed");
    assert_eq!(bench.run("root").last_line(), "1 passed, 0 failed");
}

#[test]
fn an_ignored_test_has_to_name_a_tier() {
    let bench = Bench::without_tier();
    let ran = bench.run("good");
    assert_eq!(ran.code, 1, "{}", ran.text);
    assert!(
        ran.text
            .contains("fixture/tests says_no_tier: the test is ignored and names no tier")
    );
}

#[test]
fn a_filter_that_matches_nothing_is_an_error() {
    let bench = Bench::new();
    let ran = bench.run("good no_such_test");
    assert_eq!(ran.code, 2, "{}", ran.text);
    assert!(
        ran.text.contains("no test matches \"no_such_test\""),
        "{}",
        ran.text
    );
    let ran = bench.run("vm");
    assert_eq!(ran.code, 2, "{}", ran.text);
    assert!(
        ran.text.contains("no test of these tiers matches"),
        "{}",
        ran.text
    );
}

#[test]
fn unknown_options_are_an_error() {
    let bench = Bench::new();
    let ran = bench.run("--forever");
    assert_eq!(ran.code, 2, "{}", ran.text);
    assert!(
        ran.text
            .contains("error: unknown option \"--forever\"\nhint:"),
        "{}",
        ran.text
    );
}

#[test]
fn help_names_tiers_and_options() {
    let ran = Bench::new().run("--help");
    assert_eq!(ran.code, 0);
    for word in [
        "unit", "tools", "root", "vm", "fuzz", "bench", "--repeat", "--busy",
    ] {
        assert!(
            ran.text.contains(word),
            "{word} is missing in: {}",
            ran.text
        );
    }
}
