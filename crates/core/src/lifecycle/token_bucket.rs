//! A rate limit.

use crate::object::timestamp::Timestamp;

/// A bucket of one token that fills at a rate. It starts full.
///
/// Matches v1.36 client-go/util/flowcontrol with a burst of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenBucket {
    per_second: f32,
    tokens: f64,
    filled: Option<Timestamp>,
}

impl TokenBucket {
    /// A full bucket; at a rate of zero or less it never gives a token.
    pub fn new(per_second: f32) -> TokenBucket {
        TokenBucket {
            per_second,
            tokens: 1.0,
            filled: None,
        }
    }

    /// The rate at which it fills.
    pub fn per_second(&self) -> f32 {
        self.per_second
    }

    /// Takes the token if there is one.
    pub fn try_take(&mut self, now: Timestamp) -> bool {
        if self.per_second <= 0.0 {
            return false;
        }
        let elapsed = self.filled.map(|filled| now.saturating_since(filled));
        let elapsed_secs = elapsed.map_or(0.0, |elapsed| elapsed.as_secs_f64());
        let filled = self.tokens + elapsed_secs * f64::from(self.per_second);
        self.tokens = filled.min(1.0);
        // A clock that goes back fills nothing, then or later.
        self.filled = Some(self.filled.map_or(now, |filled| filled.max(now)));
        let is_full = self.tokens >= 1.0;
        if is_full {
            self.tokens -= 1.0;
        }
        is_full
    }

    /// Changes the rate. A bucket that is empty stays so: the new rate fills it.
    pub fn set_rate(&mut self, per_second: f32, now: Timestamp) {
        if self.per_second == per_second {
            return;
        }
        let was_empty = !self.try_take(now);
        *self = TokenBucket::new(per_second);
        if was_empty {
            self.try_take(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn token_is_added_every_ten_seconds_and_none_accumulate() {
        let mut bucket = TokenBucket::new(0.1);
        let times = [
            (0, true),
            (1, false),
            (9, false),
            (10, true),
            (100, true),
            (101, false),
        ];
        for (now, expected) in times {
            assert_eq!(bucket.try_take(at(now)), expected, "at {now}");
        }
    }

    #[test]
    fn rate_of_zero_gives_no_tokens_and_a_new_rate_starts_empty() {
        let mut bucket = TokenBucket::new(0.0);
        assert!(!bucket.try_take(at(0)));
        bucket.set_rate(0.1, at(0));
        assert!(!bucket.try_take(at(9)));
        assert!(bucket.try_take(at(10)));
        bucket.set_rate(0.1, at(10));
        assert!(!bucket.try_take(at(11)), "the same rate changes nothing");
        bucket.set_rate(0.01, at(30));
        assert!(bucket.try_take(at(30)), "a full bucket stays full");
    }

    #[test]
    fn backward_clock_adds_no_tokens() {
        let mut bucket = TokenBucket::new(0.1);
        assert!(bucket.try_take(at(100)));
        assert!(!bucket.try_take(at(50)));
        assert!(!bucket.try_take(at(105)));
        assert!(bucket.try_take(at(110)));
    }
}
