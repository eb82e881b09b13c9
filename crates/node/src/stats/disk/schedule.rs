//! Which directory is walked over next.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_core::object::timestamp::Timestamp;

use super::scan::{Scan, Scope, Start, Usage};

/// How old a figure may become where it only tells who would go first. Upstream's is a minute.
const PERIOD: Duration = Duration::from_secs(10);
/// How old it may become where somebody is held to it.
const LIMITED_PERIOD: Duration = Duration::from_secs(1);
/// Large trees are walked less often, down to once in this time.
const LONGEST: Duration = Duration::from_secs(20 * 60);
/// One file takes a few microseconds: a tree costs at most half a percent of a processor.
const PER_ENTRY: Duration = Duration::from_millis(1);

/// What of a directory is measured, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Wanted {
    pub(in super::super) scope: Scope,
    /// Whether its pod goes when it holds too much.
    pub(in super::super) is_limited: bool,
}

impl Wanted {
    fn period(self) -> Duration {
        match self.is_limited {
            true => LIMITED_PERIOD,
            false => PERIOD,
        }
    }
}

/// A figure and when it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Measured {
    pub(in super::super) usage: Usage,
    pub(in super::super) time: Timestamp,
}

/// The directories of a node and what is known of them.
#[derive(Debug, Default)]
pub(in super::super) struct DiskUsage {
    tracked: BTreeMap<PathBuf, Tracked>,
    /// The walk that the last step did not end.
    unfinished: Option<(PathBuf, Box<Scan>)>,
}

#[derive(Debug)]
struct Tracked {
    wanted: Wanted,
    last: Option<Measured>,
    /// `None` for at once.
    due: Option<Timestamp>,
    /// Whether a walk costs so much that it has to be rare.
    is_large: bool,
}

impl DiskUsage {
    /// From now on these are measured and no others.
    pub(in super::super) fn track(&mut self, wanted: &BTreeMap<PathBuf, Wanted>) {
        self.tracked
            .retain(|path, tracked| wanted.get(path) == Some(&tracked.wanted));
        for (path, wanted) in wanted {
            if !self.tracked.contains_key(path) {
                let new = Tracked {
                    wanted: *wanted,
                    last: None,
                    due: None,
                    is_large: false,
                };
                self.tracked.insert(path.clone(), new);
            }
        }
        if let Some((path, _)) = &self.unfinished
            && !self.tracked.contains_key(path)
        {
            self.unfinished = None;
        }
    }

    /// Looks at no more than `budget` files: first those of the walk begun last, then of
    /// directories whose figure is oldest.
    pub(in super::super) fn advance(&mut self, now: Timestamp, mut budget: u64) {
        if let Some((path, mut scan)) = self.unfinished.take() {
            match scan.advance(&mut budget) {
                Some(usage) => self.finish(&path, Some(usage), scan.entries, now),
                None => {
                    self.unfinished = Some((path, scan));
                    return;
                }
            }
        }
        let due: BTreeSet<(Option<Timestamp>, PathBuf)> = self
            .tracked
            .iter()
            .filter(|(_, tracked)| tracked.due.is_none_or(|due| due <= now))
            .map(|(path, tracked)| (tracked.due, path.clone()))
            .collect();
        for (_, path) in due {
            if budget == 0 {
                return;
            }
            let Some(tracked) = self.tracked.get(&path) else {
                continue;
            };
            match Scan::start(&path, tracked.wanted.scope) {
                Ok(Start::Done(usage)) => {
                    budget -= 1;
                    self.finish(&path, Some(usage), 1, now);
                }
                Ok(Start::Scan(mut scan)) => match scan.advance(&mut budget) {
                    Some(usage) => self.finish(&path, Some(usage), scan.entries, now),
                    None => {
                        self.unfinished = Some((path, scan));
                        return;
                    }
                },
                Err(_) => self.finish(&path, None, 1, now),
            }
        }
    }

    /// Has all directories walked over next, the small ones: a large one is worth its pause.
    pub(in super::super) fn hurry(&mut self) {
        for tracked in self.tracked.values_mut() {
            if !tracked.is_large {
                tracked.due = None;
            }
        }
    }

