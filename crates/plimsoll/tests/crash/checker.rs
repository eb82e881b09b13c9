//! Judges a [`History`]: was anything that was acknowledged lost, did anything happen twice, did a
//! watch leave out an event, was a read older than what its reader could know?

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::history::{Change, Content, History, Outcome, Revision, Time, Watch, Write};

/// What was checked, for the summary of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) acknowledged: usize,
    pub(crate) unknown: usize,
    pub(crate) reads: usize,
    /// Revisions of which any client learned.
    pub(crate) revisions: usize,
    /// How often a watcher had to list again.
    pub(crate) relists: usize,
    /// One sentence each; none if all is well.
    pub(crate) violations: Vec<String>,
}

/// Checks everything there is to check.
pub(crate) fn check(history: &History) -> Verdict {
    let mut violations = Vec::new();
    let checker = Checker::new(history, &mut violations);
    for check in [
        Checker::watches_are_whole,
        Checker::lists_show_their_revision,
        Checker::changes_are_of_writes,
        Checker::acknowledged_deletes_happened,
        Checker::revisions_follow_time,
        Checker::reads_are_recent,
    ] {
        check(&checker, &mut violations);
    }
    let count = |is: fn(Outcome) -> bool| history.writes.iter().filter(|w| is(w.outcome)).count();
    Verdict {
        acknowledged: count(|outcome| matches!(outcome, Outcome::Acknowledged(_))),
        unknown: count(|outcome| outcome == Outcome::Unknown),
        reads: history.reads.len(),
        revisions: checker.happened.len(),
        relists: history
            .watchers
            .iter()
            .map(|watches| watches.len() - 1)
            .sum(),
        violations,
    }
}

/// A change of an object: what it holds afterwards, or nothing if it was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Happened<'a> {
    object: &'a str,
    content: Option<Content>,
}

struct Checker<'a> {
    history: &'a History,
    /// All that any client learned.
    happened: BTreeMap<Revision, Happened<'a>>,
    /// The same for each object, in order.
    of_object: BTreeMap<&'a str, Vec<(Revision, Option<Content>)>>,
    written: BTreeMap<Content, &'a Write>,
    /// Deletes that may have happened: object and revision demanded.
    deletes: BTreeSet<(&'a str, Revision)>,
}

