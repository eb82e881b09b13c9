//! Devices from their registration to the containers that have them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::*;

const GPU: &str = "example.com/gpu";

fn gpu() -> ResourceName {
    ResourceName::new(GPU)
}

fn now() -> Timestamp {
    Timestamp::from_secs(1_000)
}

fn device(id: &str, is_healthy: bool) -> Device {
    Device {
        id: id.to_owned(),
        is_healthy,
        numa_nodes: Vec::new(),
    }
}

/// A node whose plugin has listed these devices, all healthy.
fn node(ids: &[&str]) -> Devices {
    let mut devices = Devices::default();
    devices.registered(&gpu(), PluginOptions::default());
    devices.listed(&gpu(), ids.iter().map(|id| device(id, true)).collect());
    devices
}

/// A pod whose containers, by name and kind, request these numbers of devices.
fn pod(uid: &str, containers: &[(&str, ContainerKind, usize)]) -> PodDemand {
    let containers = containers
        .iter()
        .map(|(name, kind, count)| ContainerDemand {
            name: (*name).to_owned(),
            kind: *kind,
            limits: BTreeMap::from([(gpu(), *count)]),
        });
    PodDemand {
        pod: PodUid::from(uid),
        containers: containers.collect(),
    }
}

/// Gives the containers of a pod their devices in order, as the agent does; `preferred` is what the
/// plugin prefers.
fn give(
    devices: &mut Devices,
    pod: &PodDemand,
    preferred: &[&str],
) -> Result<Vec<String>, AllocationError> {
    let preferred: Vec<String> = preferred.iter().map(|id| (*id).to_owned()).collect();
    let mut given = Vec::new();
    for container in &pod.containers {
        for request in devices.requests(pod, container) {
            if let Some(candidates) = devices.candidates(request)? {
                let chosen = candidates.choose(&preferred);
                given.push(chosen.iter().cloned().collect::<Vec<_>>().join(" "));
                devices.allocate(Allocation {
                    devices: chosen.into_iter().map(|id| (id, Vec::new())).collect(),
                    ..request.allocation()
                });
            }
        }
    }
    Ok(given)
}

fn amounts(devices: &Devices) -> (i64, i64) {
    let resources = devices.resources();
    let capacity = resources.capacity.get_or_zero(&gpu()).value();
    (capacity, resources.allocatable.get_or_zero(&gpu()).value())
}

use ContainerKind::{App, Init, Sidecar};

#[test]
fn unhealthy_devices_are_capacity_and_not_allocatable() {
    let mut devices = node(&["a", "b", "c"]);
    assert_eq!(amounts(&devices), (3, 3));
    let listed = vec![device("a", true), device("b", false), device("c", true)];
    devices.listed(&gpu(), listed);
    assert_eq!(amounts(&devices), (3, 2));
}

#[test]
fn devices_of_a_plugin_that_is_gone_are_unhealthy_for_five_minutes_and_then_zero() {
    let mut devices = node(&["a", "b"]);
    devices.disconnected(&gpu(), now());
    assert_eq!(amounts(&devices), (2, 0));
    let five = Duration::from_secs(300);
    assert!(!devices.expire(now().saturating_add(five)));
    assert!(devices.expire(now().saturating_add(five + Duration::from_secs(1))));
    let resources = devices.resources();
    assert_eq!(resources.removed, [gpu()]);
    assert!(!resources.capacity.contains(&gpu()));
    // When the plugin is back, so are its devices.
    devices.registered(&gpu(), PluginOptions::default());
    assert!(devices.resources().removed.is_empty());
    devices.listed(&gpu(), vec![device("a", true)]);
    assert_eq!(amounts(&devices), (1, 1));
}

#[test]
fn a_plugin_that_registers_again_keeps_its_devices_until_it_lists_them() {
    let mut devices = node(&["a", "b"]);
    devices.registered(&gpu(), PluginOptions::default());
    assert_eq!(amounts(&devices), (2, 2));
    assert!(!devices.is_stopped(&gpu()));
}

