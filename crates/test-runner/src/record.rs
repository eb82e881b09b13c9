//! The results of every test.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::tier::Tier;

/// One run of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) round: u32,
    pub(crate) took: Duration,
    pub(crate) failure: Option<String>,
}

/// All runs.
#[derive(Debug)]
pub(crate) struct Records {
    runs: Vec<Vec<Run>>,
    left: Vec<(String, Vec<String>)>,
    spans: BTreeMap<Tier, (Instant, Instant)>,
}

impl Records {
    pub(crate) fn new(cases: usize) -> Self {
        Records {
            runs: vec![Vec::new(); cases],
            left: Vec::new(),
            spans: BTreeMap::new(),
        }
    }

    pub(crate) fn add(&mut self, case: usize, round: u32, took: Duration, failure: Option<String>) {
        self.runs[case].push(Run {
            round,
            took,
            failure,
        });
    }

    /// Records that a test left processes behind.
    pub(crate) fn left(&mut self, id: &str, processes: &[String]) {
        self.left.push((id.to_owned(), processes.to_vec()));
    }

    pub(crate) fn started(&mut self, tier: Tier, now: Instant) {
        self.spans.entry(tier).or_insert((now, now));
    }

    pub(crate) fn ended(&mut self, tier: Tier, now: Instant) {
        if let Some((_, end)) = self.spans.get_mut(&tier) {
            *end = now;
        }
    }

    /// The runs of a case.
    pub(crate) fn of(&self, case: usize) -> &[Run] {
        &self.runs[case]
    }

    /// Tests whose last run failed.
    pub(crate) fn failed(&self) -> Vec<usize> {
        self.cases(|runs| runs.last().is_some_and(|run| run.failure.is_some()))
    }

    /// Tests that failed, and then passed.
    pub(crate) fn flaky(&self) -> Vec<usize> {
        self.cases(|runs| {
            let has_failed = runs.iter().any(|run| run.failure.is_some());
            has_failed && runs.last().is_some_and(|run| run.failure.is_none())
        })
    }

    /// Tests with any run that failed.
    pub(crate) fn ever_failed(&self) -> Vec<usize> {
        self.cases(|runs| runs.iter().any(|run| run.failure.is_some()))
    }

    fn cases(&self, is_such: impl Fn(&[Run]) -> bool) -> Vec<usize> {
        let all = 0..self.runs.len();
        all.filter(|&case| is_such(&self.runs[case])).collect()
    }

    /// Which tests left which processes.
    pub(crate) fn leftovers(&self) -> &[(String, Vec<String>)] {
        &self.left
    }

    /// From the start of a tier's first test to the end of its last one.
    pub(crate) fn span(&self, tier: Tier) -> Option<Duration> {
        self.spans.get(&tier).map(|(begin, end)| *end - *begin)
    }

    /// The runs that took longest, longest first.
    pub(crate) fn slowest(&self, count: usize) -> Vec<(usize, Duration)> {
        let longest = |(case, runs): (usize, &Vec<Run>)| {
            let took = runs.iter().map(|run| run.took).max();
            took.map(|took| (case, took))
        };
        let mut all: Vec<(usize, Duration)> =
            self.runs.iter().enumerate().filter_map(longest).collect();
        all.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
        all.truncate(count);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flaky_failing_and_passing_tests_are_distinguished() {
        let mut records = Records::new(3);
        let second = Duration::from_secs(1);
        let failure = || Some("failed".to_owned());
        records.add(0, 1, second, None);
        records.add(1, 1, second * 3, failure());
        records.add(2, 1, second * 2, failure());
        records.add(1, 2, second, None);
        records.add(2, 2, second, failure());
        assert_eq!(records.failed(), [2]);
        assert_eq!(records.flaky(), [1]);
        assert_eq!(records.ever_failed(), [1, 2]);
        assert_eq!(records.slowest(2), [(1, second * 3), (2, second * 2)]);
    }
}
