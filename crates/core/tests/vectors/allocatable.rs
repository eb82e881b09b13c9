//! `node/allocatable.json`.

use std::collections::BTreeMap;

use plimsoll_core::allocatable::reserved::{self, Reserved};
use plimsoll_core::allocatable::{
    DevicePlugins, HugePages, Machine, NodeResources, PodCount, Settings, compute_allocatable,
};
use plimsoll_core::cgroup::MemoryQos;
use plimsoll_core::cgroup::node::{Enforced, reserved_config, resource_config};
use plimsoll_core::resources::{Bytes, Count, ResourceList, ResourceName};
use plimsoll_testkit::vectors::{Outcome, compare_with_expected};
use serde_json::{Map, Value, json};

use crate::cgroup_json::{described_config, described_list, parsed_list};
use crate::thresholds::statements;

pub(crate) fn check(case: &Value) -> Outcome {
    let got = answer(&case["input"]).unwrap_or_else(|error| json!({"configError": error}));
    compare_with_expected(case, &got)
}

fn answer(input: &Value) -> Result<Value, String> {
    let settings = settings(input)?;
    let answer = compute_allocatable(
        &machine(input),
        &settings,
        &devices(input),
        &previous(input),
    );
    let kubepods = resource_config(&answer.cgroup_limits(), Enforced::All);
    let over = answer.over_reserved();
    let over: Vec<&str> = over.iter().map(|o| o.resource.as_str()).collect();
    let mut got = json!({
        "capacity": described_list(&answer.capacity()),
        "allocatable": described_list(&answer.allocatable()),
        "reservation": described_list(&answer.reservation()),
        "enforcementAllocatable": described_list(&answer.absolute()),
        "kubepodsCgroup": described_config(&kubepods),
        "startupErrorResources": over,
    });
    got.as_object_mut()
        .unwrap()
        .extend(reserved_cgroups(input, &settings));
    Ok(got)
}

fn reserved_cgroups(input: &Value, settings: &Settings) -> Map<String, Value> {
    let described =
        |list: &ResourceList, enforced| match reserved_config(list, enforced, MemoryQos::Off) {
            Some(config) => described_config(&config),
            None => json!("error: not configured"),
        };
    let (kube, system) = (&settings.kube_reserved, &settings.system_reserved);
    [
        ("kube-reserved", "kubeReservedCgroup", kube, Enforced::All),
        (
            "system-reserved",
            "systemReservedCgroup",
            system,
            Enforced::All,
        ),
        (
            "kube-reserved-compressible",
            "kubeReservedCompressibleCgroup",
            kube,
            Enforced::Compressible,
        ),
        (
            "system-reserved-compressible",
            "systemReservedCompressibleCgroup",
            system,
            Enforced::Compressible,
        ),
    ]
    .into_iter()
    .filter(|(key, ..)| is_enforced(input, key))
    .map(|(_, name, list, enforced)| (name.to_owned(), described(list, enforced)))
    .collect()
}

fn is_enforced(input: &Value, key: &str) -> bool {
    let keys = input["enforceNodeAllocatable"].as_array();
    keys.is_some_and(|keys| keys.iter().any(|k| k == key))
}

fn machine(input: &Value) -> Machine {
    let number = |key: &str| input[key].as_i64().unwrap_or_default();
    let is_isolated = input["localStorageCapacityIsolation"].as_bool().unwrap();
    let huge_pages = input["hugePages"].as_array().into_iter().flatten();
    Machine {
        cores: number("numCores"),
        memory: Bytes(number("memoryCapacityBytes")),
        huge_pages: huge_pages
            .map(|pages| HugePages {
                page_size: Bytes(pages["pageSizeKiB"].as_i64().unwrap() * 1024),
                count: pages["numPages"].as_i64().unwrap(),
            })
            .collect(),
        root_fs: is_isolated.then(|| Bytes(number("rootFsCapacityBytes"))),
        max_pid: Some(Count(number("maxPID"))).filter(|count| count.0 > 0),
    }
}

fn settings(input: &Value) -> Result<Settings, String> {
    let map = |key: &str| -> BTreeMap<String, String> {
        serde_json::from_value(input[key].clone()).unwrap_or_default()
    };
    let list =
        |reserved, key| reserved::parse(reserved, &map(key)).map_err(|error| error.to_string());
    let number = |key: &str| input[key].as_i64().unwrap();
    let kube_reserved = list(Reserved::Kube, "kubeReserved")?;
    let system_reserved = list(Reserved::System, "systemReserved")?;
    let is_eviction_ignored = input["ignoreEvictionThreshold"].as_bool();
    let hard_eviction = if is_eviction_ignored.unwrap_or_default() {
        vec![]
    } else {
        statements(input)
            .hard_only()
            .parse()
            .map_err(|error| error.to_string())?
    };
    Ok(Settings {
        kube_reserved,
        system_reserved,
        hard_eviction,
        pod_count: PodCount {
            max_pods: number("maxPods"),
            pods_per_core: number("podsPerCore"),
        },
        is_enforced_on_pods: input["cgroupsPerQOS"].as_bool().unwrap()
            && is_enforced(input, "pods"),
    })
}

fn devices(input: &Value) -> DevicePlugins {
    let removed = input["devicePluginRemoved"]
        .as_array()
        .into_iter()
        .flatten();
    DevicePlugins {
        capacity: parsed_list(&input["devicePluginCapacity"]),
        allocatable: parsed_list(&input["devicePluginAllocatable"]),
        removed: removed
            .map(|name| ResourceName::new(name.as_str().unwrap()))
            .collect(),
    }
}

fn previous(input: &Value) -> NodeResources {
    NodeResources {
        capacity: parsed_list(&input["previousCapacity"]),
        allocatable: parsed_list(&input["previousAllocatable"]),
    }
}
