//! Long-lived tasks: each has an owner that starts it again when it ends.
//!
//! A task that panics or returns is started again after a back-off, until all are to stop. One that
//! its process cannot do without is a problem meanwhile, and until it has run for a while again: a
//! task that dies of the same object each time it starts is not alive.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::restarts;

/// The first pause before a task is started again. It doubles with each end.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause. It is short of the 40 s after which a node that is silent loses its pods.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long a task may take to stop: far more than any does that looks whether it is to.
const GRACE: Duration = Duration::from_secs(20);
/// A task that has run for so long since it was started again is well.
pub const STEADY: Duration = Duration::from_secs(10);

/// Whether a process can do without a task for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// The process is not ready without it.
    Vital,
    /// The process continues.
    Minor,
}

/// Owns tasks. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub struct Supervisor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Rung when the list of problems changes.
    changed: Arc<Notify>,
    table: Mutex<BTreeMap<&'static str, State>>,
}

#[derive(Debug)]
struct State {
    weight: Weight,
    /// Of the one that runs, to end it.
    running: Option<AbortHandle>,
    /// Why it ended the last time, and when it was started again since.
    ended: Option<(String, Option<Instant>)>,
    restarts: u32,
}

impl State {
    /// Why it is not well.
    fn problem(&self) -> Option<&str> {
        let (reason, restarted) = self.ended.as_ref()?;
        let is_well = restarted.is_some_and(|at| at.elapsed() >= STEADY);
        (!is_well).then_some(reason.as_str())
    }
}

/// A task that failed a moment ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its name.
    pub task: &'static str,
    /// Why it ended.
    pub reason: String,
}

impl Supervisor {
    /// Owns nothing yet. `changed` is rung when the problems are others.
    pub fn new(stop: CancellationToken, changed: Arc<Notify>) -> Supervisor {
        Supervisor(Arc::new(Inner {
            tasks: TaskTracker::new(),
            stop,
            changed,
            table: Mutex::default(),
        }))
    }

    /// Runs a task that never ends by itself, until all are to stop. `make` is called each time it
    /// is started; an error that it returns is the reason why it has ended.
    pub fn keep<Task>(
        &self,
        name: &'static str,
        weight: Weight,
        mut make: impl FnMut() -> Task + Send + 'static,
    ) where
        Task: Future<Output = Result<(), String>> + Send + 'static,
    {
        let returned = |()| Err("it returned".to_owned());
        self.own(name, weight, move || {
            make().map(move |ended| ended.and_then(returned))
        });
    }

    /// Runs a task that may have nothing left to do: it is started again only if it fails.
    pub fn complete<Task>(
        &self,
        name: &'static str,
        weight: Weight,
        make: impl FnMut() -> Task + Send + 'static,
    ) where
        Task: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.own(name, weight, make);
    }

    /// Cancelled when all tasks are to stop.
    pub fn stopping(&self) -> &CancellationToken {
        &self.0.stop
    }

    /// Vital tasks that are not well.
    pub fn problems(&self) -> Vec<Problem> {
        let table = self.0.table();
        let vital = table
            .iter()
            .filter(|(_, state)| state.weight == Weight::Vital);
        let problems = vital.filter_map(|(task, state)| {
            let reason = state.problem()?.to_owned();
            Some(Problem { task, reason })
        });
        problems.collect()
    }

    /// Each task's name, and whether it is well.
    pub fn checks(&self) -> Vec<(&'static str, bool)> {
        let table = self.0.table();
        let checks = table.iter();
        checks
            .map(|(name, state)| (*name, state.problem().is_none()))
            .collect()
    }

    /// Ends a task as if it had failed, to see it start again; false if it does not run.
    pub fn end(&self, name: &str) -> bool {
        let table = self.0.table();
        let running = table.get(name).and_then(|state| state.running.as_ref());
        let running = running.filter(|task| !task.is_finished());
        running.inspect(|task| task.abort()).is_some()
    }

    /// The names of the tasks that run.
    pub fn names(&self) -> Vec<&'static str> {
        let table = self.0.table();
        let running = table.iter().filter(|(_, state)| {
            let running = state.running.as_ref();
            running.is_some_and(|task| !task.is_finished())
        });
        running.map(|(name, _)| *name).collect()
    }

    /// How often a task was started again.
    pub fn restarts(&self, name: &str) -> u32 {
        self.0.table().get(name).map_or(0, |state| state.restarts)
    }

    /// Waits for all tasks to end, which they do when they are to stop.
    pub async fn wait(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    fn own<Task>(
        &self,
        name: &'static str,
        weight: Weight,
        make: impl FnMut() -> Task + Send + 'static,
    ) where
        Task: Future<Output = Result<(), String>> + Send + 'static,
    {
        let state = State {
            weight,
            running: None,
            ended: None,
            restarts: 0,
        };
        self.0.table().insert(name, state);
        let owner = Arc::clone(&self.0);
        let stop = self.0.stop.clone();
        self.0.tasks.spawn(async move {
            let repeated = repeat(name, Some(&owner), make, |_| {});
            tokio::select! {
                () = repeated => {}
                // The task itself knows when to stop.
                () = async { stop.cancelled().await; tokio::time::sleep(GRACE).await } => {
                    tracing::error!(task = name, "task did not stop in time, aborting");
                }
            }
        });
    }
}

