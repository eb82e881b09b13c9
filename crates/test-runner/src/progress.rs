//! The progress of a test process, read from the output of libtest or libtest-mimic.
//!
//! Both start tests in the order of their lists, the next one as soon as a thread is free. So the
//! end of one, which they print, shows when another began, which they do not print: every test has
//! a duration, and a test that hangs is known.

use std::time::{Duration, Instant};

/// How a test stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Waiting,
    Started(Instant),
    /// Its duration, and whether it passed, if that could be read.
    Ended(Duration, Option<bool>),
}

/// A process's tests, in the order in which they run.
#[derive(Debug)]
pub(crate) struct Progress {
    tests: Vec<(String, State)>,
    /// With one thread a test's name is printed when it begins, before its own output.
    is_sequential: bool,
    line: String,
}

impl Progress {
    pub(crate) fn new(names: Vec<String>, threads: u32, now: Instant) -> Self {
        let tests = names.into_iter().map(|name| (name, State::Waiting));
        let mut progress = Progress {
            tests: tests.collect(),
            is_sequential: threads == 1,
            line: String::new(),
        };
        for _ in 0..threads {
            progress.start_next(now);
        }
        progress
    }

    /// The tests and how they stand.
    pub(crate) fn tests(&self) -> &[(String, State)] {
        &self.tests
    }

    /// The test that has been running longest, and since when.
    pub(crate) fn oldest(&self) -> Option<(&str, Instant)> {
        let running = self.tests.iter().filter_map(|(name, state)| match state {
            State::Started(since) => Some((name.as_str(), *since)),
            _ => None,
        });
        running.min_by_key(|(_, since)| *since)
    }

    /// Takes in the output since the last call.
    pub(crate) fn read(&mut self, text: &str, now: Instant) {
        for part in text.split_inclusive('\n') {
            self.line.push_str(part);
            if self.line.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                self.read_line(line.trim_end(), now);
            } else if self.is_sequential
                && let Some((at, _)) = self.announced(&self.line)
            {
                self.began(at, now);
            }
        }
        // A line without end is no announcement.
        if self.line.len() > LONGEST_LINE {
            self.line.clear();
        }
    }

    fn read_line(&mut self, line: &str, now: Instant) {
        let Some((at, rest)) = self.announced(line) else {
            // A test's own output appears between its name and its result.
            if self.is_sequential
                && let Some(at) = self.running()
                && let Some(has_passed) = verdict(line)
            {
                self.ended(at, Some(has_passed), now);
            }
            return;
        };
        let has_passed = verdict(rest);
        if self.is_sequential {
            self.began(at, now);
        }
        if has_passed.is_some() {
            self.ended(at, has_passed, now);
        }
    }

    /// Which test a line `test NAME ... REST` is about.
    fn announced<'a>(&self, line: &'a str) -> Option<(usize, &'a str)> {
        let (head, rest) = line.split_once(" ... ")?;
        let head = head.trim_end().trim_end_matches(" - should panic");
        // Output without a line end may stand before it.
        let (before, name) = head.rsplit_once(' ')?;
        let is_announcement = before.trim_end().ends_with("test") || before.ends_with(']');
        let at = self.tests.iter().position(|(known, _)| known == name)?;
        is_announcement.then_some((at, rest))
    }

    fn running(&self) -> Option<usize> {
        let is_running = |(_, state): &(String, State)| matches!(state, State::Started(_));
        self.tests.iter().position(is_running)
    }

    /// With one thread, the test before has ended, however that was.
    fn began(&mut self, at: usize, now: Instant) {
        if let State::Started(_) = self.tests[at].1 {
            return;
        }
        if let Some(before) = self.running() {
            self.end(before, None, now);
        }
        self.tests[at].1 = State::Started(now);
    }

    fn ended(&mut self, at: usize, has_passed: Option<bool>, now: Instant) {
        self.end(at, has_passed, now);
        self.start_next(now);
    }

    fn end(&mut self, at: usize, has_passed: Option<bool>, now: Instant) {
        let took = match self.tests[at].1 {
            State::Started(since) => now - since,
            _ => Duration::ZERO,
        };
        self.tests[at].1 = State::Ended(took, has_passed);
    }

    fn start_next(&mut self, now: Instant) {
        let next = self.tests.iter_mut();
        let mut next = next.filter(|(_, state)| *state == State::Waiting);
        if let Some((_, state)) = next.next() {
            *state = State::Started(now);
        }
    }
}

const LONGEST_LINE: usize = 4096;

