//! Writes the status of pods to the API server.
//!
//! Reports are written as they come, one write per pod at a time; whatever comes meanwhile is
//! written together afterwards. What fails is tried again. A deleted pod is removed from
//! the API when nothing of it is left. Matches v1.36 pkg/kubelet/status/status_manager.go, without
//! the read before each write: the patch carries the uid, and merging is up to the server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::pod_fields;
use crate::pods::reports::Report;
use crate::pods::status;
use crate::pods::{Clock, Pods};

/// The first wait before what failed is tried again; it doubles.
const FIRST_RETRY: Duration = Duration::from_millis(500);
/// The longest.
const LAST_RETRY: Duration = Duration::from_secs(10);

/// What was last written of a pod.
#[derive(Debug, Default)]
struct Written {
    /// Uid of the object; that of a static pod's image may change.
    object_uid: String,
    /// The version of the report.
    version: u64,
    /// The object as the server answered.
    answer: Option<Arc<Pod>>,
    /// When to try again, and how long to wait after that.
    retry: Option<(Instant, Duration)>,
    /// Since when there is something to write.
    behind: Option<Instant>,
    is_busy: bool,
    /// Whether the object is gone, so that there is nothing to write.
    is_gone: bool,
}

/// A write to be made.
#[derive(Debug)]
struct Job {
    uid: String,
    report: Report,
    /// The object in the API: the pod itself, or the image of a static one.
    object: Arc<Pod>,
}

/// What became of a write.
#[derive(Debug)]
enum Outcome {
    /// The API shows the report.
    Shown(Option<Arc<Pod>>),
    /// The object is gone, or is another.
    Gone,
    /// It may work another time.
    Failed,
}

/// Writes reports until `stop` is cancelled.
pub async fn write_statuses(client: Client, pods: &Pods, stop: CancellationToken) {
    let mut written: BTreeMap<String, Written> = BTreeMap::new();
    let mut writes = FuturesUnordered::new();
    loop {
        let reports = pods.reports().all();
        written.retain(|uid, own| {
            own.is_busy || reports.iter().any(|r| pod_fields::uid(&r.pod) == uid)
        });
        let now = Instant::now();
        for report in reports {
            let uid = pod_fields::uid(&report.pod).to_owned();
            let own = written.entry(uid.clone()).or_default();
            let Some(object) = pods.object_of(&report.pod) else {
                continue;
            };
            let object = newest(object, own.answer.as_ref());
            if own.object_uid != pod_fields::uid(&object) && !own.is_busy {
                *own = Written {
                    object_uid: pod_fields::uid(&object).to_owned(),
                    ..Written::default()
                };
            }
            if own.is_due(&report, &object, pods.clock(), now) {
                own.is_busy = true;
                own.behind.get_or_insert(now);
                let job = Job {
                    uid,
                    report,
                    object,
                };
                writes.push(write(client.clone(), job, pods.clock().clone()));
            }
        }
        let retries = written.values().filter(|own| !own.is_busy);
        let next = retries.filter_map(|own| Some(own.retry?.0)).min();
        tokio::select! {
            () = stop.cancelled() => return,
            () = pods.reports().changed() => {}
            Some((job, outcome)) = writes.next(), if !writes.is_empty() => {
                if let Some(own) = written.get_mut(&job.uid) {
                    let is_written = matches!(outcome, Outcome::Shown(Some(_)));
                    if let Some(since) = own.behind.filter(|_| is_written) {
                        pods.metrics().pod_status_synced(since.elapsed());
                    }
                    own.take(&job, outcome);
                }
            }
            () = async {
                match next {
                    Some(next) => sleep_until(next).await,
                    None => std::future::pending().await,
                }
            } => {}
        }
    }
}

impl Written {
    fn is_due(&self, report: &Report, object: &Pod, clock: &Clock, now: Instant) -> bool {
        if self.is_busy || self.is_gone {
            return false;
        }
        if let Some((at, _)) = self.retry {
            return at <= now;
        }
        if report.version > self.version {
            return true;
        }
        // Another client has changed fields that only the node may set, or the object may be removed now.
        let is_newer = match &self.answer {
            Some(answer) => answer.metadata.resource_version != object.metadata.resource_version,
            None => false,
        };
        is_newer && (may_go(report, object) || patch_of(report, object, clock).is_some())
    }

    fn take(&mut self, job: &Job, outcome: Outcome) {
        self.is_busy = false;
        match outcome {
            Outcome::Shown(answer) => {
                self.version = job.report.version;
                self.answer = answer.or_else(|| Some(Arc::clone(&job.object)));
                self.retry = None;
                self.behind = None;
            }
            Outcome::Gone => self.is_gone = true,
            Outcome::Failed => {
                let wait = self.retry.map_or(FIRST_RETRY, |(_, wait)| wait);
                let longer = (wait * 2).min(LAST_RETRY);
                self.retry = Some((Instant::now() + wait, longer));
            }
        }
    }
}

/// The newer of two versions of an object.
fn newest(watched: Arc<Pod>, answer: Option<&Arc<Pod>>) -> Arc<Pod> {
    let version = |pod: &Pod| -> Option<u64> {
        let text = pod.metadata.resource_version.as_deref()?;
        text.parse().ok()
    };
    match answer {
        Some(answer)
            if pod_fields::uid(answer) == pod_fields::uid(&watched)
                && version(answer) > version(&watched) =>
        {
            Arc::clone(answer)
        }
        _ => watched,
    }
}

fn api_status(object: &Pod) -> PodStatus {
    object.status.clone().unwrap_or_default()
}

/// What has to be changed for the API to show the report.
fn patch_of(report: &Report, object: &Pod, clock: &Clock) -> Option<serde_json::Value> {
    let known = api_status(object);
    let now = clock.now();
    let shown = status::for_api(&report.pod, &known, &report.status, report.may_run, now);
    status::patch(pod_fields::uid(object), &known, &shown)
}

/// Whether nothing is left of a deleted pod.
fn may_go(report: &Report, object: &Pod) -> bool {
    let is_image = pod_fields::mirror_hash(object).is_some();
    report.is_finished
        && pod_fields::is_deleted(object)
        && !is_image
        && pod_fields::is_terminal(object)
}

async fn write(client: Client, job: Job, clock: Clock) -> (Job, Outcome) {
    let outcome = try_write(client, &job, &clock).await;
    let outcome = outcome.unwrap_or_else(|error| match &error {
        // Gone, or another pod of the same name.
        kube::Error::Api(status) if matches!(status.code, 404 | 409) => Outcome::Gone,
        _ => {
            let pod = pod_fields::display_pod(&job.report.pod);
            tracing::warn!(pod, %error, "failed to update status for pod");
            Outcome::Failed
        }
    });
    (job, outcome)
}

async fn try_write(client: Client, job: &Job, clock: &Clock) -> Result<Outcome, kube::Error> {
    let object = &job.object;
    let (namespace, name) = (pod_fields::namespace(object), pod_fields::name(object));
    let api: Api<Pod> = Api::namespaced(client, namespace);
    let mut answer = None;
    if let Some(patch) = patch_of(&job.report, object, clock) {
        let patch = Patch::Strategic(patch);
        let params = PatchParams::default();
        answer = Some(Arc::new(api.patch_status(name, &params, &patch).await?));
    }
    let current = answer.as_ref().unwrap_or(object);
    if may_go(&job.report, current) {
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: current.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        api.delete(name, &params).await?;
        return Ok(Outcome::Gone);
    }
    Ok(Outcome::Shown(answer))
}