/// Runs a task that belongs to what starts it, again and again until this is dropped or the task
/// returns: a panic ends neither its owner nor what the task is for.
pub async fn survive_panics<Task>(name: &'static str, mut make: impl FnMut() -> Task)
where
    Task: Future<Output = ()> + Send + 'static,
{
    repeat(name, None, || make().map(Ok), |_| {}).await;
}

/// As [`survive_panics`]; `failed` takes the reason each time.
pub async fn survive_panics_noting<Task>(
    name: &'static str,
    mut make: impl FnMut() -> Task,
    failed: impl FnMut(&str),
) where
    Task: Future<Output = ()> + Send + 'static,
{
    repeat(name, None, || make().map(Ok), failed).await;
}

/// Runs a task, and again after each failure, until it is done or its owner is to stop. Dropping this
/// ends the task.
async fn repeat<Task>(
    name: &'static str,
    owner: Option<&Arc<Inner>>,
    mut make: impl FnMut() -> Task,
    mut failed: impl FnMut(&str),
) where
    Task: Future<Output = Result<(), String>> + Send + 'static,
{
    let mut back_off = BackOff::default();
    loop {
        let begun = Instant::now();
        let task = AbortOnDropHandle::new(tokio::spawn(make()));
        if let Some(owner) = owner {
            owner.started(name, task.abort_handle());
        }
        let ended = task.await;
        let Err(reason) = ended.unwrap_or_else(|error| Err(how_it_ended(error))) else {
            return;
        };
        if owner.is_some_and(|owner| owner.stop.is_cancelled()) {
            return;
        }
        let pause = back_off.after(begun.elapsed());
        tracing::error!(task = name, reason, ?pause, "task failed, restarting");
        restarts::count(name);
        failed(&reason);
        let paused = tokio::time::sleep(pause);
        match owner {
            None => paused.await,
            Some(owner) => {
                owner.ended(name, reason);
                if owner.stop.run_until_cancelled(paused).await.is_none() {
                    return;
                }
            }
        }
    }
}

/// How long to wait before something that failed is started again.
#[derive(Clone, Copy, Debug)]
pub struct BackOff {
    next: Duration,
}

impl Default for BackOff {
    fn default() -> Self {
        BackOff {
            next: SHORTEST_PAUSE,
        }
    }
}

impl BackOff {
    /// The pause after something that ran for so long. It doubles with each failure; what ran for
    /// longer than the longest pause begins anew.
    pub fn after(&mut self, ran_for: Duration) -> Duration {
        if ran_for >= LONGEST_PAUSE {
            self.next = SHORTEST_PAUSE;
        }
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST_PAUSE);
        pause
    }
}

impl Inner {
    fn table(&self) -> MutexGuard<'_, BTreeMap<&'static str, State>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn started(self: &Arc<Inner>, name: &'static str, running: AbortHandle) {
        let mut table = self.table();
        let Some(state) = table.get_mut(name) else {
            return;
        };
        state.running = Some(running);
        if let Some((_, restarted)) = &mut state.ended {
            *restarted = Some(Instant::now());
            let inner = Arc::clone(self);
            // The recovery is reported as soon as it happens.
            self.tasks.spawn(async move {
                tokio::select! {
                    () = inner.stop.cancelled() => {}
                    () = tokio::time::sleep(STEADY) => inner.changed.notify_one(),
                }
            });
        }
    }

    fn ended(&self, name: &'static str, reason: String) {
        if let Some(state) = self.table().get_mut(name) {
            state.running = None;
            state.ended = Some((reason, None));
            state.restarts = state.restarts.saturating_add(1);
        }
        self.changed.notify_one();
    }
}