#[test]
fn no_device_is_allocated_to_two_pods() {
    let mut devices = node(&["a", "b", "c"]);
    let first = pod("1", &[("main", App, 2)]);
    assert_eq!(give(&mut devices, &first, &[]).unwrap(), ["a b"]);
    let second = pod("2", &[("main", App, 2)]);
    let error = give(&mut devices, &second, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "requested number of devices unavailable for example.com/gpu. Requested: 2, Available: 1"
    );
    assert_eq!(devices.admit(&second), Err(error));
    assert!(devices.release(&PodUid::from("1")));
    assert_eq!(devices.admit(&second), Ok(BTreeMap::from([(gpu(), 2)])));
    assert_eq!(give(&mut devices, &second, &[]).unwrap(), ["a b"]);
}

#[test]
fn the_plugin_is_followed_where_its_devices_are_free() {
    let mut devices = node(&["a", "b", "c", "d"]);
    let first = pod("1", &[("main", App, 1)]);
    assert_eq!(give(&mut devices, &first, &["c"]).unwrap(), ["c"]);
    let second = pod("2", &[("main", App, 2)]);
    assert_eq!(
        give(&mut devices, &second, &["c", "x", "d"]).unwrap(),
        ["a d"]
    );
}

#[test]
fn containers_use_the_devices_of_init_containers_again() {
    let mut devices = node(&["a", "b", "c"]);
    let one = pod(
        "1",
        &[
            ("i1", Init, 1),
            ("i2", Init, 2),
            ("main", App, 1),
            ("more", App, 1),
        ],
    );
    // The second init container needs one more; each app container has one of the two.
    assert_eq!(
        give(&mut devices, &one, &[]).unwrap(),
        ["a", "a b", "a", "b"]
    );
    let other = pod("2", &[("main", App, 1)]);
    assert_eq!(give(&mut devices, &other, &[]).unwrap(), ["c"]);
}

#[test]
fn devices_of_sidecars_are_not_used_again() {
    let mut devices = node(&["a", "b", "c"]);
    let pod = pod(
        "1",
        &[("first", Init, 1), ("side", Sidecar, 1), ("main", App, 2)],
    );
    assert_eq!(give(&mut devices, &pod, &[]).unwrap(), ["a", "a", "b c"]);
}

#[test]
fn a_container_that_restarts_keeps_its_devices_if_they_are_healthy() {
    let mut devices = node(&["a", "b"]);
    let pod = pod("1", &[("main", App, 1)]);
    give(&mut devices, &pod, &[]).unwrap();
    assert!(give(&mut devices, &pod, &[]).unwrap().is_empty());
    devices.listed(&gpu(), vec![device("a", false), device("b", true)]);
    assert_eq!(
        give(&mut devices, &pod, &[]).unwrap_err().to_string(),
        "previously allocated devices are no longer healthy; cannot allocate unhealthy devices \
         example.com/gpu"
    );
    devices.listed(&gpu(), vec![device("a", false), device("b", false)]);
    assert_eq!(
        give(&mut devices, &pod, &[]).unwrap_err().to_string(),
        "no healthy devices present; cannot allocate unhealthy devices example.com/gpu"
    );
}

#[test]
fn a_container_cannot_ask_for_another_number() {
    let mut devices = node(&["a", "b"]);
    give(&mut devices, &pod("1", &[("main", App, 1)]), &[]).unwrap();
    let error = give(&mut devices, &pod("1", &[("main", App, 2)]), &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "pod \"1\" container \"main\" changed request for resource \"example.com/gpu\" from 1 to 2"
    );
}

