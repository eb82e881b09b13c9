use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use plimsoll_core::resources::ResourceName;
use serde_json::{Value, json};

use super::*;
use crate::pods::spec::testing::pod_with;
use crate::volumes::MemorySources;

struct Node {
    dir: tempfile::TempDir,
    sources: Arc<MemorySources>,
    volumes: Volumes,
}

fn node() -> Node {
    let dir = tempfile::tempdir().unwrap();
    let sources = Arc::new(MemorySources::default());
    let volumes = volumes(dir.path(), &sources);
    Node {
        dir,
        sources,
        volumes,
    }
}

fn volumes(root: &Path, sources: &Arc<MemorySources>) -> Volumes {
    let allocatable = [(ResourceName::MEMORY, "1Gi".parse().unwrap())];
    Volumes::new(root, allocatable.into_iter().collect(), sources.clone())
}

impl Node {
    fn put_config_map(&self, data: Value) {
        let object = json!({"metadata": {"namespace": "ns", "name": "config"}, "data": data});
        self.sources
            .put_config_map(serde_json::from_value(object).unwrap());
    }

    fn put_secret(&self, data: Value) {
        let object = json!({"metadata": {"namespace": "ns", "name": "secret"}, "stringData": data});
        let mut secret: k8s_openapi::api::core::v1::Secret =
            serde_json::from_value(object).unwrap();
        let data = secret.string_data.take().unwrap().into_iter();
        let bytes = |text: String| k8s_openapi::ByteString(text.into_bytes());
        secret.data = Some(data.map(|(key, text)| (key, bytes(text))).collect());
        self.sources.put_secret(secret);
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join("pods/uid-1").join(path)
    }
}

/// A pod that mounts all its volumes, in a container and at paths by their names.
fn pod(volumes: Value, context: Value) -> Pod {
    let mounts: Vec<Value> = volumes
        .as_array()
        .unwrap()
        .iter()
        .map(|volume| {
            let name = volume["name"].as_str().unwrap();
            json!({"name": name, "mountPath": format!("/{name}")})
        })
        .collect();
    pod_with(json!({
        "serviceAccountName": "sa",
        "securityContext": context,
        "containers": [{"name": "c", "volumeMounts": mounts}],
        "volumes": volumes,
    }))
}

