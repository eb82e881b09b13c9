//! The runner's arguments.

use std::path::PathBuf;
use std::time::Duration;

use crate::tier::Tier;

pub(crate) const HELP: &str = "\
Run formatting, lints and tests

Usage: scripts/test [TIER…] [OPTION…] [FILTER…]

Tiers (all if none is named):
  unit     Tests that need nothing
  tools    Tests that need programs of the distribution: etcd, kubectl, docker-registry
  root     Tests that need root: cgroups, mounts, network, containerd
  vm       Tests that boot a virtual machine with QEMU
  fuzz     Parsers and the scheduler on up to a million random inputs
  lint     Formatting, clippy, rustdoc and dependency policy
  bench    Benchmarks (scripts/bench)

Filters select tests with one of these words in `crate/target name`, as --list prints it.

Options:
  --repeat N           Run each selected test N times and report every failure
  --busy               Keep all cores busy beside the tests
  --timeout SECONDS    Use this time limit for every test
  --list               List the selected tests and their tiers
  --built FILE         Read what was built from FILE, in the format of `cargo --message-format=json`
  --help               Print this help

Exit status: 0 all passed, 1 a test or lint failed, 2 wrong usage, that of cargo if the build fails.
";

/// The mode of the runner.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Help,
    Run(Options),
    /// End the processes of a run when that run has ended; see [`crate::reaper`].
    Guard(String),
}

/// The tests to run, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) tiers: Vec<Tier>,
    pub(crate) lint: bool,
    pub(crate) bench: bool,
    pub(crate) filters: Vec<String>,
    pub(crate) repeat: Option<u32>,
    pub(crate) busy: bool,
    pub(crate) list: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) built: Option<PathBuf>,
}

impl Options {
    /// Whether this is the run that CI makes: everything, once.
    pub(crate) fn is_full(&self) -> bool {
        let names_steps = !self.tiers.is_empty() || self.lint || self.bench;
        !names_steps && self.filters.is_empty() && self.repeat.is_none() && self.built.is_none()
    }

    /// Whether any tests are run.
    pub(crate) fn has_tests(&self) -> bool {
        !self.tiers.is_empty() || !self.lint && !self.bench
    }

    pub(crate) fn has_tier(&self, tier: Tier) -> bool {
        self.tiers.is_empty() || self.tiers.contains(&tier)
    }
}

/// Parses the words after the program's name.
///
/// # Errors
///
/// As a message for the user.
pub(crate) fn parse(words: &[String]) -> Result<Request, String> {
    if let [word, run] = words
        && word == crate::reaper::WORD
    {
        return Ok(Request::Guard(run.clone()));
    }
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--help" | "-h" => return Ok(Request::Help),
            "--busy" => options.busy = true,
            "--list" => options.list = true,
            "--repeat" => options.repeat = Some(number(word, words.next())?),
            "--timeout" => {
                let seconds = number(word, words.next())?;
                options.timeout = Some(Duration::from_secs(seconds.into()));
            }
            "--built" => {
                let file = words.next().ok_or("--built needs a file")?;
                options.built = Some(file.into());
            }
            "lint" => options.lint = true,
            "bench" => options.bench = true,
            option if option.starts_with('-') => {
                return Err(format!("unknown option {option:?}"));
            }
            other => match Tier::called(other) {
                Some(tier) => options.tiers.push(tier),
                None => options.filters.push(other.to_owned()),
            },
        }
    }
    if !options.has_tests() && !options.filters.is_empty() {
        let filters = options.filters.join(" ");
        return Err(format!(
            "{filters:?} selects tests, but lint and bench have none; name a tier too, or no step at all"
        ));
    }
    Ok(Request::Run(options))
}

fn number(option: &str, word: Option<&String>) -> Result<u32, String> {
    let word = word.ok_or_else(|| format!("{option} needs a number"))?;
    match word.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!(
            "{option} {word:?}: must be a whole number above zero"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match parse(&words)? {
            Request::Run(options) => Ok(options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn no_arguments_run_everything() {
        let all = options("").unwrap();
        assert!(all.is_full() && all.has_tests() && all.has_tier(Tier::Vm));
        assert!(options("--busy").unwrap().is_full());
        assert!(!options("streams").unwrap().is_full());
        assert!(!options("lint").unwrap().is_full());
    }

    #[test]
    fn tiers_filters_and_options_may_be_mixed() {
        let some = options("root --repeat 20 streams vm --busy stories").unwrap();
        assert_eq!(some.tiers, [Tier::Root, Tier::Vm]);
        assert_eq!(some.filters, ["streams", "stories"]);
        assert_eq!(some.repeat, Some(20));
        assert!(some.busy && !some.has_tier(Tier::Unit));
    }

    #[test]
    fn rejects_unknown_arguments() {
        for (line, complaint) in [
            ("--bussy", "unknown option \"--bussy\""),
            ("--repeat", "--repeat needs a number"),
            (
                "--repeat 0",
                "--repeat \"0\": must be a whole number above zero",
            ),
            (
                "--timeout x",
                "--timeout \"x\": must be a whole number above zero",
            ),
            ("--built", "--built needs a file"),
        ] {
            assert_eq!(options(line), Err(complaint.to_owned()));
        }
        assert!(options("lint streams").unwrap_err().contains("streams"));
    }
}
