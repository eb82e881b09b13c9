//! The test runner behind `scripts/test`.
//!
//! It builds all test executables of the workspace with one command, lists their tests and their
//! tiers, and runs them in processes with time limits, several at once. A test that fails is run
//! again with nothing beside it: it is flaky if it passes then.
//!
//! Tests that cost something (servers, containers, virtual machines) have a process each, so that one
//! that hangs or crashes is ended with all it started and takes no other along. The 2,500 that take
//! milliseconds run in processes of up to a hundred, one after the other: a process each would cost
//! more than the tests do, and one thread makes it known which test runs and how long it takes. A few
//! executables share something expensive between their tests and run as a whole.
//!
//! Reading order: [`arguments`], [`tier`], [`table`] (how tests share the machine), [`executables`]
//! and [`listing`] (which tests there are), [`plan`] (which run together), [`schedule`],
//! [`running`] and [`progress`] (running them), [`processes`] and [`reaper`] (ending them),
//! [`record`], [`screen`] and [`report`] (the results), [`steps`] (lints).

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program whose product is what it prints"
)]

mod arguments;
mod artifacts;
mod busy;
mod executables;
mod listing;
mod plan;
mod processes;
mod progress;
mod reaper;
mod record;
mod report;
mod running;
mod schedule;
mod screen;
mod steps;
mod table;
mod tier;

use std::io::BufReader;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use arguments::{Options, Request};
use executables::Executable;
use reaper::Reaper;
use running::Context;
use screen::Screen;

const FAILED: u8 = 1;
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments::parse(&words) {
        Ok(Request::Help) => {
            print!("{}", arguments::HELP);
            Ok(())
        }
        Ok(Request::Guard(run)) => {
            reaper::run(&run);
            Ok(())
        }
        Ok(Request::Run(options)) => run(options),
        Err(complaint) => Err(Failure::usage(complaint)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message {
                eprintln!("error: {message}");
            }
            ExitCode::from(failure.code)
        }
    }
}

/// Why it ends, and with which status.
struct Failure {
    code: u8,
    message: Option<String>,
}

impl Failure {
    fn usage(complaint: String) -> Self {
        Failure {
            code: USAGE,
            message: Some(format!("{complaint}\nhint: scripts/test --help")),
        }
    }
}

/// Any other failure.
impl From<String> for Failure {
    fn from(message: String) -> Self {
        Failure {
            code: FAILED,
            message: Some(message),
        }
    }
}

fn run(options: Options) -> Result<(), Failure> {
    let mut steps = Vec::new();
    if (options.lint || options.is_full()) && !options.list {
        steps::lint(&mut steps)?;
    }
    if options.has_tests() {
        test(&options, &mut steps)?;
    }
    if options.bench {
        steps::bench(&mut steps)?;
    }
    Ok(())
}

fn test(options: &Options, steps: &mut Vec<report::Step>) -> Result<(), Failure> {
    let begin = Instant::now();
    let executables = built(options)?;
    if options.built.is_none() {
        steps.push(("build".to_owned(), begin.elapsed()));
    }
    let tests: Result<Vec<_>, String> = executables.iter().map(listing::tests_of).collect();
    let tests = tests?;
    let mut selection = plan::select(options, &executables, &tests).map_err(Failure::usage)?;
    if options.list {
        for case in &selection.cases {
            println!("{:5} {}", case.tier, case.id);
        }
        return Ok(());
    }
    if options.is_full() {
        steps::examples(steps)?;
    }
    artifacts::forget_processes();
    for case in &mut selection.cases {
        artifacts::forget(&case.id);
        case.mode.seconds = match options.timeout {
            Some(limit) => u32::try_from(limit.as_secs()).unwrap_or(u32::MAX),
            None if options.busy => case.mode.seconds.saturating_mul(BUSY_TAKES),
            None => case.mode.seconds,
        };
    }
    let run = new_mark();
    let _guardian = Reaper::start(&run)?;
    if options.busy {
        busy::start();
    }
    let context = Context {
        executables: &executables,
        tests: &tests,
        cases: &selection.cases,
        run: &run,
        variables: variables(options),
    };
    let names = executables.iter().map(|one| one.name.clone()).collect();
    let rounds = options.repeat.unwrap_or(1);
    let mut screen = Screen::new(names, &selection.cases, rounds);
    println!(
        "\n== tests: {}, executables: {}",
        selection.cases.len(),
        executables.len()
    );
    let records = schedule::run(&context, options, &mut screen)?;
    let report = report::write(steps, &selection, &records, options.repeat);
    print!("{report}");
    let has_failed = match options.repeat {
        None => !records.failed().is_empty(),
        Some(_) => !records.ever_failed().is_empty(),
    };
    match has_failed {
        false => Ok(()),
        true => Err(Failure {
            code: FAILED,
            message: None,
        }),
    }
}

/// The other load takes half of each core.
const BUSY_TAKES: u32 = 2;

fn built(options: &Options) -> Result<Vec<Executable>, Failure> {
    let Some(file) = &options.built else {
        return executables::build().map_err(|code| Failure {
            code,
            message: Some("the build failed".to_owned()),
        });
    };
    let opened = std::fs::File::open(file);
    let messages = opened.map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(executables::read(BufReader::new(messages)))
}

/// Variables of every test. A full run tries the same random inputs every time, so that a failure
/// is caused by the change. Other runs explore.
fn variables(options: &Options) -> Vec<(String, String)> {
    const SEED: &str = "PROPTEST_RNG_SEED";
    match options.is_full() && std::env::var_os(SEED).is_none() {
        true => vec![(SEED.to_owned(), "1".to_owned())],
        false => Vec::new(),
    }
}

/// A mark that no other run on this machine has.
fn new_mark() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    format!("{}-{now}", std::process::id())
}
