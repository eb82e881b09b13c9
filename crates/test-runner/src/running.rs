//! A test process: started, watched, ended.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::artifacts;
use crate::executables::Executable;
use crate::listing::Test;
use crate::plan::{Case, Job};
use crate::processes;
use crate::progress::{Progress, State, Summary, summary};

/// How long a process's children may take to follow it.
const LEAVE_WITHIN: Duration = Duration::from_secs(3);

/// Processes are looked for in all of `/proc`.
const LOOK_FOR_CHILDREN_EVERY: Duration = Duration::from_millis(100);

/// The environment of every process.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) executables: &'a [Executable],
    /// All tests of each.
    pub(crate) tests: &'a [Vec<Test>],
    pub(crate) cases: &'a [Case],
    /// Marks all processes of the run.
    pub(crate) run: &'a str,
    /// Further variables.
    pub(crate) variables: Vec<(String, String)>,
}

/// The result of a test in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) case: usize,
    pub(crate) took: Duration,
    /// Why it failed; none if it passed.
    pub(crate) failure: Option<String>,
}

/// The result of a process.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) job: Job,
    pub(crate) verdicts: Vec<Verdict>,
    /// Tests that it did not get to.
    pub(crate) not_run: Vec<usize>,
    pub(crate) log: PathBuf,
    /// Processes that were left running and have been ended.
    pub(crate) left: Vec<String>,
}

/// A process that runs, or whose children still do.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) job: Job,
    child: Child,
    mark: String,
    log: PathBuf,
    output: File,
    progress: Progress,
    limits: Vec<Duration>,
    /// When it printed something for the last time.
    heard_at: Instant,
    timed_out: Option<String>,
    ended: Option<(ExitStatus, Instant)>,
    look_at: Instant,
}

impl Running {
    /// Starts a job; the serial number is its own in the run.
    pub(crate) fn start(
        context: &Context<'_>,
        job: Job,
        serial: usize,
        variables: &[(String, String)],
    ) -> Result<Self, String> {
        let executable = &context.executables[job.executable];
        let cases: Vec<&Case> = job.cases.iter().map(|&at| &context.cases[at]).collect();
        let log = match cases.as_slice() {
            [only] => artifacts::log_of(&only.id, job.round),
            _ => artifacts::log_of_process(&executable.name, serial),
        };
        let fail = |error: std::io::Error| format!("{}: {error}", log.display());
        if let Some(folder) = log.parent() {
            fs::create_dir_all(folder).map_err(fail)?;
        }
        let file = File::create(&log).map_err(fail)?;
        let file_too = file.try_clone().map_err(fail)?;
        let output = File::open(&log).map_err(fail)?;
        let mark = format!("{}/{serial}.", context.run);
        let mut command = Command::new(&executable.path);
        command
            .args(arguments(context, &job))
            .current_dir(&executable.folder)
            .env("CARGO_MANIFEST_DIR", &executable.folder)
            .env(processes::VARIABLE, &mark)
            .envs(
                context
                    .variables
                    .iter()
                    .chain(variables)
                    .map(|(k, v)| (k, v)),
            )
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(file_too)
            .process_group(0);
        let child = command
            .spawn()
            .map_err(|error| format!("cannot run {}: {error}", executable.path.display()))?;
        let now = Instant::now();
        let names = cases.iter().map(|case| case.test.name.clone()).collect();
        let limits = cases.iter().map(|case| case.mode.time_limit()).collect();
        Ok(Running {
            progress: Progress::new(names, job.threads, now),
            job,
            child,
            mark,
            log,
            output,
            limits,
            heard_at: now,
            timed_out: None,
            ended: None,
            look_at: now,
        })
    }

    /// Reads its output; returns its result once it is over.
    pub(crate) fn poll(&mut self) -> Option<Done> {
        let now = Instant::now();
        let Some((status, ended_at)) = self.ended else {
            self.read(now);
            if let Ok(Some(status)) = self.child.try_wait() {
                self.read(now);
                self.ended = Some((status, now));
            } else if let Some(test) = self.overdue(now) {
                self.timed_out = Some(test);
            }
            return None;
        };
        if now < self.look_at {
            return None;
        }
        self.look_at = now + LOOK_FOR_CHILDREN_EVERY;
        let children = processes::marked(&self.mark);
        if !children.is_empty() && now < ended_at + LEAVE_WITHIN {
            return None;
        }
        let left = processes::names(&children);
        processes::end(&self.mark);
        Some(self.done(status, left))
    }

    fn read(&mut self, now: Instant) {
        let mut bytes = Vec::new();
        // Output that cannot be read now is read at the end.
        if self.output.read_to_end(&mut bytes).is_ok() && !bytes.is_empty() {
            self.progress.read(&String::from_utf8_lossy(&bytes), now);
            self.heard_at = now;
        }
    }

