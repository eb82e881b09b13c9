//! How often a root is measured: rarely if that takes long.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::super::tree::Usage;

/// Quicker measurements are not worth remembering.
const QUICK: Duration = Duration::from_millis(1);

/// A measurement serves so many times as long as it took, so that measuring a root takes at most a
/// hundredth of a core, however many files its container makes.
const SERVES: u32 = 100;

/// What was written into a root, and when that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// What it takes.
    pub usage: Usage,
    /// When.
    pub at: SystemTime,
}

/// Measurements that still serve, by root.
#[derive(Debug, Default)]
pub(super) struct Measurements {
    known: Mutex<BTreeMap<String, (Measurement, Instant)>>,
}

impl Measurements {
    /// The known one if it serves, or else a new one.
    pub(super) fn get_or<E>(
        &self,
        root: &str,
        measure: impl FnOnce() -> Result<Usage, E>,
    ) -> Result<Measurement, E> {
        let began = Instant::now();
        if let Some((known, until)) = self.known().get(root)
            && *until > began
        {
            return Ok(*known);
        }
        let measurement = Measurement {
            usage: measure()?,
            at: SystemTime::now(),
        };
        let took = began.elapsed();
        let mut known = self.known();
        known.retain(|_, (_, until)| *until > began);
        if let Some(until) = serves_until(began, took) {
            known.insert(root.to_owned(), (measurement, until));
        }
        Ok(measurement)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (Measurement, Instant)>> {
        // Nothing can be half done in it.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serves_until(began: Instant, took: Duration) -> Option<Instant> {
    let is_quick = took < QUICK;
    (!is_quick).then(|| began + took * SERVES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_measurements_serve_longer() {
        let began = Instant::now();
        assert_eq!(serves_until(began, Duration::from_micros(900)), None);
        let until = serves_until(began, Duration::from_millis(50));
        assert_eq!(until, Some(began + Duration::from_secs(5)));
    }

    #[test]
    fn a_measurement_serves_for_its_own_root_only() {
        let measurements = Measurements::default();
        let of = |bytes| Usage { bytes, inodes: 1 };
        let get = |root, bytes| {
            let result = measurements.get_or(root, || {
                let began = Instant::now();
                while began.elapsed() < Duration::from_millis(20) {
                    std::thread::yield_now();
                }
                Ok::<_, std::convert::Infallible>(of(bytes))
            });
            result.unwrap().usage
        };
        assert_eq!(get("a", 1), of(1));
        assert_eq!(get("a", 2), of(1));
        assert_eq!(get("b", 3), of(3));
    }
}
