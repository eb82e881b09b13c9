//! Which directory is walked over next.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_core::object::timestamp::Timestamp;

use super::scan::{Scan, Scope, Start, Usage};

/// How old a figure may become, as upstream's.
const PERIOD: Duration = Duration::from_secs(60);
/// Large trees are walked less often, down to once in this many periods.
const LONGEST: Duration = Duration::from_secs(20 * 60);
/// One file takes a few microseconds: a tree costs at most half a percent of a processor.
const PER_ENTRY: Duration = Duration::from_millis(1);

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
    scope: Scope,
    last: Option<Measured>,
    /// `None` for at once.
    due: Option<Timestamp>,
}

impl DiskUsage {
    /// From now on these are measured and no others.
    pub(in super::super) fn track(&mut self, wanted: &BTreeMap<PathBuf, Scope>) {
        self.tracked.retain(|path, _| wanted.contains_key(path));
        for (path, scope) in wanted {
            if !self.tracked.contains_key(path) {
                let new = Tracked {
                    scope: *scope,
                    last: None,
                    due: None,
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
            match Scan::start(&path, tracked.scope) {
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

    fn finish(&mut self, path: &Path, usage: Option<Usage>, entries: u64, now: Timestamp) {
        if let Some(tracked) = self.tracked.get_mut(path) {
            tracked.last = usage.map(|usage| Measured { usage, time: now });
            let entries = u32::try_from(entries).unwrap_or(u32::MAX);
            let pause = PER_ENTRY.saturating_mul(entries).clamp(PERIOD, LONGEST);
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

    fn wanted(paths: &[&Path]) -> BTreeMap<PathBuf, Scope> {
        let tree = |path: &&Path| ((*path).to_owned(), Scope::Tree);
        paths.iter().map(tree).collect()
    }

    fn inodes(disk: &DiskUsage, path: &Path) -> Option<u64> {
        disk.get(path).map(|measured| measured.usage.inodes)
    }

    #[test]
    fn figures_are_kept_for_a_minute_and_dropped_with_their_directory() {
        let dir = tempfile::tempdir().unwrap();
        let (at, mut disk) = (Timestamp::from_secs, DiskUsage::default());
        disk.track(&wanted(&[dir.path()]));
        disk.advance(at(0), 100);
        assert_eq!(inodes(&disk, dir.path()), Some(1));
        fs::write(dir.path().join("f"), "x").unwrap();
        disk.advance(at(59), 100);
        assert_eq!(inodes(&disk, dir.path()), Some(1));
        disk.advance(at(60), 100);
        assert_eq!(inodes(&disk, dir.path()), Some(2));
        disk.track(&wanted(&[]));
        assert_eq!(disk.get(dir.path()), None);
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
        disk.track(&wanted(&[&big, &small]));
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
