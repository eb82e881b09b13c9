//! The program's arguments.

use crate::group::Group;

pub(crate) const HELP: &str = "\
Measure the published figures and print each with a ratio

Usage: scripts/bench [GROUP…] [OPTION…]

Groups (all but those marked * if none is named):
  engine      Instructions of the engines in core, counted by callgrind
  create      Pods created per second by 32 clients
  bind        Plain pods bound per second on 1,000 nodes
  bind-all *  The same by kind of pod, on 1,000 and 5,000 nodes
  watch       1,000 watchers over 8 connections
  start-up    From the start of `plimsoll up` to node Ready (root)
  node        Memory, cpu, and how fast pods start (root)
  eviction    A short eviction trial in a virtual machine (QEMU)
  eviction-36 *  The whole trial

Options:
  --compare REV   Run the program of this git revision in turn with this one
  --rounds N      Run everything N times and print medians (1, with --compare 3)
  --help          Print this help

Exit status: 0 measured, 1 something failed, 2 wrong usage.
";

/// Rounds when two builds are compared: a median, and each goes first at least once.
const ROUNDS_OF_TWO: u32 = 3;

/// The mode of the program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Help,
    Run(Options),
}

/// The measurements to run, and how.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) groups: Vec<Group>,
    pub(crate) compare: Option<String>,
    rounds: Option<u32>,
}

impl Options {
    pub(crate) fn rounds(&self) -> u32 {
        let usual = if self.compare.is_some() {
            ROUNDS_OF_TWO
        } else {
            1
        };
        self.rounds.unwrap_or(usual)
    }
}

/// Parses the words after the program's name.
///
/// # Errors
///
/// As a message for the user.
pub(crate) fn parse(words: &[String]) -> Result<Request, String> {
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--help" | "-h" => return Ok(Request::Help),
            "--compare" => {
                let revision = words.next().ok_or("--compare needs a git revision")?;
                options.compare = Some(revision.clone());
            }
            "--rounds" => {
                let number = words.next().ok_or("--rounds needs a number")?;
                let rounds = number.parse().ok().filter(|rounds| *rounds > 0);
                let rounds = rounds.ok_or_else(|| {
                    format!("--rounds {number:?}: must be a whole number above zero")
                })?;
                options.rounds = Some(rounds);
            }
            option if option.starts_with('-') => return Err(format!("unknown option {option:?}")),
            name => {
                let group = Group::called(name);
                let group = group.ok_or_else(|| format!("unknown group {name:?}"))?;
                options.groups.push(group);
            }
        }
    }
    if options.groups.is_empty() {
        options.groups = Group::usual();
    }
    Ok(Request::Run(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match parse(&words)? {
            Request::Run(options) => Ok(options),
            Request::Help => Err("help".to_owned()),
        }
    }

    #[test]
    fn all_usual_groups_are_measured_once() {
        let all = options("").unwrap();
        assert_eq!(all.groups, Group::usual());
        assert_eq!(all.rounds(), 1);
    }

    #[test]
    fn two_builds_are_measured_several_times() {
        let two = options("create --compare HEAD~1").unwrap();
        assert_eq!(two.groups.len(), 1);
        assert_eq!(two.rounds(), ROUNDS_OF_TWO);
        assert_eq!(options("--compare x --rounds 5").unwrap().rounds(), 5);
    }

    #[test]
    fn rejects_unknown_arguments() {
        for (line, complaint) in [
            ("creat", "unknown group \"creat\""),
            ("--fast", "unknown option \"--fast\""),
            ("--compare", "--compare needs a git revision"),
            (
                "--rounds 0",
                "--rounds \"0\": must be a whole number above zero",
            ),
        ] {
            assert_eq!(options(line), Err(complaint.to_owned()));
        }
    }
}