/// The result at the end of a line.
fn verdict(line: &str) -> Option<bool> {
    match (line.ends_with("ok"), line.ends_with("FAILED")) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// The last lines of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Summary {
    /// So many tests, all passed.
    Passed(usize),
    /// The names of those that failed; the others passed.
    Failed(Vec<String>),
    /// Nothing: it did not get that far.
    Missing,
}

/// Reads the last summary; a test may have printed those of others.
pub(crate) fn summary(output: &str) -> Summary {
    const RESULT: &str = "test result: ";
    let Some(at) = output.rfind(RESULT) else {
        return Summary::Missing;
    };
    let result = &output[at + RESULT.len()..];
    if let Some(counts) = result.strip_prefix("ok. ") {
        let count = counts
            .split(' ')
            .next()
            .and_then(|count| count.parse().ok());
        return count.map_or(Summary::Missing, Summary::Passed);
    }
    let names = output[..at].rsplit_once("\nfailures:\n");
    let names = names.map_or("", |(_, names)| names).lines();
    let names = names.filter_map(|line| line.strip_prefix("    "));
    Summary::Failed(names.map(str::to_owned).collect())
}

/// The output of a test that failed among others: the part with its name above it.
pub(crate) fn output_of<'a>(test: &str, output: &'a str) -> Option<&'a str> {
    let heads = [
        format!("---- {test} stdout ----"),
        format!("---- {test} ----"),
    ];
    let begin = heads.iter().find_map(|head| output.rfind(head.as_str()))?;
    let part = &output[begin..];
    let ends = ["\n---- ", "\nfailures:\n"];
    let end = ends.iter().filter_map(|end| part.find(end)).min();
    Some(part[..end.unwrap_or(part.len())].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lines: &str, threads: u32) -> Vec<State> {
        let begin = Instant::now();
        let names = ["a", "m::b", "c"].map(str::to_owned).to_vec();
        let mut progress = Progress::new(names, threads, begin);
        for (second, part) in lines.split('|').enumerate() {
            let now = begin + Duration::from_secs(second as u64 + 1);
            progress.read(part, now);
        }
        progress.tests.into_iter().map(|(_, state)| state).collect()
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn one_thread_shows_running_test() {
        let states = after("\nrunning 3 tests\ntest a ... |ok\ntest m::b ... ", 1);
        assert_eq!(states[0], State::Ended(seconds(2), Some(true)));
        assert!(matches!(states[1], State::Started(_)));
        assert_eq!(states[2], State::Waiting);
    }

    #[test]
    fn output_of_a_test_does_not_hide_its_result() {
        let noisy = "test a ... hello\nworld\n|ok\ntest m::b - should panic ... |noiseFAILED\ntest [tier: root] c   ... ok\n";
        let states = after(noisy, 1);
        assert_eq!(states[0], State::Ended(seconds(2), Some(true)));
        assert_eq!(states[1], State::Ended(seconds(1), Some(false)));
        assert_eq!(states[2], State::Ended(seconds(0), Some(true)));
    }

    #[test]
    fn test_with_a_hidden_result_ends_when_the_next_begins() {
        let states = after("test a ... x|\ntest m::b ... ", 1);
        assert_eq!(states[0], State::Ended(seconds(2), None));
    }

    #[test]
    fn several_threads_start_in_order() {
        let states = after("test m::b ... ok\n|test c ... ok\n", 2);
        assert!(matches!(states[0], State::Started(_)));
        assert_eq!(states[1], State::Ended(seconds(1), Some(true)));
        assert_eq!(states[2], State::Ended(seconds(1), Some(true)));
    }

    #[test]
    fn the_last_summary_counts() {
        let inner = "test result: ok. 7 passed; 0 failed\n";
        assert_eq!(summary(inner), Summary::Passed(7));
        let outer = format!(
            "{inner}failures:\n\n---- a stdout ----\nboom\n\n---- m::b stdout ----\nbang\n\n\
             failures:\n    a\n    m::b\n\ntest result: FAILED. 1 passed; 2 failed\n"
        );
        let names = ["a", "m::b"].map(str::to_owned).to_vec();
        assert_eq!(summary(&outer), Summary::Failed(names));
        assert_eq!(summary("Segmentation fault"), Summary::Missing);
        assert_eq!(output_of("a", &outer), Some("---- a stdout ----\nboom"));
        assert_eq!(
            output_of("m::b", &outer),
            Some("---- m::b stdout ----\nbang")
        );
        assert_eq!(output_of("c", &outer), None);
    }
}
