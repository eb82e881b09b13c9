//! Resource usage of a process, from `/proc`.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::figure::{Better, print};

/// Of the clock in `/proc/PID/stat`.
const TICKS_PER_SECOND: u64 = 100;

/// What a process takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    resident_kib: u64,
    helpers_kib: u64,
    ticks: u64,
    over: Duration,
}

impl Cost {
    /// Up to now.
    pub(crate) fn of(process: u32) -> Result<Cost> {
        let mut helpers_kib = 0;
        let mut ticks = ticks(process)?;
        for helper in helpers()? {
            // One may end meanwhile.
            helpers_kib += kib(&format!("/proc/{helper}/smaps_rollup"), "Pss:").unwrap_or(0);
            ticks += self::ticks(helper).unwrap_or(0);
        }
        Ok(Cost {
            resident_kib: kib(&format!("/proc/{process}/status"), "VmRSS:")?,
            helpers_kib,
            ticks,
            over: Duration::ZERO,
        })
    }

    /// Of the time between.
    pub(crate) fn since(self, before: &Cost, over: Duration) -> Cost {
        Cost {
            ticks: self.ticks.saturating_sub(before.ticks),
            over,
            ..self
        }
    }

    /// Resident memory of the process itself, time of a core, and, if it has helpers, what they take:
    /// shared pages are divided by the processes that share them.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(crate) fn print(&self, of: &str) {
        let megabytes = |kib: u64| kib as f64 * 1024.0 / 1e6;
        let memory = megabytes(self.resident_kib);
        print(&format!("{of}: memory"), memory, "MB", Better::Lower);
        let used = self.ticks as f64 / TICKS_PER_SECOND as f64;
        let part = 100.0 * used / self.over.as_secs_f64();
        print(&format!("{of}: cpu"), part, "% of a core", Better::Lower);
        if self.helpers_kib > 0 {
            let helpers = megabytes(self.helpers_kib);
            print(
                &format!("{of}: memory of helpers"),
                helpers,
                "MB",
                Better::Lower,
            );
        }
    }

    /// Time of a core for each of so many things.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(crate) fn print_cpu_per(&self, name: &str, count: usize) {
        let micros = self.ticks as f64 * 1e6 / TICKS_PER_SECOND as f64;
        print(name, micros / count.max(1) as f64, "µs", Better::Lower);
    }
}

/// The processes of the embedded runtime on this machine. They run from a copy of the program that
/// containers cannot reach, so that only their command lines identify them.
fn helpers() -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("cannot list processes")? {
        let name = entry.context("cannot list processes")?.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        if words.split(|byte| *byte == 0).nth(1) == Some(b"runtime-helper") {
            found.push(id);
        }
    }
    Ok(found)
}

fn ticks(process: u32) -> Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))
        .with_context(|| format!("process {process} has ended"))?;
    let (_, fields) = stat.rsplit_once(')').context("no such format is known")?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next().and_then(|field| field.parse::<u64>().ok());
    Ok(next().unwrap_or(0) + next().unwrap_or(0))
}

fn kib(file: &str, line: &str) -> Result<u64> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
    let found = text.lines().find_map(|l| l.strip_prefix(line));
    let number = found.and_then(|rest| rest.trim().split(' ').next()?.parse().ok());
    number.with_context(|| format!("{file} has no {line}"))
}
