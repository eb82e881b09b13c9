//! Which tests run, and which of them in one process.

use crate::arguments::Options;
use crate::executables::Executable;
use crate::listing::Test;
use crate::table::{ExecutionMode, Inputs, Load, Process, inputs_of, mode_of, places};
use crate::tier::Tier;

/// A test that was selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    /// Which of the executables it is in.
    pub(crate) executable: usize,
    pub(crate) test: Test,
    /// The tier it runs in: its own, or fuzz.
    pub(crate) tier: Tier,
    pub(crate) mode: ExecutionMode,
    /// `runtime/lib cgroup::tests::x`.
    pub(crate) id: String,
}

/// Tests of one process, by their places in the list of cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) executable: usize,
    pub(crate) cases: Vec<usize>,
    pub(crate) tier: Tier,
    pub(crate) threads: u32,
    /// How many of the machine's places it takes.
    pub(crate) places: usize,
    /// Which run of its tests this is, from 1.
    pub(crate) round: u32,
}

/// The tests that run, and those that do not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) cases: Vec<Case>,
    /// Tests that run only if they are named.
    pub(crate) skipped: Vec<String>,
}

/// Picks the requested tests.
///
/// # Errors
///
/// If a filter matches none, or nothing is left to run.
pub(crate) fn select(
    options: &Options,
    executables: &[Executable],
    tests: &[Vec<Test>],
) -> Result<Selection, String> {
    let inputs = match (options.is_full(), options.tiers.contains(&Tier::Fuzz)) {
        (true, _) => Inputs::InFullRun,
        (_, true) => Inputs::InFuzz,
        _ => Inputs::Usual,
    };
    let mut selection = Selection::default();
    let mut is_used = vec![false; options.filters.len()];
    for (index, executable) in executables.iter().enumerate() {
        for test in &tests[index] {
            let id = format!("{} {}", executable.name, test.name);
            let tier = match inputs_of(&executable.name, inputs) {
                Some(_) if test.tier == Tier::Unit => Tier::Fuzz,
                _ => test.tier,
            };
            let mut is_named = options.filters.is_empty();
            for (filter, is_used) in options.filters.iter().zip(&mut is_used) {
                if id.contains(filter) {
                    *is_used = true;
                    is_named = true;
                }
            }
            if !is_named || !options.has_tier(tier) {
                continue;
            }
            let mode = mode_of(&executable.name, tier, &test.name);
            let is_spelled = |filter: &String| id.contains(filter) && filter.contains(&test.name);
            if mode.only_by_name && !options.filters.iter().any(is_spelled) {
                selection.skipped.push(id);
                continue;
            }
            selection.cases.push(Case {
                executable: index,
                test: test.clone(),
                tier,
                mode,
                id,
            });
        }
    }
    if let Some(at) = is_used.iter().position(|is_used| !is_used) {
        return Err(format!(
            "no test matches {:?}; --list shows all",
            options.filters[at]
        ));
    }
    if selection.cases.is_empty() {
        return Err("no test of these tiers matches; --list shows all".to_owned());
    }
    Ok(selection)
}

/// Spreads cases over processes, in the order in which these are started: tier by tier, in each the
/// longest first, and last the tests that run alone.
pub(crate) fn jobs(cases: &[Case], among: &[usize], round: u32) -> Vec<Job> {
    let mut jobs: Vec<(ExecutionMode, Job)> = Vec::new();

    for &at in among {
        let case = &cases[at];
        let found = jobs.iter_mut().rev().find(|(mode, job)| {
            *mode == case.mode && job.executable == case.executable && job.tier == case.tier
        });
        let has_room = |job: &Job| match case.mode.process {
            Process::Own => false,
            Process::Batch(most) => job.cases.len() < most,
            Process::Together(_) => true,
        };
        match found {
            Some((_, job)) if has_room(job) => job.cases.push(at),
            _ => jobs.push((case.mode, job_of(case, at, round))),
        }
    }
    jobs.sort_by_key(|(mode, job)| {
        let many = job.cases.len();
        let is_last = mode.load == Load::Alone;
        (is_last, job.tier, std::cmp::Reverse((mode.seconds, many)))
    });
    jobs.into_iter().map(|(_, job)| job).collect()
}

fn job_of(case: &Case, at: usize, round: u32) -> Job {
    let threads = match case.mode.process {
        Process::Together(threads) => threads,
        _ => 1,
    };
    let wanted = case.mode.load.places() * usize::try_from(threads).unwrap_or(1);
    Job {
        executable: case.executable,
        cases: vec![at],
        tier: case.tier,
        threads,
        places: wanted.min(places()),
        round,
    }
}

