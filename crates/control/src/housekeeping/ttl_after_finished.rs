//! Finished jobs with a time to live are deleted when it is over.
//!
//! Matches v1.36 pkg/controller/ttlafterfinished.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Client};
use plimsoll_core::lifecycle::ttl_after_finished::expires_at;
use tokio_util::sync::CancellationToken;

use crate::work_queue::WorkQueue;
use plimsoll_client::clock::Clock;
use plimsoll_client::informer::{Change, Informer, Informers, Key};

/// Jobs processed concurrently.
const WORKERS: usize = 5;

/// The settings of the loop.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The clock.
    pub clock: Clock,
}

/// Runs the loop until `stop`.
pub async fn run(informers: Arc<Informers>, options: Options, stop: CancellationToken) {
    let jobs: Arc<Informer<Job>> = informers.of();
    let queue = WorkQueue::new("ttl_jobs_to_delete");
    let changes = Arc::clone(&queue);
    let _changes = jobs.on_change(move |change| {
        let is_there = !matches!(change, Change::Deleted(_));
        if is_there && expires_at(change.object()).is_some() {
            changes.add(change.key());
        }
    });
    let (client, clock) = (informers.client().clone(), options.clock);
    let work = queue.work(WORKERS, move |key: Key| {
        let (client, clock, jobs) = (client.clone(), clock.clone(), Arc::clone(&jobs));
        async move { expire(&client, &clock, &jobs, &key).await }
    });
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Deletes a job whose time is over; returns when to look again at one whose is not.
async fn expire(
    client: &Client,
    clock: &Clock,
    jobs: &Informer<Job>,
    key: &Key,
) -> Result<Option<Duration>, kube::Error> {
    let remaining = |job: &Job| {
        let expires = expires_at(job)?;
        Some(expires.saturating_since(clock.now()))
    };
    match jobs.get(key).and_then(|job| remaining(&job)) {
        None => return Ok(None),
        Some(Duration::ZERO) => {}
        later => return Ok(later),
    }
    // The cache may lag behind a change of the time to live.
    let api: Api<Job> = Api::namespaced(client.clone(), &key.namespace);
    let Some(fresh) = api.get_opt(&key.name).await? else {
        return Ok(None);
    };
    match remaining(&fresh) {
        Some(Duration::ZERO) => {}
        later => return Ok(later),
    }
    let params = DeleteParams::foreground().preconditions(Preconditions {
        uid: fresh.metadata.uid,
        resource_version: None,
    });
    match api.delete(&key.name, &params).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        result => result.map(|_| None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use plimsoll_client::testing::{Cluster, virtual_clock};

    #[tokio::test(start_paused = true)]
    async fn a_finished_job_is_deleted_in_the_foreground_when_its_time_is_over() {
        let cluster = Cluster::new();
        let stop = CancellationToken::new();
        let options = Options {
            clock: virtual_clock(),
        };
        tokio::spawn(run(Informers::new(cluster.client()), options, stop.clone()));
        cluster.put(json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"namespace": "default", "name": "j"},
            "spec": {"template": {}, "ttlSecondsAfterFinished": 100},
        }));
        let key = Key::new("default", "j");
        let is_deleted = || {
            let job = cluster.get("jobs", &key).unwrap();
            !job["metadata"]["deletionTimestamp"].is_null()
        };
        tokio::time::sleep(Duration::from_secs(1000)).await;
        assert!(!is_deleted(), "it has not finished");
        cluster.change("jobs", &key, |job| {
            job["status"]["conditions"] = json!([{"type": "Complete", "status": "True",
                "lastTransitionTime": "2026-01-01T00:16:40Z"}]);
        });
        tokio::time::sleep(Duration::from_secs(99)).await;
        assert!(!is_deleted());
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(is_deleted());
        let job = cluster.get("jobs", &key).unwrap();
        assert_eq!(job["metadata"]["finalizers"], json!(["foregroundDeletion"]));
        stop.cancel();
    }
}
