//! Resources of a pod that are changed while it runs.
//!
//! The spec is not what the pod has: the node first has to set the resources aside (*allocate*),
//! then to write them into cgroups (*actuate*). Workers only ever see the allocated resources. Matches
//! v1.36 pkg/kubelet/allocation.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodCondition, ResourceRequirements};
use plimsoll_core::object::pod::{Overhead, PodView, QosClass, Requirements};
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::resources::ResourceName;
use serde_json::json;

use crate::pod_fields;

/// The condition of a pod whose resources are being changed.
pub const IN_PROGRESS: &str = "PodResizeInProgress";
/// The condition of a pod whose resources cannot be changed yet.
pub const PENDING: &str = "PodResizePending";
/// The reason for a change that has to wait for room.
pub const DEFERRED: &str = "Deferred";
/// The reason for a change that went wrong.
pub const ERROR: &str = "Error";

/// What the node has set aside for a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocation {
    containers: BTreeMap<String, Option<ResourceRequirements>>,
    pod: Option<ResourceRequirements>,
}

impl Allocation {
    /// The requests of the pod.
    pub fn of(pod: &Pod) -> Allocation {
        Allocation {
            containers: containers(pod)
                .map(|container| (container.name.clone(), container.resources.clone()))
                .collect(),
            pod: pod_fields::spec(pod).and_then(|spec| spec.resources.clone()),
        }
    }

    /// What a pod was given before the agent was restarted, as far as its status shows.
    pub fn recovered(pod: &Pod) -> Allocation {
        let mut allocation = Allocation::of(pod);
        let Some(status) = &pod.status else {
            return allocation;
        };
        let init = status.init_container_statuses.iter().flatten();
        let app = status.container_statuses.iter().flatten();
        for own in init.chain(app) {
            let Some(place) = allocation.containers.get_mut(&own.name) else {
                continue;
            };
            let Some(requests) = own.allocated_resources.clone() else {
                continue;
            };
            let stated = place.clone().unwrap_or_default();
            let given = ResourceRequirements {
                requests: Some(requests),
                ..stated.clone()
            };
            if is_same(Some(&stated), Some(&given)) {
                continue;
            }
            let limits = own.resources.as_ref().and_then(|r| r.limits.clone());
            *place = Some(ResourceRequirements {
                limits: limits.or(given.limits),
                ..given
            });
        }
        allocation
    }

    /// The pod with the resources allocated to it, if those differ from its requests.
    pub fn applied_to(&self, pod: &Pod) -> Option<Pod> {
        let differs = |container: &Container| {
            let allocated = self.containers.get(&container.name);
            allocated.is_some_and(|own| !is_same(own.as_ref(), container.resources.as_ref()))
        };
        let stated = pod_fields::spec(pod).and_then(|spec| spec.resources.as_ref());
        let differs_as_pod = !is_same(self.pod.as_ref(), stated);
        if !differs_as_pod && !containers(pod).any(differs) {
            return None;
        }
        let mut pod = pod.clone();
        let spec = pod.spec.get_or_insert_default();
        if differs_as_pod {
            spec.resources.clone_from(&self.pod);
        }
        let init = spec.init_containers.iter_mut().flatten();
        for container in init.chain(&mut spec.containers) {
            if let Some(allocated) = self.containers.get(&container.name) {
                container.resources.clone_from(allocated);
            }
        }
        Some(pod)
    }
}

fn containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    let init = pod_fields::init_containers(pod).iter();
    init.chain(pod_fields::app_containers(pod))
}

/// Whether two statements mean the same amounts.
fn is_same(one: Option<&ResourceRequirements>, other: Option<&ResourceRequirements>) -> bool {
    let parse = |stated| Requirements::from_api("", stated, &mut Vec::new());
    parse(one) == parse(other)
}

/// Sorts the pods that wait for resources: first those that request no more, then by higher priority,
/// `Guaranteed`, longest wait.
pub fn rank(wanted: &Pod, allocated: &Pod, conditions: &[PodCondition]) -> impl Ord + use<> {
    let requests = |pod: &Pod| {
        let view = PodView::from_api(pod).unwrap_or_default();
        let requests = view.requests(Overhead::Excluded);
        let amount = |name| requests.get_or_zero(&name);
        let sums = (amount(ResourceName::CPU), amount(ResourceName::MEMORY));
        (sums, view)
    };
    let (new, view) = requests(wanted);
    let (old, _) = requests(allocated);
    let is_growing = new.0 > old.0 || new.1 > old.1;
    let since = conditions
        .iter()
        .filter(|condition| condition.type_ == PENDING)
        .find_map(|condition| condition.last_transition_time.as_ref())
        .map_or(i64::MAX, |time| Timestamp::from_api(time).as_nanos());
    (
        is_growing,
        std::cmp::Reverse(view.priority.unwrap_or(0)),
        view.qos_class() != QosClass::Guaranteed,
        since,
    )
}