/// A test on its own, with nothing beside it.
pub(crate) fn alone(cases: &[Case], at: usize, round: u32) -> Job {
    Job {
        places: places(),
        threads: 1,
        ..job_of(&cases[at], at, round)
    }
}

/// How many random inputs the job's tests try, if the job is of tier fuzz.
pub(crate) fn inputs_of_job(options: &Options, executable: &Executable, job: &Job) -> Option<u32> {
    let inputs = match options.is_full() {
        true => Inputs::InFullRun,
        false => Inputs::InFuzz,
    };
    (job.tier == Tier::Fuzz)
        .then(|| inputs_of(&executable.name, inputs))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executables() -> (Vec<Executable>, Vec<Vec<Test>>) {
        let given = [
            (
                "core/lib",
                vec![("a::one", Tier::Unit), ("a::two", Tier::Unit)],
            ),
            ("core/fuzz", vec![("parsers", Tier::Unit)]),
            (
                "node/runtime",
                vec![("vm/cri", Tier::Vm), ("vm/embedded", Tier::Vm)],
            ),
            ("plimsoll/soak", vec![("soak", Tier::Root)]),
            ("plimsoll/node", vec![("x", Tier::Root), ("y", Tier::Root)]),
        ];
        let tests = given.iter().map(|(_, tests)| {
            let test = |&(name, tier): &(&str, Tier)| Test {
                name: name.to_owned(),
                tier,
            };
            tests.iter().map(test).collect()
        });
        let tests = tests.collect();
        let executable = |(name, _): &(&str, Vec<(&str, Tier)>)| Executable {
            path: "x".into(),
            folder: "x".into(),
            name: (*name).to_owned(),
        };
        (given.iter().map(executable).collect(), tests)
    }

    fn selected(options: &Options) -> Result<Vec<String>, String> {
        let (executables, tests) = executables();
        let selection = select(options, &executables, &tests)?;
        Ok(selection.cases.into_iter().map(|case| case.id).collect())
    }

    fn filter(words: &[&str]) -> Options {
        Options {
            filters: words.iter().map(|word| (*word).to_owned()).collect(),
            ..Options::default()
        }
    }

    #[test]
    fn filters_look_at_crate_target_and_name() {
        assert_eq!(selected(&filter(&["a::t"])).unwrap(), ["core/lib a::two"]);
        assert_eq!(selected(&filter(&["core/"])).unwrap().len(), 3);
        let error = selected(&filter(&["a::one", "a::three"])).unwrap_err();
        assert!(error.contains("no test matches \"a::three\""), "{error}");
    }

    #[test]
    fn slow_tests_run_only_if_named() {
        let all = selected(&Options::default()).unwrap();
        assert!(!all.contains(&"node/runtime vm/cri".to_owned()));
        assert!(selected(&filter(&["vm/"])).unwrap().len() == 1);
        assert_eq!(
            selected(&filter(&["vm/cri"])).unwrap(),
            ["node/runtime vm/cri"]
        );
        let with_target = selected(&filter(&["runtime vm/cri"]));
        assert_eq!(with_target.unwrap(), ["node/runtime vm/cri"]);
    }

    #[test]
    fn fuzzed_tests_are_of_tier_fuzz_only_where_it_runs() {
        let tier_in = |options: &Options| {
            let (executables, tests) = executables();
            let selection = select(options, &executables, &tests).unwrap();
            let parsers = selection
                .cases
                .into_iter()
                .find(|case| case.test.name == "parsers");
            parsers.map(|case| case.tier)
        };
        let of_tier = |tier| Options {
            tiers: vec![tier],
            ..Options::default()
        };
        assert_eq!(tier_in(&Options::default()), Some(Tier::Fuzz));
        assert_eq!(tier_in(&of_tier(Tier::Fuzz)), Some(Tier::Fuzz));
        assert_eq!(tier_in(&of_tier(Tier::Unit)), Some(Tier::Unit));
        assert_eq!(tier_in(&of_tier(Tier::Root)), None);
    }

    #[test]
    fn cheap_tests_share_a_process_and_the_rest_have_their_own() {
        let (executables, tests) = executables();
        let selection = select(&Options::default(), &executables, &tests).unwrap();
        let among: Vec<usize> = (0..selection.cases.len()).collect();
        let jobs = jobs(&selection.cases, &among, 1);
        let names: Vec<Vec<&str>> = jobs
            .iter()
            .map(|job| {
                job.cases
                    .iter()
                    .map(|&at| selection.cases[at].test.name.as_str())
            })
            .map(Iterator::collect)
            .collect();
        let expected: [&[&str]; 6] = [
            &["parsers"],
            &["a::one", "a::two"],
            &["x"],
            &["y"],
            &["vm/embedded"],
            &["soak"],
        ];
        assert_eq!(names, expected);
        assert_eq!(jobs[5].places, places());
    }
}
