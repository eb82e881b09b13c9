//! `hog`: takes memory at a steady rate, up to a limit, and holds it. Made to show what a node does
//! about a pod that grows.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::options::{Accepted, Options, size};
use crate::outcome::{Failure, Outcome, shown};

pub(crate) const PURPOSE: &str = "\
Takes memory: SIZE per second (--rate), from --start on, up to --limit, and then holds it (--hold, the
default) or ends (--exit). Without --limit it continues until something stops it. Every page is written to,
so that all of it counts. A SIZE is a number of bytes, or has a unit: 512Ki, 50Mi, 1Gi. Prints once per
second how much it holds. Example: hog --rate 50Mi --limit 400Mi --start 20Mi";

/// How often it takes some more: smooth to every observer, without using the CPU.
const STEP: Duration = Duration::from_millis(50);

const REPORT: Duration = Duration::from_secs(1);

/// The size of a page is 4 KiB, or a multiple of it.
const PAGE: u64 = 4096;

pub(crate) fn run(args: &[Vec<u8>], output: &mut dyn Write) -> Outcome {
    let accepted = Accepted {
        flags: "he",
        valued: "rls",
        long: &[
            ("rate", 'r'),
            ("limit", 'l'),
            ("start", 's'),
            ("hold", 'h'),
            ("exit", 'e'),
        ],
        ..Accepted::default()
    };
    let options = Options::parse(args, accepted)?;
    if let Some(extra) = options.operands.first() {
        return Err(Failure::usage(format!(
            "{}: unexpected argument",
            shown(extra)
        )));
    }
    let amount = |letter, name: &str| {
        options.value(letter).map(|text| {
            let wrong =
                || Failure::usage(format!("--{name} {}: not a size such as 50Mi", shown(text)));
            size(text).ok_or_else(wrong)
        })
    };
    let rate = amount('r', "rate").transpose()?.unwrap_or(0);
    if rate == 0 {
        return Err(Failure::usage("give --rate, more than 0 per second"));
    }
    if options.has('h') && options.has('e') {
        return Err(Failure::usage("--hold and --exit exclude each other"));
    }
    let start = amount('s', "start").transpose()?.unwrap_or(0);
    let limit = amount('l', "limit").transpose()?.unwrap_or(u64::MAX);
    if start > limit {
        return Err(Failure::usage("--start is more than --limit"));
    }
    let mut held = Held::default();
    grow(&mut held, rate, start, limit, output)?;
    if options.has('e') {
        return Ok(0);
    }
    loop {
        std::thread::sleep(REPORT);
        report(&held, "holding", output)?;
    }
}

/// Memory that is held, and written to.
#[derive(Default)]
struct Held {
    pieces: Vec<Vec<u8>>,
    bytes: u64,
}

impl Held {
    /// Takes whole pages until it holds that much, except for the rest below a page.
    fn grow_to(&mut self, target: u64) -> Result<(), Failure> {
        let missing = target.saturating_sub(self.bytes) / PAGE * PAGE;
        if missing == 0 {
            return Ok(());
        }
        let length = usize::try_from(missing).unwrap_or(usize::MAX);
        let mut piece = Vec::new();
        let failed = |_| {
            Failure::Work(format!(
                "the kernel gives no more memory, {} Mi are held",
                self.bytes >> 20
            ))
        };
        piece.try_reserve_exact(length).map_err(failed)?;
        // Not zeros, which could be shared or compressed to nothing.
        piece.resize(length, 0xa5);
        // The compiler must not find out that nothing reads it.
        self.pieces.push(std::hint::black_box(piece));
        self.bytes += missing;
        Ok(())
    }
}

fn grow(
    held: &mut Held,
    rate: u64,
    start: u64,
    limit: u64,
    output: &mut dyn Write,
) -> Result<(), Failure> {
    held.grow_to(start)?;
    report(held, "growing", output)?;
    let began = Instant::now();
    let mut next_report = REPORT;
    // What is below a page cannot be taken.
    while held.bytes + PAGE <= limit {
        std::thread::sleep(STEP);
        let elapsed = began.elapsed();
        held.grow_to(target(start, rate, elapsed).min(limit))?;
        if elapsed >= next_report {
            report(held, "growing", output)?;
            next_report += REPORT;
        }
    }
    report(held, "holding", output)
}

/// What should be held after some time.
fn target(start: u64, rate: u64, elapsed: Duration) -> u64 {
    let taken = u128::from(rate).saturating_mul(elapsed.as_millis()) / 1000;
    start.saturating_add(u64::try_from(taken).unwrap_or(u64::MAX))
}

fn report(held: &Held, what: &str, output: &mut dyn Write) -> Result<(), Failure> {
    let tenths = held.bytes / (PAGE * 256 / 10);
    writeln!(output, "{what} {}.{} Mi", tenths / 10, tenths % 10)?;
    output.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_grows_with_time_and_never_overflows() {
        assert_eq!(target(10, 1000, Duration::from_millis(2500)), 2510);
        assert_eq!(target(u64::MAX, u64::MAX, Duration::MAX), u64::MAX);
    }

    #[test]
    fn takes_whole_pages() {
        let mut held = Held::default();
        held.grow_to(10_000).unwrap();
        assert_eq!(held.bytes, 8192);
        held.grow_to(12_288).unwrap();
        assert_eq!(held.bytes, 12_288);
        assert_eq!(held.pieces.len(), 2);
    }
}
