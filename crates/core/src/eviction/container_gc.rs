//! Which dead containers, sandboxes and logs go.
//!
//! Matches v1.36 pkg/kubelet/kuberuntime/kuberuntime_gc.go, with ties by id where upstream walks
//! a map.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::object::identity::PodUid;
use crate::object::timestamp::Timestamp;
use crate::threshold::Duration;

/// What is kept of dead containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long every one is kept.
    pub min_age: Duration,
    /// How many of each container of a pod; `None` for all.
    pub max_per_pod_container: Option<usize>,
    /// How many in all; `None` for all.
    pub max_containers: Option<usize>,
}

impl Default for Policy {
    /// One dead instance of each container, so that its log can be read.
    fn default() -> Policy {
        Policy {
            min_age: Duration::ZERO,
            max_per_pod_container: Some(1),
            max_containers: None,
        }
    }
}

/// How far a pod is gone. Pods that are not listed are gone altogether.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodState {
    /// It runs, or may run again.
    Living,
    /// It has ended for good, but its object is still there.
    Ended,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The periodic run: ended pods keep what the policy lets them keep.
    Periodic,
    /// Eviction: ended pods lose everything.
    AllUnused,
}

/// A container as the runtime lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its id.
    pub id: String,
    /// Its name in the pod.
    pub name: String,
    /// Its pod.
    pub pod: PodUid,
    /// The sandbox it is in.
    pub sandbox: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// How it is.
    pub state: ContainerState,
}

/// How a container is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerState {
    /// Running.
    Running,
    /// Created or exited.
    Stopped,
    /// The runtime does not know; it may run.
    Unknown,
}

/// A sandbox as the runtime lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// Its id.
    pub id: String,
    /// Its pod.
    pub pod: PodUid,
    /// When it was created.
    pub created_at: Timestamp,
    /// Whether it is ready.
    pub is_ready: bool,
}

/// What there is.
#[derive(Clone, Copy, Debug)]
pub struct Inventory<'a> {
    /// All containers.
    pub containers: &'a [Container],
    /// All sandboxes.
    pub sandboxes: &'a [Sandbox],
    /// Pods whose log directory is there.
    pub logs: &'a [PodUid],
    /// The pods the node knows.
    pub pods: &'a BTreeMap<PodUid, PodState>,
    /// Whether the node knows all its pods. Until then nothing counts as deleted.
    pub are_all_pods_known: bool,
}

/// A container to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// Its id.
    pub id: String,
    /// Whether it has to be stopped first, because it may run.
    pub stop_first: bool,
}

/// What to remove. Sandboxes are judged again when the containers are gone: one that held a
/// removed container goes in the next run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Containers, in order.
    pub containers: Vec<Removal>,
    /// Sandboxes, in order.
    pub sandboxes: Vec<String>,
    /// Log directories of pods.
    pub logs: Vec<PodUid>,
}

/// What to remove of the dead containers.
pub fn plan_containers(
    now: Timestamp,
    policy: Policy,
    scope: Scope,
    inventory: Inventory<'_>,
) -> Vec<Removal> {
    let mut units: BTreeMap<(&PodUid, &str), Vec<&Container>> = BTreeMap::new();
    for container in inventory.containers {
        let is_old_enough = now - container.created_at >= policy.min_age;
        if container.state != ContainerState::Running && is_old_enough {
            let unit = (&container.pod, container.name.as_str());
            units.entry(unit).or_default().push(container);
        }
    }
    for containers in units.values_mut() {
        sort_newest_first(containers);
    }
    let mut removed = Vec::new();
    if inventory.are_all_pods_known {
        units.retain(|(pod, _), containers| {
            let loses_all = loses_all(pod, scope, inventory.pods);
            if loses_all {
                remove_beyond(containers, 0, &mut removed);
            }
            !loses_all
        });
    }
    if let Some(most) = policy.max_per_pod_container {
        for containers in units.values_mut() {
            remove_beyond(containers, most, &mut removed);
        }
    }
    if let Some(most) = policy.max_containers {
        remove_to_total(units.into_values().collect(), most, &mut removed);
    }
    removed
}

/// An equal number of each first, but at least one; then the oldest of all.
fn remove_to_total(mut units: Vec<Vec<&Container>>, most: usize, removed: &mut Vec<Removal>) {
    let count = |units: &[Vec<&Container>]| units.iter().map(Vec::len).sum::<usize>();
    if count(&units) <= most {
        return;
    }
    let share = (most / units.len()).max(1);
    for containers in &mut units {
        remove_beyond(containers, share, removed);
    }
    let mut rest = units.concat();
    sort_newest_first(&mut rest);
    remove_beyond(&mut rest, most, removed);
}

fn sort_newest_first(containers: &mut [&Container]) {
    containers.sort_by_key(|container| (Reverse(container.created_at), &container.id));
}

/// Keeps the first `keep`, removes the others, oldest first.
fn remove_beyond(containers: &mut Vec<&Container>, keep: usize, removed: &mut Vec<Removal>) {
    let beyond = containers.split_off(keep.min(containers.len()));
    removed.extend(beyond.into_iter().rev().map(|container| Removal {
        id: container.id.clone(),
        stop_first: container.state == ContainerState::Unknown,
    }));
}

fn loses_all(pod: &PodUid, scope: Scope, pods: &BTreeMap<PodUid, PodState>) -> bool {
    match pods.get(pod) {
        None => true,
        Some(PodState::Ended) => scope == Scope::AllUnused,
        Some(PodState::Living) => false,
    }
}

