//! What a process takes, from `/proc`.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

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

    /// Resident memory of the process itself.
    pub(crate) fn memory(&self) -> String {
        megabytes(self.resident_kib)
    }

    /// Memory of its helpers: what the monitors of containers take, shared pages divided by those
    /// who share them.
    pub(crate) fn helpers(&self) -> String {
        megabytes(self.helpers_kib)
    }

    /// Part of a core, helpers included.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(crate) fn cpu(&self) -> String {
        let used = self.ticks as f64 / TICKS_PER_SECOND as f64;
        format!("{:.2} % of a core", 100.0 * used / self.over.as_secs_f64())
    }

    /// Time of a core for each of so many things.
    pub(crate) fn cpu_per(&self, count: usize) -> String {
        let micros = self.ticks * 1_000_000 / TICKS_PER_SECOND;
        format!("{} µs", micros / count.max(1) as u64)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn megabytes(kib: u64) -> String {
    format!("{:.1} MB", kib as f64 * 1024.0 / 1e6)
}

/// The processes of the embedded runtime on this machine. They run from a copy of the program that
/// containers cannot reach, so that only their words tell them.
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
