//! Which directory is walked over next.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_runtime::walk::{Progress, STEP_TIME, Scope, Usage, Walker};

use crate::project_quota::ProjectQuotas;

use super::counted::Counted;

/// How old a figure may become where it only ranks pods for eviction. Upstream's is a minute.
const PERIOD: Duration = Duration::from_secs(10);
/// How old it may become where a limit applies.
const LIMITED_PERIOD: Duration = Duration::from_secs(1);
/// How often a directory with a project quota is walked nevertheless. Upstream's
/// period of measuring.
const CHECK_PERIOD: Duration = Duration::from_secs(60);
/// Large trees are walked less often, down to once in this time.
const LONGEST: Duration = Duration::from_secs(20 * 60);
/// How long a directory is left alone that does not answer.
const SILENT_PERIOD: Duration = Duration::from_secs(60);
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
    quotas: ProjectQuotas,
    walker: Walker,
    /// Since when every figure must be measured again.
    wanted_since: Option<Timestamp>,
}

#[derive(Debug)]
struct Tracked {
    wanted: Wanted,
    last: Option<Measured>,
    /// `None` for at once.
    due: Option<Timestamp>,
    /// Whether a walk costs so much that it has to be rare.
    is_large: bool,
    /// Whether the figure leaves something out, because a walk has hit a bound.
    is_partial: bool,
    /// A walk that the last step did not end.
    walk: Option<Walk>,
    counting: Counting,
}

/// How the use of a directory is measured.
#[derive(Debug)]
enum Counting {
    /// That was not measured yet.
    Unknown,
    /// The kernel keeps count.
    Kernel(Counted),
    /// It has to be walked over.
    Walks,
}

#[derive(Debug)]
struct Walk {
    walk: plimsoll_runtime::walk::Walk,
    begun: Timestamp,
}

/// What holds for all directories in one step.
struct Step<'a> {
    now: Timestamp,
    quotas: &'a ProjectQuotas,
    walker: &'a Walker,
    /// Since when every figure must be measured again.
    since: Option<Timestamp>,
    /// Whether figures are wanted at once that are not there.
    is_behind: bool,
    /// When it ends at the latest.
    deadline: Instant,
}

impl DiskUsage {
    /// Asks the kernel where it keeps count, and the walker elsewhere.
    pub(in super::super) fn new(quotas: ProjectQuotas, walker: Walker) -> DiskUsage {
        DiskUsage {
            quotas,
            walker,
            ..DiskUsage::default()
        }
    }

    /// From now on these are measured and no others.
    pub(in super::super) fn track(&mut self, wanted: &BTreeMap<PathBuf, Wanted>) {
        self.tracked
            .retain(|path, tracked| wanted.get(path) == Some(&tracked.wanted));
        for (path, wanted) in wanted {
            if !self.tracked.contains_key(path) {
                self.tracked.insert(path.clone(), Tracked::new(*wanted));
            }
        }
    }