impl<'a> Checker<'a> {
    fn new(history: &'a History, violations: &mut Vec<String>) -> Self {
        let mut happened = BTreeMap::new();
        let mut learn = |revision: Revision, object: &'a str, content: Option<Content>| {
            let change = Happened { object, content };
            let known = *happened.entry(revision).or_insert(change);
            if known != change {
                violations.push(format!(
                    "revision {revision} is of {known:?} and of {change:?}"
                ));
            }
        };
        let mut written = BTreeMap::new();
        let mut deletes = BTreeSet::new();
        for write in &history.writes {
            match (write.change, write.base) {
                (Change::Create(content) | Change::Update(content), _) => {
                    written.insert(content, write);
                    if let Outcome::Acknowledged(Some(revision)) = write.outcome {
                        learn(revision, &write.object, Some(content));
                    }
                }
                (Change::Delete, Some(base)) if write.outcome != Outcome::Refused => {
                    deletes.insert((write.object.as_str(), base));
                }
                (Change::Delete, _) => {}
            }
        }
        for read in &history.reads {
            if let Some((revision, content)) = read.found {
                learn(revision, &read.object, Some(content));
            }
        }
        for watch in history.watchers.iter().flatten() {
            for (object, (revision, content)) in &watch.listed {
                learn(*revision, object, Some(*content));
            }
            for event in &watch.events {
                learn(event.revision, &event.object, event.content);
            }
        }
        let mut of_object: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for (revision, change) in &happened {
            let changes = of_object.entry(change.object).or_default();
            changes.push((*revision, change.content));
        }
        Self {
            history,
            happened,
            of_object,
            written,
            deletes,
        }
    }

    fn changes_of(&self, object: &str) -> &[(Revision, Option<Content>)] {
        self.of_object.get(object).map_or(&[], Vec::as_slice)
    }

    /// What happened to an object next.
    fn next_after(&self, object: &str, base: Revision) -> Option<(Revision, Option<Content>)> {
        let changes = self.changes_of(object);
        let next = changes.partition_point(|(revision, _)| *revision <= base);
        changes.get(next).copied()
    }

    /// From its list to its last event a watch has every revision that any client knows of.
    fn watches_are_whole(&self, violations: &mut Vec<String>) {
        for (watcher, watches) in self.history.watchers.iter().enumerate() {
            let mut last = 0;
            for watch in watches {
                last = self.check_watch(watcher, watch, violations);
            }
            if let Some((revision, change)) = self.happened.range(last + 1..).next() {
                violations.push(format!(
                    "watcher {watcher} ends before {revision}: {change:?}"
                ));
            }
        }
    }

    /// The last revision that it has.
    fn check_watch(&self, watcher: usize, watch: &Watch, violations: &mut Vec<String>) -> Revision {
        let mut before = watch.from;
        for event in &watch.events {
            if event.revision <= before {
                violations.push(format!("watcher {watcher} sees {event:?} after {before}"));
                continue;
            }
            let skipped = (Bound::Excluded(before), Bound::Excluded(event.revision));
            if let Some((revision, change)) = self.happened.range(skipped).next() {
                violations.push(format!(
                    "watcher {watcher} does not see {revision}: {change:?}"
                ));
            }
            before = event.revision;
        }
        before
    }

    /// A list shows each object as it was at the list's revision. The one at the end is of the end.
    fn lists_show_their_revision(&self, violations: &mut Vec<String>) {
        let watches = self.history.watchers.iter().flatten();
        let lists = watches.map(|watch| (watch.from, &watch.listed));
        for (at, listed) in lists.chain([(Revision::MAX, &self.history.objects)]) {
            for (object, changes) in &self.of_object {
                let until = changes.partition_point(|(revision, _)| *revision <= at);
                let last = until.checked_sub(1).map(|last| changes[last]);
                let standing = last.and_then(|(revision, content)| Some((revision, content?)));
                let shown = listed.get(*object).copied();
                // The answer to a delete does not have its revision.
                let may_be_deleted = standing
                    .is_some_and(|(revision, _)| self.deletes.contains(&(*object, revision)));
                if shown != standing && !(shown.is_none() && may_be_deleted) {
                    violations.push(format!(
                        "the list of revision {at} shows {object} as {shown:?}, which is {standing:?}"
                    ));
                }
            }
        }
    }

    /// Each change is that of one write, on top of the state which the write demanded.
    fn changes_are_of_writes(&self, violations: &mut Vec<String>) {
        let mut seen = BTreeSet::new();
        let mut stands: BTreeMap<&str, Revision> = BTreeMap::new();
        for (revision, change) in &self.happened {
            let object = change.object;
            let base = match change.content {
                Some(_) => stands.insert(object, *revision),
                None => stands.remove(object),
            };
            let Some(content) = change.content else {
                if !base.is_some_and(|base| self.deletes.contains(&(object, base))) {
                    violations.push(format!("{revision}: no write requested {change:?}"));
                }
                continue;
            };
            if !seen.insert(content) {
                violations.push(format!("{revision}: {change:?} happened twice"));
            }
            let Some(write) = self.written.get(&content) else {
                violations.push(format!("{revision}: no write requested {change:?}"));
                continue;
            };
            // A delete that no watch saw.
            let is_unseen_delete = write.base.is_none()
                && base.is_some_and(|base| self.deletes.contains(&(object, base)));
            if write.object != object {
                violations.push(format!(
                    "{revision}: {change:?} is of another object: {write:?}"
                ));
            } else if write.outcome == Outcome::Refused {
                violations.push(format!("{revision}: happened though refused: {write:?}"));
            } else if write.base != base && !is_unseen_delete {
                violations.push(format!("{revision}: on top of {base:?}: {write:?}"));
            }
        }
    }

    /// Other acknowledged writes have a revision, which is looked for in lists and watches.
    fn acknowledged_deletes_happened(&self, violations: &mut Vec<String>) {
        for write in &self.history.writes {
            let (Outcome::Acknowledged(_), Change::Delete, Some(base)) =
                (write.outcome, write.change, write.base)
            else {
                continue;
            };
            let is_gone = match self.next_after(&write.object, base) {
                Some((_, None)) => true,
                Some((_, Some(content))) => {
                    let next = self.written.get(&content);
                    next.is_some_and(|write| matches!(write.change, Change::Create(_)))
                }
                None => !self.history.objects.contains_key(&write.object),
            };
            if !is_gone {
                violations.push(format!("lost though it was acknowledged: {write:?}"));
            }
        }
    }

    /// The revision of an acknowledged write, as far as anything knows it.
    fn revision_of(&self, write: &Write) -> Option<Revision> {
        match (write.change, write.base, write.outcome) {
            (_, _, Outcome::Acknowledged(Some(revision))) => Some(revision),
            (Change::Delete, Some(base), Outcome::Acknowledged(None)) => {
                let (revision, content) = self.next_after(&write.object, base)?;
                content.is_none().then_some(revision)
            }
            _ => None,
        }
    }

    /// A write requested after an acknowledgement has a greater revision than the acknowledged one.
    fn revisions_follow_time(&self, violations: &mut Vec<String>) {
        let known = self.history.writes.iter();
        let known = known.filter_map(|write| Some((write, self.revision_of(write)?)));
        let mut started: Vec<(&Write, Revision)> = known.collect();
        let ended = started
            .iter()
            .map(|(write, revision)| (write.ended, *revision));
        let mut ended: Vec<(Time, Revision)> = ended.collect();
        started.sort_by_key(|(write, _)| write.started);
        ended.sort_unstable();
        let (mut next, mut greatest) = (0, 0);
        for (write, revision) in started {
            while let Some((ended, earlier)) = ended.get(next)
                && *ended < write.started
            {
                greatest = greatest.max(*earlier);
                next += 1;
            }
            if revision <= greatest {
                violations.push(format!(
                    "revision {revision} is not above {greatest}, acknowledged before: {write:?}"
                ));
            }
        }
    }

    /// A read shows the last acknowledged write of before it began, or a later one.
    fn reads_are_recent(&self, violations: &mut Vec<String>) {
        let mut acknowledged: BTreeMap<&str, Vec<(Time, Revision)>> = BTreeMap::new();
        for write in &self.history.writes {
            if let Some(revision) = self.revision_of(write) {
                let of_object = acknowledged.entry(&write.object).or_default();
                of_object.push((write.ended, revision));
            }
        }
        // One writer writes an object, one write after the other.
        for of_object in acknowledged.values_mut() {
            of_object.sort_unstable();
        }
        for read in &self.history.reads {
            let known = acknowledged
                .get(read.object.as_str())
                .and_then(|of_object| {
                    let before = of_object.partition_point(|(ended, _)| *ended < read.started);
                    Some(of_object[before.checked_sub(1)?].1)
                });
            let is_recent = match (read.found, known) {
                (_, None) => true,
                (Some((revision, _)), Some(known)) => revision >= known,
                (None, Some(known)) => {
                    let changes = self.changes_of(&read.object);
                    let since = changes.partition_point(|(revision, _)| *revision < known);
                    changes[since..].iter().any(|(revision, content)| {
                        content.is_none() || self.deletes.contains(&(&read.object, *revision))
                    })
                }
            };
            if !is_recent {
                violations.push(format!("older than revision {known:?}: {read:?}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::{Event, Read};
    use super::*;

    const fn at(milliseconds: u64) -> Time {
        Time::from_millis(milliseconds)
    }

    fn write(time: u64, change: Change, base: Option<Revision>, outcome: Outcome) -> Write {
        Write {
            object: "a".to_owned(),
            change,
            base,
            started: at(time),
            ended: at(time + 5),
            outcome,
        }
    }

    fn event(revision: Revision, content: Option<u64>) -> Event {
        Event {
            revision,
            object: "a".to_owned(),
            content,
        }
    }

    fn read(time: u64, found: Option<(Revision, Content)>) -> Read {
        Read {
            object: "a".to_owned(),
            started: at(time),
            found,
        }
    }

    /// Create, update, a delete without an answer that happened, and another create. The second watcher
    /// has to list again after the update.
    fn sound() -> History {
        use Outcome::{Acknowledged, Refused, Unknown};
        let all = [
            event(2, Some(1)),
            event(3, Some(2)),
            event(5, None),
            event(8, Some(4)),
        ];
        let watch = |from, events: &[Event]| Watch {
            from,
            listed: BTreeMap::new(),
            events: events.to_vec(),
        };
        History {
            writes: vec![
                write(0, Change::Create(1), None, Acknowledged(Some(2))),
                write(10, Change::Update(2), Some(2), Acknowledged(Some(3))),
                write(20, Change::Delete, Some(3), Unknown),
                write(30, Change::Update(3), Some(3), Refused),
                write(40, Change::Create(4), None, Acknowledged(Some(8))),
            ],
            reads: vec![read(35, None), read(18, Some((3, 2)))],
            watchers: vec![
                vec![watch(1, &all)],
                vec![watch(1, &all[..2]), watch(6, &all[3..])],
            ],
            objects: BTreeMap::from([("a".to_owned(), (8, 4))]),
        }
    }

    #[track_caller]
    fn assert_found(expected: &str, change: impl FnOnce(&mut History)) {
        let mut history = sound();
        change(&mut history);
        let found = check(&history).violations.join("; ");
        assert!(found.contains(expected), "{found:?}");
    }

    #[test]
    fn consistent_history_passes() {
        let expected = Verdict {
            acknowledged: 3,
            unknown: 1,
            reads: 2,
            revisions: 4,
            relists: 1,
            violations: Vec::new(),
        };
        assert_eq!(check(&sound()), expected);
    }

    #[test]
    fn lost_write_is_detected() {
        assert_found("watcher 0 ends before 8", |history| {
            history.watchers[0][0].events.pop();
            history.watchers[1][1].events.pop();
            history.objects.clear();
        });
        assert_found("shows a as None, which is Some((8, 4))", |history| {
            history.objects.clear();
        });
    }

    #[test]
    fn lost_delete_is_detected() {
        assert_found("lost though it was acknowledged", |history| {
            history.writes[2].outcome = Outcome::Acknowledged(None);
            history.writes.truncate(4);
            history.reads.clear();
            history.watchers.truncate(1);
            history.watchers[0][0].events.truncate(2);
            history.objects = BTreeMap::from([("a".to_owned(), (3, 2))]);
        });
    }

    #[test]
    fn gap_in_watch_is_detected() {
        assert_found("watcher 0 does not see 3", |history| {
            history.watchers[0][0].events.remove(1);
        });
        assert_found("watcher 1 ends before 8", |history| {
            history.watchers[1][1].events.clear();
        });
        assert_found("watcher 0 sees", |history| {
            history.watchers[0][0].events.swap(0, 1);
        });
    }

    #[test]
    fn stale_list_is_detected() {
        assert_found(
            "the list of revision 6 shows a as Some((2, 1))",
            |history| {
                let listed = &mut history.watchers[1][1].listed;
                listed.insert("a".to_owned(), (2, 1));
            },
        );
    }

    #[test]
    fn duplicate_write_is_detected() {
        assert_found("happened twice", |history| {
            history.watchers[0][0].events.push(event(9, Some(4)));
        });
    }

    #[test]
    fn duplicate_revision_is_detected() {
        assert_found("revision 3 is of", |history| {
            history.watchers[1][0].events[1].content = Some(1);
        });
    }

    #[test]
    fn applied_write_after_refusal_is_detected() {
        assert_found("happened though refused", |history| {
            history.writes[1].outcome = Outcome::Refused;
        });
    }

    #[test]
    fn write_on_wrong_base_is_detected() {
        assert_found("3: on top of Some(2)", |history| {
            history.writes[1].base = Some(1)
        });
    }

    #[test]
    fn stale_read_is_detected() {
        assert_found("older than revision Some(3)", |history| {
            history.reads.push(read(36, Some((2, 1))));
        });
        assert_found("older than revision Some(8)", |history| {
            history.reads.push(read(50, None));
        });
    }

    #[test]
    fn decreasing_revisions_are_found() {
        assert_found("is not above 3", |history| {
            history.writes[4].outcome = Outcome::Acknowledged(Some(1));
        });
    }
}