/// Sets a condition about a resize; answers whether it says something new.
///
/// The generation of one in progress is that of its beginning, and what went wrong is not
/// forgotten by going on.
pub fn set_condition(
    conditions: &mut Vec<PodCondition>,
    kind: &str,
    reason: &str,
    message: &str,
    generation: i64,
    now: Timestamp,
) -> bool {
    let known = conditions.iter().position(|known| known.type_ == kind);
    let known = known.map(|index| conditions.remove(index));
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let mut condition = PodCondition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        reason: text(reason),
        message: text(message),
        observed_generation: Some(generation).filter(|generation| *generation != 0),
        last_probe_time: Some(now.to_api_seconds()),
        last_transition_time: Some(now.to_api_seconds()),
    };
    let mut is_news = true;
    if let Some(known) = known {
        if kind == IN_PROGRESS {
            condition.observed_generation = known.observed_generation;
            if reason.is_empty() && message.is_empty() {
                condition.reason.clone_from(&known.reason);
                condition.message.clone_from(&known.message);
            }
        }
        is_news = condition.reason != known.reason
            || condition.observed_generation != known.observed_generation
            || kind == IN_PROGRESS && condition.message != known.message;
        if condition.reason == known.reason {
            condition.last_transition_time = known.last_transition_time;
        }
    }
    conditions.push(condition);
    conditions.sort_by(|a, b| b.type_.cmp(&a.type_));
    is_news
}

/// Takes a condition away; answers the generation it was about.
pub fn clear_condition(conditions: &mut Vec<PodCondition>, kind: &str) -> Option<i64> {
    let index = conditions.iter().position(|known| known.type_ == kind)?;
    let known = conditions.remove(index);
    Some(known.observed_generation.unwrap_or_default())
}

/// The event message about a resize: what happened and the resources it is about.
pub fn message(prefix: &str, pod: &Pod, generation: i64, error: &str) -> String {
    let list = |containers: &[Container]| {
        let listed = containers.iter().map(|container| {
            json!({"name": container.name, "resources": container.resources.clone().unwrap_or_default()})
        });
        listed.collect::<Vec<_>>()
    };
    let mut summary = serde_json::Map::new();
    for (key, containers) in [
        ("initContainers", pod_fields::init_containers(pod)),
        ("containers", pod_fields::app_containers(pod)),
    ] {
        if !containers.is_empty() {
            summary.insert(key.to_owned(), list(containers).into());
        }
    }
    summary.insert("generation".to_owned(), generation.into());
    if !error.is_empty() {
        summary.insert("error".to_owned(), error.into());
    }
    format!("{prefix}: {}", ordered(&summary))
}

/// JSON with the members in the order upstream's struct has them.
fn ordered(summary: &serde_json::Map<String, serde_json::Value>) -> String {
    let order = ["initContainers", "containers", "generation", "error"];
    let members: Vec<String> = order
        .into_iter()
        .filter_map(|key| Some(format!("{:?}:{}", key, summary.get(key)?)))
        .collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(cpu: &str, allocated: Option<&str>) -> Pod {
        serde_json::from_value(json!({
            "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": cpu}}}]},
            "status": {"containerStatuses": allocated.iter().map(|cpu| json!({
                "name": "a", "ready": true, "restartCount": 0, "image": "", "imageID": "",
                "allocatedResources": {"cpu": cpu},
            })).collect::<Vec<_>>()},
        }))
        .unwrap()
    }

    fn cpu_of(pod: &Pod) -> String {
        let resources = pod_fields::app_containers(pod)[0].resources.clone();
        resources.unwrap().requests.unwrap()["cpu"].0.clone()
    }

    #[test]
    fn allocated_resources_override_the_spec() {
        let allocation = Allocation::of(&pod("1", None));
        assert_eq!(allocation.applied_to(&pod("1000m", None)), None);
        let held_back = allocation.applied_to(&pod("2", None)).unwrap();
        assert_eq!(cpu_of(&held_back), "1");
    }

    #[test]
    fn after_a_restart_allocation_is_read_from_the_status() {
        let recovered = Allocation::recovered(&pod("2", Some("1")));
        assert_eq!(cpu_of(&recovered.applied_to(&pod("2", None)).unwrap()), "1");
        let unchanged = Allocation::recovered(&pod("2", Some("2")));
        assert_eq!(unchanged.applied_to(&pod("2", None)), None);
    }

    #[test]
    fn resizes_without_an_increase_are_first() {
        let (small, large) = (pod("1", None), pod("2", None));
        assert!(rank(&small, &large, &[]) < rank(&large, &small, &[]));
    }

    #[test]
    fn resize_condition_keeps_its_error_and_generation() {
        let mut conditions = Vec::new();
        let (first, later) = (Timestamp::from_secs(1), Timestamp::from_secs(2));
        assert!(set_condition(
            &mut conditions,
            IN_PROGRESS,
            "",
            "",
            3,
            first
        ));
        assert!(set_condition(
            &mut conditions,
            IN_PROGRESS,
            ERROR,
            "bad",
            4,
            later
        ));
        assert!(!set_condition(
            &mut conditions,
            IN_PROGRESS,
            "",
            "",
            5,
            later
        ));
        assert_eq!(conditions[0].observed_generation, Some(3));
        assert_eq!(conditions[0].message.as_deref(), Some("bad"));
        assert!(set_condition(
            &mut conditions,
            PENDING,
            DEFERRED,
            "full",
            5,
            first
        ));
        assert!(!set_condition(
            &mut conditions,
            PENDING,
            DEFERRED,
            "fuller",
            5,
            later
        ));
        assert_eq!(conditions[0].type_, PENDING);
        assert_eq!(
            conditions[0].last_transition_time,
            Some(first.to_api_seconds())
        );
        assert_eq!(clear_condition(&mut conditions, IN_PROGRESS), Some(3));
        assert_eq!(clear_condition(&mut conditions, IN_PROGRESS), None);
    }

    #[test]
    fn messages_list_the_resources() {
        let text = message("Pod resize started", &pod("2", None), 7, "");
        assert_eq!(
            text,
            "Pod resize started: {\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"2\"}}}],\"generation\":7}"
        );
    }
}
