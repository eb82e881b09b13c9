//! The output while tests run: a line for each executable and tier when it is done, and a line for
//! each failure at once.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::plan::Case;
use crate::running::Verdict;
use crate::tier::Tier;

/// How far an executable's tests of a tier are.
#[derive(Debug, Default)]
struct Group {
    expected: usize,
    passed: usize,
    failed: usize,
    took: Duration,
}

/// The state of the output while tests run.
#[derive(Debug)]
pub(crate) struct Screen {
    groups: BTreeMap<(usize, Tier), Group>,
    names: Vec<String>,
    rounds: u32,
    has_reruns: bool,
}

impl Screen {
    /// For these cases of executables with these names, each run so often.
    pub(crate) fn new(names: Vec<String>, cases: &[Case], rounds: u32) -> Self {
        let mut groups: BTreeMap<(usize, Tier), Group> = BTreeMap::new();
        let times = usize::try_from(rounds).unwrap_or(usize::MAX);
        for case in cases {
            let group = groups.entry((case.executable, case.tier)).or_default();
            group.expected += times;
        }
        Screen {
            groups,
            names,
            rounds,
            has_reruns: false,
        }
    }

    pub(crate) fn verdict(&mut self, case: &Case, verdict: &Verdict, round: u32) {
        let seconds = verdict.took.as_secs_f64();
        if let Some(why) = &verdict.failure {
            let round = match self.rounds > 1 {
                true => format!("in run {round} "),
                false => String::new(),
            };
            println!("FAILED {} {round}after {seconds:.1} s: {why}", case.id);
        } else if self.has_reruns {
            println!("passed {} after {seconds:.1} s", case.id);
        }
        if self.has_reruns {
            return;
        }
        let Some(group) = self.groups.get_mut(&(case.executable, case.tier)) else {
            return;
        };
        match &verdict.failure {
            None => group.passed += 1,
            Some(_) => group.failed += 1,
        }
        group.took += verdict.took;
        if group.passed + group.failed < group.expected {
            return;
        }
        let failed = match group.failed {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        println!(
            "{:5} {:33} {:4} passed{failed} ({:.1} s)",
            case.tier,
            self.names[case.executable],
            group.passed,
            group.took.as_secs_f64(),
        );
    }

    /// A test that failed is run again.
    pub(crate) fn rerun(&mut self, id: &str) {
        self.has_reruns = true;
        println!("again, on its own: {id}");
    }
}
