//! The agent's side against a plugin.

mod plugin;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::devices::{ContainerDemand, ContainerKind, PodDemand};
use prost::Message as _;
use tempfile::TempDir;
use tokio::task::AbortHandle;

use super::wire;
use super::*;
use plugin::{Behavior, Plugin};

const GPU: &str = "example.com/gpu";

/// An agent with a directory for sockets.
struct Scene {
    folder: Arc<TempDir>,
    manager: DeviceManager,
    serving: AbortHandle,
}

impl Scene {
    fn new() -> Scene {
        Scene::at(Arc::new(tempfile::tempdir().unwrap()))
    }

    fn at(folder: Arc<TempDir>) -> Scene {
        let manager = DeviceManager::open(folder.path().to_owned(), Clock::system()).unwrap();
        let own = manager.clone();
        let serving = tokio::spawn(async move { own.serve().await.map(drop) });
        Scene {
            folder,
            manager,
            serving: serving.abort_handle(),
        }
    }

    /// The same with another agent.
    fn restarted(self) -> Scene {
        self.serving.abort();
        Scene::at(Arc::clone(&self.folder))
    }

    fn plugin(&self, devices: &[(&str, bool)], behavior: Behavior) -> Plugin {
        let plugin = Plugin::new(self.folder.path(), GPU, devices, behavior);
        plugin.register(wire::VERSION).unwrap();
        plugin
    }

