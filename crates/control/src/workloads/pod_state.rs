//! The state of a pod as controllers see it: is it ready, does it count, and since when.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};
pub use plimsoll_core::object::pod::{is_terminal, phase};
use plimsoll_core::object::timestamp::Timestamp;

/// The pod's name; empty where it has none yet.
pub fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

/// The pod's uid; empty where it has none yet.
pub fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

/// The node the pod is bound to; empty before it is.
pub fn node_name(pod: &Pod) -> &str {
    let spec = pod.spec.as_ref();
    spec.and_then(|s| s.node_name.as_deref())
        .unwrap_or_default()
}

/// The value of a label, if the pod has it.
pub fn label<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    let labels = pod.metadata.labels.as_ref()?;
    labels.get(key).map(String::as_str)
}

/// The value of an annotation, if the pod has it.
pub fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    let annotations = pod.metadata.annotations.as_ref()?;
    annotations.get(key).map(String::as_str)
}

/// The condition of that type.
pub fn condition<'a>(pod: &'a Pod, type_: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_deref()?;
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the pod is ready to serve.
pub fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Since when a ready pod is ready.
pub fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|ready| ready.status == "True")?;
    ready.last_transition_time.as_ref().map(Timestamp::from_api)
}

/// Whether the pod has been ready for that many seconds.
pub fn is_available(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> bool {
    is_ready(pod)
        && (min_ready_seconds == 0
            || ready_since(pod).is_some_and(|since| after(since, min_ready_seconds.into()) <= now))
}

/// The time so many seconds later; saturates.
pub fn after(time: Timestamp, seconds: i64) -> Timestamp {
    let nanos = seconds.saturating_mul(1_000_000_000);
    Timestamp::from_nanos(time.as_nanos().saturating_add(nanos))
}

/// How long from one time to a later one; nothing if it is not later.
pub fn until(from: Timestamp, to: Timestamp) -> Duration {
    to.saturating_since(from)
}

/// How long until the next of the ready pods becomes available; `None` if none will.
pub fn until_next_available<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    min_ready_seconds: i32,
    now: Timestamp,
) -> Option<Duration> {
    let times = pods
        .into_iter()
        .filter_map(|pod| Some(after(ready_since(pod)?, min_ready_seconds.into())));
    let next = times.filter(|time| *time > now).min()?;
    Some(until(now, next))
}

/// Whether the pod counts as running: it has not ended and is not being deleted.
pub fn is_active(pod: &Pod) -> bool {
    !is_terminal(pod) && pod.metadata.deletion_timestamp.is_none()
}

/// Whether the pod is being deleted and has not ended yet.
pub fn is_terminating(pod: &Pod) -> bool {
    !is_terminal(pod) && pod.metadata.deletion_timestamp.is_some()
}

/// When the pod was created.
pub fn created(pod: &Pod) -> Option<Timestamp> {
    let time = pod.metadata.creation_timestamp.as_ref();
    time.map(Timestamp::from_api)
}

/// The statuses of the pod's containers, without those that run first.
pub fn container_statuses(pod: &Pod) -> &[ContainerStatus] {
    let status = pod.status.as_ref();
    status
        .and_then(|s| s.container_statuses.as_deref())
        .unwrap_or_default()
}

/// The statuses of the pod's init containers.
pub fn init_container_statuses(pod: &Pod) -> &[ContainerStatus] {
    let status = pod.status.as_ref();
    status
        .and_then(|s| s.init_container_statuses.as_deref())
        .unwrap_or_default()
}

/// The statuses of the init containers that keep running beside the others.
pub fn sidecar_statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let is_sidecar = |name: &str| {
        let containers = pod
            .spec
            .iter()
            .flat_map(|s| s.init_containers.iter().flatten());
        containers
            .filter(|c| c.restart_policy.as_deref() == Some("Always"))
            .any(|c| c.name == name)
    };
    init_container_statuses(pod)
        .iter()
        .filter(move |status| is_sidecar(&status.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(value: Value) -> Pod {
        serde_json::from_value(value).unwrap()
    }

    fn ready(since: Option<&str>) -> Pod {
        let condition = json!({"type": "Ready", "status": "True", "lastTransitionTime": since});
        pod(json!({"status": {"phase": "Running", "conditions": [condition]}}))
    }

    #[test]
    fn a_pod_is_available_once_it_was_ready_long_enough() {
        let at = |text: &str| Timestamp::from_rfc3339(text).unwrap();
        let since = ready(Some("2026-01-01T00:00:00Z"));
        assert!(is_available(&since, 0, at("2026-01-01T00:00:00Z")));
        assert!(!is_available(&since, 10, at("2026-01-01T00:00:09Z")));
        assert!(is_available(&since, 10, at("2026-01-01T00:00:10Z")));
        assert!(is_available(&ready(None), 0, Timestamp::default()));
        assert!(!is_available(&ready(None), 1, at("2026-01-01T00:00:10Z")));
        assert_eq!(
            until_next_available([&since, &ready(None)], 10, at("2026-01-01T00:00:04Z")),
            Some(Duration::from_secs(6))
        );
        assert_eq!(
            until_next_available([&since], 10, at("2026-01-01T00:00:10Z")),
            None
        );
    }

    #[test]
    fn finished_and_terminating_pods_are_not_active() {
        let gone = "2026-01-01T00:00:00Z";
        let cases = [
            (json!({}), true, false),
            (json!({"status": {"phase": "Running"}}), true, false),
            (json!({"status": {"phase": "Failed"}}), false, false),
            (
                json!({"metadata": {"deletionTimestamp": gone}}),
                false,
                true,
            ),
            (
                json!({"metadata": {"deletionTimestamp": gone}, "status": {"phase": "Succeeded"}}),
                false,
                false,
            ),
        ];
        for (value, active, terminating) in cases {
            let pod = pod(value);
            assert_eq!(
                (is_active(&pod), is_terminating(&pod)),
                (active, terminating)
            );
        }
    }
}
