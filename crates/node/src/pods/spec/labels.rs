//! What sandboxes and containers carry, so that they are known again after a restart.
//!
//! Names match v1.36 pkg/kubelet/kuberuntime/labels.go.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, ContainerPort, LifecycleHandler, Pod};

use crate::pod_fields::identity;

/// Label: the pod's name.
pub const POD_NAME: &str = "io.kubernetes.pod.name";
/// Label: the pod's namespace.
pub const POD_NAMESPACE: &str = "io.kubernetes.pod.namespace";
/// Label: the pod's unique id.
pub const POD_UID: &str = "io.kubernetes.pod.uid";
/// Label: the container's name.
pub const CONTAINER_NAME: &str = "io.kubernetes.container.name";

/// Annotation: [`container_hash`] in hexadecimal.
pub const HASH: &str = "io.kubernetes.container.hash";
/// Annotation: how often the container was started before.
pub const RESTART_COUNT: &str = "io.kubernetes.container.restartCount";
/// Annotation: where the container leaves its last words.
pub const TERMINATION_MESSAGE_PATH: &str = "io.kubernetes.container.terminationMessagePath";
/// Annotation: where else they may be taken from.
pub const TERMINATION_MESSAGE_POLICY: &str = "io.kubernetes.container.terminationMessagePolicy";
/// Annotation: what to run before the container is stopped, as JSON.
pub const PRE_STOP_HANDLER: &str = "io.kubernetes.container.preStopHandler";
/// Annotation: the container's ports, as JSON.
pub const PORTS: &str = "io.kubernetes.container.ports";
/// Annotation: the grace period of the deletion that was under way.
pub const DELETION_GRACE_PERIOD: &str = "io.kubernetes.pod.deletionGracePeriod";
/// Annotation: the grace period in the pod's spec.
pub const TERMINATION_GRACE_PERIOD: &str = "io.kubernetes.pod.terminationGracePeriod";

/// The default of `terminationMessagePath`.
const TERMINATION_MESSAGE_FILE: &str = "/dev/termination-log";
/// The default of `terminationMessagePolicy`.
const FILE_POLICY: &str = "File";

/// The labels of a sandbox: the pod's own, and those that identify it.
pub fn sandbox_labels(pod: &Pod) -> BTreeMap<String, String> {
    let mut labels = pod.metadata.labels.clone().unwrap_or_default();
    labels.extend(pod_labels(pod));
    labels
}

/// The labels of a container.
pub fn container_labels(pod: &Pod, container: &Container) -> BTreeMap<String, String> {
    let mut labels = pod_labels(pod);
    labels.insert(CONTAINER_NAME.to_owned(), container.name.clone());
    labels
}