/// Sandboxes that are neither ready nor hold a container: all of them of pods that lose all, all
/// but the newest of others.
pub fn plan_sandboxes(scope: Scope, inventory: Inventory<'_>) -> Vec<String> {
    let containers = inventory.containers.iter();
    let held: BTreeSet<&str> = containers
        .map(|container| container.sandbox.as_str())
        .collect();
    let mut by_pod: BTreeMap<&PodUid, Vec<&Sandbox>> = BTreeMap::new();
    for sandbox in inventory.sandboxes {
        by_pod.entry(&sandbox.pod).or_default().push(sandbox);
    }
    let mut removed = Vec::new();
    for (pod, mut sandboxes) in by_pod {
        sandboxes.sort_by_key(|sandbox| (Reverse(sandbox.created_at), &sandbox.id));
        let keep = usize::from(!loses_all(pod, scope, inventory.pods));
        let beyond = sandboxes.into_iter().skip(keep).rev();
        let inactive = beyond.filter(|sandbox| !sandbox.is_ready && !held.contains(&*sandbox.id));
        removed.extend(inactive.map(|sandbox| sandbox.id.clone()));
    }
    removed
}

/// Log directories of pods that are gone, once all pods are known.
pub fn plan_logs(inventory: Inventory<'_>) -> Vec<PodUid> {
    if !inventory.are_all_pods_known {
        return Vec::new();
    }
    let gone = |pod: &&PodUid| !inventory.pods.contains_key(*pod);
    inventory.logs.iter().filter(gone).cloned().collect()
}

/// Everything that goes in one run, judged by one look.
pub fn plan(now: Timestamp, policy: Policy, scope: Scope, inventory: Inventory<'_>) -> Plan {
    Plan {
        containers: plan_containers(now, policy, scope, inventory),
        sandboxes: plan_sandboxes(scope, inventory),
        logs: plan_logs(inventory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(id: &str, pod: &str, second: i64, state: ContainerState) -> Container {
        Container {
            id: id.to_owned(),
            name: "c".to_owned(),
            pod: PodUid::new(pod),
            sandbox: format!("sandbox-{pod}"),
            created_at: Timestamp::from_secs(second),
            state,
        }
    }

    fn pods() -> BTreeMap<PodUid, PodState> {
        let pods = [("living", PodState::Living), ("ended", PodState::Ended)];
        pods.map(|(uid, state)| (PodUid::new(uid), state)).into()
    }

    fn removed(
        containers: &[Container],
        policy: Policy,
        scope: Scope,
        all_known: bool,
    ) -> Vec<String> {
        let pods = pods();
        let inventory = Inventory {
            containers,
            sandboxes: &[],
            logs: &[],
            pods: &pods,
            are_all_pods_known: all_known,
        };
        let plan = plan(Timestamp::from_secs(100), policy, scope, inventory);
        plan.containers
            .into_iter()
            .map(|removal| removal.id)
            .collect()
    }

    use ContainerState::{Running, Stopped, Unknown};

    #[test]
    fn the_newest_dead_instance_of_a_container_is_kept_for_its_log() {
        let containers = [
            container("first", "living", 1, Stopped),
            container("second", "living", 2, Unknown),
            container("third", "living", 3, Stopped),
            container("fourth", "living", 4, Running),
        ];
        let policy = Policy::default();
        let gone = removed(&containers, policy, Scope::Periodic, true);
        assert_eq!(gone, ["first", "second"], "running ones do not count");
    }

    #[test]
    fn eviction_also_removes_dead_containers_of_ended_pods() {
        let containers = [
            container("of-ended", "ended", 1, Stopped),
            container("of-gone", "gone", 1, Stopped),
            container("of-living", "living", 1, Stopped),
        ];
        let gone = |scope, all_known| removed(&containers, Policy::default(), scope, all_known);
        assert_eq!(gone(Scope::Periodic, true), ["of-gone"]);
        assert_eq!(gone(Scope::AllUnused, true), ["of-ended", "of-gone"]);
        assert_eq!(
            gone(Scope::AllUnused, false),
            [""; 0],
            "a pod may be unknown as yet"
        );
    }

    #[test]
    fn young_containers_stay_and_the_total_limit_removes_the_oldest() {
        let containers = [
            container("old", "living", 1, Stopped),
            container("ended", "ended", 50, Stopped),
            container("young", "young", 95, Stopped),
        ];
        let policy = Policy {
            min_age: Duration::from_secs(10),
            max_per_pod_container: None,
            max_containers: Some(1),
        };
        assert_eq!(removed(&containers, policy, Scope::Periodic, true), ["old"]);
    }

    #[test]
    fn empty_sandboxes_are_removed_except_the_newest_of_living_pods() {
        let sandbox = |id: &str, pod: &str, second, is_ready| Sandbox {
            id: id.to_owned(),
            pod: PodUid::new(pod),
            created_at: Timestamp::from_secs(second),
            is_ready,
        };
        let sandboxes = [
            sandbox("old", "living", 1, false),
            sandbox("new", "living", 2, false),
            sandbox("sandbox-gone", "gone", 1, false),
            sandbox("empty", "gone", 2, false),
            sandbox("ready", "gone", 3, true),
        ];
        let (containers, pods) = ([container("c", "gone", 1, Stopped)], pods());
        let inventory = Inventory {
            containers: &containers,
            sandboxes: &sandboxes,
            logs: &[PodUid::new("gone"), PodUid::new("ended")],
            pods: &pods,
            are_all_pods_known: true,
        };
        let now = Timestamp::from_secs(100);
        let plan = plan(now, Policy::default(), Scope::Periodic, inventory);
        assert_eq!(
            plan.sandboxes,
            ["empty", "old"],
            "one that holds a container waits for it"
        );
        assert_eq!(plan.logs, [PodUid::new("gone")]);
    }
}
