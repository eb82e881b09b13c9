//! Writing what workers report of pods to the API.
//!
//! Each pod has at most one write under way; what is reported meanwhile is written next, so that
//! only the latest counts. What fails is tried again. A pod that the API wants deleted is deleted
//! there once nothing of it is left here. Matches v1.36 pkg/kubelet/status/status_manager.go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use plimsoll_client::clock::Clock;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::api_pods::ApiPods;
use crate::pods::anatomy;
use crate::pods::reports::{Report, Reports};
use crate::pods::status::{for_api, patch};

/// How many writes are under way at once.
const MAX_IN_FLIGHT: usize = 32;
/// How long a write that failed waits.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Writes until told to stop, and what is left to write then.
pub(super) async fn write_statuses(
    client: Client,
    clock: Clock,
    reports: Reports,
    api_pods: Arc<ApiPods>,
    stop: CancellationToken,
) {
    let mut writer = Writer {
        client,
        clock,
        api_pods,
        written: BTreeMap::new(),
        busy: BTreeSet::new(),
        writes: JoinSet::new(),
    };
    loop {
        let has_failed = writer.start(&reports);
        tokio::select! {
            () = stop.cancelled() => break,
            () = reports.changed() => {}
            () = writer.api_pods.changed() => {}
            Some(done) = writer.writes.join_next() => writer.finish(done.ok()),
            () = tokio::time::sleep(RETRY_AFTER), if has_failed => {}
        }
    }
    // What is known should be said before the agent goes; it may not come back for a while.
    writer.start(&reports);
    let rest = async { while writer.writes.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(RETRY_AFTER, rest).await;
}

struct Writer {
    client: Client,
    clock: Clock,
    api_pods: Arc<ApiPods>,
    /// The version of each pod's report that the API has, and of the object it was written to.
    written: BTreeMap<String, Written>,
    busy: BTreeSet<String>,
    writes: JoinSet<(String, Option<Written>)>,
}

/// What was written last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Written {
    version: u64,
    is_deleted: bool,
}

impl Writer {
    /// Begins whatever has to be written; whether something has to wait.
    fn start(&mut self, reports: &Reports) -> bool {
        let all = reports.all();
        let living: BTreeSet<&str> = all.iter().map(|report| anatomy::uid(&report.pod)).collect();
        self.written.retain(|uid, _| living.contains(uid.as_str()));
        let mut has_to_wait = false;
        for report in &all {
            let uid = anatomy::uid(&report.pod);
            let Some(api_pod) = self.api_pods.shown_for(&report.pod) else {
                continue;
            };
            let wanted = Written {
                version: report.version,
                is_deleted: anatomy::is_deleted(&api_pod),
            };
            if self.written.get(uid) == Some(&wanted) {
                continue;
            }
            has_to_wait = true;
            if self.busy.contains(uid) || self.busy.len() >= MAX_IN_FLIGHT {
                continue;
            }
            self.busy.insert(uid.to_owned());
            let (client, report) = (self.client.clone(), report.clone());
            let (clock, api_pods) = (self.clock.clone(), Arc::clone(&self.api_pods));
            let uid = uid.to_owned();
            self.writes.spawn(async move {
                let done = write(&client, &clock, &api_pods, &api_pod, &report).await;
                let done = done.inspect_err(|error| {
                    tracing::warn!(pod = %anatomy::described(&report.pod), %error, "status not written");
                });
                (uid, done.ok().map(|()| wanted))
            });
        }
        has_to_wait
    }

    fn finish(&mut self, done: Option<(String, Option<Written>)>) {
        let Some((uid, written)) = done else {
            // The task was cancelled; nobody knows what it wrote.
            self.busy.clear();
            return;
        };
        self.busy.remove(&uid);
        if let Some(written) = written {
            self.written.insert(uid, written);
        }
    }
}

async fn write(
    client: &Client,
    clock: &Clock,
    api_pods: &ApiPods,
    api_pod: &Pod,
    report: &Report,
) -> kube::Result<()> {
    let api: Api<Pod> = Api::namespaced(client.clone(), anatomy::namespace(api_pod));
    let name = anatomy::name(api_pod);
    let before = api_pod.status.clone().unwrap_or_default();
    let shown = for_api(
        api_pod,
        &before,
        &report.status,
        report.may_run,
        clock.now(),
    );
    if let Some(change) = patch(anatomy::uid(api_pod), &before, &shown) {
        let change = Patch::Strategic(change);
        match api
            .patch_status(name, &PatchParams::default(), &change)
            .await
        {
            Ok(pod) => api_pods.put(pod),
            // Gone, or another of the same name: the watch will say.
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => {
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
    let is_over = report.is_finished && anatomy::mirror_hash(api_pod).is_none();
    if anatomy::is_deleted(api_pod) && is_over {
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: api_pod.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match api.delete(name, &parameters).await {
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => {}
            deleted => drop(deleted?),
        }
    }
    Ok(())
}
