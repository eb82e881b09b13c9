//! The status of a daemon set.

use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetStatus};
use k8s_openapi::api::core::v1::Node;
use plimsoll_core::object::timestamp::Timestamp;

use crate::workloads::pod_state;

use super::fit::{Fit, Fitness};
use super::placement::{Placement, sort_by_age};
use super::rolling::is_updated;

/// The status of the set. The generation counts as observed only if the set was worked on, and not
/// merely looked at while its orders are under way.
pub fn compute_status(
    set: &DaemonSet,
    nodes: &[&Node],
    placed: &Placement<'_>,
    hash: &str,
    was_worked_on: bool,
    now: Timestamp,
) -> DaemonSetStatus {
    let fitness = Fitness::of(set);
    let min_ready = set
        .spec
        .as_ref()
        .and_then(|spec| spec.min_ready_seconds)
        .unwrap_or(0);
    let mut status = set.status.clone().unwrap_or_default();
    let (mut desired, mut current, mut misplaced) = (0, 0, 0);
    let (mut ready, mut available, mut updated) = (0, 0, 0);
    for node in nodes {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let mut pods = placed.get(name).cloned().unwrap_or_default();
        if fitness.on(node) != Fit::Run {
            misplaced += i32::from(!pods.is_empty());
            continue;
        }
        desired += 1;
        sort_by_age(&mut pods);
        let Some(oldest) = pods.first() else {
            continue;
        };
        current += 1;
        ready += i32::from(pod_state::is_ready(oldest));
        available += i32::from(pod_state::is_available(oldest, min_ready, now));
        updated += i32::from(is_updated(set, oldest, hash));
    }
    status.desired_number_scheduled = desired;
    status.current_number_scheduled = current;
    status.number_misscheduled = misplaced;
    status.number_ready = ready;
    status.number_available = nonzero(available);
    status.number_unavailable = nonzero(desired - available);
    status.updated_number_scheduled = nonzero(updated);
    if was_worked_on {
        status.observed_generation = set.metadata.generation;
    }
    status
}

/// Whether the stored status contains everything in the computed one, so that no write is needed.
pub fn is_status_current(stored: Option<&DaemonSetStatus>, computed: &DaemonSetStatus) -> bool {
    let mut stored = stored.cloned().unwrap_or_default();
    for number in [
        &mut stored.number_available,
        &mut stored.number_unavailable,
        &mut stored.updated_number_scheduled,
    ] {
        *number = number.filter(|value| *value != 0);
    }
    stored == *computed
}

fn nonzero(value: i32) -> Option<i32> {
    (value != 0).then_some(value)
}
