//! How long things took.

use std::time::Duration;

/// Durations, of which the usual and the worst are told.
#[derive(Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn push(&mut self, took: Duration) {
        self.0.push(took);
    }

    pub(crate) fn extend(&mut self, other: Times) {
        self.0.extend(other.0);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn report(mut self) -> String {
        self.0.sort_unstable();
        let at = |percent: usize| {
            let last = self.0.len().saturating_sub(1);
            let found = self.0.get(last * percent / 100).copied();
            found.unwrap_or_default().as_secs_f64() * 1e3
        };
        format!(
            "p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
            at(50),
            at(99),
            at(100)
        )
    }
}