/// Pods have workers on any thread.
fn sendable<F: Future + Send>(future: F) -> F {
    future
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[tokio::test]
async fn volumes_use_the_kubelets_paths_and_are_removed() {
    let node = node();
    node.put_config_map(json!({"key": "value"}));
    let pod = pod(
        json!([
            {"name": "scratch", "emptyDir": {}},
            {"name": "conf", "configMap": {"name": "config"}},
            {"name": "host", "hostPath": {"path": "/", "type": "Directory"}},
        ]),
        json!({}),
    );
    let mounted = sendable(node.volumes.mount(&pod)).await.unwrap();
    let path = |name: &str| mounted.get(name).unwrap().path.clone();
    assert_eq!(
        path("scratch"),
        node.at("volumes/kubernetes.io~empty-dir/scratch")
    );
    assert_eq!(
        path("conf"),
        node.at("volumes/kubernetes.io~configmap/conf")
    );
    assert_eq!(path("host"), Path::new("/"));
    assert_eq!(text(&path("conf").join("key")), "value");
    assert!(mounted.get("conf").unwrap().is_read_only);
    assert!(
        node.at("plugins/kubernetes.io~empty-dir/wrapped_conf/ready")
            .exists()
    );
    assert_eq!(node.volumes.mounted("uid-1"), mounted);
    assert!(node.volumes.has_volumes("uid-1"));

    std::fs::write(path("scratch").join("file"), "x").unwrap();
    node.volumes.unmount("uid-1").await.unwrap();
    assert!(!node.volumes.has_volumes("uid-1"));
    assert!(node.volumes.mounted("uid-1").is_empty());
    node.volumes.unmount("uid-1").await.unwrap();
    node.volumes.remove_pod_dir("uid-1").await.unwrap();
    assert!(!node.at("").exists());
}

#[tokio::test]
async fn files_follow_their_config_map_and_survive_its_deletion() {
    let node = node();
    node.put_config_map(json!({"key": "1"}));
    let pod = pod(
        json!([{"name": "conf", "configMap": {"name": "config", "items": [
            {"key": "key", "path": "dir/file"}]}}]),
        json!({}),
    );
    node.volumes.mount(&pod).await.unwrap();
    let file = node.at("volumes/kubernetes.io~configmap/conf/dir/file");
    node.put_config_map(json!({"key": "2"}));
    node.volumes.refresh(&pod).await.unwrap();
    assert_eq!(text(&file), "2");

    // Another agent, as after a restart, finds them as well.
    node.put_config_map(json!({"other": "3"}));
    let after_restart = volumes(node.dir.path(), &node.sources);
    let mounted = after_restart.mount(&pod).await.unwrap();
    assert_eq!(text(&file), "2");
    assert_eq!(
        mounted.warnings,
        [
            "MountVolume.SetUp failed for volume \"conf\" : configmap references non-existent config \
          key: key"
        ]
    );
    assert_eq!(
        mounted.get("conf").unwrap().path,
        node.at("volumes/kubernetes.io~configmap/conf")
    );
}

#[tokio::test]
async fn every_volume_that_fails_is_named_as_upstream_names_it() {
    let node = node();
    let pod = pod(
        json!([
            {"name": "fine", "emptyDir": {}},
            {"name": "conf", "configMap": {"name": "missing"}},
            {"name": "maybe", "configMap": {"name": "missing", "optional": true}},
            {"name": "file", "hostPath": {"path": "/", "type": "File"}},
            {"name": "nfs", "nfs": {"server": "s", "path": "/"}},
            {"name": "claim", "persistentVolumeClaim": {"claimName": "c"}},
        ]),
        json!({}),
    );
    let error = node.volumes.mount(&pod).await.unwrap_err();
    let unable = |name: &str| {
        format!(
            "Unable to attach or mount volumes: unmounted volumes=[{name}], unattached volumes=[], \
             failed to process volumes=[{name}]: "
        )
    };
    assert_eq!(
        error.events(),
        [
            "MountVolume.SetUp failed for volume \"conf\" : configmap \"missing\" not found"
                .to_owned(),
            "MountVolume.SetUp failed for volume \"file\" : hostPath type check failed: / is not \
             a file"
                .to_owned(),
            unable("nfs")
                + "failed to get Plugin from volumeSpec for volume \"nfs\" err=no volume plugin \
                   matched (nfs volumes are not supported by this node)",
            unable("claim")
                + "error processing PVC ns/c: failed to fetch PVC from API server: \
                   persistentvolumeclaims \"c\" not found",
        ]
    );
    let mounted = node.volumes.mounted("uid-1");
    let there: Vec<&str> = mounted.iter().map(|(name, _)| name).collect();
    assert_eq!(there, ["fine", "maybe"]);
}

#[tokio::test]
async fn volumes_without_a_mount_are_left_out() {
    let node = node();
    let mut pod = pod(
        json!([{"name": "conf", "configMap": {"name": "missing"}}]),
        json!({}),
    );
    pod.spec.as_mut().unwrap().containers[0].volume_mounts = None;
    assert!(node.volumes.mount(&pod).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_claim_leads_to_a_path_of_the_node() {
    let node = node();
    let claim = json!({
        "metadata": {"namespace": "ns", "name": "c", "uid": "cu"},
        "spec": {"volumeName": "pv"}, "status": {"phase": "Bound"},
    });
    node.sources
        .put_claim(serde_json::from_value(claim).unwrap());
    let storage = json!({
        "metadata": {"name": "pv"},
        "spec": {"claimRef": {"uid": "cu"}, "hostPath": {"path": "/", "type": "Directory"}},
    });
    node.sources
        .put_persistent_volume(serde_json::from_value(storage).unwrap());
    let source = json!({"claimName": "c", "readOnly": true});
    let pod = pod(
        json!([{"name": "data", "persistentVolumeClaim": source}]),
        json!({}),
    );
    let mounted = node.volumes.mount(&pod).await.unwrap();
    let volume = mounted.get("data").unwrap();
    assert_eq!(
        (volume.path.as_path(), volume.inner_name.as_str()),
        (Path::new("/"), "pv")
    );
    assert_eq!(volume.claim.as_deref(), Some("c"));
    assert!(volume.is_read_only);
}

#[tokio::test]
async fn mount_points_inside_a_volume_are_made_with_it() {
    let node = node();
    node.put_config_map(json!({"key": "value"}));
    let mut pod = pod(
        json!([
            {"name": "conf", "configMap": {"name": "config"}},
            {"name": "inner", "emptyDir": {}},
        ]),
        json!({}),
    );
    let mounts = &mut pod.spec.as_mut().unwrap().containers[0].volume_mounts;
    mounts.as_mut().unwrap()[1].mount_path = "/conf/nested/point".to_owned();
    node.volumes.mount(&pod).await.unwrap();
    assert!(
        node.at("volumes/kubernetes.io~configmap/conf/nested/point")
            .is_dir()
    );
    node.volumes.refresh(&pod).await.unwrap();
}

#[tokio::test]
async fn ids_that_lead_elsewhere_are_refused() {
    let node = node();
    let precious = node.dir.path().join("precious");
    std::fs::create_dir(&precious).unwrap();
    for uid in ["", ".", "..", "../precious", "a/b"] {
        assert!(node.volumes.remove_pod_dir(uid).await.is_err(), "{uid}");
        assert!(node.volumes.unmount(uid).await.is_err(), "{uid}");
    }
    assert!(precious.exists());
}

#[tokio::test]
async fn directories_of_pods_are_found_and_removed() {
    let node = node();
    for uid in ["kept", "gone"] {
        let dir = node.dir.path().join("pods").join(uid);
        std::fs::create_dir_all(dir.join("containers/c")).unwrap();
        std::fs::write(dir.join("etc-hosts"), "").unwrap();
    }
    node.volumes.remove_pod_dir("gone").await.unwrap();
    assert_eq!(node.volumes.pods_on_disk(), ["kept"]);
}

#[tokio::test]
#[ignore = "tier: root"]
async fn secrets_and_tokens_are_in_memory_and_belong_to_the_group() {
    let node = node();
    node.put_config_map(json!({"ca.crt": "ca"}));
    node.put_secret(json!({"password": "1234"}));
    let pod = pod(
        json!([
            {"name": "sec", "secret": {"secretName": "secret", "defaultMode": 0o400}},
            {"name": "down", "downwardAPI": {"items": [
                {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"name": "api", "projected": {"sources": [
                {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
                {"configMap": {"name": "config", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [
                    {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
            ]}},
            {"name": "mem", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        ]),
        json!({"runAsUser": 7, "fsGroup": 4242}),
    );
    let mounted = node.volumes.mount(&pod).await.unwrap();
    let mounts = MountTable::read().unwrap();
    for (name, volume) in mounted.iter() {
        assert_eq!(mounts.at(&volume.path).unwrap().fs_type, "tmpfs", "{name}");
        assert_eq!(
            std::fs::metadata(&volume.path).unwrap().gid(),
            4242,
            "{name}"
        );
    }
    let api = node.at("volumes/kubernetes.io~projected/api");
    assert_eq!(text(&api.join("token")), "token-1");
    assert_eq!(text(&api.join("ca.crt")), "ca");
    assert_eq!(text(&api.join("namespace")), "ns");
    let request = &node.sources.requested_tokens()[0];
    assert_eq!(
        (
            request.service_account.as_str(),
            request.expiration_secs,
            request.pod_uid.as_str()
        ),
        ("sa", Some(3607), "uid-1")
    );
    let of = |path: &Path| {
        let metadata = std::fs::metadata(path).unwrap();
        (
            metadata.uid(),
            metadata.gid(),
            metadata.permissions().mode() & 0o7777,
        )
    };
    assert_eq!(of(&api.join("token")), (7, 4242, 0o640));
    assert_eq!(
        of(&node.at("volumes/kubernetes.io~secret/sec/password")),
        (0, 4242, 0o440)
    );
    assert_eq!(
        of(&node.at("volumes/kubernetes.io~secret/sec")),
        (0, 4242, 0o3777)
    );
    assert_eq!(
        of(&node.at("volumes/kubernetes.io~empty-dir/mem")),
        (0, 4242, 0o3777)
    );

    // A new agent mounts nothing twice and takes all of it away.
    let after_restart = volumes(node.dir.path(), &node.sources);
    node.put_secret(json!({"password": "5678"}));
    after_restart.mount(&pod).await.unwrap();
    assert_eq!(
        text(&node.at("volumes/kubernetes.io~secret/sec/password")),
        "5678"
    );
    assert_eq!(MountTable::read().unwrap().below(&node.at("")).len(), 4);
    after_restart.remove_pod_dir("uid-1").await.unwrap();
    assert!(
        MountTable::read()
            .unwrap()
            .below(node.dir.path())
            .is_empty()
    );
    assert!(!node.at("").exists());
}

#[tokio::test]
#[ignore = "tier: root"]
async fn a_disk_that_is_mounted_below_a_pod_survives_the_pod() {
    let node = node();
    let disk = node.dir.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    std::fs::write(disk.join("file"), "precious").unwrap();
    let claim = json!({
        "metadata": {"namespace": "ns", "name": "c", "uid": "cu"},
        "spec": {"volumeName": "pv"}, "status": {"phase": "Bound"},
    });
    node.sources
        .put_claim(serde_json::from_value(claim).unwrap());
    let storage = json!({
        "metadata": {"name": "pv"},
        "spec": {"claimRef": {"uid": "cu"}, "local": {"path": disk}},
    });
    node.sources
        .put_persistent_volume(serde_json::from_value(storage).unwrap());
    let pod = pod(
        json!([
            {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "scratch", "emptyDir": {}},
        ]),
        json!({"fsGroup": 4242, "fsGroupChangePolicy": "OnRootMismatch"}),
    );
    node.volumes.mount(&pod).await.unwrap();
    let shown = node.at("volumes/kubernetes.io~local-volume/pv");
    assert_eq!(text(&shown.join("file")), "precious");
    assert_eq!(std::fs::metadata(disk.join("file")).unwrap().gid(), 4242);
    // A container with a shared mount may leave something mounted too.
    let inside = node.at("volumes/kubernetes.io~empty-dir/scratch/inside");
    std::fs::create_dir(&inside).unwrap();
    mount_point::bind(&disk, &inside).unwrap();

    node.volumes.remove_pod_dir("uid-1").await.unwrap();
    assert!(!node.at("").exists());
    assert_eq!(text(&disk.join("file")), "precious");
}
