//! Which evicted pods are kept as a record.
//!
//! An evicted pod stays in the API as a failed object, and its owner makes another. On a node that
//! runs short again and again this leaves thousands of objects, which upstream removes only when
//! the whole cluster has more than 12,500 terminated pods. Here the last few of each owner are
//! kept, and none for longer than a day. Pods without an owner are the user's to delete and stay.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

use crate::object::identity::{PodRef, PodUid};
use crate::object::timestamp::Timestamp;

/// The limits of what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many evicted pods of an owner are kept; nothing for any number.
    pub keep_per_owner: Option<usize>,
    /// For how long evicted pods are kept; `None` for no limit.
    pub keep_for: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            keep_per_owner: Some(5),
            keep_for: Some(Duration::from_secs(24 * 60 * 60)),
        }
    }
}

/// An evicted pod that has an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictedPod {
    /// Namespace and name.
    pub pod: PodRef,
    /// The unique id.
    pub uid: PodUid,
    /// The unique id of the controller that made it.
    pub owner: String,
    /// When it was created.
    pub created: Timestamp,
    /// When it was evicted.
    pub evicted: Timestamp,
}

impl EvictedPod {
    /// Reads a pod, if it was evicted and has an owner.
    ///
    /// A pod with finalizers is still being counted by a controller (a Job, say), and one that
    /// terminates is removed anyway; neither is a record to be kept or removed.
    pub fn from_api(pod: &Pod) -> Option<EvictedPod> {
        let (meta, status) = (&pod.metadata, pod.status.as_ref()?);
        let is_evicted = status.phase.as_deref() == Some("Failed")
            && status.reason.as_deref() == Some("Evicted");
        let is_busy = meta.deletion_timestamp.is_some()
            || meta.finalizers.as_ref().is_some_and(|f| !f.is_empty());
        if !is_evicted || is_busy {
            return None;
        }
        let mut owners = meta.owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.controller == Some(true))?;
        let created = meta.creation_timestamp.as_ref();
        let created = created.map(Timestamp::from_api).unwrap_or_default();
        Some(EvictedPod {
            pod: PodRef {
                namespace: meta.namespace.clone().unwrap_or_default(),
                name: meta.name.clone().unwrap_or_default(),
            },
            uid: PodUid::new(meta.uid.clone().unwrap_or_default()),
            owner: owner.uid.clone(),
            created,
            evicted: evicted_at(pod).unwrap_or(created),
        })
    }
}

/// The condition that the node agent sets when it evicts has the time; evictions for exceeding a
/// local storage limit set none, but their containers ended.
fn evicted_at(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref()?;
    let mut conditions = status.conditions.iter().flatten();
    let target = conditions.find(|c| c.type_ == "DisruptionTarget");
    let by_condition = target.and_then(|c| c.last_transition_time.as_ref());
    let containers = status.container_statuses.iter().flatten();
    let ends = containers.filter_map(|container| {
        let ended = container.state.as_ref()?.terminated.as_ref()?;
        ended.finished_at.as_ref()
    });
    let last_end = ends.map(Timestamp::from_api).max();
    by_condition.map(Timestamp::from_api).or(last_end)
}

/// Why an evicted pod is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalReason {
    /// Its owner has this many younger ones.
    YoungerOnes(usize),
    /// It was evicted longer ago than pods are kept.
    Age(Duration),
}