    /// Asks the kernel where it keeps count, and visits no more than `budget` files: first those of
    /// a walk begun, then of directories whose figure is oldest. Where all figures are wanted, large
    /// trees wait for the others.
    pub(in super::super) fn advance(&mut self, now: Timestamp, mut budget: u64) {
        let step = Step {
            now,
            quotas: &self.quotas,
            walker: &self.walker,
            since: self.wanted_since,
            is_behind: self.is_behind(),
            deadline: Instant::now() + STEP_TIME,
        };
        let is_due = |tracked: &Tracked| tracked.due.is_none_or(|due| due <= now);
        let tracked = self.tracked.iter_mut();
        let mut due: Vec<(&PathBuf, &mut Tracked)> = tracked
            .filter(|(_, tracked)| tracked.walk.is_some() || is_due(tracked))
            .collect();
        // Equals stay in the order of their paths.
        due.sort_by_key(|(_, tracked)| {
            let waits = step.is_behind && tracked.is_large;
            (waits, tracked.walk.is_none(), tracked.due)
        });
        due.retain_mut(|(path, tracked)| tracked.is_to_be_walked(path, &step));
        for (path, tracked) in due {
            if budget == 0 {
                return;
            }
            tracked.advance(path, &step, &mut budget);
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

    /// Has all directories walked over, whatever that costs: a pod may be evicted for what is in
    /// them now. A walk under way is ended and then done again, so that it has an end at all.
    pub(in super::super) fn want_all(&mut self, now: Timestamp) {
        self.wanted_since = Some(now);
        for tracked in self.tracked.values_mut() {
            tracked.due = None;
        }
    }

    /// Whether there are directories to be walked over at once.
    pub(in super::super) fn is_behind(&self) -> bool {
        self.tracked.values().any(|tracked| tracked.due.is_none())
    }

    /// What is known of a directory.
    pub(in super::super) fn get(&self, path: &Path) -> Option<Measured> {
        self.tracked.get(path)?.last
    }
}

impl Tracked {
    fn new(wanted: Wanted) -> Tracked {
        Tracked {
            wanted,
            last: None,
            due: None,
            is_large: false,
            is_partial: false,
            walk: None,
            counting: Counting::Unknown,
        }
    }

    /// Takes the kernel's figure if there is one; returns whether a walk is still due.
    fn is_to_be_walked(&mut self, path: &Path, step: &Step<'_>) -> bool {
        let Some(usage) = self.ask(path, step) else {
            return true;
        };
        self.last = Some(Measured {
            usage,
            time: step.now,
        });
        self.due = Some(step.now.saturating_add(LIMITED_PERIOD));
        !step.is_behind && self.is_check_due(step.now)
    }

    /// Begins or continues a walk.
    fn advance(&mut self, path: &Path, step: &Step<'_>, budget: &mut u64) {
        let mut walk = match self.walk.take() {
            Some(walk) => walk,
            None => {
                if let (Counting::Kernel(counted), Some(last)) = (&mut self.counting, self.last) {
                    counted.begin_check(last.usage);
                }
                Walk {
                    walk: step.walker.begin(path, self.wanted.scope),
                    begun: step.now,
                }
            }
        };
        let progress = walk.walk.advance(budget, step.deadline);
        let entries = walk.walk.entries;
        let usage = match progress {
            Progress::Done(usage) => usage,
            Progress::Pending => {
                let is_counted = matches!(self.counting, Counting::Kernel(_));
                self.is_large = !is_counted && rest(entries) > LIMITED_PERIOD;
                self.walk = Some(walk);
                return;
            }
            Progress::Failed(_) => return self.finish(None, 1, step.now),
            Progress::Silent(error) => {
                tracing::warn!(
                    path = %path.display(), %error,
                    "failed to measure directory; keeping result of last walk"
                );
                self.due = Some(step.now.saturating_add(SILENT_PERIOD));
                return;
            }
        };
        let is_whole = walk.walk.is_whole;
        if self.is_confirmed(path, usage, is_whole, entries, step) {
            return;
        }
        self.note_whole(path, is_whole);
        // Skipped directories still use space.
        let usage = match self.last.filter(|_| !is_whole) {
            Some(last) => usage.most(last.usage),
            None => usage,
        };
        self.finish(Some(usage), entries, step.now);
        // A walk that began before shows an outdated state.
        if step.since.is_some_and(|since| walk.begun < since) {
            self.due = None;
        }
    }

    /// What the kernel counted.
    fn ask(&mut self, path: &Path, step: &Step<'_>) -> Option<Usage> {
        if matches!(self.counting, Counting::Unknown) {
            let is_tree = self.wanted.scope == Scope::Tree;
            let found = is_tree.then(|| Counted::find(step.quotas, path)).flatten();
            self.counting = found.map_or(Counting::Walks, Counting::Kernel);
        }
        match &mut self.counting {
            Counting::Kernel(counted) => counted.ask(step.quotas, path),
            Counting::Unknown | Counting::Walks => None,
        }
    }

    fn is_check_due(&self, now: Timestamp) -> bool {
        let due = match &self.counting {
            Counting::Kernel(counted) => counted.check_due,
            Counting::Unknown | Counting::Walks => None,
        };
        self.walk.is_some() || due.is_none_or(|due| due <= now)
    }

    /// Whether a walk has found what the kernel counts; if it counts something else it is not asked
    /// again.
    fn is_confirmed(
        &mut self,
        path: &Path,
        walked: Usage,
        is_whole: bool,
        entries: u64,
        step: &Step<'_>,
    ) -> bool {
        let (Some(_), Counting::Kernel(counted)) = (self.ask(path, step), &mut self.counting)
        else {
            return false;
        };
        // A walk that has left something out proves nothing.
        if counted.agrees_with(walked) || !is_whole {
            let pause = rest(entries).clamp(CHECK_PERIOD, LONGEST);
            counted.check_due = Some(step.now.saturating_add(pause));
            return true;
        }
        tracing::warn!(
            path = %path.display(), found = ?walked,
            "directory and project quota usage differ; switching to directory walks"
        );
        self.counting = Counting::Walks;
        false
    }

    fn note_whole(&mut self, path: &Path, is_whole: bool) {
        if !is_whole && !self.is_partial {
            tracing::warn!(
                path = %path.display(),
                "directory is too deep, has too many hard links or changes too fast: its use is a \
                 lower bound"
            );
        }
        self.is_partial = !is_whole;
    }

    fn finish(&mut self, usage: Option<Usage>, entries: u64, now: Timestamp) {
        self.last = usage.map(|usage| Measured { usage, time: now });
        let rest = rest(entries);
        let pause = rest.clamp(self.wanted.period(), LONGEST);
        self.is_large = rest > LIMITED_PERIOD;
        self.due = Some(now.saturating_add(pause));
    }
}

/// How long a tree of so many files is left alone.
fn rest(entries: u64) -> Duration {
    let entries = u32::try_from(entries).unwrap_or(u32::MAX);
    PER_ENTRY.saturating_mul(entries)
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
    fn limited_directories_are_measured_each_second_within_a_budget() {
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
    fn before_an_eviction_large_trees_are_walked_again_from_the_start() {
        let dir = tempfile::tempdir().unwrap();
        for index in 0..1200 {
            fs::write(dir.path().join(index.to_string()), "").unwrap();
        }
        let (at, mut disk) = (Timestamp::from_secs, DiskUsage::default());
        disk.track(&wanted(&[(dir.path(), TREE)]));
        disk.advance(at(0), 10_000);
        fs::write(dir.path().join("new"), "x").unwrap();
        disk.hurry();
        disk.advance(at(1), 10_000);
        assert_eq!(inodes(&disk, dir.path()), Some(1201), "it is large");
        disk.want_all(at(2));
        disk.advance(at(2), 1000);
        assert!(disk.is_behind());
        disk.advance(at(2), 1000);
        assert_eq!(inodes(&disk, dir.path()), Some(1202));
        assert!(!disk.is_behind());

        // A walk that was begun before is ended, and done again.
        disk.advance(at(20), 100);
        fs::write(dir.path().join("newer"), "x").unwrap();
        disk.want_all(at(21));
        disk.advance(at(21), 1200);
        assert!(disk.is_behind());
        disk.advance(at(21), 1500);
        disk.advance(at(21), 1500);
        assert_eq!(inodes(&disk, dir.path()), Some(1203));
        assert!(!disk.is_behind());
    }

    #[test]
    fn before_an_eviction_small_trees_do_not_wait_for_large_ones() {
        let dir = tempfile::tempdir().unwrap();
        let (large, small) = (dir.path().join("large"), dir.path().join("small"));
        fs::create_dir_all(&large).unwrap();
        fs::create_dir_all(&small).unwrap();
        for index in 0..3000 {
            fs::write(large.join(index.to_string()), "").unwrap();
        }
        let (at, mut disk) = (Timestamp::from_secs, DiskUsage::default());
        disk.track(&wanted(&[(&large, TREE), (&small, TREE)]));
        disk.advance(at(0), 2000);
        fs::write(small.join("new"), "x").unwrap();
        for second in 1..5 {
            // Each time there is time for a part of the large one only.
            disk.want_all(at(second));
            disk.advance(at(second), 1000);
            assert_eq!(inodes(&disk, &small), Some(2));
        }
        assert_eq!(inodes(&disk, &large), Some(3001), "its walk continues");
    }

    #[test]
    fn walk_continues_in_steps_within_the_budget() {
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