    /// Waits until the node has so many devices, and healthy ones.
    async fn until(&self, capacity: i64, allocatable: i64) {
        let mut seen = (-1, -1);
        for _ in 0..500 {
            let resources = self.manager.resources();
            let value = |list: &plimsoll_core::resources::ResourceList| {
                list.get_or_zero(&ResourceName::new(GPU)).value()
            };
            seen = (value(&resources.capacity), value(&resources.allocatable));
            if seen == (capacity, allocatable) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{seen:?} instead of {:?}", (capacity, allocatable));
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn pod(uid: &str, count: usize) -> PodDemand {
    PodDemand {
        pod: PodUid::from(uid),
        containers: vec![ContainerDemand {
            name: "main".to_owned(),
            kind: ContainerKind::App,
            limits: BTreeMap::from([(ResourceName::new(GPU), count)]),
        }],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_registers_and_containers_get_its_devices() {
    let scene = Scene::new();
    let behavior = Behavior {
        prefers: Some(vec!["c"]),
        pre_start: true,
        ..Behavior::default()
    };
    let plugin = scene.plugin(&[("a", true), ("b", true), ("c", true)], behavior);
    scene.until(3, 3).await;
    let pod = pod("u1", 2);
    scene.manager.allocate_pod(&pod).await.unwrap();
    assert_eq!(plugin.calls(), ["prefer a b c", "allocate a c"]);
    let settings = scene
        .manager
        .container_settings(&pod, "main")
        .await
        .unwrap();
    assert_eq!(plugin.calls(), ["start a c"]);
    assert_eq!(settings.envs["TEST_DEVICES"], "a,c");
    assert_eq!(settings.devices[0].container_path, "/dev/test-a");
    let health = scene.manager.health("u1", "main");
    let resources = health[0].resources.as_ref().unwrap();
    assert_eq!(resources[0].health.as_deref(), Some("Healthy"));
    scene.manager.release("u1").await;
    assert!(scene.manager.pods().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_registrations_are_refused_with_the_reason() {
    let scene = Scene::new();
    let plugin = scene.plugin(&[("a", true)], Behavior::default());
    let refused = plugin.register("v1alpha").unwrap_err();
    assert_eq!(
        refused,
        "requested API version \"v1alpha\" is not supported by kubelet. Supported version is [\"v1beta1\"]"
    );
    let misnamed = Plugin::new(scene.folder.path(), "gpu", &[], Behavior::default());
    let refused = misnamed.register(wire::VERSION).unwrap_err();
    assert_eq!(refused, "the ResourceName \"gpu\" is invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_allocation_leaves_the_devices_free() {
    let scene = Scene::new();
    let behavior = Behavior {
        refuses: Some("on fire"),
        ..Behavior::default()
    };
    let plugin = scene.plugin(&[("a", true)], behavior);
    scene.until(1, 1).await;
    let refused = scene.manager.allocate_pod(&pod("u1", 1)).await.unwrap_err();
    assert_eq!(refused, "rpc error: code = Unknown desc = on fire");
    assert_eq!(plugin.calls(), ["allocate a"]);
    assert!(scene.manager.pods().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn unhealthy_devices_and_dead_plugins_are_seen_and_pods_named() {
    let scene = Scene::new();
    let plugin = scene.plugin(&[("a", true), ("b", true)], Behavior::default());
    scene.until(2, 2).await;
    scene.manager.allocate_pod(&pod("u1", 1)).await.unwrap();
    plugin.list(&[("a", false), ("b", true)]);
    scene.until(2, 1).await;
    let changed = scene.manager.health_changes().await;
    assert_eq!(
        changed.into_iter().collect::<Vec<_>>(),
        [PodUid::from("u1")]
    );
    let health = scene.manager.health("u1", "main");
    let resources = health[0].resources.as_ref().unwrap();
    assert_eq!(resources[0].health.as_deref(), Some("Unhealthy"));
    drop(plugin);
    scene.until(2, 0).await;
    // It comes back with fewer devices.
    let _plugin = scene.plugin(&[("b", true)], Behavior::default());
    scene.until(1, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_agent_removes_sockets_and_keeps_allocations() {
    let scene = Scene::new();
    let plugin = scene.plugin(&[("a", true), ("b", true)], Behavior::default());
    scene.until(2, 2).await;
    let kept = pod("u1", 1);
    scene.manager.allocate_pod(&kept).await.unwrap();
    plugin.calls();
    let scene = scene.restarted();
    assert!(!scene.folder.path().join("example.com_gpu.sock").exists());
    scene.until(0, 0).await;
    let settings = scene
        .manager
        .container_settings(&kept, "main")
        .await
        .unwrap();
    assert_eq!(settings.envs["TEST_DEVICES"], "a");
    assert!(plugin.calls().is_empty());
    plugin.listen();
    plugin.register(wire::VERSION).unwrap();
    scene.until(2, 2).await;
    scene.manager.allocate_pod(&pod("u2", 1)).await.unwrap();
    assert_eq!(plugin.calls(), ["allocate b"]);
    let refused = scene.manager.allocate_pod(&pod("u3", 1)).await.unwrap_err();
    assert_eq!(
        refused,
        "requested number of devices unavailable for example.com/gpu. Requested: 1, Available: 0"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn monitoring_agents_read_which_container_has_which_device() {
    let scene = Scene::new();
    let _plugin = scene.plugin(&[("a", true), ("b", false)], Behavior::default());
    scene.until(2, 1).await;
    let pod: Pod = serde_json::from_value(serde_json::json!({
        "metadata": { "name": "p", "namespace": "default", "uid": "u1" },
        "spec": { "containers": [
            { "name": "main", "resources": { "limits": { GPU: "1" } } }, { "name": "other" },
        ] },
    }))
    .unwrap();
    let demand = PodDemand::from_api(&pod);
    scene.manager.allocate_pod(&demand).await.unwrap();
    let directory = scene.folder.path().join("pod-resources");
    let pods = Arc::new(move || vec![Arc::new(pod.clone())]);
    let (own, manager) = (directory.clone(), scene.manager.clone());
    let serving = tokio::spawn(async move { pod_resources::serve(&own, manager, pods).await });
    let socket = directory.join("kubelet.sock");
    while !socket.exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let ask = async |method: &str, request: &wire::GetPodResourcesRequest| {
        let method = format!("v1.PodResourcesLister/{method}");
        plugin::call(&socket, &method, request).await
    };
    let one = wire::ContainerDevices {
        resource_name: GPU.to_owned(),
        device_ids: vec!["a".to_owned()],
        topology: None,
    };
    let nothing = wire::GetPodResourcesRequest::default();
    let all = ask("List", &nothing).await.unwrap();
    let all = wire::ListPodResourcesResponse::decode(all).unwrap();
    let containers = &all.pod_resources[0].containers;
    assert_eq!(containers[0].devices, std::slice::from_ref(&one));
    assert!(containers[1].devices.is_empty());
    let allocatable = ask("GetAllocatableResources", &nothing).await.unwrap();
    let allocatable = wire::AllocatableResourcesResponse::decode(allocatable).unwrap();
    assert_eq!(allocatable.devices, [one]);
    let mut named = wire::GetPodResourcesRequest {
        name: "p".to_owned(),
        namespace: "default".to_owned(),
    };
    let found = ask("Get", &named).await.unwrap();
    let found = wire::GetPodResourcesResponse::decode(found).unwrap();
    assert_eq!(found.pod_resources, Some(all.pod_resources[0].clone()));
    named.name = "q".to_owned();
    let missing = ask("Get", &named).await.unwrap_err();
    assert_eq!(missing, "pod q in namespace default not found");
    serving.abort();
}
