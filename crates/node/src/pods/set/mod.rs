//! All pods of the node.
//!
//! [`Pods`] is told of pods by their sources and keeps a worker for each. What a source says of a
//! pod is a wish; whether it is granted, and how far it has come, is in the [`Reports`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::runtime::Runtime;

use super::image::Images;
use super::note::{Note, reason};
use super::reports::Reports;
use super::status::Forced;
use super::worker::{Desired, End, Record, Shared, Worker, grace};
use super::{Clock, Host, Settings, anatomy};

/// All pods of the node. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub struct Pods(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    entries: Mutex<BTreeMap<String, Entry>>,
    tasks: TaskTracker,
}

/// A pod and its worker.
#[derive(Debug)]
struct Entry {
    desired: watch::Sender<Desired>,
    record: Arc<Record>,
    stopped: watch::Receiver<bool>,
    finished: watch::Receiver<bool>,
    /// Whether its source has it no more.
    is_orphan: bool,
}

/// That a pod could not be stopped in time.
#[derive(Debug, thiserror::Error)]
#[error("timeout waiting to kill pod {pod}")]
pub struct KillTimeout {
    /// The pod.
    pub pod: String,
}

impl Pods {
    /// No pods yet.
    pub fn new(
        runtime: Arc<dyn Runtime>,
        runtime_name: impl Into<String>,
        host: Arc<dyn Host>,
        clock: Clock,
        settings: Settings,
    ) -> Pods {
        let images = Images::new(
            Arc::clone(&runtime),
            Arc::clone(&host),
            clock.clone(),
            &settings,
        );
        let shared = Shared {
            runtime,
            runtime_name: runtime_name.into(),
            host,
            clock,
            images,
            reports: Reports::default(),
            settings,
        };
        Pods(Arc::new(Inner {
            shared: Arc::new(shared),
            entries: Mutex::default(),
            tasks: TaskTracker::new(),
        }))
    }

    /// What is known of all pods.
    pub fn reports(&self) -> &Reports {
        &self.0.shared.reports
    }

    /// Takes a pod that a source has, new or changed.
    pub fn apply(&self, pod: Pod) {
        let uid = anatomy::uid(&pod).to_owned();
        let pod = Arc::new(pod);
        let mut entries = self.entries();
        match entries.get_mut(&uid) {
            Some(entry) => {
                entry.is_orphan = false;
                entry.change(pod, None, false);
            }
            None => {
                let entry = self.start(pod);
                entries.insert(uid, entry);
            }
        }
    }

    /// Takes a pod that the node will not run: it ends without having begun, for that reason.
    pub fn reject(&self, pod: Pod, why: Forced) {
        let uid = anatomy::uid(&pod).to_owned();
        let pod = Arc::new(pod);
        let mut entries = self.entries();
        if !entries.contains_key(&uid) {
            let end = End {
                grace_secs: grace::shorten(None, &pod, Some(0)),
                forced: Some(why),
            };
            let entry = self.start_with(pod, Some(end));
            entries.insert(uid, entry);
        }
    }

    /// Whether a pod is known.
    pub fn knows(&self, uid: &str) -> bool {
        self.entries().contains_key(uid)
    }

    /// Takes that a source has a pod no more: it is stopped, cleaned up and forgotten.
    pub fn remove(&self, uid: &str) {
        let mut entries = self.entries();
        if let Some(entry) = entries.get_mut(uid) {
            entry.is_orphan = true;
            let pod = Arc::clone(&entry.desired.borrow().pod);
            entry.change(pod, None, true);
            if *entry.finished.borrow() {
                entries.remove(uid);
                self.0.shared.reports.remove(uid);
            }
        }
    }

