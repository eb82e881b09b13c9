//! The report at the end.

use std::fmt::Write as _;
use std::time::Duration;

use crate::artifacts;
use crate::plan::Selection;
use crate::record::{Records, Run};
use crate::tier::Tier;

/// How much of a failed test's output is shown; its log has all of it.
const LAST_LINES: usize = 25;

const SLOWEST: usize = 10;

/// A step and its duration.
pub(crate) type Step = (String, Duration);

/// Writes the report; its last line counts the passed and failed tests.
pub(crate) fn write(
    steps: &[Step],
    selection: &Selection,
    records: &Records,
    repeat: Option<u32>,
) -> String {
    let mut text = String::new();
    // Text can always be written to.
    let _ = write_times(&mut text, steps, selection, records);
    let _ = write_left(&mut text, records);
    let (passed, failed) = match repeat {
        None => {
            let _ = write_flaky(&mut text, selection, records);
            let failed = records.failed();
            let _ = write_failed(&mut text, selection, records, &failed);
            (selection.cases.len() - failed.len(), failed.len())
        }
        Some(_) => {
            let _ = write_failed(&mut text, selection, records, &records.ever_failed());
            let all = (0..selection.cases.len()).flat_map(|case| records.of(case));
            let (bad, good): (Vec<&Run>, Vec<&Run>) = all.partition(|run| run.failure.is_some());
            (good.len(), bad.len())
        }
    };
    let _ = write!(text, "\n{passed} passed, {failed} failed");
    if !selection.skipped.is_empty() {
        let _ = write!(text, ", {} skipped", selection.skipped.len());
    }
    text.push('\n');
    text
}

fn write_times(
    text: &mut String,
    steps: &[Step],
    selection: &Selection,
    records: &Records,
) -> std::fmt::Result {
    writeln!(text, "\ntime of each step and tier:")?;
    for (name, took) in steps {
        writeln!(text, "  {name:8} {:7.1} s", took.as_secs_f64())?;
    }
    for tier in Tier::ALL {
        let Some(span) = records.span(tier) else {
            continue;
        };
        let cases = selection.cases.iter().enumerate();
        let of_tier = cases.filter(|(_, case)| case.tier == tier);
        let runs: Vec<&Run> = of_tier.flat_map(|(case, _)| records.of(case)).collect();
        let work: Duration = runs.iter().map(|run| run.took).sum();
        writeln!(
            text,
            "  {tier:8} {:7.1} s  {} tests, {:.1} s one after the other",
            span.as_secs_f64(),
            runs.len(),
            work.as_secs_f64()
        )?;
    }
    writeln!(text, "\nslowest tests:")?;
    for (case, took) in records.slowest(SLOWEST) {
        let case = &selection.cases[case];
        writeln!(
            text,
            "  {:7.1} s  {:5} {}",
            took.as_secs_f64(),
            case.tier,
            case.id
        )?;
    }
    for id in &selection.skipped {
        writeln!(text, "\nskipped, as it was not named: {id}")?;
    }
    Ok(())
}

fn write_left(text: &mut String, records: &Records) -> std::fmt::Result {
    if !records.leftovers().is_empty() {
        writeln!(text, "\nleft running, and ended:")?;
    }
    for (id, processes) in records.leftovers() {
        writeln!(text, "  {id}")?;
        for process in processes {
            writeln!(text, "    {process}")?;
        }
    }
    Ok(())
}

fn write_flaky(text: &mut String, selection: &Selection, records: &Records) -> std::fmt::Result {
    let flaky = records.flaky();
    if !flaky.is_empty() {
        writeln!(text, "\nflaky:")?;
    }
    for case in flaky {
        let id = &selection.cases[case].id;
        let why = why(&records.of(case)[0]);
        let folder = artifacts::folder_of(id);
        writeln!(
            text,
            "  {id}: {why}, then passed ({}/{{1,2}}.log)",
            folder.display()
        )?;
    }
    Ok(())
}

fn write_failed(
    text: &mut String,
    selection: &Selection,
    records: &Records,
    failed: &[usize],
) -> std::fmt::Result {
    if !failed.is_empty() {
        writeln!(text, "\nfailed:")?;
    }
    for &case in failed {
        let id = &selection.cases[case].id;
        let runs = records.of(case);
        let bad: Vec<&Run> = runs.iter().filter(|run| run.failure.is_some()).collect();
        let Some(last) = bad.last() else {
            continue;
        };
        let log = artifacts::log_of(id, last.round);
        let (count, all, why) = (bad.len(), runs.len(), why(last));
        writeln!(
            text,
            "  {id}: {count} of {all} failed; {why} ({})",
            log.display()
        )?;
        let output = artifacts::read(&log);
        let lines: Vec<&str> = output.trim().lines().collect();
        for line in &lines[lines.len().saturating_sub(LAST_LINES)..] {
            writeln!(text, "    | {line}")?;
        }
    }
    Ok(())
}

fn why(run: &Run) -> &str {
    run.failure.as_deref().unwrap_or_default()
}
