//! Cgroup settings of pods, read back from the kernel's files.

use std::collections::BTreeSet;
use std::time::Duration;

use plimsoll_core::cgroup::conversion::{kubelet_weight_from_shares, runtime_weight_from_shares};
use plimsoll_testkit::cgroup::{exists, is_unified, processes, read};
use plimsoll_testkit::containerd::may_lower_oom_scores;
use plimsoll_testkit::vm::slowness;
use plimsoll_testkit::waiting::{until, until_within};
use serde_json::{Value, json};

use crate::cluster::{Cluster, NODE, Runtime, on_both_runtimes};
use crate::manifest::{container_id, pod, sized};

on_both_runtimes!(
    every_cgroup_matches_its_pods_resources,
    oom_score_adj_follows_qos_class,
    cgroups_are_removed_with_their_pods,
    a_pod_is_resized_in_place,
);

/// QoS cgroups are corrected at least once a minute.
const TIER_PATIENCE: Duration = Duration::from_secs(150);

/// The settings of a cgroup. `None` is no limit.
#[derive(Debug, PartialEq)]
struct Values {
    /// Shares with v1, weight with v2.
    cpu: u64,
    quota: Option<u64>,
    memory: Option<u64>,
}

/// The component that wrote it; with v2 that decides how shares become a weight.
#[derive(Clone, Copy)]
enum Writer {
    Agent,
    Runtime(Runtime),
}

fn expected(shares: u64, quota: Option<u64>, memory: Option<u64>, writer: Writer) -> Values {
    let cpu = match writer {
        _ if !is_unified() => shares,
        Writer::Runtime(Runtime::Embedded) => runtime_weight_from_shares(shares),
        // The runc of Debian 12 still computes as the agent does.
        Writer::Agent | Writer::Runtime(Runtime::Containerd) => kubelet_weight_from_shares(shares),
    };
    Values { cpu, quota, memory }
}

fn values(path: &str) -> Values {
    let number = |text: &str| text.parse::<u64>().expect("a number");
    if is_unified() {
        let quota = read("cpu", path, "cpu.max");
        let quota = quota.split(' ').next().unwrap_or_default();
        let memory = read("memory", path, "memory.max");
        return Values {
            cpu: number(&read("cpu", path, "cpu.weight")),
            quota: quota.parse().ok(),
            memory: memory.parse().ok(),
        };
    }
    assert_eq!(read("cpu", path, "cpu.cfs_period_us"), "100000", "{path}");
    // The largest number of whole pages is the kernel's way to say that there is no limit.
    let memory = number(&read("memory", path, "memory.limit_in_bytes"));
    Values {
        cpu: number(&read("cpu", path, "cpu.shares")),
        quota: read("cpu", path, "cpu.cfs_quota_us").parse().ok(),
        memory: (memory < 1 << 62).then_some(memory),
    }
}

/// The cgroup of a pod.
fn pod_cgroup(cluster: &Cluster, pod: &Value) -> String {
    let tier = match pod["status"]["qosClass"].as_str() {
        Some("Guaranteed") => "",
        Some("Burstable") => "/burstable",
        Some("BestEffort") => "/besteffort",
        other => panic!("QoS class {other:?}"),
    };
    let uid = pod["metadata"]["uid"].as_str().expect("pods have uids");
    format!("{}/kubepods{tier}/pod{uid}", cluster.cgroup_root())
}

fn container_cgroup(cluster: &Cluster, pod: &Value, container: &str) -> String {
    let above = pod_cgroup(cluster, pod);
    format!("{above}/{}", container_id(pod, container))
}

/// A pod with its containers, the settings of its cgroup and of those of its containers:
/// shares, quota, memory.
type Row = (
    &'static str,
    &'static str,
    Vec<Value>,
    (u64, Option<u64>, Option<u64>),
    Vec<(u64, Option<u64>, Option<u64>)>,
);

const MI: u64 = 1 << 20;

