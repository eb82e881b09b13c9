//! A whole agent, with an API server in memory and the kernel's cgroups.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_client::informer::Key;
use plimsoll_client::testing::Cluster;
use plimsoll_core::cgroup::{CgroupPath, Driver};
use plimsoll_core::config::{NodeConfig, Profile, read_kubelet_configuration};
use plimsoll_runtime::cgroup::Cgroups;
use plimsoll_runtime::cgroup::testing::KernelCgroups;
use plimsoll_runtime::image::MaxImageSize;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::options::{
    Directories, EmbeddedChoice, EvictionChoice, Options, RuntimeChoice, Serving,
};
use super::run::{Launched, launch};
use crate::eviction::protect::Protection;

const NODE: &str = "n1";

/// Tasks without which the node is not ready.
const VITAL: [&str; 9] = [
    "eviction",
    "nodeStatus",
    "podLifecycle",
    "podStatuses",
    "podWatch",
    "runtimeHealth",
    "server",
    "staticPods",
    "stats",
];
/// Tasks that it can do without for a while.
const MINOR: [&str; 13] = [
    "deviceHealth",
    "devicePlugins",
    "garbageCollection",
    "healthz",
    "imageList",
    "kernelLog",
    "mirrorPods",
    "nodeLease",
    "nodeShutdown",
    "nodeWatch",
    "podResources",
    "qosCgroups",
    "servingCertificate",
];

