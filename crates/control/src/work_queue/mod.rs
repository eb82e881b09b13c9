//! A queue of keys that wait for a worker.
//!
//! A key stands in the queue once, however often it is added; one that is added while a worker
//! has it comes again when the worker is done. So two workers never have the same key, and memory
//! is bounded by the number of objects. Failed keys come back after a time that doubles. Matches
//! v1.36 client-go/util/workqueue.

pub mod metrics;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::Display;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use metrics::{Meter, QueueState, Visible};

/// The wait after the first failure; it doubles with every further one.
const FIRST_RETRY: Duration = Duration::from_millis(5);
/// The longest wait after a failure.
const LONGEST_RETRY: Duration = Duration::from_secs(1000);
/// Failures in a row before a warning.
const WARN_AFTER_FAILURES: u32 = 5;

/// A queue of keys; see the module.
#[derive(Debug)]
pub struct WorkQueue<T> {
    name: &'static str,
    meter: Meter,
    state: Mutex<State<T>>,
    changed: Notify,
    longest_retry: Duration,
}

#[derive(Debug)]
struct State<T> {
    /// Keys to hand out, in order.
    ready: VecDeque<T>,
    /// Keys to process, and since when: those in `ready`, and those added while a worker has
    /// them.
    dirty: HashMap<T, Instant>,
    /// Keys that a worker has, and since when.
    taken: HashMap<T, Instant>,
    /// Keys to be added later, by time and by key; the two always agree.
    later: BTreeSet<(Instant, T)>,
    due: HashMap<T, Instant>,
    /// Failures in a row.
    failures: HashMap<T, u32>,
}

impl<T> Default for State<T> {
    fn default() -> Self {
        State {
            ready: VecDeque::new(),
            dirty: HashMap::new(),
            taken: HashMap::new(),
            later: BTreeSet::new(),
            due: HashMap::new(),
            failures: HashMap::new(),
        }
    }
}

impl<T: Clone + Ord + Hash> State<T> {
    /// Returns whether it was new.
    fn add(&mut self, key: T) -> bool {
        if self.dirty.contains_key(&key) {
            return false;
        }
        self.dirty.insert(key.clone(), Instant::now());
        if !self.taken.contains_key(&key) {
            self.ready.push_back(key);
        }
        true
    }

    /// The earlier of two times counts.
    fn add_at(&mut self, key: T, time: Instant) {
        if let Some(&known) = self.due.get(&key) {
            if known <= time {
                return;
            }
            self.later.remove(&(known, key.clone()));
        }
        self.due.insert(key.clone(), time);
        self.later.insert((time, key));
    }

    /// Returns how many of them were new.
    fn add_due(&mut self, now: Instant) -> u64 {
        let mut news = 0;
        while let Some((time, _)) = self.later.first()
            && *time <= now
        {
            let Some((_, key)) = self.later.pop_first() else {
                break;
            };
            self.due.remove(&key);
            news += u64::from(self.add(key));
        }
        news
    }
}

impl<T: Clone + Ord + Hash + Send + 'static> WorkQueue<T> {
    /// An empty queue, shared by those that add keys and the workers. Metrics call it by its name.
    pub fn new(name: &'static str) -> Arc<WorkQueue<T>> {
        WorkQueue::retrying_within(name, LONGEST_RETRY)
    }

    /// An empty queue whose failed keys wait no longer than that.
    pub fn retrying_within(name: &'static str, longest_retry: Duration) -> Arc<WorkQueue<T>> {
        let queue = Arc::new(WorkQueue {
            name,
            meter: Meter::of(name),
            state: Mutex::default(),
            changed: Notify::new(),
            longest_retry,
        });
        let visible: Arc<dyn Visible> = Arc::clone(&queue) as Arc<dyn Visible>;
        metrics::show(Arc::downgrade(&visible));
        queue
    }
}

impl<T: Clone + Ord + Hash> WorkQueue<T> {
    /// The lock is held for no longer than a few map operations, none of which panics, so what a
    /// poisoned lock protects is sound.
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a key.
    pub fn add(&self, key: T) {
        let is_news = self.state().add(key);
        self.meter.adds.inc_by(is_news.into());
        self.changed.notify_one();
    }

    /// Adds a key after some time; the earliest of several such times counts.
    pub fn add_after(&self, key: T, delay: Duration) {
        let now = Instant::now();
        match now.checked_add(delay) {
            Some(time) if time > now => self.state().add_at(key, time),
            Some(_) => return self.add(key),
            // A time beyond the range of the clock never comes.
            None => return,
        }
        self.changed.notify_one();
    }