#[test]
fn a_restarted_agent_knows_which_container_has_which_device() {
    let mut before = node(&["a", "b"]);
    let running = pod("1", &[("main", App, 1)]);
    give(&mut before, &running, &[]).unwrap();
    let resources: Vec<ResourceName> = before.plugin_resources().cloned().collect();
    let mut devices = Devices::restored(resources, before.allocations().cloned(), now());
    // The plugin is not back yet: the pod keeps what it has, others get nothing.
    assert_eq!(amounts(&devices), (0, 0));
    let floor = BTreeMap::from([(gpu(), 1)]);
    assert_eq!(devices.admit(&running), Ok(floor));
    let other = pod("2", &[("main", App, 1)]);
    let error = devices.admit(&other).unwrap_err();
    assert_eq!(error, AllocationError::NoHealthyDevices(gpu()));
    devices.registered(&gpu(), PluginOptions::default());
    devices.listed(&gpu(), vec![device("a", true), device("b", true)]);
    assert_eq!(give(&mut devices, &other, &[]).unwrap(), ["b"]);
}

#[test]
fn resources_without_a_plugin_are_none_of_a_plugins() {
    let devices = Devices::default();
    let pod = pod("1", &[("main", App, 7)]);
    assert_eq!(devices.admit(&pod), Ok(BTreeMap::new()));
}

#[test]
fn pods_are_named_when_the_health_of_their_devices_changes() {
    let mut devices = node(&["a", "b"]);
    give(&mut devices, &pod("1", &[("main", App, 1)]), &[]).unwrap();
    let holder = BTreeSet::from([PodUid::from("1")]);
    let listed = vec![device("a", true), device("b", false)];
    assert!(devices.listed(&gpu(), listed).is_empty());
    let listed = vec![device("a", false), device("b", false)];
    assert_eq!(devices.listed(&gpu(), listed), holder);
    assert!(!devices.is_healthy(&gpu(), "a"));
    devices.listed(&gpu(), vec![device("a", true)]);
    assert_eq!(devices.disconnected(&gpu(), now()), holder);
}

#[test]
fn settings_of_all_resources_are_merged_and_the_first_is_followed() {
    let mut devices = Devices::default();
    let settings = |env: &str, host: &str| ContainerSettings {
        envs: BTreeMap::from([("WHICH".to_owned(), env.to_owned())]),
        devices: vec![DeviceNode {
            container_path: "/dev/x".to_owned(),
            host_path: host.to_owned(),
            permissions: "rw".to_owned(),
        }],
        cdi_devices: vec!["vendor.com/gpu=0".to_owned()],
        ..ContainerSettings::default()
    };
    for (resource, settings) in [
        ("example.com/b", settings("b", "/dev/b")),
        ("example.com/a", settings("a", "/dev/a")),
    ] {
        devices.allocate(Allocation {
            pod: PodUid::from("1"),
            container: "main".to_owned(),
            resource: ResourceName::new(resource),
            devices: BTreeMap::new(),
            settings,
        });
    }
    let merged = devices.settings(&PodUid::from("1"), "main");
    assert_eq!(merged, settings("a", "/dev/a"));
    let nothing = devices.settings(&PodUid::from("1"), "other");
    assert_eq!(nothing, ContainerSettings::default());
}

#[test]
fn the_extended_resources_of_a_pod_are_its_demand() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "uid": "1" },
        "spec": {
            "initContainers": [
                { "name": "i", "resources": { "limits": { "cpu": "1", GPU: "1" } } },
                { "name": "s", "restartPolicy": "Always" },
            ],
            "containers": [{ "name": "m", "resources": { "limits": { GPU: "2" } } }],
        },
    }))
    .unwrap();
    let demand = PodDemand::from_api(&pod);
    let limits = |count| BTreeMap::from([(gpu(), count)]);
    let got: Vec<_> = demand
        .containers
        .iter()
        .map(|c| (c.kind, c.limits.clone()))
        .collect();
    let expected = [
        (Init, limits(1)),
        (Sidecar, BTreeMap::new()),
        (App, limits(2)),
    ];
    assert_eq!(got, expected);
    assert!(!demand.is_empty());
    assert!(PodDemand::from_api(&Pod::default()).is_empty());
}
