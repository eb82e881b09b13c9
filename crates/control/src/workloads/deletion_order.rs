//! Which of too many pods go first.
//!
//! Matches v1.36 pkg/controller/controller_utils.go, `ActivePods` and `ActivePodsWithRanks`.

use std::cmp::Ordering;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::object::timestamp::Timestamp;

use super::pod_state;

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Puts the pods whose loss hurts least first: unassigned, then pending, then not ready, then
/// ready for the shortest time, then restarted most, then youngest.
pub fn sort_by_progress(pods: &mut [&Pod]) {
    pods.sort_by(|a, b| {
        by_stage(a, b)
            .then_with(|| later_first(pod_state::ready_since(a), pod_state::ready_since(b)))
            .then_with(|| by_restarts(a, b))
            .then_with(|| later_first(pod_state::created(a), pod_state::created(b)))
    });
}

/// A pod and how many pods of the same owner share its node.
#[derive(Clone, Copy, Debug)]
pub struct Ranked<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// The number of active pods of the same owner's owner on the pod's node.
    pub neighbours: usize,
}

/// Like [`sort_by_progress`], with the deletion cost annotation and crowded nodes. Times are
/// compared by their magnitude only, so that among pods of about the same age the uid decides:
/// always taking the youngest would empty the zone that was filled last.
///
/// Pods of the very same time are ordered by later rules and others by uid, so the order can run in
/// circles, which the sort of the standard library may answer with a panic. Each pod is put in its
/// place among those before it instead, which ends in some order whatever the comparisons are.
pub fn sort_by_cost(pods: &mut [Ranked<'_>], now: Timestamp) {
    for index in 1..pods.len() {
        let (sorted, rest) = pods.split_at(index);
        let place = sorted.partition_point(|other| by_cost(other, &rest[0], now).is_le());
        pods[place..=index].rotate_right(1);
    }
}

fn by_cost(a: &Ranked<'_>, b: &Ranked<'_>, now: Timestamp) -> Ordering {
    by_stage(a.pod, b.pod)
        .then_with(|| deletion_cost(a.pod).cmp(&deletion_cost(b.pod)))
        .then_with(|| b.neighbours.cmp(&a.neighbours))
        .then_with(|| {
            let times = [a, b].map(|ranked| pod_state::ready_since(ranked.pod));
            by_magnitude(a.pod, b.pod, times, now)
        })
        .then_with(|| by_restarts(a.pod, b.pod))
        .then_with(|| {
            let times = [a, b].map(|ranked| pod_state::created(ranked.pod));
            by_magnitude(a.pod, b.pod, times, now)
        })
}

fn by_stage(a: &Pod, b: &Pod) -> Ordering {
    let is_assigned = |pod| !pod_state::node_name(pod).is_empty();
    let progress = |pod| match pod_state::phase(pod) {
        "Unknown" => 1,
        "Running" => 2,
        _ => 0,
    };
    (is_assigned(a).cmp(&is_assigned(b)))
        .then_with(|| progress(a).cmp(&progress(b)))
        .then_with(|| pod_state::is_ready(a).cmp(&pod_state::is_ready(b)))
}

/// An unknown time counts as the latest of all.
fn later_first(a: Option<Timestamp>, b: Option<Timestamp>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.cmp(&a),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

fn by_magnitude(a: &Pod, b: &Pod, times: [Option<Timestamp>; 2], now: Timestamp) -> Ordering {
    let [Some(first), Some(second)] = times else {
        return later_first(times[0], times[1]);
    };
    if first == second {
        return Ordering::Equal;
    }
    let magnitude = |time: Timestamp| {
        let age = now.as_nanos().saturating_sub(time.as_nanos());
        u64::try_from(age).ok().and_then(u64::checked_ilog2)
    };
    magnitude(first)
        .cmp(&magnitude(second))
        .then_with(|| pod_state::uid(a).cmp(pod_state::uid(b)))
}

fn by_restarts(a: &Pod, b: &Pod) -> Ordering {
    let most = |pod| {
        let regular = pod_state::container_statuses(pod).iter();
        let sidecars = pod_state::sidecar_statuses(pod);
        let regular = regular.map(|status| status.restart_count).max();
        let sidecars = sidecars.map(|status| status.restart_count).max();
        (regular.unwrap_or(0).max(0), sidecars.unwrap_or(0).max(0))
    };
    most(b).cmp(&most(a))
}

/// The annotation as a 32-bit number without leading zeros or a plus sign; anything else costs
/// nothing.
fn deletion_cost(pod: &Pod) -> i32 {
    let text = pod_state::annotation(pod, DELETION_COST).unwrap_or("0");
    let is_canonical = text == "0" || text.starts_with(|c: char| matches!(c, '-' | '1'..='9'));
    text.parse().ok().filter(|_| is_canonical).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(name: &str, value: Value) -> Pod {
        let mut pod: Pod = serde_json::from_value(value).unwrap();
        pod.metadata.name = Some(name.to_owned());
        pod.metadata.uid = Some(name.to_owned());
        pod
    }

    fn ready(since: &str) -> Value {
        json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}])
    }

    fn names(pods: &[&Pod]) -> String {
        let names = pods.iter().map(|pod| pod_state::name(pod));
        names.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn least_advanced_pods_are_deleted_first() {
        let on_node = json!({"nodeName": "n", "containers": []});
        let restarted =
            json!([{"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 3}]);
        let pods = [
            pod("unbound", json!({"status": {"phase": "Pending"}})),
            pod(
                "pending",
                json!({"spec": on_node, "status": {"phase": "Pending"}}),
            ),
            pod(
                "unready",
                json!({"spec": on_node, "status": {"phase": "Running"}}),
            ),
            pod(
                "fresh",
                json!({"spec": on_node, "status": {"phase": "Running", "conditions": ready("2026-01-02T00:00:00Z")}}),
            ),
            pod(
                "shaky",
                json!({"spec": on_node, "status": {"phase": "Running", "conditions": ready("2026-01-01T00:00:00Z"), "containerStatuses": restarted}}),
            ),
            pod(
                "young",
                json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": on_node, "status": {"phase": "Running", "conditions": ready("2026-01-01T00:00:00Z")}}),
            ),
            pod(
                "old",
                json!({"metadata": {"creationTimestamp": "2025-01-01T00:00:00Z"}, "spec": on_node, "status": {"phase": "Running", "conditions": ready("2026-01-01T00:00:00Z")}}),
            ),
        ];
        let mut order: Vec<&Pod> = pods.iter().rev().collect();
        sort_by_progress(&mut order);
        assert_eq!(
            names(&order),
            "unbound pending unready fresh shaky young old"
        );
    }

    #[test]
    fn deletion_cost_and_crowding_precede_age() {
        let make = |name: &str, cost: &str| {
            pod(
                name,
                json!({"metadata": {"annotations": {DELETION_COST: cost}}, "spec": {"nodeName": "n", "containers": []}}),
            )
        };
        let pods = [
            make("cheap", "-5"),
            make("crowded", "0"),
            make("lonely", "+1"),
            make("dear", "7"),
        ];
        let mut ranked: Vec<Ranked<'_>> = pods
            .iter()
            .rev()
            .map(|pod| Ranked {
                pod,
                neighbours: usize::from(pod_state::name(pod) == "crowded"),
            })
            .collect();
        sort_by_cost(&mut ranked, Timestamp::default());
        let order: Vec<&Pod> = ranked.iter().map(|ranked| ranked.pod).collect();
        assert_eq!(names(&order), "cheap crowded lonely dear");
    }

    #[test]
    fn pods_of_similar_age_are_ordered_by_uid() {
        let now = Timestamp::from_rfc3339("2026-01-01T01:00:00Z").unwrap();
        let make =
            |name: &str, time: &str| pod(name, json!({"metadata": {"creationTimestamp": time}}));
        let pods = [
            make("z", "2026-01-01T00:59:59Z"),
            make("a", "2026-01-01T00:00:00Z"),
            make("b", "2026-01-01T00:00:10Z"),
        ];
        let mut ranked: Vec<Ranked<'_>> = pods
            .iter()
            .map(|pod| Ranked { pod, neighbours: 0 })
            .collect();
        sort_by_cost(&mut ranked, now);
        let order: Vec<&Pod> = ranked.iter().map(|ranked| ranked.pod).collect();
        assert_eq!(names(&order), "z a b");
    }

    #[test]
    fn cyclic_order_still_sorts() {
        let now = Timestamp::from_rfc3339("2026-01-01T01:00:00Z").unwrap();
        // Ready at one of two times of the same magnitude: those of one time sort by creation,
        // the others by uid, and the two contradict each other.
        let pods: Vec<Pod> = (0..500)
            .map(|i: u32| {
                let uid = format!("{:03}", i * 331 % 500);
                let since = format!("2026-01-01T00:00:{:02}Z", i % 2);
                let created = format!("2025-01-01T{:02}:00:00Z", i * 7 % 24);
                let value = json!({
                    "metadata": {"creationTimestamp": created},
                    "spec": {"nodeName": "n", "containers": []},
                    "status": {"phase": "Running", "conditions": ready(&since)},
                });
                pod(&uid, value)
            })
            .collect();
        let ranked = |pod| Ranked { pod, neighbours: 0 };
        let mut sorted: Vec<Ranked<'_>> = pods.iter().map(ranked).collect();
        sort_by_cost(&mut sorted, now);
        let mut uids: Vec<&str> = sorted.iter().map(|r| pod_state::uid(r.pod)).collect();
        uids.sort_unstable();
        uids.dedup();
        assert_eq!(uids.len(), pods.len());
    }
}