    fn finish(&mut self, path: &Path, usage: Option<Usage>, entries: u64, now: Timestamp) {
        if let Some(tracked) = self.tracked.get_mut(path) {
            tracked.last = usage.map(|usage| Measured { usage, time: now });
            let entries = u32::try_from(entries).unwrap_or(u32::MAX);
            let rest = PER_ENTRY.saturating_mul(entries);
            let pause = rest.clamp(tracked.wanted.period(), LONGEST);
            tracked.is_large = rest > LIMITED_PERIOD;
            tracked.due = Some(now.saturating_add(pause));
        }
    }

    /// What is known of a directory.
    pub(in super::super) fn get(&self, path: &Path) -> Option<Measured> {
        self.tracked.get(path)?.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const TREE: Wanted = Wanted {
        scope: Scope::Tree,
        is_limited: false,
    };
    const LIMITED: Wanted = Wanted {
        is_limited: true,
        ..TREE
    };

    fn wanted(paths: &[(&Path, Wanted)]) -> BTreeMap<PathBuf, Wanted> {
        let owned = |(path, wanted): &(&Path, Wanted)| ((*path).to_owned(), *wanted);
        paths.iter().map(owned).collect()
    }

    fn inodes(disk: &DiskUsage, path: &Path) -> Option<u64> {
        disk.get(path).map(|measured| measured.usage.inodes)
    }

    #[test]
    fn figures_are_kept_for_ten_seconds_and_dropped_with_their_directory() {
        let dir = tempfile::tempdir().unwrap();
        let (at, mut disk) = (Timestamp::from_secs, DiskUsage::default());
        disk.track(&wanted(&[(dir.path(), TREE)]));
        disk.advance(at(0), 100);
        assert_eq!(inodes(&disk, dir.path()), Some(1));
        fs::write(dir.path().join("f"), "x").unwrap();
        disk.advance(at(9), 100);
        assert_eq!(inodes(&disk, dir.path()), Some(1));
        disk.advance(at(10), 100);
        assert_eq!(inodes(&disk, dir.path()), Some(2));
        fs::write(dir.path().join("g"), "x").unwrap();
        disk.hurry();
        disk.advance(at(11), 100);
        assert_eq!(inodes(&disk, dir.path()), Some(3));
        disk.track(&wanted(&[]));
        assert_eq!(disk.get(dir.path()), None);
    }

    #[test]
    fn who_is_held_to_a_limit_is_measured_each_second_unless_that_costs_too_much() {
        let dir = tempfile::tempdir().unwrap();
        let (small, large) = (dir.path().join("small"), dir.path().join("large"));
        fs::create_dir_all(&small).unwrap();
        fs::create_dir_all(&large).unwrap();
        for index in 0..2999 {
            fs::write(large.join(index.to_string()), "").unwrap();
        }
        let (at, mut disk) = (Timestamp::from_secs, DiskUsage::default());
        disk.track(&wanted(&[(&small, LIMITED), (&large, LIMITED)]));
        disk.advance(at(0), 10_000);
        for directory in [&small, &large] {
            fs::write(directory.join("one-more"), "").unwrap();
        }
        disk.advance(at(1), 10_000);
        assert_eq!(inodes(&disk, &small), Some(2));
        assert_eq!(inodes(&disk, &large), Some(3000), "three thousand files");
        disk.advance(at(3), 10_000);
        assert_eq!(inodes(&disk, &large), Some(3001));
    }

    #[test]
    fn a_step_costs_no_more_than_its_budget_and_the_walk_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let (big, small) = (dir.path().join("big"), dir.path().join("small"));
        fs::create_dir_all(&big).unwrap();
        fs::create_dir_all(&small).unwrap();
        for index in 0..50 {
            fs::write(big.join(index.to_string()), "").unwrap();
        }
        let mut disk = DiskUsage::default();
        disk.track(&wanted(&[(&big, TREE), (&small, TREE)]));
        for step in 0..6 {
            assert_eq!(inodes(&disk, &big), None, "step {step}");
            disk.advance(Timestamp::from_secs(step * 10), 10);
        }
        assert_eq!(inodes(&disk, &big), Some(51));
        assert_eq!(inodes(&disk, &small), Some(1));
        fs::remove_dir_all(&small).unwrap();
        disk.advance(Timestamp::from_secs(200), 1000);
        assert_eq!(disk.get(&small), None);
    }
}
