//! The scheduling queue against a list that does everything the slow way.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_core::object::identity::NodeName;
use plimsoll_core::scheduling::queue::{
    Affected, Change, NodeFacts, Object, Plugin, PodFacts, QueueName, QueuedPod, Rejectors,
    SchedulingQueue, Settings, Time,
};
use plimsoll_core::testing::pod;
use proptest::prelude::*;

/// What the test does. Pods are numbers; `NodeName` waits for nodes, `NodeResourcesFit` for
/// deletions, and both keep waiting otherwise.
#[derive(Clone, Debug)]
enum Step {
    Add(u8),
    Delete(u8),
    Pop,
    /// Ends one of the attempts under way.
    Bind(prop::sample::Index),
    /// Ends one of the attempts under way.
    Fail(prop::sample::Index, Vec<Plugin>),
    NodeAdded,
    PodDeleted,
    Activate(u8),
    Hold(u8),
    Release(u8),
    Wait(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let pod = 0..6u8;
    let rejectors =
        prop::sample::subsequence(vec![Plugin::NodeName, Plugin::NodeResourcesFit], 0..3);
    prop_oneof![
        3 => pod.clone().prop_map(Step::Add),
        1 => pod.clone().prop_map(Step::Delete),
        5 => Just(Step::Pop),
        1 => any::<prop::sample::Index>().prop_map(Step::Bind),
        4 => (any::<prop::sample::Index>(), rejectors).prop_map(|(which, plugins)| Step::Fail(which, plugins)),
        1 => Just(Step::NodeAdded),
        1 => Just(Step::PodDeleted),
        1 => pod.clone().prop_map(Step::Activate),
        1 => pod.clone().prop_map(Step::Hold),
        1 => pod.prop_map(Step::Release),
        3 => (0..4000u32).prop_map(Step::Wait),
        1 => (0..400_000u32).prop_map(Step::Wait),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Active,
    Backoff,
    ErrorBackoff,
    Unschedulable,
    Gated,
    InFlight,
}

/// A pod of the model. Times are milliseconds.
#[derive(Clone, Debug)]
struct Entry {
    number: u8,
    place: Place,
    since: u64,
    arrival: u64,
    rejections: u32,
    errors: u32,
    expiry: u64,
    flushed_at: u64,
    rejectors: BTreeSet<Plugin>,
    /// Events during the attempt.
    seen: Vec<Event>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    NodeAdded,
    PodDeleted,
    Timeout,
    Activated,
}

#[derive(Default)]
struct Model {
    entries: Vec<Entry>,
    held: BTreeSet<u8>,
    arrivals: u64,
    next_check: u64,
    now: u64,
}

fn priority(number: u8) -> i32 {
    i32::from(number % 3)
}

impl Model {
    fn position(&self, number: u8) -> Option<usize> {
        self.entries.iter().position(|entry| entry.number == number)
    }

    fn arrive(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }

    /// Where a pod goes that is to be tried.
    fn place(&mut self, index: usize, may_back_off: bool) {
        let held = self.held.contains(&self.entries[index].number);
        let now = self.now;
        let entry = &mut self.entries[index];
        let backs_off = may_back_off && entry.expiry != 0 && entry.expiry >= now / 1000 * 1000;
        entry.place = if held {
            entry.rejectors.insert(Plugin::DefaultPreemption);
            Place::Gated
        } else if !backs_off {
            Place::Active
        } else if entry.rejectors.is_empty() {
            Place::ErrorBackoff
        } else {
            Place::Backoff
        };
    }

    fn is_woken_by(entry: &Entry, event: Event) -> bool {
        match event {
            Event::Timeout | Event::Activated => true,
            Event::NodeAdded => entry.rejectors.contains(&Plugin::NodeName),
            Event::PodDeleted => entry.rejectors.contains(&Plugin::NodeResourcesFit),
        }
    }

    fn happen(&mut self, event: Event) {
        for index in 0..self.entries.len() {
            let entry = &mut self.entries[index];
            let looks = match entry.place {
                Place::Unschedulable => true,
                // Only deletions can end a preemption.
                Place::Gated => event == Event::PodDeleted,
                _ => false,
            };
            if entry.place == Place::InFlight {
                entry.seen.push(event);
            } else if looks && Self::is_woken_by(entry, event) {
                self.place(index, true);
            }
        }
    }

    fn add(&mut self, number: u8) {
        let arrival = self.arrive();
        self.entries.push(Entry {
            number,
            place: Place::Active,
            since: self.now,
            arrival,
            rejections: 0,
            errors: 0,
            expiry: 0,
            flushed_at: 0,
            rejectors: BTreeSet::new(),
            seen: Vec::new(),
        });
        self.place(self.entries.len() - 1, false);
    }

    fn pop(&mut self) -> Option<u8> {
        let best = |place: Place| {
            let candidates = self.entries.iter().enumerate();
            let candidates = candidates.filter(|(_, entry)| entry.place == place);
            let key = |entry: &Entry| {
                let window = if place == Place::Backoff {
                    entry.expiry
                } else {
                    0
                };
                (window, -priority(entry.number), entry.since, entry.arrival)
            };
            candidates
                .min_by_key(|(_, entry)| key(entry))
                .map(|(index, _)| index)
        };
        let index = best(Place::Active).or_else(|| best(Place::Backoff))?;
        self.entries[index].place = Place::InFlight;
        self.entries[index].seen.clear();
        Some(self.entries[index].number)
    }

    fn fail(&mut self, number: u8, rejectors: &[Plugin]) {
        let arrival = self.arrive();
        let index = self.position(number).expect("it is in flight");
        let now = self.now;
        let entry = &mut self.entries[index];
        entry.rejectors = rejectors.iter().copied().collect();
        if rejectors.is_empty() {
            entry.errors += 1;
        } else {
            entry.errors = 0;
            entry.rejections += 1;
        }
        let failures = if entry.errors > 0 {
            entry.errors
        } else {
            entry.rejections
        };
        let wait = [0, 1, 2, 4, 8]
            .get(failures as usize)
            .copied()
            .unwrap_or(10);
        (entry.since, entry.arrival) = (now, arrival);
        entry.flushed_at = 0;
        entry.expiry = (now + 1000 * wait) / 1000 * 1000;
        let retry = rejectors.is_empty() || entry.seen.iter().any(|e| Self::is_woken_by(entry, *e));
        entry.place = Place::Unschedulable;
        if retry {
            self.place(index, true);
        }
    }

    fn wait(&mut self, millis: u64) {
        self.now += millis;
        for entry in &mut self.entries {
            let backs_off = matches!(entry.place, Place::Backoff | Place::ErrorBackoff);
            if backs_off && entry.expiry < self.now / 1000 * 1000 {
                entry.place = Place::Active;
            }
        }
        if self.now < self.next_check {
            return;
        }
        let check = self.now / 30_000 * 30_000;
        self.next_check = check + 30_000;
        let mut any = false;
        for index in 0..self.entries.len() {
            let entry = &mut self.entries[index];
            let waits = matches!(entry.place, Place::Unschedulable | Place::Gated);
            if waits && check.saturating_sub(entry.since.max(entry.flushed_at)) > 300_000 {
                entry.flushed_at = check;
                any = true;
                self.place(index, true);
            }
        }
        if any {
            for entry in &mut self.entries {
                if entry.place == Place::InFlight {
                    entry.seen.push(Event::Timeout);
                }
            }
        }
    }

    fn sizes(&self) -> [usize; 5] {
        let count = |places: &[Place]| {
            let entries = self.entries.iter();
            entries
                .filter(|entry| places.contains(&entry.place))
                .count()
        };
        [
            count(&[Place::Active]),
            count(&[Place::Backoff, Place::ErrorBackoff]),
            count(&[Place::Unschedulable]),
            count(&[Place::Gated]),
            count(&[Place::InFlight]),
        ]
    }
}

fn facts(number: u8) -> Arc<PodFacts> {
    let pod = pod(&number.to_string()).priority(priority(number)).build();
    Arc::new(PodFacts::from_api(&pod).expect("the pod is well formed"))
}

/// The queue and the model, driven alike.
struct Pair {
    queue: SchedulingQueue,
    model: Model,
    in_flight: Vec<QueuedPod>,
}

impl Pair {
    fn now(&self) -> Time {
        Time::from_millis(self.model.now)
    }

    fn take(&mut self, step: Step) {
        let now = self.now();
        match step {
            Step::Add(number) => {
                if self.model.position(number).is_none() {
                    self.model.add(number);
                    self.queue.add(facts(number), now);
                }
            }
            Step::Delete(number) => {
                // The owner ends attempts at deleted pods before it lets them be added again.
                self.model.entries.retain(|entry| entry.number != number);
                self.queue.delete(&facts(number));
                self.queue.done(&facts(number).uid);
                let uid = facts(number).uid.clone();
                self.in_flight.retain(|queued| queued.pod.uid != uid);
            }
            Step::Pop => {
                let popped = self.queue.pop();
                let name = popped
                    .as_ref()
                    .map(|popped| popped.pod.pod_ref.name.clone());
                assert_eq!(name, self.model.pop().map(|number| number.to_string()));
                self.in_flight.extend(popped);
            }
            Step::Bind(which) => {
                if let Some((number, queued)) = self.end_attempt(which) {
                    self.queue.done(&queued.pod.uid);
                    self.model.entries.retain(|entry| entry.number != number);
                }
            }
            Step::Fail(which, plugins) => {
                if let Some((number, queued)) = self.end_attempt(which) {
                    let rejectors = Rejectors::unschedulable(plugins.iter().copied());
                    let added = self.queue.add_unschedulable(queued, rejectors, now);
                    added.expect("the pod was in flight");
                    self.model.fail(number, &plugins);
                }
            }
            Step::NodeAdded => {
                let node = Object::Node(Change::Added(Arc::new(NodeFacts::default())));
                self.queue.on_change(&node, Affected::All, now);
                self.model.happen(Event::NodeAdded);
            }
            Step::PodDeleted => {
                let mut gone = PodFacts::clone(&facts(9));
                Arc::make_mut(&mut gone.view).node_name = Some(NodeName::from("n"));
                let object = Object::Pod(Change::Deleted(Arc::new(gone)));
                self.queue.on_change(&object, Affected::All, now);
                self.model.happen(Event::PodDeleted);
            }
            Step::Activate(number) => self.activate(number, now),
            Step::Hold(number) => {
                self.queue
                    .hold(&facts(number).uid, Plugin::DefaultPreemption);
                self.model.held.insert(number);
            }
            Step::Release(number) => {
                self.queue
                    .release(&facts(number).uid, Plugin::DefaultPreemption);
                self.model.held.remove(&number);
            }
            Step::Wait(millis) => {
                self.model.wait(u64::from(millis));
                self.queue.flush(self.now());
            }
        }
    }

    fn activate(&mut self, number: u8, now: Time) {
        self.queue.activate(&facts(number), now);
        let Some(index) = self.model.position(number) else {
            return;
        };
        match self.model.entries[index].place {
            Place::InFlight => self.model.entries[index].seen.push(Event::Activated),
            Place::Unschedulable | Place::Gated => self.model.place(index, false),
            Place::Active | Place::Backoff | Place::ErrorBackoff => {
                self.model.entries[index].place = Place::Active;
            }
        }
    }

    fn end_attempt(&mut self, which: prop::sample::Index) -> Option<(u8, QueuedPod)> {
        if self.in_flight.is_empty() {
            return None;
        }
        let queued = self.in_flight.remove(which.index(self.in_flight.len()));
        let number = queued.pod.pod_ref.name.parse();
        Some((number.expect("pods are named by numbers"), queued))
    }

    /// Every pod is exactly where the model has it.
    fn check(&self) {
        let sizes = self.queue.sizes();
        let sizes = [
            sizes.active,
            sizes.backoff,
            sizes.unschedulable,
            sizes.gated,
            sizes.in_flight,
        ];
        assert_eq!(sizes, self.model.sizes());
        let mut names = BTreeSet::new();
        for (place, queued) in self.queue.pending() {
            let name = &queued.pod.pod_ref.name;
            assert!(names.insert(name.clone()), "{name} is in two places");
            let number = name.parse().expect("pods are named by numbers");
            let index = self.model.position(number).expect("the model has it");
            let expected = match self.model.entries[index].place {
                Place::Active => QueueName::Active,
                Place::Backoff | Place::ErrorBackoff => QueueName::Backoff,
                Place::Unschedulable | Place::Gated => QueueName::Unschedulable,
                Place::InFlight => panic!("{name} waits while it is tried"),
            };
            assert_eq!(place, expected, "{name}");
        }
    }
}

proptest! {
    #[test]
    fn queue_behaves_like_plain_list(steps in prop::collection::vec(step(), 0..120)) {
        let start = Time::default();
        let mut pair = Pair {
            queue: SchedulingQueue::new(Settings::default(), start),
            model: Model::default(),
            in_flight: Vec::new(),
        };
        for step in steps {
            pair.take(step);
            pair.check();
        }
    }

    #[test]
    fn flushing_before_the_deadline_does_nothing(
        steps in prop::collection::vec(step(), 0..60),
        early in 0..1000u64,
    ) {
        let start = Time::default();
        let mut pair = Pair {
            queue: SchedulingQueue::new(Settings::default(), start),
            model: Model::default(),
            in_flight: Vec::new(),
        };
        for step in steps {
            pair.take(step);
        }
        let now = pair.now();
        pair.queue.flush(now);
        let before = pair.queue.sizes();
        let Some(deadline) = pair.queue.next_deadline() else {
            pair.queue.flush(Time::from_nanos(now.as_nanos() + 3_600_000_000_000));
            prop_assert_eq!(pair.queue.sizes(), before);
            return Ok(());
        };
        prop_assert!(deadline > now);
        let early = deadline.as_nanos() - 1 - early.min(deadline.as_nanos() - now.as_nanos() - 1);
        pair.queue.flush(Time::from_nanos(early));
        prop_assert_eq!(pair.queue.sizes(), before);
    }

    /// However it is woken, a pod that failed by an error is not popped before its backoff ends,
    /// unless it is activated explicitly.
    #[test]
    fn backoff_after_errors_is_never_shortened(
        errors in 1..8u32,
        start in 0..5000u64,
        events in prop::collection::vec(prop::bool::ANY, 0..5),
    ) {
        let mut pair = Pair {
            queue: SchedulingQueue::new(Settings::default(), Time::default()),
            model: Model { now: start, ..Model::default() },
            in_flight: Vec::new(),
        };
        pair.take(Step::Add(0));
        for failed in 1..=errors {
            let popped = pair.queue.pop();
            let popped = popped.expect("its backoff is over");
            let failed_at = pair.now();
            let added = pair.queue.add_unschedulable(popped, Rejectors::default(), failed_at);
            added.expect("the pod was in flight");
            for is_node in &events {
                let step = if *is_node { Step::NodeAdded } else { Step::PodDeleted };
                pair.take(step);
            }
            let end = pair.queue.next_deadline().expect("it backs off");
            let waited = end.saturating_since(failed_at).as_millis();
            let wait = 1000 * [0, 1, 2, 4, 8].get(failed as usize).copied().unwrap_or(10);
            prop_assert!((wait..=wait + 1000).contains(&waited), "{waited} ms instead of {wait}");
            pair.queue.flush(Time::from_nanos(end.as_nanos() - 1));
            prop_assert!(pair.queue.pop().is_none());
            pair.queue.flush(end);
            pair.model.now = end.as_nanos() / 1_000_000;
        }
    }
}