/// The pods of the sources' table. Numbers are written out, not computed.
fn rows() -> Vec<Row> {
    let first = json!({
        "requests": { "cpu": "250m", "memory": "64Mi" },
        "limits": { "cpu": "1", "memory": "128Mi" },
    });
    vec![
        (
            "guaranteed",
            "Guaranteed",
            vec![json!({ "limits": { "cpu": "500m", "memory": "1Gi" } })],
            (512, Some(50_000), Some(1024 * MI)),
            vec![(512, Some(50_000), Some(1024 * MI))],
        ),
        (
            "requests-only",
            "Burstable",
            vec![json!({ "requests": { "cpu": "250m", "memory": "64Mi" } })],
            (256, None, None),
            vec![(256, None, None)],
        ),
        (
            "one-is-unlimited",
            "Burstable",
            vec![first.clone(), json!({})],
            (256, None, None),
            vec![(256, Some(100_000), Some(128 * MI)), (2, None, None)],
        ),
        (
            "both-are-limited",
            "Burstable",
            vec![
                first,
                json!({
                    "requests": { "cpu": "100m" },
                    "limits": { "cpu": "500m", "memory": "64Mi" },
                }),
            ],
            (358, Some(150_000), Some(192 * MI)),
            vec![
                (256, Some(100_000), Some(128 * MI)),
                (102, Some(50_000), Some(64 * MI)),
            ],
        ),
        (
            "memory-here-cpu-there",
            "Burstable",
            vec![
                json!({ "requests": { "memory": "64Mi" }, "limits": { "memory": "128Mi" } }),
                json!({ "requests": { "cpu": "100m" } }),
            ],
            (102, None, None),
            vec![(2, None, Some(128 * MI)), (102, None, None)],
        ),
        (
            "tiny",
            "Burstable",
            vec![json!({ "limits": { "cpu": "1m" } })],
            (2, Some(1000), None),
            vec![(2, Some(1000), None)],
        ),
        (
            "nothing",
            "BestEffort",
            vec![json!({})],
            (2, None, None),
            vec![(2, None, None)],
        ),
    ]
}

fn every_cgroup_matches_its_pods_resources(cluster: &mut Cluster) {
    let rows = rows();
    let pods = rows.iter().map(|(name, _, resources, ..)| {
        let containers = resources.iter().enumerate();
        let containers: Vec<Value> = containers
            .map(|(index, resources)| {
                let mut container = sized(&format!("c{index}"), resources);
                // With a hundredth of a core even a shell is slow.
                container["command"] = json!(["sleep", "1000000"]);
                container
            })
            .collect();
        pod(name, &containers)
    });
    cluster.create_all(pods.collect());
    for (name, class, _, of_pod, of_containers) in &rows {
        // A hundredth of an emulated core takes minutes to start anything.
        let is_hopeless = slowness() > 1 && *name == "tiny";
        let pod = match is_hopeless {
            true => cluster.get(&format!("pod {name}")),
            false => cluster.until_running(&json!(name)),
        };
        assert_eq!(pod["status"]["qosClass"], *class, "{name}");
        let path = pod_cgroup(cluster, &pod);
        let (shares, quota, memory) = *of_pod;
        if is_hopeless {
            let wanted = expected(shares, quota, memory, Writer::Agent);
            until("the pod's cgroup is ready", || {
                let is_ready = exists(&path) && values(&path) == wanted;
                if is_ready { Ok(()) } else { Err(path.clone()) }
            });
        }
        assert_eq!(
            values(&path),
            expected(shares, quota, memory, Writer::Agent),
            "{name}"
        );
        let of_containers = of_containers.iter().filter(|_| !is_hopeless);
        for (index, of_container) in of_containers.enumerate() {
            let path = container_cgroup(cluster, &pod, &format!("c{index}"));
            let (shares, quota, memory) = *of_container;
            let writer = Writer::Runtime(cluster.runtime);
            assert_eq!(
                values(&path),
                expected(shares, quota, memory, writer),
                "container {index} of {name}"
            );
            assert!(!processes(&path).is_empty(), "nothing runs in {path}");
        }
    }
    tiers_and_kubepods(cluster);
}

/// All pods of [`rows`] run.
fn tiers_and_kubepods(cluster: &Cluster) {
    let kubepods = format!("{}/kubepods", cluster.cgroup_root());
    let node = cluster.get(&format!("node {NODE}"));
    let capacity = &node["status"]["capacity"];
    let cores: u64 = capacity["cpu"].as_str().unwrap().parse().unwrap();
    // Nothing is reserved, and the eviction threshold does not reduce the limit.
    let limit = Some(memory_of(&node));
    let wanted = expected(cores * 1024, None, limit, Writer::Agent);
    assert_eq!(values(&kubepods), wanted, "kubepods");
    let burstable = format!("{kubepods}/burstable");
    // 250m + 250m + 350m + 100m + 1m. QoS cgroups are updated periodically.
    let wanted = expected(973, None, None, Writer::Agent);
    until_within(
        TIER_PATIENCE,
        "the burstable tier has the requests of its pods",
        || {
            let values = values(&burstable);
            if values == wanted {
                Ok(())
            } else {
                Err(format!("{values:?}"))
            }
        },
    );
    let best_effort = values(&format!("{kubepods}/besteffort"));
    assert_eq!(best_effort, expected(2, None, None, Writer::Agent));
}

