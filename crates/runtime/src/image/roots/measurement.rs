//! Schedules the measurement of roots: rarely if it takes long, and in steps.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::walk::{Progress, STEP_TIME, Usage, Walk};

/// A measurement serves so many times as long as it took, so that measuring a root takes at most a
/// hundredth of a core, however many files its container makes.
const SERVES: u32 = 100;
/// Quicker measurements are not worth remembering.
const QUICK: Duration = Duration::from_millis(1);
/// How many files one call looks at: some 50 ms.
const FILES_PER_CALL: u64 = 20_000;

/// What was written into a root, and when that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// What it takes.
    pub usage: Usage,
    /// When.
    pub at: SystemTime,
}

/// What is known of roots, by name.
#[derive(Debug, Default)]
pub(super) struct Measurements {
    known: Mutex<BTreeMap<String, Known>>,
}

#[derive(Debug, Default)]
struct Known {
    last: Option<Measurement>,
    /// Until when that serves.
    until: Option<Instant>,
    walking: Walking,
}

#[derive(Debug, Default)]
enum Walking {
    #[default]
    No,
    /// One that the last call did not end, and how long it took so far.
    Begun(Walk, Duration),
    /// Another caller continues it.
    Elsewhere,
}

impl Measurements {
    /// The last measurement of a root, if there is one, after a step towards the next.
    pub(super) fn get_or_walk(
        &self,
        root: &str,
        begin: impl FnOnce() -> Walk,
    ) -> io::Result<Option<Measurement>> {
        let began = Instant::now();
        let (mut walk, took, last) = {
            let mut known = self.known();
            let known = known.entry(root.to_owned()).or_default();
            if known.until.is_some_and(|until| until > began) {
                return Ok(known.last);
            }
            match std::mem::replace(&mut known.walking, Walking::Elsewhere) {
                Walking::Elsewhere => return Ok(known.last),
                Walking::Begun(walk, took) => (walk, took, known.last),
                Walking::No => (begin(), Duration::ZERO, known.last),
            }
        };
        let mut budget = FILES_PER_CALL;
        let progress = walk.advance(&mut budget, began + STEP_TIME);
        let took = took + began.elapsed();
        let usage = match progress {
            Progress::Pending => {
                self.note(root, |known| known.walking = Walking::Begun(walk, took));
                return Ok(last);
            }
            Progress::Failed(error) => {
                self.forget(root);
                return Err(error);
            }
            Progress::Silent(error) => {
                tracing::warn!(root, %error, "failed to measure writable layer; reporting last known usage");
                self.note(root, |known| known.walking = Walking::No);
                return Ok(last);
            }
            Progress::Done(usage) => usage,
        };
        // Skipped directories still use space.
        let usage = match last.filter(|_| !walk.is_whole) {
            Some(last) => usage.most(last.usage),
            None => usage,
        };
        if !walk.is_whole {
            tracing::warn!(
                root,
                "writable layer measured in part; usage is a lower bound"
            );
        }
        let measurement = Measurement {
            usage,
            at: SystemTime::now(),
        };
        self.note(root, |known| {
            *known = Known {
                last: Some(measurement),
                until: serves_until(Instant::now(), took),
                walking: Walking::No,
            };
        });
        Ok(Some(measurement))
    }

    /// Forgets a root that is removed.
    pub(super) fn forget(&self, root: &str) {
        self.known().remove(root);
    }

    /// Takes down what is known of a root, unless it was removed meanwhile.
    fn note(&self, root: &str, note: impl FnOnce(&mut Known)) {
        if let Some(known) = self.known().get_mut(root) {
            note(known);
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        // Nothing can be half done in it.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serves_until(ended: Instant, took: Duration) -> Option<Instant> {
    let is_quick = took < QUICK;
    (!is_quick).then(|| ended + took * SERVES)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::walk::{Scope, Walker};

    #[test]
    fn long_measurements_serve_longer() {
        let ended = Instant::now();
        assert_eq!(serves_until(ended, Duration::from_micros(900)), None);
        let until = serves_until(ended, Duration::from_millis(50));
        assert_eq!(until, Some(ended + Duration::from_secs(5)));
    }

    fn inodes(measurements: &Measurements, name: &str, path: &Path) -> Option<u64> {
        let begin = || Walker::here().begin(path, Scope::Tree);
        let measured = measurements.get_or_walk(name, begin).unwrap();
        measured.map(|measured| measured.usage.inodes)
    }

    #[test]
    fn a_root_of_many_files_is_measured_in_steps_and_then_serves_for_itself() {
        let folder = tempfile::tempdir().unwrap();
        let (large, small) = (folder.path().join("large"), folder.path().join("small"));
        fs::create_dir(&large).unwrap();
        fs::create_dir(&small).unwrap();
        fs::write(large.join("0"), "").unwrap();
        for index in 1..FILES_PER_CALL * 2 + 10 {
            fs::hard_link(large.join("0"), large.join(index.to_string())).unwrap();
        }
        let measurements = Measurements::default();
        assert_eq!(inodes(&measurements, "large", &large), None, "not yet");
        assert_eq!(inodes(&measurements, "small", &small), Some(1));
        assert_eq!(inodes(&measurements, "large", &large), None);
        let found = inodes(&measurements, "large", &large);
        assert_eq!(found, Some(2), "a directory and a file of many names");
        // It took so long that it serves for a while.
        fs::write(large.join("more"), "").unwrap();
        assert_eq!(inodes(&measurements, "large", &large), found);
        measurements.forget("large");
        assert_eq!(inodes(&measurements, "large", &large), None);
        let gone = folder.path().join("gone");
        let begin = || Walker::here().begin(&gone, Scope::Tree);
        assert!(measurements.get_or_walk("gone", begin).is_err());
    }
}