    /// Adds a key that failed again, the later the more often it failed.
    pub fn add_failed(&self, key: T) {
        self.meter.retries.inc();
        let delay = {
            let mut state = self.state();
            let failures = state.failures.entry(key.clone()).or_default();
            let delay = retry_delay(*failures, self.longest_retry);
            *failures = failures.saturating_add(1);
            delay
        };
        self.add_after(key, delay);
    }

    /// Forgets the failures of a key.
    pub fn forget(&self, key: &T) {
        self.state().failures.remove(key);
    }

    /// How often a key has failed in a row.
    pub fn failures(&self, key: &T) -> u32 {
        self.state().failures.get(key).copied().unwrap_or_default()
    }

    /// How many keys wait for a worker, apart from those that come later.
    pub fn len(&self) -> usize {
        self.state().ready.len()
    }

    /// Whether no key waits for a worker.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next key; [`done`](Self::done) gives it back.
    pub async fn next(&self) -> T {
        loop {
            let changed = self.changed.notified();
            let wake_at = {
                let mut state = self.state();
                let now = Instant::now();
                self.meter.adds.inc_by(state.add_due(now));
                if let Some(key) = state.ready.pop_front() {
                    if let Some(since) = state.dirty.remove(&key) {
                        let waited = now.saturating_duration_since(since);
                        self.meter.waited.observe(waited.as_secs_f64());
                    }
                    state.taken.insert(key.clone(), now);
                    if !state.ready.is_empty() {
                        // One wake-up may stand for several keys.
                        self.changed.notify_one();
                    }
                    return key;
                }
                state.later.first().map(|(time, _)| *time)
            };
            match wake_at {
                Some(time) => tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep_until(time) => {}
                },
                None => changed.await,
            }
        }
    }

    /// Marks the key as done by the worker that took it.
    pub fn done(&self, key: &T) {
        let mut state = self.state();
        if let Some(since) = state.taken.remove(key) {
            self.meter.worked.observe(since.elapsed().as_secs_f64());
        }
        if state.dirty.contains_key(key) {
            state.ready.push_back(key.clone());
            self.changed.notify_one();
        }
    }
}

impl<T: Clone + Ord + Hash + Send> Visible for WorkQueue<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn state(&self) -> QueueState {
        let state = self.state();
        let with_workers = state.taken.values().map(Instant::elapsed);
        let mut state = QueueState {
            depth: state.ready.len(),
            ..QueueState::default()
        };
        for time in with_workers {
            state.unfinished += time;
            state.longest = state.longest.max(time);
        }
        state
    }
}

impl<T: Clone + Ord + Hash + Display + Send + Sync + 'static> WorkQueue<T> {
    /// Works on the queue without end, on `workers` keys at a time.
    ///
    /// `work` returns when to process the key again in any case. A failure is logged, and
    /// the key comes back after its back-off.
    pub async fn work<W, F, E>(self: Arc<Self>, workers: usize, work: W)
    where
        W: Fn(T) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Option<Duration>, E>> + Send,
        E: Display + Send,
    {
        let mut tasks = JoinSet::new();
        for _ in 0..workers {
            let (queue, work) = (Arc::clone(&self), work.clone());
            tasks.spawn(async move {
                loop {
                    queue.work_once(&work).await;
                }
            });
        }
        // A worker ends only by a panic, which must not be swallowed.
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
    }

    async fn work_once<W, F, E>(&self, work: &W)
    where
        W: Fn(T) -> F,
        F: Future<Output = Result<Option<Duration>, E>>,
        E: Display,
    {
        let key = self.next().await;
        match work(key.clone()).await {
            Ok(again) => {
                self.forget(&key);
                if let Some(delay) = again {
                    self.add_after(key.clone(), delay);
                }
            }
            Err(error) => {
                // Conflicts and the like are over at the next try; they are not worth a warning.
                match self.failures(&key) {
                    0..WARN_AFTER_FAILURES => {
                        tracing::debug!(%key, %error, "failed to sync, requeuing")
                    }
                    _ => tracing::warn!(%key, %error, "failed to sync, requeuing"),
                }
                self.add_failed(key.clone());
            }
        }
        self.done(&key);
    }
}