fn how_it_ended(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            format!("it panicked: {}", text.unwrap_or_default())
        }
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn supervisor() -> Supervisor {
        Supervisor::new(CancellationToken::new(), Arc::default())
    }

    async fn stop(supervisor: &Supervisor) {
        supervisor.0.stop.cancel();
        supervisor.wait().await;
    }

    #[tokio::test(start_paused = true)]
    async fn panicked_task_is_restarted_and_reported_as_unhealthy() {
        let supervisor = supervisor();
        let (count, until) = (Arc::new(AtomicU32::new(0)), supervisor.0.stop.clone());
        let runs = Arc::clone(&count);
        supervisor.keep("podWatch", Weight::Vital, move || {
            let (run, until) = (runs.fetch_add(1, Ordering::Relaxed), until.clone());
            async move {
                assert!(run > 0, "the first object is bad");
                until.cancelled().await;
                Ok(())
            }
        });
        supervisor.0.changed.notified().await;
        let problem = Problem {
            task: "podWatch",
            reason: "it panicked: the first object is bad".to_owned(),
        };
        assert_eq!(supervisor.problems(), std::slice::from_ref(&problem));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(count.load(Ordering::Relaxed), 2);
        assert_eq!(supervisor.problems(), [problem], "it has only just begun");
        assert_eq!(supervisor.checks(), [("podWatch", false)]);
        tokio::time::sleep(STEADY).await;
        assert_eq!(supervisor.problems(), []);
        assert_eq!(supervisor.checks(), [("podWatch", true)]);
        stop(&supervisor).await;
    }

    #[tokio::test(start_paused = true)]
    async fn panic_ends_neither_the_task_nor_its_owner() {
        let (runs, until) = (Arc::new(AtomicU32::new(0)), CancellationToken::new());
        let (counted, stopped) = (Arc::clone(&runs), until.clone());
        let surviving = tokio::spawn(survive_panics("feed", move || {
            let (run, stopped) = (counted.fetch_add(1, Ordering::Relaxed), stopped.clone());
            async move {
                assert!(run > 1, "a bad object");
                stopped.cancelled().await;
            }
        }));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(runs.load(Ordering::Relaxed), 3);
        until.cancel();
        surviving.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn repeatedly_failing_task_backs_off() {
        let supervisor = supervisor();
        let count = Arc::new(AtomicU32::new(0));
        let runs = Arc::clone(&count);
        supervisor.keep("eviction", Weight::Vital, move || {
            runs.fetch_add(1, Ordering::Relaxed);
            async { Err("cannot keep records of decisions".to_owned()) }
        });
        tokio::time::sleep(Duration::from_secs(600)).await;
        // 0.1, 0.2, ... 25.6 s, then every 30 s.
        let tried = count.load(Ordering::Relaxed);
        assert!((25..35).contains(&tried), "{tried}");
        let problems = supervisor.problems();
        assert_eq!(problems[0].reason, "cannot keep records of decisions");
        stop(&supervisor).await;
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_task_does_not_delay_the_exit() {
        let supervisor = supervisor();
        supervisor.keep("deaf", Weight::Minor, std::future::pending);
        tokio::time::sleep(STEADY).await;
        let stopped = Instant::now();
        stop(&supervisor).await;
        assert_eq!(stopped.elapsed().as_secs(), GRACE.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_is_ended_is_started_again() {
        let supervisor = supervisor();
        let until = supervisor.0.stop.clone();
        supervisor.keep("nodeLease", Weight::Vital, move || {
            let until = until.clone();
            async move {
                until.cancelled().await;
                Ok(())
            }
        });
        tokio::time::sleep(STEADY).await;
        assert!(supervisor.end("nodeLease"));
        assert!(!supervisor.end("nodeLaese"), "there is none of that name");
        tokio::time::sleep(SHORTEST_PAUSE * 2).await;
        assert_eq!(supervisor.restarts("nodeLease"), 1);
        stop(&supervisor).await;
    }

    #[tokio::test(start_paused = true)]
    async fn task_that_returns_is_restarted_unless_it_may_finish() {
        let supervisor = supervisor();
        let count = Arc::new(AtomicU32::new(0));
        let runs = Arc::clone(&count);
        supervisor.complete("limits", Weight::Minor, move || {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            async move {
                if run == 0 {
                    Err("not yet".to_owned())
                } else {
                    Ok(())
                }
            }
        });
        supervisor.keep("statuses", Weight::Minor, || async { Ok(()) });
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(count.load(Ordering::Relaxed), 2);
        assert!(supervisor.restarts("statuses") > 5);
        assert_eq!(supervisor.problems(), [], "the process continues");
        stop(&supervisor).await;
    }
}
