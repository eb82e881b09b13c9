//! Measured durations.

use std::time::Duration;

use crate::figure::{Better, print};

/// Durations, of which the median and the maximum are reported.
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

    /// The median and the worst but one in a hundred.
    pub(crate) fn print(mut self, name: &str) {
        self.0.sort_unstable();
        for percent in [50, 99] {
            let last = self.0.len().saturating_sub(1);
            let took = self.0.get(last * percent / 100).copied();
            let took = took.unwrap_or_default().as_secs_f64() * 1e3;
            print(&format!("{name}, p{percent}"), took, "ms", Better::Lower);
        }
    }
}
