//! All pods of the node.
//!
//! [`Pods`] receives pods from their sources and keeps a worker for each. A source gives the desired
//! state of a pod; the observed state is in the [`Reports`].
//!
//! Reading order: this file, `entry` (one pod), `table` (all of them, and which pod waits for which),
//! `resizes` (changed resources), `preemption` (room for critical pods), `relist` (what the runtime has), `mirrors` (mirror pods of static pods),
//! `reading` (read access for others).

mod entry;
mod mirrors;
mod preemption;
mod reading;
mod relist;
mod resizes;
mod table;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use plimsoll_runtime::Runtime;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::stats::metrics::KubeletMetrics;

use super::image::Images;
use super::kill_notice::KillNotice;
use super::note::{Note, reason};
use super::reports::Reports;
use super::status::Forced;
use super::worker::{Shared, grace};
use super::{Clock, Host, Settings};
use crate::pod_fields;

use entry::{Entry, Kill};
use table::Table;

pub use mirrors::MirrorWork;
pub use table::{Begun, Source};

/// All pods of the node. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub struct Pods(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    table: Mutex<Table>,
    tasks: TaskTracker,
    /// Notified when static pods or their mirror pods change.
    mirrors_changed: Notify,
    /// When the runtime was last looked at.
    relisted: Mutex<Instant>,
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
        metrics: Arc<KubeletMetrics>,
    ) -> Pods {
        let images = Images::new(
            Arc::clone(&runtime),
            Arc::clone(&host),
            clock.clone(),
            &settings,
            Arc::clone(&metrics),
        );
        let shared = Shared {
            runtime,
            runtime_name: runtime_name.into(),
            host,
            clock,
            images,
            reports: Reports::default(),
            settings,
            metrics,
        };
        Pods(Arc::new(Inner {
            shared: Arc::new(shared),
            table: Mutex::default(),
            tasks: TaskTracker::new(),
            mirrors_changed: Notify::new(),
            relisted: Mutex::new(Instant::now()),
        }))
    }

    /// What the agent counts.
    pub(crate) fn metrics(&self) -> &Arc<KubeletMetrics> {
        &self.0.shared.metrics
    }

    /// What is known of all pods.
    pub fn reports(&self) -> &Reports {
        &self.0.shared.reports
    }

    /// How long ago the runtime was looked at: a minute at most, unless it hangs.
    pub(crate) fn relist_age(&self) -> Duration {
        let relisted = self.0.relisted.lock();
        relisted.unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    fn note_relist(&self) {
        let relisted = self.0.relisted.lock();
        *relisted.unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.0.shared.clock
    }

    /// Takes everything that a source has; what it had before and has no more is stopped.
    pub fn replace(&self, source: Source, mut pods: Vec<Pod>) {
        pods.sort_by_key(|pod| pod.metadata.creation_timestamp.clone());
        let kept: Vec<String> = pods.iter().map(|p| pod_fields::uid(p).to_owned()).collect();
        let gone = self.table().replaced(source, &kept);
        for uid in gone {
            self.remove(&uid);
        }
        for pod in pods {
            self.apply(source, pod);
        }
        let mut table = self.table();
        table.set_ready(source);
        // Requests from before the restart of the agent are still valid.
        self.retry_resizes(&mut table);
        drop(table);
        self.0.mirrors_changed.notify_one();
    }

    /// Takes a pod that a source has, new or changed.
    pub fn apply(&self, source: Source, pod: Pod) {
        let pod = Arc::new(pod);
        if pod_fields::mirror_hash(&pod).is_some() {
            let mut table = self.table();
            table.mirrors.insert(table::full_name(&pod), pod);
            drop(table);
            self.0.mirrors_changed.notify_one();
            self.reports().poke();
            return;
        }
        let mut table = self.table();
        let uid = pod_fields::uid(&pod).to_owned();
        // The same pod or another of its name may still be ending.
        if table.has_to_wait(&pod) {
            table.waiting.insert(table::full_name(&pod), (source, pod));
            return;
        }
        match table.entries.get_mut(&uid) {
            Some(entry) => {
                if entry.take(pod) {
                    self.retry_resizes(&mut table);
                }
            }
            None => self.start(&mut table, source, pod),
        }
    }

    /// Takes that a source has a pod no more, and how it was at last.
    pub fn removed(&self, pod: Pod) {
        let uid = pod_fields::uid(&pod).to_owned();
        if let Some(entry) = self.table().entries.get_mut(&uid) {
            entry.take(Arc::new(pod));
        }
        self.remove(&uid);
    }

    /// Takes that a source has a pod no more: it is stopped, cleaned up and forgotten.
    pub fn remove(&self, uid: &str) {
        let mut table = self.table();
        table
            .waiting
            .retain(|_, (_, pod)| pod_fields::uid(pod) != uid);
        let is_mirror = |pod: &Arc<Pod>| pod_fields::uid(pod) == uid;
        if let Some(name) = table
            .mirrors
            .iter()
            .find_map(|(name, pod)| is_mirror(pod).then(|| name.clone()))
        {
            table.mirrors.remove(&name);
            self.0.mirrors_changed.notify_one();
            return;
        }
        if let Some(entry) = table.entries.get_mut(uid) {
            entry.is_orphan = true;
            entry.end(Kill::default());
            if entry.is_finished() {
                self.forget(&mut table, uid);
            }
        }
        self.retry_resizes(&mut table);
    }

    /// What to give before something else than its worker kills the processes of a pod. Whatever the
    /// worker sees of their end from then on has the reason of the notice, unless the kernel was
    /// first. [`Self::kill`] has it begin before it sees anything.
    pub fn kill_notice(&self, uid: &str) -> Option<Arc<KillNotice>> {
        let table = self.table();
        let entry = table.entries.get(uid)?;
        Some(Arc::clone(entry.record.kill_notice()))
    }

    /// Takes over pods that an earlier agent has begun to end, by uid: that agent may have ended before it
    /// could report them. To be called before the pods are added.
    pub fn remember_begun(&self, begun: BTreeMap<String, Begun>) {
        self.table().begun = begun;
    }

    /// Stops a pod, for the sake of others or because it may not stay: its worker begins before this
    /// returns, and the future ends once nothing of the pod runs. `grace_secs` is how long it is given
    /// at most; its own period if `None`.
    pub fn kill(
        &self,
        uid: &str,
        grace_secs: Option<i64>,
        forced: Option<Forced>,
    ) -> impl Future<Output = Result<(), KillTimeout>> + Send + use<> {
        let ending = self.table().entries.get_mut(uid).map(|entry| {
            entry.end(Kill { grace_secs, forced });
            (entry.pod(), entry.stopped.clone())
        });
        let pods = self.clone();
        async move {
            match ending {
                Some((pod, stopped)) => pods.until_stopped(pod, stopped, grace_secs).await,
                None => Ok(()),
            }
        }
    }

    async fn until_stopped(
        &self,
        pod: Arc<Pod>,
        mut stopped: watch::Receiver<bool>,
        grace_secs: Option<i64>,
    ) -> Result<(), KillTimeout> {
        // Half as much again as the pod is given, and ten seconds at least, for the runtime.
        let given = grace_secs.unwrap_or_else(|| grace::of_pod(&pod)).max(0);
        let patience = given.saturating_add(given / 2).max(10);
        let patience = Duration::from_secs(u64::try_from(patience).unwrap_or_default());
        let waited = tokio::time::timeout(patience, stopped.wait_for(|stopped| *stopped)).await;
        if waited.is_ok() {
            return Ok(());
        }
        let message = "Container runtime did not kill the pod within specified grace period.";
        let note = Note::warning(reason::EXCEEDED_GRACE_PERIOD, message);
        self.0.shared.host.record(&pod, note);
        Err(KillTimeout {
            pod: pod_fields::display_pod(&pod),
        })
    }

    /// Has the worker of a pod look at it.
    pub fn wake(&self, uid: &str) {
        if let Some(entry) = self.table().entries.get(uid) {
            entry.record.wake();
        }
    }

    /// Watches the runtime, and retries what had to wait, until `stop` is cancelled. Then workers
    /// are dropped; containers keep running.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.watch_runtime() => {}
        }
        let mut table = self.table();
        table.waiting.clear();
        table.entries.clear();
    }

    /// Admits a pod and starts its worker. One that is not admitted has failed; its worker only
    /// makes sure that nothing of it is there.
    fn start(&self, table: &mut Table, source: Source, pod: Arc<Pod>) {
        let uid = pod_fields::uid(&pod).to_owned();
        let others = table.active_pods();
        // A static pod is the same when it is started anew, and may be.
        let begun = match source {
            Source::Api => table.begun.get(&uid).cloned(),
            Source::Files => None,
        };
        let made = Entry::new(&self.0.shared, source, Arc::clone(&pod), &others, begun);
        let (entry, work) = match made {
            Ok(made) => made,
            Err(room) => return self.make_room(table, source, pod, &room),
        };
        let (pods, finished) = (self.clone(), entry.finished_sender());
        table.entries.insert(uid.clone(), entry);
        self.0.tasks.spawn(async move {
            work.await;
            finished.send_replace(true);
            pods.finished(&uid);
        });
    }

    /// A worker has nothing left to do.
    fn finished(&self, uid: &str) {
        let mut table = self.table();
        if table.entries.get(uid).is_some_and(|entry| entry.is_orphan) {
            self.forget(&mut table, uid);
        }
        self.retry_resizes(&mut table);
        self.0.mirrors_changed.notify_one();
    }

    /// Forgets a pod, and starts the pod that waited for its end.
    fn forget(&self, table: &mut Table, uid: &str) {
        let Some(entry) = table.entries.remove(uid) else {
            return;
        };
        self.0.shared.reports.remove(uid);
        let name = table::full_name(&entry.pod());
        if let Some((source, pod)) = table.waiting.remove(&name) {
            self.start(table, source, pod);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        let table = self.0.table.lock();
        table.unwrap_or_else(PoisonError::into_inner)
    }
}
