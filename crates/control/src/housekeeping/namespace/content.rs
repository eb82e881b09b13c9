//! Deletes the content of a namespace: in which order, and how long that takes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client};
use plimsoll_core::object::pod::is_terminal;
use plimsoll_core::object::timestamp::Timestamp;

use crate::housekeeping::discovery::{Kind, discover};
use plimsoll_client::clock::Clock;
use plimsoll_client::informer::Metadata;
use plimsoll_client::watching;

use super::conditions::Progress;

/// How long objects with finalizers are given.
const FINALIZER_ESTIMATE_SECS: u64 = 15;

/// The result of a round of deletion.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) progress: Progress,
    /// The errors.
    pub(super) errors: Vec<String>,
    /// When the rest should be gone; zero if there is no rest.
    pub(super) estimate_secs: u64,
}

/// The remaining objects of one kind.
#[derive(Debug, Default)]
struct Remaining {
    estimate_secs: u64,
    count: usize,
    finalizers: BTreeMap<String, usize>,
    /// Objects that should be gone, as nothing holds them back.
    is_unexpected: bool,
}

impl Outcome {
    fn add(&mut self, kind: &Kind, left: Remaining) {
        self.estimate_secs = self.estimate_secs.max(left.estimate_secs);
        if left.count > 0 {
            let resource = &kind.resource;
            let name = format!("{}.{}", resource.plural, resource.group);
            let remaining = self.progress.remaining.get_or_insert_default();
            remaining.insert(name, left.count);
        }
        for (finalizer, count) in left.finalizers {
            *self.progress.finalizers.entry(finalizer).or_default() += count;
        }
    }

    fn fail(&mut self, message: String, error: String) {
        self.progress.failures.push(message);
        self.errors.push(error);
    }
}

/// Deletes everything in the namespace. As long as there are pods, nothing else is deleted: what
/// they use must not go before them.
pub(super) async fn delete_all(
    client: &Client,
    clock: &Clock,
    namespace: &Namespace,
) -> Result<Outcome, kube::Error> {
    let name = namespace.metadata.name.as_deref().unwrap_or_default();
    let deleted = namespace.metadata.deletion_timestamp.as_ref();
    let since = deleted.map(Timestamp::from_api).unwrap_or_default();
    let elapsed_secs = clock.now().saturating_since(since).as_secs();
    let mut outcome = Outcome::default();
    let kinds = match discover(client).await {
        Ok(kinds) => kinds,
        Err(error) => {
            outcome.progress.discovery_failure = Some(error.to_string());
            outcome.errors.push(error.to_string());
            return Ok(outcome);
        }
    };
    let namespaced = kinds.preferred().iter().filter(|kind| kind.is_namespaced);
    let deletable = namespaced.filter(|kind| kind.supports("delete"));
    let (pods, others): (Vec<&Kind>, Vec<&Kind>) = deletable.partition(|kind| is_pods(kind));
    for kind in pods {
        let estimate_secs = estimate_pods(client, name, elapsed_secs).await?;
        delete_kind(client, kind, name, estimate_secs, &mut outcome).await;
        if outcome.progress.remaining.take().is_some() {
            // Not reported yet, as upstream does not: the rest may be gone when the pods are.
            outcome.progress.finalizers.clear();
            return Ok(outcome);
        }
    }
    outcome.progress.remaining = Some(BTreeMap::new());
    for kind in others {
        delete_kind(client, kind, name, 0, &mut outcome).await;
    }
    Ok(outcome)
}

fn is_pods(kind: &Kind) -> bool {
    kind.resource.group.is_empty() && kind.resource.plural == "pods"
}

/// How long the pods may take that are not over yet; zero once the namespace has been deleted for
/// so long.
async fn estimate_pods(
    client: &Client,
    namespace: &str,
    elapsed_secs: u64,
) -> Result<u64, kube::Error> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pods = watching::list(api, &ListParams::default()).await?;
    let graces = pods.iter().filter_map(|pod| {
        let grace = pod.spec.as_ref()?.termination_grace_period_seconds?;
        u64::try_from(grace).ok().filter(|_| !is_terminal(pod))
    });
    let estimate_secs = graces.max().unwrap_or(0);
    Ok(match elapsed_secs >= estimate_secs {
        true => 0,
        false => estimate_secs,
    })
}

async fn delete_kind(
    client: &Client,
    kind: &Kind,
    namespace: &str,
    estimate_secs: u64,
    outcome: &mut Outcome,
) {
    let describe = |error: &str| match is_pods(kind) {
        true => format!("failed to delete pods for namespace: {namespace}, err: {error}"),
        false => error.to_owned(),
    };
    let api: Api<Metadata> = Api::namespaced_with(client.clone(), namespace, &kind.resource);
    match delete_and_count(&api, kind, estimate_secs).await {
        Ok(left) => {
            if left.is_unexpected {
                let resource = kind.group_version_resource();
                let error = format!(
                    "unexpected items still remain in namespace: {namespace} for gvr: {resource}"
                );
                outcome.fail(error.clone(), describe(&error));
            }
            outcome.add(kind, left);
        }
        Err(error) => {
            let error = error.to_string();
            outcome.fail(error.clone(), describe(&error));
            outcome.estimate_secs = outcome.estimate_secs.max(estimate_secs);
        }
    }
}

async fn delete_and_count(
    api: &Api<Metadata>,
    kind: &Kind,
    estimate_secs: u64,
) -> Result<Remaining, kube::Error> {
    // The objects need no protection from each other's deletion: all of them go.
    let background = DeleteParams::background();
    let all = ListParams::default();
    if kind.supports("deletecollection") {
        let deleted = api.delete_collection(&background, &all).await;
        ignore_unsupported(deleted.map(drop))?;
    } else if kind.supports("list") {
        for object in api.list(&all).await?.items {
            let name = object.metadata.name.unwrap_or_default();
            let deleted = api.delete(&name, &background).await;
            ignore_unsupported(deleted.map(drop))?;
        }
    }
    if !kind.supports("list") {
        return Ok(Remaining {
            estimate_secs,
            ..Remaining::default()
        });
    }
    let objects = api.list(&all).await?.items;
    let mut left = Remaining {
        count: objects.len(),
        ..Remaining::default()
    };
    for object in objects {
        for finalizer in object.metadata.finalizers.into_iter().flatten() {
            *left.finalizers.entry(finalizer).or_default() += 1;
        }
    }
    if left.count > 0 {
        left.estimate_secs = match (estimate_secs, left.finalizers.is_empty()) {
            (0, true) => {
                left.is_unexpected = true;
                0
            }
            (0, false) => FINALIZER_ESTIMATE_SECS,
            (estimate_secs, _) => estimate_secs,
        };
    }
    Ok(left)
}

/// Objects that are gone, and kinds that cannot be deleted, are no failures.
fn ignore_unsupported(result: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match result {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => Ok(()),
        result => result,
    }
}
