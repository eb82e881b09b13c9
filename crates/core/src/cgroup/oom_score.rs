//! `oom_score_adj`: which containers the kernel kills first when the node is out of memory.

use crate::object::pod::{ContainerKind, ContainerView, PodView, QosClass};
use crate::resources::{Bytes, ResourceList, ResourceName};

const GUARANTEED: i64 = -997;
const BEST_EFFORT: i64 = 1000;

/// The `oom_score_adj` of a container on a machine with that much memory.
///
/// A Burstable container gets 1000 - 1000 * request / memory, within 3 and 999, so that it scores
/// about 1000 once it uses its request, and more than a container which stays below. What the pod
/// requests beyond its containers is shared among them equally. A sidecar is no likelier killed
/// than the smallest regular container. Matches v1.36 pkg/kubelet/qos/policy.go.
///
/// On 32Gi a request of 4Gi gives 875.
pub fn oom_score_adj(pod: &PodView, container: &ContainerView, machine_memory: Bytes) -> i64 {
    if pod.is_node_critical() {
        return GUARANTEED;
    }
    match pod.qos_class() {
        QosClass::Guaranteed => return GUARANTEED,
        QosClass::BestEffort => return BEST_EFFORT,
        QosClass::Burstable => {}
    }
    let surplus = surplus_per_container(pod);
    let adjustment = |request: i64| {
        let used = request.wrapping_add(surplus).wrapping_mul(1000);
        1000i64.wrapping_sub(used.checked_div(machine_memory.0).unwrap_or(0))
    };
    let mut adj = adjustment(memory_request(&container.resources.requests));
    if container.kind == ContainerKind::Sidecar {
        let requests = pod
            .containers
            .iter()
            .map(|c| memory_request(&c.resources.requests));
        adj = adj.min(adjustment(requests.min().unwrap_or(0)));
    }
    match adj.max(1000 + GUARANTEED) {
        BEST_EFFORT => BEST_EFFORT - 1,
        adj => adj,
    }
}

fn memory_request(requests: &ResourceList) -> i64 {
    requests.get_or_zero(&ResourceName::MEMORY).value()
}

/// An equal part of what the pod requests beyond the sum of its containers.
fn surplus_per_container(pod: &PodView) -> i64 {
    let Some(pod_level) = pod
        .resources
        .as_ref()
        .filter(|_| pod.has_pod_level_requests())
    else {
        return 0;
    };
    let requested = pod_level.requests.get_or_zero(&ResourceName::MEMORY);
    if requested.is_zero() {
        return 0;
    }
    let of_containers = memory_request(&pod.aggregate(|resources| &resources.requests));
    let count = i64::try_from(pod.all_containers().count()).unwrap_or(i64::MAX);
    let surplus = requested.value().wrapping_sub(of_containers);
    surplus.checked_div(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burstable(request: &str) -> PodView {
        let mut container = ContainerView::default();
        let memory = request.parse().unwrap();
        container
            .resources
            .requests
            .insert(ResourceName::MEMORY, memory);
        PodView {
            containers: vec![container],
            stored_qos_class: Some(QosClass::Burstable),
            ..PodView::default()
        }
    }

    #[test]
    fn the_more_a_burstable_container_requests_the_later_it_is_killed() {
        for (request, want) in [
            ("0", 999),
            ("32Mi", 999),
            ("1Gi", 969),
            ("4Gi", 875),
            ("16Gi", 500),
            ("32Gi", 3),
        ] {
            let pod = burstable(request);
            let adj = oom_score_adj(&pod, &pod.containers[0], Bytes(32 << 30));
            assert_eq!(adj, want, "{request}");
        }
    }

    #[test]
    fn machine_without_memory_does_not_panic() {
        let pod = burstable("1Gi");
        assert_eq!(oom_score_adj(&pod, &pod.containers[0], Bytes::ZERO), 999);
    }
}
