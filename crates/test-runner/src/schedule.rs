//! Runs jobs beside each other, as many as fit, and failed tests again on their own.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::arguments::Options;
use crate::artifacts;
use crate::plan::{Job, alone, inputs_of_job, jobs};
use crate::progress::output_of;
use crate::record::Records;
use crate::running::{Context, Done, Running};
use crate::screen::Screen;
use crate::table::places;

/// Time between two polls; durations of short tests are that exact.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Runs all cases.
///
/// # Errors
///
/// If a process cannot be started.
pub(crate) fn run(
    context: &Context<'_>,
    options: &Options,
    screen: &mut Screen,
) -> Result<Records, String> {
    let mut execution = Execution {
        context,
        options,
        screen,
        records: Records::new(context.cases.len()),
        queue: VecDeque::new(),
        running: Vec::new(),
        serial: 0,
    };
    let all: Vec<usize> = (0..context.cases.len()).collect();
    for round in 1..=options.repeat.unwrap_or(1) {
        execution.queue.extend(jobs(context.cases, &all, round));
        execution.work()?;
    }
    if options.repeat.is_none() {
        for case in execution.records.failed() {
            execution.screen.rerun(&context.cases[case].id);
            execution.queue.push_back(alone(context.cases, case, 2));
            execution.work()?;
        }
    }
    Ok(execution.records)
}

struct Execution<'a> {
    context: &'a Context<'a>,
    options: &'a Options,
    screen: &'a mut Screen,
    records: Records,
    queue: VecDeque<Job>,
    running: Vec<Running>,
    serial: usize,
}

impl Execution<'_> {
    /// Works until nothing is left.
    fn work(&mut self) -> Result<(), String> {
        while !self.queue.is_empty() || !self.running.is_empty() {
            self.start_ready_jobs()?;
            let mut at = 0;
            while at < self.running.len() {
                match self.running[at].poll() {
                    Some(done) => {
                        self.running.swap_remove(at);
                        self.note(done);
                    }
                    None => at += 1,
                }
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// In the order of the queue, so that a job that needs all of the machine gets it.
    fn start_ready_jobs(&mut self) -> Result<(), String> {
        let taken = |running: &[Running]| running.iter().map(|one| one.job.places).sum::<usize>();
        while let Some(next) = self.queue.front() {
            if taken(&self.running) + next.places > places() {
                return Ok(());
            }
            let Some(job) = self.queue.pop_front() else {
                return Ok(());
            };
            self.serial += 1;
            let executable = &self.context.executables[job.executable];
            let inputs = inputs_of_job(self.options, executable, &job);
            let inputs = inputs.map(|count| ("PROPTEST_CASES".to_owned(), count.to_string()));
            let variables: Vec<(String, String)> = inputs.into_iter().collect();
            self.records.started(job.tier, Instant::now());
            let running = Running::start(self.context, job, self.serial, &variables)?;
            self.running.push(running);
        }
        Ok(())
    }

    fn note(&mut self, done: Done) {
        let cases = self.context.cases;
        let round = done.job.round;
        self.records.ended(done.job.tier, Instant::now());
        if done.job.cases.len() > 1 && done.verdicts.iter().any(|one| one.failure.is_some()) {
            let output = artifacts::read(&done.log);
            for verdict in done.verdicts.iter().filter(|one| one.failure.is_some()) {
                let id = &cases[verdict.case].id;
                let own = output_of(&cases[verdict.case].test.name, &output);
                artifacts::write(&artifacts::log_of(id, round), own.unwrap_or(&output));
            }
        }
        if !done.left.is_empty() {
            let names: Vec<&str> = done
                .job
                .cases
                .iter()
                .map(|&at| cases[at].id.as_str())
                .collect();
            self.records
                .left(names.first().copied().unwrap_or_default(), &done.left);
        }
        for verdict in done.verdicts {
            let case = &cases[verdict.case];
            self.screen.verdict(case, &verdict, round);
            self.records
                .add(verdict.case, round, verdict.took, verdict.failure);
        }
        // The test that broke the process is known; the others are run without it.
        for job in jobs(cases, &done.not_run, round).into_iter().rev() {
            self.queue.push_front(job);
        }
    }
}
