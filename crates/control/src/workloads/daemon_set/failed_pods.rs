//! The back-off of daemons that keep failing on a node.
//!
//! A node that refuses a pod fails it at once. Replacing it at once would loop as fast as the
//! machines allow.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_core::object::timestamp::Timestamp;

use crate::workloads::pod_state::{after, until};

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_mins(15);

/// How often pods were replaced, by set, generation and node.
#[derive(Clone, Debug, Default)]
pub struct FailedPods {
    waits: BTreeMap<String, Wait>,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    length: Duration,
    since: Timestamp,
}

impl FailedPods {
    /// Whether a failed pod may be replaced: nothing if it may be, else the time to wait. The wait
    /// doubles each time; after twice the longest wait without a failure it starts from the
    /// beginning.
    pub fn ask(&mut self, key: &str, now: Timestamp) -> Option<Duration> {
        let known = self.waits.get(key).copied();
        if let Some(wait) = known
            && after(wait.since, as_seconds(wait.length)) > now
        {
            return Some(wait.length);
        }
        let length = match known {
            Some(wait) if !wait.is_over(now) => wait.length.saturating_mul(2).min(LONGEST_WAIT),
            _ => FIRST_WAIT,
        };
        self.waits
            .insert(key.to_owned(), Wait { length, since: now });
        None
    }

    /// Forgets what was long ago.
    pub fn forget_old(&mut self, now: Timestamp) {
        self.waits.retain(|_, wait| !wait.is_over(now));
    }
}

impl Wait {
    fn is_over(self, now: Timestamp) -> bool {
        until(self.since, now) > LONGEST_WAIT.saturating_mul(2)
    }
}

fn as_seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_doubles_and_resets_after_a_quiet_time() {
        let mut failed = FailedPods::default();
        let at = Timestamp::from_secs;
        assert_eq!(failed.ask("a", at(0)), None);
        assert_eq!(failed.ask("a", at(0)), Some(Duration::from_secs(1)));
        assert_eq!(failed.ask("a", at(1)), None);
        assert_eq!(failed.ask("a", at(2)), Some(Duration::from_secs(2)));
        assert_eq!(failed.ask("b", at(2)), None);
        assert_eq!(failed.ask("a", at(3)), None);
        assert_eq!(failed.ask("a", at(3 + 1801)), None);
        assert_eq!(failed.ask("a", at(3 + 1801)), Some(Duration::from_secs(1)));
        failed.forget_old(at(10_000));
        assert!(failed.waits.is_empty());
    }

    #[test]
    fn waits_are_at_most_fifteen_minutes() {
        let mut failed = FailedPods::default();
        let mut now = 0;
        for _ in 0..20 {
            while let Some(wait) = failed.ask("a", Timestamp::from_secs(now)) {
                assert!(wait <= LONGEST_WAIT);
                now += as_seconds(wait);
            }
        }
        assert_eq!(
            failed.ask("a", Timestamp::from_secs(now)),
            Some(LONGEST_WAIT)
        );
    }
}