/// `5 ms * 2^failures`, at most `longest`.
fn retry_delay(failures: u32, longest: Duration) -> Duration {
    let doubled = 2_u32.checked_pow(failures);
    let delay = doubled.and_then(|factor| FIRST_RETRY.checked_mul(factor));
    delay.map_or(longest, |delay| delay.min(longest))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn key_is_queued_once() {
        let queue = WorkQueue::new("test");
        queue.add("a");
        queue.add("b");
        queue.add("a");
        assert_eq!(queue.len(), 2);
        assert_eq!(queue.next().await, "a");
        assert_eq!(queue.next().await, "b");
        assert!(queue.is_empty());
    }

    #[tokio::test]
    async fn key_added_during_work_is_requeued() {
        let queue = WorkQueue::new("test");
        queue.add("a");
        let key = queue.next().await;
        queue.add("a");
        assert!(queue.is_empty());
        queue.done(&key);
        assert_eq!(queue.next().await, "a");
        queue.done(&"a");
        assert!(queue.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_of_several_times_counts() {
        let queue = WorkQueue::new("test");
        let start = Instant::now();
        queue.add_after("a", Duration::from_secs(10));
        queue.add_after("a", Duration::from_secs(5));
        queue.add_after("a", Duration::from_secs(7));
        assert_eq!(queue.next().await, "a");
        assert_eq!(start.elapsed().as_secs(), 5);
        queue.done(&"a");
        queue.add_after("b", Duration::MAX);
        queue.add_after("c", Duration::from_secs(60));
        assert_eq!(queue.next().await, "c");
    }

    #[tokio::test(start_paused = true)]
    async fn failures_back_off_exponentially_until_reset() {
        let queue = WorkQueue::new("test");
        for expected in [5, 10, 20, 40] {
            let start = Instant::now();
            queue.add_failed("a");
            queue.next().await;
            // Tokio's timers are exact to the millisecond, rounded up.
            let waited = start.elapsed().as_millis();
            assert!((expected..=expected + 1).contains(&waited), "{waited}");
            queue.done(&"a");
        }
        assert_eq!(queue.failures(&"a"), 4);
        queue.forget(&"a");
        assert_eq!(queue.failures(&"a"), 0);
        let delay = |failures| retry_delay(failures, LONGEST_RETRY);
        assert_eq!(delay(17), Duration::from_millis(655_360));
        for failures in [18, 31, 32, u32::MAX] {
            assert_eq!(delay(failures), LONGEST_RETRY);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn workers_see_every_key_and_failed_ones_again() {
        let queue = WorkQueue::new("test");
        let calls = Arc::new(AtomicUsize::new(0));
        for key in 0..100 {
            queue.add(key);
        }
        let counted = Arc::clone(&calls);
        let work = Arc::clone(&queue).work(4, move |key: i32| {
            let first_time = counted.fetch_add(1, Ordering::Relaxed) < 100;
            async move {
                tokio::task::yield_now().await;
                match first_time && key % 2 == 0 {
                    true => Err("not yet"),
                    false => Ok(None),
                }
            }
        });
        let ended = tokio::time::timeout(Duration::from_secs(10), work).await;
        assert!(ended.is_err());
        assert_eq!(calls.load(Ordering::Relaxed), 150);
    }

    #[tokio::test(start_paused = true)]
    async fn queue_exports_metrics() {
        let queue = WorkQueue::new("counted");
        for key in ["a", "a", "b"] {
            queue.add(key);
        }
        tokio::time::advance(Duration::from_secs(3)).await;
        let key = queue.next().await;
        tokio::time::advance(Duration::from_secs(5)).await;
        queue.add_failed(key);
        let shown = |name: &str| {
            let text = metrics::text();
            let start = format!("workqueue_{name}{{name=\"counted\"}} ");
            let line = text.lines().find_map(|line| line.strip_prefix(&start));
            line.unwrap_or_else(|| panic!("{start}: {text}")).to_owned()
        };
        assert_eq!(shown("depth"), "1");
        assert_eq!(shown("adds_total"), "2");
        assert_eq!(shown("retries_total"), "1");
        assert_eq!(shown("queue_duration_seconds_sum"), "3.0");
        assert_eq!(shown("unfinished_work_seconds"), "5.0");
        assert_eq!(shown("longest_running_processor_seconds"), "5.0");
        queue.done(&key);
        assert_eq!(shown("work_duration_seconds_sum"), "5.0");
        assert_eq!(shown("unfinished_work_seconds"), "0.0");
    }
}