/// Where an agent keeps things, and the cgroups that it has.
struct Scene {
    kernel: KernelCgroups,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Scene {
        Scene {
            kernel: KernelCgroups::new(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self, further: &Value) -> NodeConfig {
        let cgroups = self.kernel.cgroups();
        let mut config = json!({
            "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "cgroupRoot": cgroups.path(cgroups.root()).as_str(), "cgroupDriver": "cgroupfs",
            "failSwapOn": false, "staticPodPath": self.path("manifests"),
            "shutdownGracePeriod": "10s", "nodeStatusUpdateFrequency": "1s",
            "evictionHard": { "memory.available": "1Mi" },
        });
        for (name, value) in further.as_object().unwrap() {
            config[name] = value.clone();
        }
        let text = serde_json::to_vec(&config).unwrap();
        read_kubelet_configuration(&text, Profile::default()).config
    }

    fn options(&self, further: &Value) -> Options {
        Options {
            node_name: NODE.to_owned(),
            node_ips: vec!["127.0.0.1".parse().unwrap()],
            config: self.config(further),
            capacity: None,
            directories: Directories {
                data: self.path("data"),
                root: self.path("data/kubelet"),
                pod_logs: self.path("data/logs"),
                container_logs: self.path("data/links"),
                runtime: self.path("data/runtime"),
                images: self.path("data/images"),
                device_plugins_link: None,
            },
            system_root: "/".into(),
            // It is never asked to run anything.
            runtime: RuntimeChoice::Embedded(EmbeddedChoice {
                max_image_size: MaxImageSize::default(),
                helper: vec!["cat".into()],
                pod_cidr: "10.231.0.0/16".to_owned(),
                bridge: "plt-agent".to_owned(),
                cni_config: self.path("cni"),
                cni_plugins: self.path("cni"),
                insecure_registries: Vec::new(),
                builtin_image: None,
            }),
            walker: Vec::new(),
            listen: "127.0.0.1:0".parse().unwrap(),
            healthz: Some("127.0.0.1:0".parse().unwrap()),
            client_ca_pem: None,
            serving: Serving::Requested,
            adjusts_kernel: false,
            eviction: EvictionChoice {
                protection: Protection::NONE,
                ..EvictionChoice::default()
            },
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // The agent has moved this process into a cgroup of its own.
        let all = Cgroups::detect(Path::new("/"), Driver::Cgroupfs, "/").unwrap();
        let root = CgroupPath::parse("/").unwrap();
        all.enter(&root, std::process::id()).unwrap();
    }
}

/// The condition Ready of the node: status and message.
fn ready(cluster: &Cluster) -> (String, String) {
    let node = cluster
        .get("nodes", &Key::new("", NODE))
        .unwrap_or_default();
    let conditions = node["status"]["conditions"].as_array().cloned();
    let mut conditions = conditions.into_iter().flatten();
    let ready = conditions.find(|condition| condition["type"] == "Ready");
    let text = |name: &str| {
        let value = ready.as_ref().and_then(|ready| ready[name].as_str());
        value.unwrap_or_default().to_owned()
    };
    (text("status"), text("message"))
}

async fn is_restarted(agent: &Launched, name: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while agent.supervisor.restarts(name) == 0 || !agent.supervisor.names().contains(&name) {
        assert!(Instant::now() < deadline, "{name} is not back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "tier: root"]
async fn tasks_restart_and_the_node_is_not_ready_without_a_vital_one() {
    let (cluster, scene) = (Cluster::new(), Scene::new());
    let stop = CancellationToken::new();
    let _stops = stop.clone().drop_guard();
    let options = scene.options(&json!({}));
    let agent = launch(cluster.client(), options, &stop).await.unwrap();
    let (status, message) = ready(&cluster);
    assert_eq!(status, "True", "from its first status on: {message}");
    let mut expected: Vec<&str> = VITAL.into_iter().chain(MINOR).collect();
    expected.sort_unstable();
    // One that may have finished.
    let running = || {
        let mut running = agent.supervisor.names();
        running.retain(|name| *name != "podsLimit");
        running
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while running() != expected {
        assert!(Instant::now() < deadline, "these run: {:?}", running());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for name in VITAL {
        assert!(agent.supervisor.end(name), "{name} does not run");
        is_restarted(&agent, name).await;
        let problem = format!("kubelet task {name} failed: ");
        let is_named = |cluster: &Cluster| {
            let (status, message) = ready(cluster);
            status == "False" && message.contains(&problem)
        };
        cluster.eventually(&problem, is_named).await;
    }
    for name in MINOR {
        assert!(agent.supervisor.end(name), "{name} does not run");
        is_restarted(&agent, name).await;
    }
    let is_well = |cluster: &Cluster| ready(cluster).0 == "True";
    cluster.eventually("the node is ready again", is_well).await;
    assert_eq!(agent.supervisor.problems(), []);

    // And it does its work: a pod that comes now is known.
    cluster.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "p", "namespace": "default" },
        "spec": {
            "nodeName": NODE,
            "nodeSelector": { "no": "such-node" },
            "containers": [{ "name": "main", "image": "none" }],
        },
        "status": { "phase": "Pending" },
    }));
    let is_rejected = |cluster: &Cluster| {
        let pod = cluster.get("pods", &Key::new("default", "p"));
        pod.is_some_and(|pod| pod["status"]["phase"] == "Failed")
    };
    cluster.eventually("the pod is refused", is_rejected).await;
    stop.cancel();
    agent.supervisor.wait().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "tier: root"]
async fn agent_does_not_start_if_eviction_cannot() {
    let (cluster, scene) = (Cluster::new(), Scene::new());
    let stop = CancellationToken::new();
    // A file where records of decisions belong.
    std::fs::create_dir_all(scene.path("data/kubelet")).unwrap();
    std::fs::write(scene.path("data/kubelet/decisions"), "").unwrap();
    let options = scene.options(&json!({}));
    let Err(error) = launch(cluster.client(), options, &stop).await else {
        panic!("it has started");
    };
    let text = error.to_string();
    assert!(text.starts_with("cannot create directory "), "{text}");
    assert!(text.ends_with("/decisions"), "{text}");
    assert_eq!(cluster.list("nodes"), [Value::Null; 0], "no node is ready");

    let bad = json!({ "evictionHard": { "memory.available": "many" } });
    let options = scene.options(&bad);
    let Err(error) = launch(cluster.client(), options, &stop).await else {
        panic!("it has started");
    };
    assert_eq!(error.to_string(), "cannot start eviction");
    assert_eq!(cluster.list("nodes"), [Value::Null; 0]);
}