/// The memory of the node in bytes, which it reports in KiB.
fn memory_of(node: &Value) -> u64 {
    let memory = node["status"]["capacity"]["memory"].as_str();
    let memory = memory.and_then(|text| text.strip_suffix("Ki"));
    memory.expect("memory in KiB").parse::<u64>().unwrap() * 1024
}

fn oom_score_adj_follows_qos_class(cluster: &mut Cluster) {
    let memory = memory_of(&cluster.get(&format!("node {NODE}")));
    let requests = |bytes: u64| json!({ "requests": { "memory": bytes.to_string() } });
    let half = memory / 2;
    let eighth = memory / 8;
    let rows = [
        ("best-effort", json!({}), 1000),
        // The lowest Burstable score is still below that of BestEffort.
        ("little", requests(1), 999),
        ("eighth", requests(eighth), 1000 - 1000 * eighth / memory),
        ("half", requests(half), 1000 - 1000 * half / memory),
    ];
    let pods = rows
        .iter()
        .map(|(name, resources, _)| pod(name, &[sized("main", resources)]));
    cluster.create_all(pods.collect());
    for (name, _, score) in rows {
        let pod = cluster.until_running(&json!(name));
        let scores = scores(&container_cgroup(cluster, &pod, "main"));
        assert_eq!(scores, [score.to_string()].into(), "{name}");
    }
    let guaranteed = json!({ "limits": { "cpu": "200m", "memory": "16Mi" } });
    let pod = cluster.run(&pod("guaranteed", &[sized("main", &guaranteed)]));
    // Only a process with CAP_SYS_RESOURCE may lower its own value.
    let wanted = match may_lower_oom_scores() {
        true => "-997".to_owned(),
        false => score_of(std::process::id()).expect("this process runs"),
    };
    let scores = scores(&container_cgroup(cluster, &pod, "main"));
    assert_eq!(scores, [wanted].into(), "guaranteed");
}

/// The scores of the processes in a cgroup. Short-lived ones such as `sleep 1` may vanish.
fn scores(path: &str) -> BTreeSet<String> {
    processes(path).into_iter().filter_map(score_of).collect()
}

fn score_of(id: u32) -> Option<String> {
    let score = std::fs::read_to_string(format!("/proc/{id}/oom_score_adj"));
    score.ok().map(|score| score.trim().to_owned())
}

fn cgroups_are_removed_with_their_pods(cluster: &mut Cluster) {
    let small = json!({ "requests": { "cpu": "100m" } });
    let pod = cluster.run(&pod("p", &[sized("main", &small)]));
    let path = pod_cgroup(cluster, &pod);
    assert!(exists(&path));
    cluster.kubectl("delete pod p --wait=false");
    cluster.is_gone("pod p");
    until("its cgroup is gone", || {
        let is_gone = !exists(&path);
        if is_gone { Ok(()) } else { Err(path.clone()) }
    });
    let burstable = format!("{}/kubepods/burstable", cluster.cgroup_root());
    until_within(TIER_PATIENCE, "the tier has no requests", || {
        let values = values(&burstable);
        let is_least = values.cpu == expected(2, None, None, Writer::Agent).cpu;
        if is_least {
            Ok(())
        } else {
            Err(format!("{values:?}"))
        }
    });
    let folder = cluster.data_dir().join("kubelet/pods");
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    assert!(!folder.join(uid).exists(), "its folder stays");
}

fn a_pod_is_resized_in_place(cluster: &mut Cluster) {
    let size = json!({ "limits": { "cpu": "100m", "memory": "64Mi" } });
    let before = cluster.run(&pod("p", &[sized("main", &size)]));
    let path = container_cgroup(cluster, &before, "main");
    let processes_before = processes(&path);
    let resources = json!({
        "requests": { "cpu": "200m", "memory": "96Mi" },
        "limits": { "cpu": "200m", "memory": "96Mi" },
    });
    let patch = json!({ "spec": { "containers": [{ "name": "main", "resources": resources }] } });
    cluster.kubectl(&format!("patch pod p --subresource resize -p '{patch}'"));
    let after = cluster.until_object("pod p", "resized", |pod| {
        pod["status"]["containerStatuses"][0]["resources"] == resources
    });
    let wanted = expected(
        204,
        Some(20_000),
        Some(96 * MI),
        Writer::Runtime(cluster.runtime),
    );
    assert_eq!(values(&path), wanted);
    let wanted = expected(204, Some(20_000), Some(96 * MI), Writer::Agent);
    assert_eq!(values(&pod_cgroup(cluster, &after)), wanted);
    assert_eq!(container_id(&after, "main"), container_id(&before, "main"));
    assert_eq!(processes(&path).first(), processes_before.first());
    assert_eq!(after["status"]["containerStatuses"][0]["restartCount"], 0);
}