    /// Stops a pod, for the sake of others or because it may not stay; returns once nothing of it
    /// runs. `grace_secs` is how long it is given at most; its own period if `None`.
    pub async fn kill(
        &self,
        uid: &str,
        grace_secs: Option<i64>,
        forced: Option<Forced>,
    ) -> Result<(), KillTimeout> {
        let (pod, mut stopped) = {
            let mut entries = self.entries();
            let Some(entry) = entries.get_mut(uid) else {
                return Ok(());
            };
            let pod = Arc::clone(&entry.desired.borrow().pod);
            let end = Kill { grace_secs, forced };
            entry.change(Arc::clone(&pod), Some(end), true);
            (pod, entry.stopped.clone())
        };
        // Half as much again as the pod is given, and ten seconds at least, for the runtime.
        let given = grace_secs.unwrap_or_else(|| grace::of_pod(&pod)).max(0);
        let patience = Duration::from_secs(u64::try_from(given + given / 2).unwrap_or(0).max(10));
        let waited = tokio::time::timeout(patience, stopped.wait_for(|stopped| *stopped)).await;
        if waited.is_ok() {
            return Ok(());
        }
        let message = "Container runtime did not kill the pod within specified grace period.";
        let note = Note::warning(reason::EXCEEDED_GRACE_PERIOD, message);
        self.0.shared.host.record(&pod, note);
        Err(KillTimeout {
            pod: anatomy::described(&pod),
        })
    }

    /// Has the worker of a pod look at it.
    pub fn wake(&self, uid: &str) {
        if let Some(entry) = self.entries().get(uid) {
            entry.record.wake();
        }
    }

    fn start(&self, pod: Arc<Pod>) -> Entry {
        let end = initial_end(&pod);
        self.start_with(pod, end)
    }

    fn start_with(&self, pod: Arc<Pod>, end: Option<End>) -> Entry {
        let (desired, receiver) = watch::channel(Desired { pod, end });
        let (stopped_sender, stopped) = watch::channel(false);
        let (finished_sender, finished) = watch::channel(false);
        let worker = Worker::new(Arc::clone(&self.0.shared), receiver, stopped_sender);
        let record = worker.record();
        let pods = self.clone();
        let uid = record.uid();
        self.0.tasks.spawn(async move {
            worker.run().await;
            finished_sender.send_replace(true);
            pods.forget_orphan(&uid);
        });
        Entry {
            desired,
            record,
            stopped,
            finished,
            is_orphan: false,
        }
    }

    /// Forgets a finished pod that no source has any more.
    fn forget_orphan(&self, uid: &str) {
        let mut entries = self.entries();
        if entries.get(uid).is_some_and(|entry| entry.is_orphan) {
            entries.remove(uid);
            self.0.shared.reports.remove(uid);
        }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        let entries = self.0.entries.lock();
        entries.unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a pod is stopped.
#[derive(Clone, Debug, Default)]
struct Kill {
    grace_secs: Option<i64>,
    forced: Option<Forced>,
}

/// Whether a pod that was just found is to end right away.
fn initial_end(pod: &Pod) -> Option<End> {
    let is_over = anatomy::is_deleted(pod) || anatomy::is_terminal_phase(anatomy::phase(pod));
    is_over.then(|| End {
        grace_secs: grace::shorten(None, pod, None),
        forced: None,
    })
}

impl Entry {
    /// Changes what the pod should be. Once it is to end that stays so, and its grace period only
    /// becomes shorter.
    fn change(&mut self, pod: Arc<Pod>, kill: Option<Kill>, is_to_end: bool) {
        self.desired.send_modify(|desired| {
            let wants_end = is_to_end || initial_end(&pod).is_some() || desired.end.is_some();
            if wants_end {
                let kill = kill.unwrap_or_default();
                let current = desired.end.take();
                let current_secs = current.as_ref().map(|end| end.grace_secs);
                desired.end = Some(End {
                    grace_secs: grace::shorten(current_secs, &pod, kill.grace_secs),
                    forced: current.and_then(|end| end.forced).or(kill.forced),
                });
            }
            desired.pod = pod;
        });
    }
}
