use plimsoll_core::object::pod::as_container;
use serde_json::json;

use super::*;
use crate::pods::spec::testing::{node, of_node, own_users, pod_with};
use crate::volumes::MemorySources;

/// Pods have workers on any thread.
fn sendable<F: Future + Send>(future: F) -> F {
    future
}

async fn config(pod: &Pod, container: &Container, target_id: Option<&str>) -> ContainerConfig {
    config_with(pod, container, target_id, &ContainerSettings::default()).await
}

async fn config_with(
    pod: &Pod,
    container: &Container,
    target_id: Option<&str>,
    devices: &ContainerSettings,
) -> ContainerConfig {
    let dir = tempfile::tempdir().unwrap();
    let mut node = node(dir.path());
    node.pod_logs_dir = dir.path().join("logs");
    let own = pod.spec.as_ref().and_then(|spec| spec.host_users) == Some(false);
    let user_namespace = if own { own_users() } else { of_node() };
    let input = ContainerInput {
        pod,
        container,
        attempt: 3,
        pod_ips: &["10.1.0.2".to_owned()],
        image_ref: "sha256:1234",
        image_user: ImageUser::Id(0),
        volumes: &MountedVolumes::default(),
        target_id,
        user_namespace: &user_namespace,
        devices,
    };
    let sources = MemorySources::default();
    sendable(container_config(&node, &sources, &input))
        .await
        .unwrap()
}

#[tokio::test]
async fn container_gets_the_settings_of_its_devices() {
    let pod = pod_with(json!({"containers": [{
        "name": "c", "image": "busybox:1", "command": ["$(GPU)"],
        "env": [{"name": "OWN", "value": "spec"}],
    }]}));
    let container = &pod.spec.as_ref().unwrap().containers[0];
    let texts = |texts: [(&str, &str); 2]| -> std::collections::BTreeMap<String, String> {
        texts
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    };
    let devices = ContainerSettings {
        envs: texts([("GPU", "g1"), ("OWN", "plugin")]),
        mounts: vec![DeviceMount {
            container_path: "/lib/gpu".to_owned(),
            host_path: "/usr/lib/gpu".to_owned(),
            is_read_only: true,
        }],
        devices: vec![DeviceNode {
            container_path: "/dev/gpu0".to_owned(),
            host_path: "/dev/zero".to_owned(),
            permissions: "rw".to_owned(),
        }],
        annotations: texts([("gpu", "g1"), (labels::RESTART_COUNT, "plugin")]),
        cdi_devices: vec!["vendor.com/gpu=g1".to_owned()],
    };
    let got = config_with(&pod, container, None, &devices).await;
    let env = |name: &str| {
        let env = got.envs.iter().find(|env| env.key == name).unwrap();
        String::from_utf8(env.value.clone()).unwrap()
    };
    // What the spec says comes before what a plugin says.
    assert_eq!(
        (env("GPU"), env("OWN")),
        ("g1".to_owned(), "spec".to_owned())
    );
    assert_eq!(got.command, ["g1"]);
    assert_eq!(got.annotations["gpu"], "g1");
    assert_eq!(got.annotations[labels::RESTART_COUNT], "3");
    let mount = &got.mounts[0];
    assert_eq!(
        (mount.container_path.as_str(), mount.readonly),
        ("/lib/gpu", true)
    );
    assert_eq!(got.devices[0].host_path, "/dev/zero");
    assert_eq!(got.cdi_devices[0].name, "vendor.com/gpu=g1");
}

#[tokio::test]
async fn container_config_matches_the_spec() {
    let pod = pod_with(json!({"containers": [{
        "name": "c", "image": "busybox:1", "workingDir": "/w", "tty": true, "stdin": true,
        "command": ["/bin/$(WHAT)", "$(MISSING)"], "args": ["$$(WHAT)", "-x"],
        "env": [{"name": "WHAT", "value": "sh"}],
        "resources": {"limits": {"cpu": "1", "memory": "64Mi"}},
    }]}));
    let container = &pod.spec.as_ref().unwrap().containers[0];
    let got = config(&pod, container, None).await;
    let metadata = got.metadata.unwrap();
    assert_eq!((metadata.name.as_str(), metadata.attempt), ("c", 3));
    let image = got.image.unwrap();
    assert_eq!(
        (image.image.as_str(), image.user_specified_image.as_str()),
        ("sha256:1234", "busybox:1")
    );
    assert_eq!(got.command, ["/bin/sh", "$(MISSING)"]);
    assert_eq!(got.args, ["$(WHAT)", "-x"]);
    assert_eq!(
        (got.working_dir.as_str(), got.tty, got.stdin),
        ("/w", true, true)
    );
    assert_eq!(got.log_path, "c/3.log");
    assert_eq!(got.envs[0].key, "WHAT");
    assert_eq!(got.labels[labels::CONTAINER_NAME], "c");
    assert_eq!(got.annotations[labels::RESTART_COUNT], "3");
    let linux = got.linux.unwrap();
    let limits = linux.resources.unwrap();
    assert_eq!(
        (
            limits.cpu_shares,
            limits.cpu_quota,
            limits.memory_limit_in_bytes
        ),
        (1024, 100_000, 64 << 20)
    );
    assert_eq!(
        linux.security_context.unwrap().run_as_user.unwrap().value,
        0
    );
}

#[tokio::test]
async fn an_ephemeral_container_can_look_at_the_processes_of_another() {
    let mut pod = pod_with(json!({
        "containers": [{"name": "c"}],
        "ephemeralContainers": [{"name": "debug", "image": "x", "targetContainerName": "c"}],
    }));
    let spec = pod.spec.as_ref().unwrap();
    let debug = as_container(&spec.ephemeral_containers.as_ref().unwrap()[0]);
    assert_eq!(
        (debug.name.as_str(), debug.image.as_deref()),
        ("debug", Some("x"))
    );
    let namespaces = |config: ContainerConfig| {
        let options = config.linux.unwrap().security_context.unwrap();
        let options = options.namespace_options.unwrap();
        (options.pid, options.target_id)
    };
    let got = config(&pod, &debug, Some("id-1")).await;
    assert_eq!(
        namespaces(got),
        (NamespaceMode::Target.into(), "id-1".to_owned())
    );
    pod.spec.as_mut().unwrap().share_process_namespace = Some(true);
    let got = config(&pod, &debug, Some("id-1")).await;
    assert_eq!(namespaces(got), (NamespaceMode::Pod.into(), String::new()));
}

#[tokio::test]
async fn every_mount_is_mapped_to_the_users_of_the_pod() {
    for (host_users, mapped) in [(json!(null), false), (json!(false), true)] {
        let containers = json!([{"name": "c", "terminationMessagePath": "/log"}]);
        let pod = pod_with(json!({"hostUsers": host_users, "containers": containers}));
        let container = &pod.spec.as_ref().unwrap().containers[0];
        let got = config(&pod, container, None).await;
        let users = if mapped { own_users() } else { of_node() };
        let security = got.linux.unwrap().security_context.unwrap();
        let options = security.namespace_options.unwrap();
        assert_eq!(options.userns_options.as_ref(), Some(&users));
        assert_eq!(got.mounts.len(), 2, "hosts and termination log");
        for mount in got.mounts {
            assert_eq!(mount.uid_mappings, users.uids);
            assert_eq!(mount.gid_mappings, users.gids);
        }
    }
}