    /// Ends the process if a test takes too long, or if it does not end after its last one; returns
    /// which test that was.
    fn overdue(&mut self, now: Instant) -> Option<String> {
        let tests = self.progress.tests();
        let (name, since) = match self.progress.oldest() {
            Some((name, since)) => (name, since),
            None => (tests.last()?.0.as_str(), self.heard_at),
        };
        let limit = self.limit_of(name);
        if now - since < limit || self.timed_out.is_some() {
            return None;
        }
        let doing = processes::describe(&processes::marked(&self.mark));
        let name = name.to_owned();
        let note = format!("\n{name}: {}; its processes:\n{doing}", timed_out(limit));
        artifacts::append(&self.log, &note);
        processes::end(&self.mark);
        // In case it has no mark that can be read.
        let _ = self.child.kill();
        Some(name)
    }

    fn limit_of(&self, name: &str) -> Duration {
        let mut tests = self.progress.tests().iter().zip(&self.limits);
        let found = tests.find(|((known, _), _)| known == name);
        found.map_or(Duration::MAX, |(_, limit)| *limit)
    }

    fn done(&mut self, status: ExitStatus, left: Vec<String>) -> Done {
        let summary = summary(&artifacts::read(&self.log));
        let mut done = Done {
            job: self.job.clone(),
            verdicts: Vec::new(),
            not_run: Vec::new(),
            log: self.log.clone(),
            left,
        };
        for (at, &case) in self.job.cases.iter().enumerate() {
            let failure = match self.became(at, status, &summary) {
                Outcome::Passed => None,
                Outcome::Failed(why) => Some(why),
                Outcome::NotRun => {
                    done.not_run.push(case);
                    continue;
                }
            };
            let took = match self.progress.tests()[at].1 {
                State::Waiting => Duration::ZERO,
                State::Started(since) => since.elapsed(),
                State::Ended(took, _) => took,
            };
            done.verdicts.push(Verdict {
                case,
                took,
                failure,
            });
        }
        // Every process decides about a test, so that there is an end of trying.
        if done.verdicts.is_empty() && !done.not_run.is_empty() {
            done.verdicts.push(Verdict {
                case: done.not_run.remove(0),
                took: Duration::ZERO,
                failure: Some(ended_with(status)),
            });
        }
        done
    }

    fn became(&self, at: usize, status: ExitStatus, summary: &Summary) -> Outcome {
        let tests = self.progress.tests();
        let (name, state) = &tests[at];
        let is_ours = |name: &String| tests.iter().any(|(known, _)| known == name);
        let is_alone = tests.len() == 1;
        match (summary, state) {
            _ if self.timed_out.as_ref() == Some(name) => {
                Outcome::Failed(timed_out(self.limit_of(name)))
            }
            (Summary::Passed(count), _) if status.success() && *count == tests.len() => {
                Outcome::Passed
            }
            (Summary::Failed(names), _) if !status.success() && names.iter().any(is_ours) => {
                match names.contains(name) {
                    true => Outcome::Failed("failed".to_owned()),
                    false => Outcome::Passed,
                }
            }
            // From here on the process did not come to its end.
            (_, State::Ended(_, Some(false))) => Outcome::Failed("failed".to_owned()),
            _ if is_alone => Outcome::Failed(ended_with(status)),
            (_, State::Ended(_, Some(true))) => Outcome::Passed,
            (_, State::Started(_)) if self.timed_out.is_none() => {
                Outcome::Failed(ended_with(status))
            }
            _ => Outcome::NotRun,
        }
    }
}

/// The result of a test.
enum Outcome {
    Passed,
    Failed(String),
    NotRun,
}

fn timed_out(limit: Duration) -> String {
    format!("timed out after {} s", limit.as_secs())
}

fn ended_with(status: ExitStatus) -> String {
    format!("its process ended with {status}, without a result")
}

/// The arguments of the executable: a test's name, or which of those of its tier to skip. The
/// latter is what both libtest and libtest-mimic understand for several.
fn arguments(context: &Context<'_>, job: &Job) -> Vec<String> {
    let test = |at: &usize| &context.cases[*at].test;
    let is_ignored = job.cases.first().is_some_and(|at| test(at).is_ignored());
    let mut arguments = Vec::new();
    if is_ignored {
        arguments.push("--ignored".to_owned());
    }
    arguments.push("--exact".to_owned());
    if let [only] = job.cases.as_slice() {
        arguments.extend([test(only).name.clone(), "--nocapture".to_owned()]);
    } else {
        let is_ours = |name: &String| job.cases.iter().any(|at| test(at).name == *name);
        let all = context.tests[job.executable].iter();
        let alike = all.filter(|test| test.is_ignored() == is_ignored);
        for other in alike.filter(|test| !is_ours(&test.name)) {
            arguments.extend(["--skip".to_owned(), other.name.clone()]);
        }
    }
    arguments.push(format!("--test-threads={}", job.threads));
    arguments
}
