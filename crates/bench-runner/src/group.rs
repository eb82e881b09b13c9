//! Benchmarks that are run together, and how.

use std::fmt::{self, Display};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::build::{Build, PROFILE, cargo};
use crate::figure::{Better, Figures};

/// One of the benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Instructions of the engines.
    Engine,
    /// The benchmark of that name in `benches/whole` of the binary's crate.
    Whole(&'static str),
    /// The eviction trial, so many evictions; none is the short set.
    Eviction(Option<&'static str>),
}

const ALL: [(&str, Group); 9] = [
    ("engine", Group::Engine),
    ("create", Group::Whole("create")),
    ("bind", Group::Whole("bind")),
    ("bind-all", Group::Whole("bind-all")),
    ("watch", Group::Whole("watch")),
    ("start-up", Group::Whole("start-up")),
    ("node", Group::Whole("node")),
    ("eviction", Group::Eviction(None)),
    ("eviction-36", Group::Eviction(Some("36"))),
];

/// Groups that take much longer than the others, and show the same in more detail.
const ONLY_BY_NAME: [&str; 2] = ["bind-all", "eviction-36"];

/// Repetitions of a case whose instructions are counted.
const REPETITIONS: u32 = 100;

impl Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = ALL.iter().find(|(_, group)| group == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

impl Group {
    pub(crate) fn called(name: &str) -> Option<Group> {
        let found = ALL.iter().find(|(known, _)| *known == name)?;
        Some(found.1)
    }

    /// The groups that run if none is named.
    pub(crate) fn usual() -> Vec<Group> {
        let usual = ALL.iter().filter(|(name, _)| !ONLY_BY_NAME.contains(name));
        usual.map(|(_, group)| *group).collect()
    }

    /// Runs it with a build and adds the figures that it prints.
    ///
    /// # Errors
    ///
    /// If the benchmark fails, or a program that it needs is missing.
    pub(crate) fn measure(self, build: &Build, figures: &mut Figures) -> Result<(), String> {
        match self {
            Group::Engine => count_instructions(build, figures),
            Group::Whole(word) => {
                let mut command = cargo(&["bench", "--quiet", "--locked", "--profile", PROFILE]);
                command.args(["--package", "plimsoll", "--bench", "whole", "--", word]);
                read_figures(command.env("PLIMSOLL_PROGRAM", build.program()?), figures)
            }
            Group::Eviction(trials) => {
                let mut command = cargo(&["test", "--quiet", "--locked", "--package", "plimsoll"]);
                command.args(["--test", "trial", "--", "--ignored", "--nocapture"]);
                if let Some(trials) = trials {
                    command.env("PLIMSOLL_TRIALS", trials);
                }
                read_figures(command.env("PLIMSOLL_PROGRAM", build.program()?), figures)
            }
        }
    }
}

/// Shows the output of a command, and adds its figures.
fn read_figures(command: &mut Command, figures: &mut Figures) -> Result<(), String> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let mut count = 0;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            println!("{line}");
            count += usize::from(figures.read(&line));
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("{command:?} failed: {status}"));
    }
    if count == 0 {
        return Err(format!("{command:?} printed no figure"));
    }
    Ok(())
}

fn count_instructions(build: &Build, figures: &mut Figures) -> Result<(), String> {
    let Some(program) = build.instructions() else {
        println!("the revision has no benchmark \"instructions\" in core; left out");
        return Ok(());
    };
    let listed = Command::new(program).output();
    let listed = listed.map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    for case in String::from_utf8_lossy(&listed.stdout).lines() {
        let nothing = instructions(program, case, 0)?;
        let repeated = instructions(program, case, REPETITIONS)?;
        let each = repeated.saturating_sub(nothing) / u64::from(REPETITIONS);
        println!("{case}: {each} instructions");
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        figures.add(case, each as f64, "instructions", Better::Lower);
    }
    Ok(())
}

/// How many instructions a case takes, the start of the program included.
fn instructions(program: &Path, case: &str, times: u32) -> Result<u64, String> {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([case, &times.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|error| format!("cannot run valgrind: {error}"))?;
    let mut stderr = String::new();
    if let Some(mut pipe) = child.stderr.take() {
        let _ = pipe.read_to_string(&mut stderr);
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let collected = collected(&stderr).filter(|_| status.success());
    collected.ok_or_else(|| format!("{case:?} under valgrind: {status}\n{stderr}"))
}

/// Reads callgrind's line `==PID== Collected : 12345`.
fn collected(stderr: &str) -> Option<u64> {
    let line = stderr.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_is_found_by_the_name_it_shows() {
        for (name, group) in ALL {
            assert_eq!(Group::called(name), Some(group));
            assert_eq!(group.to_string(), name);
        }
        assert_eq!(Group::usual().len(), ALL.len() - ONLY_BY_NAME.len());
    }

    #[test]
    fn callgrind_is_understood() {
        let stderr = "==7== \n==7== Events    : Ir\n==7== Collected : 123456\n==7== \n";
        assert_eq!(collected(stderr), Some(123_456));
        assert_eq!(collected("valgrind: not found"), None);
    }
}
