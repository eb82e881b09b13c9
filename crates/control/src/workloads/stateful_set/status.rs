//! The status of a stateful set.

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;

use crate::workloads::pod_state;
use crate::workloads::revision::REVISION_HASH;

use super::identity::replicas;
use super::plan::View;

/// The status for these pods.
pub(super) fn compute_status<'p>(
    view: &View<'_>,
    pods: impl Iterator<Item = &'p Pod>,
) -> StatefulSetStatus {
    let spec = view.set.spec.as_ref();
    let min_ready = spec.and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
    let (mut all, mut ready, mut available, mut current, mut updated) = (0, 0, 0, 0, 0);
    for pod in pods {
        all += 1;
        if pod_state::phase(pod) == "Running" && pod_state::is_ready(pod) {
            ready += 1;
            available += i32::from(pod_state::is_available(pod, min_ready, view.now));
        }
        if pod.metadata.deletion_timestamp.is_none() {
            let revision = pod_state::label(pod, REVISION_HASH);
            current += i32::from(revision == Some(&view.current.name));
            updated += i32::from(revision == Some(&view.update.name));
        }
    }
    let stored = view.set.status.clone().unwrap_or_default();
    StatefulSetStatus {
        available_replicas: Some(available),
        collision_count: Some(view.collisions),
        conditions: stored.conditions,
        current_replicas: Some(current),
        current_revision: Some(view.current.name.clone()),
        observed_generation: view.set.metadata.generation,
        ready_replicas: Some(ready),
        replicas: all,
        update_revision: Some(view.update.name.clone()),
        updated_replicas: Some(updated),
    }
}

/// The new revision becomes the current one when all pods are of it and ready.
pub(super) fn complete_update(set: &StatefulSet, status: &mut StatefulSetStatus) {
    let spec = set.spec.as_ref();
    let strategy = spec.and_then(|spec| spec.update_strategy.as_ref());
    let is_rolling = strategy.is_some_and(|s| s.type_.as_deref() == Some("RollingUpdate"));
    let wanted = Some(replicas(set));
    if is_rolling
        && status.updated_replicas == wanted
        && status.ready_replicas == wanted
        && Some(status.replicas) == wanted
    {
        status.current_replicas = status.updated_replicas;
        status.current_revision.clone_from(&status.update_revision);
    }
}

/// Whether the stored status says the same as the computed one, so that no write is needed.
pub fn is_status_current(stored: Option<&StatefulSetStatus>, computed: &StatefulSetStatus) -> bool {
    let stored = stored.cloned().unwrap_or_default();
    let count = |number: Option<i32>| number.unwrap_or(0);
    let counts = |status: &StatefulSetStatus| {
        [
            status.replicas,
            count(status.ready_replicas),
            count(status.available_replicas),
            count(status.current_replicas),
            count(status.updated_replicas),
            count(status.collision_count),
        ]
    };
    counts(&stored) == counts(computed)
        && stored.current_revision == computed.current_revision
        && stored.update_revision == computed.update_revision
        && stored.observed_generation >= computed.observed_generation
}