/// The evicted pods to be removed at `now`, and why; oldest first within an owner.
pub fn plan(
    settings: Settings,
    pods: &[EvictedPod],
    now: Timestamp,
) -> Vec<(EvictedPod, RemovalReason)> {
    let mut by_owner: BTreeMap<&str, Vec<&EvictedPod>> = BTreeMap::new();
    for pod in pods {
        by_owner.entry(&pod.owner).or_default().push(pod);
    }
    let mut plan = Vec::new();
    for pods in by_owner.values_mut() {
        pods.sort_by_key(|pod| (pod.evicted, pod.created, &pod.pod));
        for (index, pod) in pods.iter().enumerate() {
            let younger = pods.len() - 1 - index;
            let age = now.saturating_since(pod.evicted);
            let because = match settings {
                Settings {
                    keep_per_owner: Some(keep),
                    ..
                } if younger >= keep => RemovalReason::YoungerOnes(younger),
                Settings {
                    keep_for: Some(keep),
                    ..
                } if age >= keep => RemovalReason::Age(age),
                _ => continue,
            };
            plan.push(((*pod).clone(), because));
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, owner: &str, evicted: i64) -> EvictedPod {
        EvictedPod {
            pod: PodRef {
                namespace: "default".to_owned(),
                name: name.to_owned(),
            },
            uid: PodUid::from(name),
            owner: owner.to_owned(),
            created: Timestamp::default(),
            evicted: Timestamp::from_secs(evicted),
        }
    }

    fn removed(settings: Settings, pods: &[EvictedPod], now: i64) -> Vec<String> {
        let plan = plan(settings, pods, Timestamp::from_secs(now)).into_iter();
        plan.map(|(pod, _)| pod.pod.name).collect()
    }

    #[test]
    fn the_last_few_of_each_owner_are_kept() {
        let settings = Settings {
            keep_per_owner: Some(2),
            ..Settings::default()
        };
        let pods = [
            pod("a3", "a", 30),
            pod("a1", "a", 10),
            pod("b1", "b", 1),
            pod("a2", "a", 20),
            pod("a0", "a", 0),
        ];
        assert_eq!(removed(settings, &pods, 40), ["a0", "a1"]);
        let none = Settings {
            keep_per_owner: Some(0),
            ..settings
        };
        assert_eq!(removed(none, &pods, 40).len(), 5);
    }

    #[test]
    fn records_are_kept_for_at_most_a_day() {
        let day = 24 * 60 * 60;
        let pods = [pod("old", "a", 0), pod("young", "a", 1)];
        assert_eq!(removed(Settings::default(), &pods, day), ["old"]);
        let for_ever = Settings {
            keep_per_owner: None,
            keep_for: None,
        };
        assert!(removed(for_ever, &pods, 100 * day).is_empty());
    }

    #[test]
    fn only_evicted_pods_with_an_owner_are_records() {
        let owners = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs",
                             "uid": "owner", "controller": true}]);
        let read = |meta: Value, status: Value| {
            let mut meta = meta;
            meta["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
            let pod = json!({"metadata": meta, "status": status});
            EvictedPod::from_api(&serde_json::from_value(pod).unwrap())
        };
        let evicted = json!({"phase": "Failed", "reason": "Evicted", "conditions": [
            {"type": "DisruptionTarget", "status": "True",
             "lastTransitionTime": "2026-01-01T00:05:00Z"},
        ]});
        let owned = json!({"name": "a", "ownerReferences": owners});
        let record = read(owned.clone(), evicted.clone()).unwrap();
        assert_eq!(record.evicted.to_string(), "2026-01-01T00:05:00Z");
        assert_eq!(read(json!({"name": "a"}), evicted.clone()), None);
        assert_eq!(
            read(owned.clone(), json!({"phase": "Failed", "reason": "OOM"})),
            None
        );
        for (field, value) in [
            ("finalizers", json!(["batch.kubernetes.io/job-tracking"])),
            ("deletionTimestamp", json!("2026-01-01T00:06:00Z")),
        ] {
            let mut busy = owned.clone();
            busy[field] = value;
            assert_eq!(read(busy, evicted.clone()), None);
        }
        let by_limit = json!({"phase": "Failed", "reason": "Evicted", "containerStatuses": [
            {"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0,
             "state": {"terminated": {"exitCode": 137, "finishedAt": "2026-01-01T00:07:00Z"}}},
        ]});
        let record = read(owned, by_limit).unwrap();
        assert_eq!(record.evicted.to_string(), "2026-01-01T00:07:00Z");
    }
}
