//! The program behind `scripts/bench`.
//!
//! Benchmarks print figures, one a line; this program runs them, and prints each figure with a
//! ratio: to upstream's with the same load, or, with `--compare`, to another revision, whose
//! benchmarks run in turn with those of this one, so that both see the same machine.
//!
//! The benchmarks are always those of this revision. Compared are the program that they start, and
//! the engines in `core`, whose instructions are counted.
//!
//! Reading order: [`arguments`], [`group`] (the benchmarks), [`build`] (the program), [`figure`]
//! (the output), [`upstream`] (upstream's figures), [`table`].

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program whose product is what it prints"
)]

mod arguments;
mod build;
mod figure;
mod group;
mod table;
mod upstream;

use std::process::ExitCode;

use arguments::{Options, Request};
use build::Build;
use figure::Figures;

const FAILED: u8 = 1;
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let options = match arguments::parse(&words) {
        Ok(Request::Help) => {
            print!("{}", arguments::HELP);
            return ExitCode::SUCCESS;
        }
        Ok(Request::Run(options)) => options,
        Err(complaint) => {
            eprintln!("error: {complaint}\nhint: scripts/bench --help");
            return ExitCode::from(USAGE);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(FAILED)
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let own = Build::own()?;
    let other = match &options.compare {
        Some(revision) => Some(Build::of(revision)?),
        None => None,
    };
    let mut figures = Figures::default();
    let mut others = Figures::default();
    for round in 1..=options.rounds() {
        for group in &options.groups {
            println!("\n== {group}, round {round} of {}", options.rounds());
            // Neither is always the one that finds the machine warm.
            let is_own_first = round % 2 == 1;
            if is_own_first {
                group.measure(&own, &mut figures)?;
            }
            if let Some(other) = &other {
                group.measure(other, &mut others)?;
            }
            if !is_own_first {
                group.measure(&own, &mut figures)?;
            }
        }
    }
    match &options.compare {
        Some(revision) => print!("{}", table::compared(&figures, &others, revision)),
        None => print!("{}", table::alone(&figures)),
    }
    Ok(())
}
