//! The latest status of every pod, as workers report it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use tokio::sync::Notify;

use crate::pod_fields;

/// What a worker says of its pod.
#[derive(Clone, Debug)]
pub struct Report {
    /// The pod as its worker knows it.
    pub pod: Arc<Pod>,
    /// Its status.
    pub status: Arc<PodStatus>,
    /// Whether anything of it may be running.
    pub may_run: bool,
    /// Whether everything of it has been cleaned up.
    pub is_finished: bool,
    /// Goes up with every report about the pod.
    pub version: u64,
}

/// The latest reports, by uid. Cheap to clone; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Reports(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    reports: Mutex<BTreeMap<String, Report>>,
    changed: Notify,
    forgotten: Notify,
}

impl Reports {
    /// Takes a report, unless it says what is known already.
    pub fn put(&self, pod: &Arc<Pod>, status: PodStatus, may_run: bool, is_finished: bool) {
        let uid = pod_fields::uid(pod);
        let mut reports = self.lock();
        let known = reports.get(uid);
        let is_news = known.is_none_or(|known| {
            *known.status != status
                || known.may_run != may_run
                || known.is_finished != is_finished
                || pod_fields::is_deleted(&known.pod) != pod_fields::is_deleted(pod)
        });
        let version = known.map_or(0, |known| known.version) + u64::from(is_news);
        let report = Report {
            pod: Arc::clone(pod),
            status: Arc::new(status),
            may_run,
            is_finished,
            version,
        };
        reports.insert(uid.to_owned(), report);
        drop(reports);
        if is_news {
            self.0.changed.notify_one();
        }
    }

    /// Notes that the object of a pod has changed, though nothing is new about the pod itself.
    pub fn set_pod(&self, pod: &Arc<Pod>) {
        if let Some(report) = self.lock().get_mut(pod_fields::uid(pod)) {
            report.pod = Arc::clone(pod);
        }
        self.poke();
    }

    /// Wakes the task that waits for changes.
    pub fn poke(&self) {
        self.0.changed.notify_one();
    }

    /// The report about a pod.
    pub fn get(&self, uid: &str) -> Option<Report> {
        self.lock().get(uid).cloned()
    }

    /// All reports.
    pub fn all(&self) -> Vec<Report> {
        self.lock().values().cloned().collect()
    }

    /// Forgets a pod.
    pub fn remove(&self, uid: &str) {
        self.lock().remove(uid);
        self.0.forgotten.notify_one();
    }

    /// Waits until a pod is forgotten that was not when this was called last.
    pub async fn forgotten(&self) {
        self.0.forgotten.notified().await;
    }

    /// Waits for news since the last call.
    pub async fn changed(&self) {
        self.0.changed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Report>> {
        let reports = self.0.reports.lock();
        reports.unwrap_or_else(PoisonError::into_inner)
    }
}
