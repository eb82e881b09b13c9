//! How many processors a cgroup keeps busy, from a counter of nanoseconds.

use std::time::Duration;

use plimsoll_core::object::timestamp::Timestamp;

/// Below this a rate says more about the clock than about the load. Measurements come every ten
/// seconds, and at any time when eviction asks.
const SHORTEST_WINDOW: Duration = Duration::from_secs(5);
/// The first rate may be rougher, so that a new pod soon has one.
const SHORTEST_FIRST_WINDOW: Duration = Duration::from_secs(1);

/// The rate between measurements.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuRate {
    base: Option<(Timestamp, u64)>,
    nano_cores: Option<u64>,
}

impl CpuRate {
    /// Takes in a measurement; returns nanoseconds per second, zero as long as it is not known.
    pub(super) fn update(&mut self, time: Timestamp, nanos: u64) -> u64 {
        match self.base {
            Some((base_time, base_nanos)) if nanos >= base_nanos => {
                let elapsed = time.saturating_since(base_time);
                let shortest = match self.nano_cores {
                    Some(_) => SHORTEST_WINDOW,
                    None => SHORTEST_FIRST_WINDOW,
                };
                if elapsed >= shortest {
                    self.nano_cores = Some(per_second(nanos - base_nanos, elapsed));
                    self.base = Some((time, nanos));
                }
            }
            // Another cgroup of the same name.
            _ => {
                self.base = Some((time, nanos));
                self.nano_cores = None;
            }
        }
        self.nano_cores.unwrap_or(0)
    }
}

fn per_second(nanos: u64, elapsed: Duration) -> u64 {
    let rate = u128::from(nanos) * 1_000_000_000 / elapsed.as_nanos();
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_between_measurements_far_enough_apart() {
        let mut rate = CpuRate::default();
        let mut update = |millis: i64, nanos| {
            let time = Timestamp::from_nanos(millis * 1_000_000);
            rate.update(time, nanos)
        };
        assert_eq!(update(0, 0), 0);
        assert_eq!(
            update(500, 400_000_000),
            0,
            "too early even for a first rate"
        );
        assert_eq!(update(2_000, 1_000_000_000), 500_000_000);
        assert_eq!(update(3_000, 3_000_000_000), 500_000_000, "a short window");
        assert_eq!(update(12_000, 21_000_000_000), 2_000_000_000);
        assert_eq!(update(22_000, 5), 0, "the counter was reset");
        assert_eq!(update(32_000, 10_000_000_005), 1_000_000_000);
    }
}
