//! How many pods to make, or which to delete.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::object::timestamp::Timestamp;

use crate::workloads::deletion_order::{Ranked, sort_by_cost};
use crate::workloads::pod_state;

/// The most pods that are created or deleted before the outcome is observed.
pub const BURST_REPLICAS: usize = 500;

/// The creations and deletions that bring the number of pods to `spec.replicas`.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan<'a> {
    /// As many as wanted.
    Keep,
    /// Create this number.
    Create(usize),
    /// Delete these.
    Delete(Vec<&'a Pod>),
}

/// Compares the active pods with the wanted number. `sibling_pods` are the pods of all sets with the same
/// owner: of pods otherwise alike, those on nodes with more pods of the owner go first.
pub fn plan<'a>(
    replicas: i32,
    active: &[&'a Pod],
    sibling_pods: &[&Pod],
    now: Timestamp,
) -> Plan<'a> {
    let wanted = usize::try_from(replicas).unwrap_or(0);
    if active.len() < wanted {
        return Plan::Create((wanted - active.len()).min(BURST_REPLICAS));
    }
    let excess = (active.len() - wanted).min(BURST_REPLICAS);
    if excess == 0 {
        return Plan::Keep;
    }
    if excess == active.len() {
        return Plan::Delete(active.to_vec());
    }
    let mut on_node: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in sibling_pods.iter().filter(|pod| pod_state::is_active(pod)) {
        *on_node.entry(pod_state::node_name(pod)).or_default() += 1;
    }
    let mut ranked: Vec<Ranked<'a>> = active
        .iter()
        .map(|pod| Ranked {
            pod,
            neighbours: on_node.get(pod_state::node_name(pod)).copied().unwrap_or(0),
        })
        .collect();
    sort_by_cost(&mut ranked, now);
    Plan::Delete(
        ranked
            .iter()
            .take(excess)
            .map(|ranked| ranked.pod)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn pod(name: &str, node: &str) -> Pod {
        let value = json!({"metadata": {"name": name, "uid": name}, "spec": {"nodeName": node, "containers": []}});
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn missing_pods_are_made_in_bursts() {
        let now = Timestamp::default();
        assert_eq!(plan(3, &[], &[], now), Plan::Create(3));
        assert_eq!(plan(10_000, &[], &[], now), Plan::Create(BURST_REPLICAS));
        assert_eq!(plan(0, &[], &[], now), Plan::Keep);
    }

    #[test]
    fn pods_on_crowded_nodes_are_deleted_first() {
        let (a, b, c, other) = (
            pod("a", "n1"),
            pod("b", "n2"),
            pod("c", "n3"),
            pod("o", "n2"),
        );
        let active = [&a, &b, &c];
        let sibling_pods = [&a, &b, &c, &other];
        assert_eq!(
            plan(2, &active, &sibling_pods, Timestamp::default()),
            Plan::Delete(vec![&b])
        );
    }

    proptest! {
        #[test]
        fn plan_never_exceeds_replicas(replicas in -2_i32..1200, count in 0_usize..1200) {
            let pods: Vec<Pod> = (0..count).map(|i| pod(&i.to_string(), "n")).collect();
            let active: Vec<&Pod> = pods.iter().collect();
            let wanted = usize::try_from(replicas).unwrap_or(0);
            let after = match plan(replicas, &active, &active, Timestamp::default()) {
                Plan::Keep => { prop_assert_eq!(count, wanted); count }
                Plan::Create(more) => { prop_assert!(more <= BURST_REPLICAS); count + more }
                Plan::Delete(less) => {
                    prop_assert!(less.len() <= BURST_REPLICAS);
                    let mut names: Vec<&str> = less.iter().map(|pod| pod_state::name(pod)).collect();
                    names.sort_unstable();
                    names.dedup();
                    prop_assert_eq!(names.len(), less.len());
                    count - less.len()
                }
            };
            prop_assert!(after.abs_diff(wanted) <= count.abs_diff(wanted));
            prop_assert_eq!(after.cmp(&wanted) as i8 * count.cmp(&wanted) as i8 >= 0, true);
        }
    }
}
