use serde_json::{Value, json};

use super::container::{ContainerSettings, Swap, container_resources};
use super::node::Enforced;
use super::pod::{PodSettings, pod_config};
use super::*;
use crate::object::pod::PodView;
use crate::resources::{Bytes, ResourceList, ResourceName};

fn pod(uid: &str, spec: Value) -> PodView {
    let api = json!({"metadata": {"name": "p", "namespace": "d", "uid": uid}, "spec": spec});
    PodView::from_api(&serde_json::from_value(api).unwrap()).unwrap()
}

fn containers(resources: &[Value]) -> Value {
    let named =
        |(i, resources): (usize, &Value)| json!({"name": format!("c{i}"), "resources": resources});
    json!({"containers": resources.iter().enumerate().map(named).collect::<Vec<_>>()})
}

const POD_SETTINGS: PodSettings = PodSettings {
    enforces_cpu_limits: true,
    cpu_period_micros: 100_000,
    pids_limit: -1,
    memory_qos: MemoryQos::Off,
};

fn container_settings(version: Version) -> ContainerSettings {
    ContainerSettings {
        host: Host {
            version,
            huge_page_sizes: vec![],
            has_hugetlb: false,
        },
        machine_memory: Bytes(32 << 30),
        enforces_cpu_limits: true,
        cpu_period_micros: 100_000,
        single_process_oom_kill: false,
        memory_qos: MemoryQos::Off,
        memory_throttling_factor: 0.9,
        allocatable_memory: Bytes(29 << 30),
        page_size: Bytes(4096),
        swap: None,
    }
}

#[test]
fn pod_limit_needs_a_limit_in_every_container() {
    let both = json!({"cpu": "500m", "memory": "1Gi"});
    let c1 = json!({
        "requests": {"cpu": "250m", "memory": "64Mi"},
        "limits": {"cpu": "1", "memory": "128Mi"},
    });
    let c2 = json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "500m", "memory": "64Mi"}});
    let cases = [
        (
            vec![json!({"requests": both, "limits": both})],
            (512, Some(50_000), Some(1 << 30)),
        ),
        (
            vec![json!({"requests": {"cpu": "250m", "memory": "64Mi"}})],
            (256, None, None),
        ),
        (vec![c1.clone(), json!({})], (256, None, None)),
        (vec![c1, c2], (358, Some(150_000), Some(201_326_592))),
        (
            vec![json!({"requests": {"cpu": "1m"}, "limits": {"cpu": "1m"}})],
            (2, Some(1_000), None),
        ),
        (vec![json!({})], (2, None, None)),
    ];
    for (resources, (shares, quota, memory)) in cases {
        let config = pod_config(&pod("u", containers(&resources)), &POD_SETTINGS);
        assert_eq!(config.cpu_shares, Some(shares), "{resources:?}");
        assert_eq!(config.cpu_quota, quota, "{resources:?}");
        assert_eq!(config.memory, memory.map(Bytes), "{resources:?}");
    }
}

#[test]
fn an_init_container_after_a_limited_sidecar_counts_as_limited() {
    let limited = json!({"limits": {"memory": "64Mi"}});
    let mut spec = containers(std::slice::from_ref(&limited));
    let sidecar = json!({"name": "s", "restartPolicy": "Always", "resources": limited});
    let init = json!({"name": "i"});
    spec["initContainers"] = json!([sidecar, init]);
    assert!(
        pod_config(&pod("u", spec.clone()), &POD_SETTINGS)
            .memory
            .is_some()
    );
    spec["initContainers"] = json!([init, sidecar]);
    assert!(pod_config(&pod("u", spec), &POD_SETTINGS).memory.is_none());
}

#[test]
fn a_container_without_request_gets_shares_by_its_limit() {
    let pod = pod("u", containers(&[json!({"limits": {"cpu": "500m"}})]));
    let settings = container_settings(Version::V2);
    let resources = container_resources(&pod, &pod.containers[0], &settings, false);
    assert_eq!((resources.cpu_shares, resources.cpu_quota), (512, 50_000));
    let exclusive = container_resources(&pod, &pod.containers[0], &settings, true);
    assert_eq!(exclusive.cpu_quota, -1);
    let host = &settings.host;
    let files = host.render(&resources.resource_config(), WeightFormula::Runtime);
    assert_eq!(files["cpu.weight"], "59");
    assert_eq!(files["memory.oom.group"], "1");
}

#[test]
fn cgroup_v1_limits_memory_and_swap_together() {
    let pod = pod("u", containers(&[json!({"limits": {"memory": "1Gi"}})]));
    let mut settings = container_settings(Version::V1);
    settings.swap = Some(Swap {
        behavior: SwapBehavior::LimitedSwap,
        capacity: Bytes(1 << 30),
    });
    let resources = container_resources(&pod, &pod.containers[0], &settings, false);
    assert_eq!(resources.memory_swap_limit, Bytes(1 << 30));
    assert!(resources.unified.is_empty());
}

#[test]
fn tier_over_its_limit_is_limited_to_its_usage() {
    let settings = TierSettings {
        reserved_memory_percent: Some(50),
        allocatable_memory: Bytes(1000),
        ..TierSettings::default()
    };
    let pods = [pod(
        "u",
        containers(&[json!({"requests": {"memory": "400"}})]),
    )];
    let tiers = compute_qos_tiers(&pods, &settings);
    assert_eq!(tiers.burstable.memory, Some(Bytes(1000)));
    assert_eq!(tiers.best_effort.memory, Some(Bytes(800)));
    let retried = tiers.retried_with(TierUsage {
        burstable: Some(Bytes(10)),
        best_effort: Some(Bytes(900)),
    });
    assert_eq!(retried.burstable.memory, Some(Bytes(1000)));
    assert_eq!(retried.best_effort.memory, Some(Bytes(900)));
}

#[test]
fn a_plan_lists_parents_first_and_foreign_cgroups_last() {
    let limits: ResourceList = [
        (ResourceName::CPU, "4".parse().unwrap()),
        (ResourceName::MEMORY, "29Gi".parse().unwrap()),
    ]
    .into_iter()
    .collect();
    let reserved = [ReservedCgroup {
        name: CgroupName::parse("/system.slice", Driver::Systemd),
        reservation: limits.clone(),
        enforced: Enforced::Compressible,
    }];
    let pods = [pod("1-2", containers(&[json!({})]))];
    let input = PlanInput {
        driver: Driver::Systemd,
        root: CgroupName::ROOT,
        pod_limits: &limits,
        cpuset: Some("0-3".to_owned()),
        tiers: &TierSettings::default(),
        pod_settings: &POD_SETTINGS,
        pods: &pods,
        reserved: &reserved,
    };
    let plan = compute_plan(&input).unwrap();
    let paths: Vec<(&str, bool)> = plan
        .cgroups
        .iter()
        .map(|c| (c.path.as_str(), c.is_foreign))
        .collect();
    assert_eq!(
        paths,
        [
            ("/kubepods.slice", false),
            ("/kubepods.slice/kubepods-burstable.slice", false),
            ("/kubepods.slice/kubepods-besteffort.slice", false),
            (
                "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1_2.slice",
                false
            ),
            ("/system.slice", true),
        ]
    );
    let kubepods = &plan.cgroups[0].config;
    assert_eq!(kubepods.memory, Some(Bytes(29 << 30)));
    assert_eq!(kubepods.cpuset.as_deref(), Some("0-3"));
    assert_eq!(plan.cgroups[4].config.memory, None);
}
