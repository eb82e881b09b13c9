use serde_json::{Value, json};

use super::*;

fn pod(spec: Value) -> Pod {
    let mut object = json!({"metadata": {"name": "p", "namespace": "n"}, "spec": spec});
    let of = crate::kinds::by_kind("v1", "Pod")
        .unwrap()
        .group_version_kind();
    crate::machinery::defaulting::apply_defaults(of, &mut object);
    serde_json::from_value(object).unwrap()
}

fn problems(spec: Value) -> Vec<String> {
    let mut problems = Problems::default();
    validate(&pod(spec), Rules::default(), &mut problems);
    problems
        .into_vec()
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn minimal_pod_is_valid() {
    assert_eq!(
        problems(json!({"containers": [{"name": "a", "image": "n"}]})),
        [""; 0]
    );
}

#[test]
fn mounts_must_name_existing_volumes() {
    let spec = json!({
        "containers": [{"name": "a", "image": "n", "volumeMounts": [
            {"name": "gone", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"},
        ]}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    });
    assert_eq!(
        problems(spec),
        [
            "spec.containers[0].volumeMounts[0].name: Not found: \"gone\"",
            "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/a\": must be unique",
        ]
    );
}

#[test]
fn a_volume_has_one_source() {
    let spec = json!({
        "containers": [{"name": "a", "image": "n"}],
        "volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x", "type": ""}}],
    });
    assert_eq!(
        problems(spec),
        ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"]
    );
}

#[test]
fn ephemeral_containers_are_rejected_on_create() {
    let spec = json!({
        "containers": [{"name": "a", "image": "n"}],
        "ephemeralContainers": [{"name": "a", "image": "n", "ports": [{"containerPort": 1}]}],
    });
    assert_eq!(
        problems(spec),
        [
            "spec.ephemeralContainers[0].name: Duplicate value: \"a\"",
            "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
            "spec.ephemeralContainers: Forbidden: cannot be set on create",
        ]
    );
}

#[test]
fn probes_have_one_handler() {
    let spec = json!({"containers": [{"name": "a", "image": "n", "livenessProbe": {
        "exec": {"command": ["x"]}, "tcpSocket": {"port": 1},
    }, "readinessProbe": {}}]});
    assert_eq!(
        problems(spec),
        [
            "spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
            "spec.containers[0].readinessProbe: Required value: must specify a handler type",
        ]
    );
}

#[test]
fn terminated_container_stays_terminated() {
    let mut old =
        pod(json!({"restartPolicy": "Never", "containers": [{"name": "a", "image": "n"}]}));
    old.metadata.resource_version = Some("1".to_owned());
    let mut new = old.clone();
    let status = |state: Value| {
        serde_json::from_value(json!({"containerStatuses": [{"name": "a", "state": state}]}))
            .unwrap()
    };
    old.status = Some(status(json!({"terminated": {"exitCode": 1}})));
    new.status = Some(status(json!({"running": {}})));
    let mut problems = Problems::default();
    validate_status_update(&new, &old, &mut problems);
    let found: Vec<String> = problems
        .into_vec()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        found,
        [
            "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
        ]
    );
}
