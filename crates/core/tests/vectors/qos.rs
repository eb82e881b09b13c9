//! `node/qos.json`.

use plimsoll_core::cgroup::container::{ContainerSettings, Swap, container_resources};
use plimsoll_core::cgroup::conversion::runtime_weight_from_shares;
use plimsoll_core::cgroup::pod::{PodSettings, pod_config};
use plimsoll_core::cgroup::{
    CgroupName, Driver, Host, LinuxContainerResources, MemoryQos, ResourceConfig, SwapBehavior,
    Version, WeightFormula,
};
use plimsoll_core::object::pod::{ContainerKind, ContainerView, Overhead, PodView};
use plimsoll_core::resources::{Bytes, ResourceName};
use plimsoll_testkit::vectors::{Outcome, compare_with_expected};
use serde_json::{Map, Value, json};

use crate::cgroup_json::{bytes, described_config, described_list, huge_page_sizes, pod};

pub(crate) fn check(case: &Value) -> Outcome {
    let pod = pod(&case["pod"]);
    let node = &case["node"];
    let eviction = |name: &ResourceName| pod.eviction_request(name);
    let containers: Vec<Value> = pod
        .all_containers()
        .map(|container| described_container(&pod, container, node))
        .collect();
    let got = json!({
        "qosClass": pod.compute_qos_class().as_str(),
        "qosClassUsedByKubelet": pod.qos_class().as_str(),
        "critical": pod.is_critical(),
        "nodeCritical": pod.is_node_critical(),
        "requests": described_list(&pod.requests(Overhead::Included)),
        "limits": described_list(&pod.limits(Overhead::Included)),
        "evictionRequests": {
            "cpu": eviction(&ResourceName::CPU).milli_value(),
            "memory": eviction(&ResourceName::MEMORY).value(),
            "ephemeral-storage": eviction(&ResourceName::EPHEMERAL_STORAGE).value(),
        },
        "podCgroup": described_pod_cgroup(&pod, node),
        "containers": containers,
    });
    compare_with_expected(case, &got)
}

fn host(version: Version) -> Host {
    Host {
        version,
        huge_page_sizes: huge_page_sizes(),
        has_hugetlb: true,
    }
}

fn described_pod_cgroup(pod: &PodView, node: &Value) -> Value {
    let settings = |memory_qos| PodSettings {
        enforces_cpu_limits: node["cpuCFSQuota"].as_bool().unwrap(),
        cpu_period_micros: node["cpuCFSQuotaPeriodMicros"].as_u64().unwrap(),
        pids_limit: node["podPidsLimit"].as_i64().unwrap(),
        memory_qos,
    };
    let config = pod_config(pod, &settings(MemoryQos::Off));
    let kubepods = CgroupName::kubepods(&CgroupName::ROOT);
    let name = CgroupName::pod(&kubepods, pod.qos_class(), &pod.uid).unwrap();
    let files =
        |version, config: &ResourceConfig| host(version).render(config, WeightFormula::Kubelet);
    json!({
        "cgroupfs": name.to_path(Driver::Cgroupfs).as_str(),
        "systemd": name.to_path(Driver::Systemd).as_str(),
        "config": described_config(&config),
        "v1": files(Version::V1, &config),
        "v2": files(Version::V2, &config),
        "memoryQoSTiered": pod_config(pod, &settings(MemoryQos::TieredReservation)).unified,
    })
}

fn described_container(pod: &PodView, container: &ContainerView, node: &Value) -> Value {
    let plain = settings(node);
    let with = |change: fn(&mut ContainerSettings, Bytes)| -> LinuxContainerResources {
        let mut settings = settings(node);
        change(
            &mut settings,
            Bytes(node["swapCapacityBytes"].as_i64().unwrap()),
        );
        container_resources(pod, container, &settings, false)
    };
    let resources = container_resources(pod, container, &plain, false);
    let huge_pages: Map<String, Value> = resources
        .huge_page_limits
        .iter()
        .map(|(size, limit)| (size.file_part().unwrap(), json!(limit.0)))
        .collect();
    let mut described = json!({
        "name": container.name,
        "kind": match container.kind {
            ContainerKind::App => "app",
            ContainerKind::Init => "init",
            ContainerKind::Sidecar => "sidecar",
        },
        "oomScoreAdj": resources.oom_score_adj,
        "cpuShares": resources.cpu_shares,
        "cpuQuota": resources.cpu_quota,
        "cpuPeriod": resources.cpu_period,
        "memoryLimitInBytes": resources.memory_limit.0,
        "hugepageLimits": huge_pages,
        "cpuWeightRunc": runtime_weight_from_shares(resources.cpu_shares),
        "unified": with(|s, _| s.single_process_oom_kill = false).unified,
        "memoryQoSNone": with(|s, _| s.memory_qos = MemoryQos::NoReservation).unified,
        "memoryQoSTieredReservation":
            with(|s, _| s.memory_qos = MemoryQos::TieredReservation).unified,
    });
    if node["swapCapacityBytes"].as_i64().unwrap() > 0 {
        let swap = |resources: LinuxContainerResources| {
            json!({
                "memorySwapLimitInBytes": resources.memory_swap_limit.0,
                "unified": resources.unified,
            })
        };
        described["swapNoSwap"] = swap(with(|s, capacity| {
            let behavior = SwapBehavior::NoSwap;
            s.swap = Some(Swap { behavior, capacity });
        }));
        described["swapLimitedSwap"] = swap(with(|s, capacity| {
            let behavior = SwapBehavior::LimitedSwap;
            s.swap = Some(Swap { behavior, capacity });
        }));
    }
    described
}

fn settings(node: &Value) -> ContainerSettings {
    ContainerSettings {
        host: host(Version::V2),
        machine_memory: Bytes(node["nodeMemoryCapacityBytes"].as_i64().unwrap()),
        enforces_cpu_limits: node["cpuCFSQuota"].as_bool().unwrap(),
        cpu_period_micros: node["cpuCFSQuotaPeriodMicros"].as_u64().unwrap(),
        single_process_oom_kill: true,
        memory_qos: MemoryQos::Off,
        memory_throttling_factor: node["memoryThrottlingFactor"].as_f64().unwrap(),
        allocatable_memory: bytes(&node["nodeAllocatableMemory"]),
        page_size: Bytes(4096),
        swap: None,
    }
}
