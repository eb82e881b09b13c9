//! The agent's long-lived tasks: each has an owner that starts it again when it ends.
//!
//! A task that panics or returns is started again after a back-off, for as long as the agent runs.
//! One that the node cannot do without keeps the node from being ready meanwhile, and until it has
//! run for a while again: a task that dies of the same object each time it starts is not alive.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The first pause before a task is started again. It doubles with each end.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause: what is lost meanwhile is short of upstream's grace of 40 s, after which other
/// nodes get the pods.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A task that has run for so long since it was started again is well.
const STEADY: Duration = Duration::from_secs(10);

/// Whether the node can do without a task for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// The node is not ready without it.
    Vital,
    /// The node goes on.
    Minor,
}

/// Owns tasks. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub(super) struct Supervisor(Arc<Inner>);

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
    fn problem(&self, name: &str) -> Option<String> {
        let (reason, restarted) = self.ended.as_ref()?;
        let is_well = restarted.is_some_and(|at| at.elapsed() >= STEADY);
        let is_named = self.weight == Weight::Vital && !is_well;
        is_named.then(|| format!("kubelet task {name} failed: {reason}"))
    }
}

impl Supervisor {
    /// Owns nothing yet. `changed` is rung when there is something else to say about the node.
    pub(super) fn new(stop: CancellationToken, changed: Arc<Notify>) -> Supervisor {
        Supervisor(Arc::new(Inner {
            tasks: TaskTracker::new(),
            stop,
            changed,
            table: Mutex::default(),
        }))
    }

    /// Runs a task that never ends by itself, until the agent stops. `make` is called each time it
    /// is started; an error that it returns is the reason why it has ended.
    pub(super) fn keep<Task>(
        &self,
        name: &'static str,
        weight: Weight,
        make: impl FnMut() -> Task + Send + 'static,
    ) where
        Task: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.own(name, weight, Returning::IsFailure, make);
    }

    /// Runs a task that may have nothing left to do: it is started again only if it fails.
    pub(super) fn complete<Task>(
        &self,
        name: &'static str,
        weight: Weight,
        make: impl FnMut() -> Task + Send + 'static,
    ) where
        Task: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.own(name, weight, Returning::IsDone, make);
    }

    /// What keeps the node from being ready.
    pub(super) fn problems(&self) -> Vec<String> {
        let table = self.0.table();
        let problems = table.iter().filter_map(|(name, state)| state.problem(name));
        problems.collect()
    }

    /// Waits for all tasks to end, which they do when the agent stops.
    pub(super) async fn wait(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    fn own<Task>(
        &self,
        name: &'static str,
        weight: Weight,
        returning: Returning,
        mut make: impl FnMut() -> Task + Send + 'static,
    ) where
        Task: Future<Output = Result<(), String>> + Send + 'static,
    {
        let inner = Arc::clone(&self.0);
        let state = State {
            weight,
            running: None,
            ended: None,
            restarts: 0,
        };
        inner.table().insert(name, state);
        self.0.tasks.spawn(async move {
            let mut pause = SHORTEST_PAUSE;
            loop {
                let begun = Instant::now();
                let task = tokio::spawn(make());
                inner.started(name, task.abort_handle());
                // The task itself knows when to stop.
                let reason = match task.await {
                    Ok(Ok(())) if returning == Returning::IsDone => return,
                    Ok(Ok(())) => "it returned".to_owned(),
                    Ok(Err(reason)) => reason,
                    Err(error) => how_it_ended(error),
                };
                if inner.stop.is_cancelled() {
                    return;
                }
                if begun.elapsed() >= LONGEST_PAUSE {
                    pause = SHORTEST_PAUSE;
                }
                tracing::error!(
                    task = name,
                    reason,
                    ?pause,
                    "task failed, starting it again"
                );
                inner.ended(name, reason);
                tokio::select! {
                    () = inner.stop.cancelled() => return,
                    () = tokio::time::sleep(pause) => {}
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        });
    }
}

/// What it means that a task returns without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Returning {
    IsFailure,
    IsDone,
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
            // It is said that it is well again as soon as it is.
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
pub(super) mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    impl Supervisor {
        /// The names of all tasks that run.
        pub(in super::super) fn names(&self) -> Vec<&'static str> {
            let table = self.0.table();
            let running = table.iter().filter(|(_, state)| {
                let running = state.running.as_ref();
                running.is_some_and(|task| !task.is_finished())
            });
            running.map(|(name, _)| *name).collect()
        }

        /// Ends a task as if it had failed.
        pub(in super::super) fn end(&self, name: &str) {
            let table = self.0.table();
            table[name].running.as_ref().unwrap().abort();
        }

        /// How often a task was started again.
        pub(in super::super) fn restarts(&self, name: &str) -> u32 {
            self.0.table()[name].restarts
        }
    }

    fn supervisor() -> Supervisor {
        Supervisor::new(CancellationToken::new(), Arc::default())
    }

    async fn stop(supervisor: &Supervisor) {
        supervisor.0.stop.cancel();
        supervisor.wait().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_started_again_and_the_node_is_not_ready_meanwhile() {
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
        let problem = "kubelet task podWatch failed: it panicked: the first object is bad";
        assert_eq!(supervisor.problems(), [problem]);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(count.load(Ordering::Relaxed), 2);
        assert_eq!(supervisor.problems(), [problem], "it has only just begun");
        tokio::time::sleep(STEADY).await;
        assert_eq!(supervisor.problems(), [""; 0]);
        stop(&supervisor).await;
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_fails_again_and_again_is_tried_less_and_less_often() {
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
        let problem = "kubelet task eviction failed: cannot keep records of decisions";
        assert_eq!(supervisor.problems(), [problem]);
        stop(&supervisor).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_returns_is_started_again_unless_it_may_be_done() {
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
        assert_eq!(supervisor.problems(), [""; 0], "the node goes on");
        stop(&supervisor).await;
    }
}
