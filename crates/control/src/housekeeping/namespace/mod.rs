//! The content of namespaces that are being deleted is deleted, pods first; then the namespace is
//! finalized.
//!
//! Matches v1.36 pkg/controller/namespace.
//!
//! Reading order: this file (the loop), `content` (what is deleted, in which order), `conditions`
//! (what is reported of the progress).

mod conditions;
mod content;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::{Api, Client};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::work_queue::WorkQueue;
use plimsoll_client::clock::Clock;
use plimsoll_client::informer::{Change, Informers, Key};

/// The finalizer that holds a namespace until it is empty.
const FINALIZER: &str = "kubernetes";
/// Objects may still arrive through other servers for a moment after the deletion.
const GRACE: Duration = Duration::from_secs(5);
/// A deletion that fails is tried at least this often.
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// How many namespaces are emptied at the same time.
const WORKERS: usize = 10;
/// How often a write is repeated that others get in the way of.
const CONFLICTS: usize = 10;

/// The settings of the loop.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The clock.
    pub clock: Clock,
}

/// Why a namespace could not be emptied.
#[derive(Debug, Error)]
enum Error {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("{}", .0.join(", "))]
    Content(Vec<String>),
}

/// Runs the loop until `stop`.
pub async fn run(informers: Arc<Informers>, options: Options, stop: CancellationToken) {
    let namespaces = informers.of::<Namespace>();
    let queue = WorkQueue::retrying_within("namespace", LONGEST_RETRY);
    let changes = Arc::clone(&queue);
    let _changes = namespaces.on_change(move |change| {
        let is_terminating = change.object().metadata.deletion_timestamp.is_some();
        if is_terminating && !matches!(change, Change::Deleted(_)) {
            changes.add_after(change.key(), GRACE);
        }
    });
    let (client, clock) = (informers.client().clone(), options.clock);
    let work = queue.work(WORKERS, move |key: Key| {
        let (client, clock) = (client.clone(), clock.clone());
        async move { empty(&client, &clock, &key.name).await }
    });
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Deletes what is in a namespace, and finalizes it when it is empty; returns when to look again.
async fn empty(client: &Client, clock: &Clock, name: &str) -> Result<Option<Duration>, Error> {
    let api: Api<Namespace> = Api::all(client.clone());
    let Some(namespace) = terminating(&api, name).await? else {
        return Ok(None);
    };
    let finalizers = namespace.spec.as_ref().and_then(|s| s.finalizers.as_ref());
    if finalizers.is_none_or(Vec::is_empty) {
        return Ok(None);
    }
    let outcome = content::delete_all(client, clock, &namespace).await?;
    write_conditions(&api, clock, namespace.clone(), &outcome.progress).await;
    if !outcome.errors.is_empty() {
        return Err(Error::Content(outcome.errors));
    }
    if outcome.estimate_secs > 0 {
        let wait = Duration::from_secs(outcome.estimate_secs / 2 + 1);
        return Ok(Some(wait));
    }
    finalize(&api, name).await?;
    Ok(None)
}

/// The namespace as it is, if it is being deleted; its phase is `Terminating` when this returns.
async fn terminating(api: &Api<Namespace>, name: &str) -> Result<Option<Namespace>, kube::Error> {
    for _ in 0..CONFLICTS {
        let Some(mut namespace) = api.get_opt(name).await? else {
            return Ok(None);
        };
        if namespace.metadata.deletion_timestamp.is_none() {
            return Ok(None);
        }
        let status = namespace.status.get_or_insert_default();
        if status.phase.as_deref() == Some("Terminating") {
            return Ok(Some(namespace));
        }
        status.phase = Some("Terminating".to_owned());
        let params = PostParams::default();
        let replaced = api.replace_status(name, &params, &namespace).await;
        if let Some(namespace) = unless_conflict(replaced)? {
            return Ok(Some(namespace));
        }
    }
    api.get_opt(name).await
}

async fn write_conditions(
    api: &Api<Namespace>,
    clock: &Clock,
    mut namespace: Namespace,
    progress: &conditions::Progress,
) {
    let status = namespace.status.get_or_insert_default();
    if !progress.write_conditions(status, clock.now()) {
        return;
    }
    let name = namespace.metadata.name.clone().unwrap_or_default();
    let params = PostParams::default();
    if let Err(error) = api.replace_status(&name, &params, &namespace).await {
        tracing::warn!(namespace = name, %error, "failed to update namespace conditions");
    }
}

/// Takes the finalizer off the namespace, which is the end of it.
async fn finalize(api: &Api<Namespace>, name: &str) -> Result<(), kube::Error> {
    for _ in 0..CONFLICTS {
        let Some(mut namespace) = api.get_opt(name).await? else {
            return Ok(());
        };
        let spec = namespace.spec.get_or_insert_default();
        let finalizers = spec.finalizers.get_or_insert_default();
        finalizers.retain(|finalizer| finalizer != FINALIZER);
        finalizers.sort();
        finalizers.dedup();
        let params = PostParams::default();
        let finalized = api.replace_subresource("finalize", name, &params, &namespace);
        let finalized: Result<Namespace, kube::Error> = finalized.await;
        if unless_conflict(finalized)?.is_some() {
            return Ok(());
        }
    }
    Ok(())
}

/// Nothing if others were faster. A namespace that is gone is as good as written.
fn unless_conflict(
    result: Result<Namespace, kube::Error>,
) -> Result<Option<Namespace>, kube::Error> {
    match result {
        Ok(namespace) => Ok(Some(namespace)),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Some(Namespace::default())),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