fn pod_labels(pod: &Pod) -> BTreeMap<String, String> {
    let (namespace, name, uid) = identity(pod);
    let labels = [(POD_NAME, name), (POD_NAMESPACE, namespace), (POD_UID, uid)];
    labels
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// The annotations of a container.
pub fn container_annotations(
    pod: &Pod,
    container: &Container,
    restart_count: u32,
) -> BTreeMap<String, String> {
    let policy = container.termination_message_policy.as_deref();
    let mut annotations: BTreeMap<String, String> = [
        (HASH, format!("{:x}", container_hash(container))),
        (RESTART_COUNT, restart_count.to_string()),
        (
            TERMINATION_MESSAGE_PATH,
            termination_message_path(container).to_owned(),
        ),
        (
            TERMINATION_MESSAGE_POLICY,
            policy.unwrap_or(FILE_POLICY).to_owned(),
        ),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    let mut add = |key: &str, value: Option<String>| {
        annotations.extend(value.map(|value| (key.to_owned(), value)));
    };
    let grace = pod.metadata.deletion_grace_period_seconds;
    add(DELETION_GRACE_PERIOD, grace.map(|secs| secs.to_string()));
    let spec = pod.spec.as_ref();
    let grace = spec.and_then(|spec| spec.termination_grace_period_seconds);
    add(TERMINATION_GRACE_PERIOD, grace.map(|secs| secs.to_string()));
    let hooks = container.lifecycle.as_ref();
    let pre_stop = hooks.and_then(|hooks| hooks.pre_stop.as_ref());
    add(
        PRE_STOP_HANDLER,
        pre_stop.and_then(|hook| serde_json::to_string(hook).ok()),
    );
    let ports = container.ports.as_ref().filter(|ports| !ports.is_empty());
    add(
        PORTS,
        ports.and_then(|ports| serde_json::to_string(ports).ok()),
    );
    annotations
}

/// Where the container leaves its last words; empty for nowhere.
pub fn termination_message_path(container: &Container) -> &str {
    let path = container.termination_message_path.as_deref();
    path.unwrap_or(TERMINATION_MESSAGE_FILE)
}

/// A number that changes when a container has to be started anew because its spec did.
///
/// Only name and image count, as nothing else of a running container can be changed in the API but
/// its resources, and those are changed in place. It is the kubelet's number, so that containers
/// survive a change of agent: FNV-1a over the way Go prints the bytes of `{"image":…,"name":…}`.
pub fn container_hash(container: &Container) -> u64 {
    let json = |text: &str| {
        let quoted = serde_json::Value::from(text).to_string();
        // Go escapes these in JSON.
        let quoted = quoted.replace('<', "\\u003c").replace('>', "\\u003e");
        quoted.replace('&', "\\u0026")
    };
    let image = json(container.image.as_deref().unwrap_or_default());
    let json = format!("{{\"image\":{image},\"name\":{}}}", json(&container.name));
    let numbers: Vec<String> = json.bytes().map(|byte| byte.to_string()).collect();
    let printed = format!("([]uint8)[{}]", numbers.join(" "));
    let hash = printed.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    hash.into()
}

/// What a container's annotations say about it, for an agent that knows nothing else any more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContainerNotes {
    /// [`container_hash`] of the spec it was made from.
    pub hash: u64,
    /// How often it was started before.
    pub restart_count: u32,
    /// Where it leaves its last words; empty for nowhere.
    pub termination_message_path: String,
    /// `File` or `FallbackToLogsOnError`.
    pub termination_message_policy: String,
    /// The grace period of the deletion that was under way.
    pub deletion_grace_period_secs: Option<i64>,
    /// The grace period in the pod's spec.
    pub termination_grace_period_secs: Option<i64>,
    /// What to run before it is stopped.
    pub pre_stop: Option<LifecycleHandler>,
    /// Its ports.
    pub ports: Vec<ContainerPort>,
}

impl ContainerNotes {
    /// Reads annotations; what is missing or malformed is left empty.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> ContainerNotes {
        let text = |key: &str| annotations.get(key).cloned().unwrap_or_default();
        let secs = |key: &str| annotations.get(key).and_then(|text| text.parse().ok());
        ContainerNotes {
            hash: u64::from_str_radix(&text(HASH), 16).unwrap_or_default(),
            restart_count: text(RESTART_COUNT).parse().unwrap_or_default(),
            termination_message_path: text(TERMINATION_MESSAGE_PATH),
            termination_message_policy: text(TERMINATION_MESSAGE_POLICY),
            deletion_grace_period_secs: secs(DELETION_GRACE_PERIOD),
            termination_grace_period_secs: secs(TERMINATION_GRACE_PERIOD),
            pre_stop: serde_json::from_str(&text(PRE_STOP_HANDLER)).ok(),
            ports: serde_json::from_str(&text(PORTS)).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn container() -> Container {
        serde_json::from_value(json!({
            "name": "c", "image": "busybox",
            "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "bye"]}}},
            "ports": [{"containerPort": 80}],
        }))
        .unwrap()
    }

    #[test]
    fn container_annotations_round_trip() {
        let pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "deletionGracePeriodSeconds": 5},
            "spec": {"containers": [], "terminationGracePeriodSeconds": 30},
        }))
        .unwrap();
        let container = container();
        let annotations = container_annotations(&pod, &container, 3);
        let notes = ContainerNotes::from_annotations(&annotations);
        let want = ContainerNotes {
            hash: container_hash(&container),
            restart_count: 3,
            termination_message_path: "/dev/termination-log".to_owned(),
            termination_message_policy: "File".to_owned(),
            deletion_grace_period_secs: Some(5),
            termination_grace_period_secs: Some(30),
            pre_stop: container.lifecycle.and_then(|hooks| hooks.pre_stop),
            ports: container.ports.unwrap_or_default(),
        };
        assert_eq!(notes, want);
        let nothing = ContainerNotes::from_annotations(&BTreeMap::new());
        assert_eq!(nothing, ContainerNotes::default());
    }

    #[test]
    fn the_hash_is_the_kubelets_and_changes_with_the_image_only() {
        let mut container = container();
        container.name = "test_container".to_owned();
        container.image = Some("foo/image:v1".to_owned());
        assert_eq!(container_hash(&container), 0x8e45_cbd0);
        container.tty = Some(true);
        assert_eq!(container_hash(&container), 0x8e45_cbd0);
        container.image = Some("foo/image:v2".to_owned());
        assert_ne!(container_hash(&container), 0x8e45_cbd0);
    }

    #[test]
    fn pod_labels_cannot_override_reserved_labels() {
        let pod: Pod = serde_json::from_value(json!({"metadata": {
            "name": "p", "namespace": "ns", "uid": "u",
            "labels": {"app": "x", "io.kubernetes.pod.uid": "other"},
        }}))
        .unwrap();
        let labels = sandbox_labels(&pod);
        assert_eq!(labels[POD_UID], "u");
        assert_eq!(labels["app"], "x");
        assert!(!container_labels(&pod, &container()).contains_key("app"));
    }
}
