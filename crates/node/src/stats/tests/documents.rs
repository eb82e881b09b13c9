use plimsoll_core::cgroup::Version;
use plimsoll_core::eviction::summary::{FsStats, PodStats};
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::resources::{Bytes, Count};
use plimsoll_core::threshold::DiskLayout;
use serde_json::json;

use super::node::{FakeNode, POD};
use crate::stats::metrics::KubeletMetrics;
use crate::stats::{PlayedMachine, RootFs};

const VERSIONS: [Version; 2] = [Version::V1, Version::V2];

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

/// Two measurements ten seconds apart, in which the pod and its first container used one core.
fn measured(version: Version) -> FakeNode {
    let mut node = FakeNode::new(version);
    let inventory = node.inventory();
    node.collector.set_inventory(inventory);
    node.set_memory(POD, 3000, 1000);
    node.set_memory(&format!("{POD}/c1"), 2000, 500);
    node.set_memory("/kubepods", 6000, 6000);
    let limit = if node.is_v1() {
        "memory.limit_in_bytes"
    } else {
        "memory.max"
    };
    node.set("/kubepods", limit, "5000\n");
    node.set(&format!("{POD}/c1"), "cgroup.procs", "1\n2\n");
    node.set(&format!("{POD}/c2"), "cgroup.procs", "3\n");
    for cgroup in ["/", "/kubepods", POD, &format!("{POD}/c1")] {
        node.set_cpu(cgroup, 1_000_000_000);
    }
    node.collector.sample(at(4000));
    for cgroup in [POD, &format!("{POD}/c1")] {
        node.set_cpu(cgroup, 11_000_000_000);
    }
    node.collector.sample(at(4010));
    node
}

fn pod(node: &FakeNode) -> PodStats {
    node.collector.summary().pods.remove(0)
}

#[test]
fn cpu_and_memory_are_read_from_cgroups_of_either_generation() {
    for version in VERSIONS {
        let node = measured(version);
        let pod = pod(&node);
        let cpu = pod.cpu.unwrap();
        assert_eq!(cpu.usage_core_nano_seconds, Some(11_000_000_000));
        assert_eq!(cpu.usage_nano_cores, Some(1_000_000_000));
        assert_eq!(cpu.time, Some(at(4010)));
        let memory = pod.memory.unwrap();
        assert_eq!(memory.usage_bytes, Some(3000));
        assert_eq!(memory.working_set_bytes, Some(2000));
        assert_eq!(memory.rss_bytes, Some(2000));
        assert_eq!(memory.available_bytes, None, "no limit");
        assert_eq!(memory.page_faults, Some(7));
        assert_eq!(memory.major_page_faults, Some(3));
        assert_eq!(pod.process_stats.unwrap().process_count, Some(3));
        let memory = pod.containers[0].memory.as_ref().unwrap();
        assert_eq!(memory.working_set_bytes, Some(1500));
        let network = pod.network.unwrap();
        assert_eq!(network.default.rx_bytes, Some(10));
        assert_eq!(network.interfaces[0].tx_errors, Some(2));
    }
}

#[test]
fn the_node_is_its_root_cgroup_and_its_memory_the_machines() {
    for version in VERSIONS {
        let node = measured(version);
        let stats = node.collector.summary().node;
        assert_eq!(stats.node_name, "node-1");
        assert_eq!(stats.start_time, Some(at(1000)));
        let memory = stats.memory.unwrap();
        assert_eq!(memory.usage_bytes, Some(5 << 20));
        assert_eq!(memory.working_set_bytes, Some(4 << 20));
        assert_eq!(memory.available_bytes, Some(4 << 20));
        assert_eq!(memory.mem_available_bytes, Some(4 << 20));
        assert_eq!(memory.psi.unwrap().full.avg10, 1.0);
        assert_eq!(stats.rlimit.unwrap().maxpid, Some(1000));
        let swap = stats.swap.unwrap();
        let swapped = if node.is_v1() { 0 } else { 60 << 10 };
        assert_eq!(swap.swap_usage_bytes, Some(swapped));
        assert_eq!(swap.swap_available_bytes, Some((100 << 10) - swapped));
        let names: Vec<&str> = stats
            .system_containers
            .iter()
            .map(|container| container.name.as_str())
            .collect();
        assert_eq!(names, ["kubelet", "pods"], "misc has no cgroup");
        assert_eq!(stats.system_containers[0].start_time, Some(at(2000)));
        let runtime = stats.runtime.unwrap();
        assert_eq!(runtime.image_fs.as_ref().unwrap().used_bytes, Some(1234));
        assert_eq!(runtime.container_fs, runtime.image_fs);
        assert_eq!(node.collector.disk_layout(), Some(DiskLayout::Single));
    }
}

#[test]
fn eviction_reads_the_same_document() {
    let node = measured(Version::V2);
    let summary = node.collector.summary();
    let observation = summary.observation();
    assert_eq!(observation.memory.unwrap().available, Bytes(4 << 20));
    let pods = observation.pods_memory.unwrap();
    assert_eq!((pods.available, pods.working_set), (Bytes(5000), Bytes(0)));
    assert_eq!(observation.pids.unwrap().running, Count(77));
    assert_eq!(observation.memory_stall.unwrap().full_avg10, 1.0);
    assert!(observation.node_fs.is_some() && observation.container_fs.is_some());
    let usages = summary.usages();
    let usage = &usages[&PodUid::from("u-1")];
    assert_eq!(usage.memory.unwrap().working_set, Some(Bytes(2000)));
    assert_eq!(usage.processes, Some(Count(3)));
}

#[test]
fn a_working_set_above_the_limit_makes_available_negative() {
    let mut node = measured(Version::V1);
    node.set_memory("/kubepods", 6000, 0);
    node.collector.sample_node(at(4011));
    let observation = node.collector.summary().observation();
    assert_eq!(observation.pods_memory.unwrap().available, Bytes(-1000));
}

#[test]
fn storage_is_writable_layers_logs_local_volumes_and_etc_hosts() {
    let node = measured(Version::V1);
    let pod = pod(&node);
    let used = |fs: &Option<FsStats>| {
        let fs = fs.as_ref().unwrap();
        (fs.used_bytes.unwrap(), fs.inodes_used.unwrap())
    };
    let [first, second] = pod.containers.as_slice() else {
        panic!("{pod:?}");
    };
    assert_eq!(used(&first.rootfs), (500, 5));
    assert_eq!(first.rootfs.as_ref().unwrap().time, Some(at(3500)));
    assert_eq!(used(&second.rootfs).1, 2, "a directory and a file");
    assert_eq!(used(&first.logs).1, 1);
    let names: Vec<&str> = pod
        .volume
        .iter()
        .map(|volume| volume.name.as_str())
        .collect();
    assert_eq!(names, ["scratch", "data"], "ephemeral ones first");
    assert_eq!(pod.volume[1].pvc_ref.as_ref().unwrap().name, "claim");
    let parts = [
        used(&first.rootfs),
        used(&second.rootfs),
        used(&first.logs),
        used(&second.logs),
        used(&Some(pod.volume[0].fs.clone())),
        (node_block(&node), 1),
    ];
    let sum = parts
        .iter()
        .fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    assert_eq!(used(&pod.ephemeral_storage), sum);
}

#[test]
fn only_limited_volumes_are_measured_between_samples() {
    for is_limited in [false, true] {
        let mut node = measured(Version::V2);
        let mut inventory = node.inventory();
        inventory.pods[0].is_limited = is_limited;
        node.collector.set_inventory(inventory);
        node.collector.sample(at(4020));
        let scratch = node.machine.path("volumes/scratch/more");
        std::fs::write(scratch, vec![1; 100_000]).unwrap();
        let layers = RootFs::Reported {
            used_bytes: Some(700),
            inodes_used: Some(7),
            time: Some(at(4021)),
        };
        let layers = [("id-c1".to_owned(), layers)].into();
        node.collector.set_layers(layers);
        node.collector.sample_filling(at(4021));
        let summary = node.collector.summary();
        let observed = summary.observation();
        assert_eq!(observed.node_fs.unwrap().time, Some(at(4021)));
        assert_eq!(observed.image_fs.unwrap().time, Some(at(4021)));
        assert_eq!(observed.pids.unwrap().time, Some(at(4021)));
        assert_eq!(
            summary.pods[0].memory.as_ref().unwrap().time,
            Some(at(4020))
        );
        let scratch = &summary.pods[0].volume[0].fs;
        let is_seen = scratch.used_bytes.unwrap() > 100_000;
        assert_eq!(is_seen, is_limited);
        let layer = summary.pods[0].containers[0].rootfs.as_ref().unwrap();
        assert_eq!(layer.used_bytes, Some(700));
    }
}

#[test]
fn fast_growth_triggers_a_sample() {
    let mut node = measured(Version::V2);
    assert!(!node.collector.sample_filling(at(4011)));
    node.machine
        .write("proc/loadavg", "0.1 0.2 0.3 2/90 1234\n");
    assert!(!node.collector.sample_filling(at(4012)));
    node.machine
        .write("proc/loadavg", "0.1 0.2 0.3 2/111 1234\n");
    assert!(node.collector.sample_filling(at(4013)), "21 of 1000 more");
}

/// A node whose machine is played by a cgroup.
fn played(version: Version) -> FakeNode {
    FakeNode::with(version, |settings| {
        settings.played = Some(PlayedMachine {
            cgroup: super::node::path("/kubepods"),
            memory: 1 << 20,
            max_processes: Some(200),
        });
    })
}

#[test]
fn a_cgroup_that_plays_the_machine_has_the_cpu_and_the_memory_of_the_node() {
    for version in VERSIONS {
        let mut node = played(version);
        node.set_memory("/kubepods", 6000, 1000);
        node.set_cpu("/", 900_000_000_000);
        node.set_cpu("/kubepods", 1_000_000_000);
        node.collector.sample(at(4000));
        node.set_cpu("/", 990_000_000_000);
        node.set_cpu("/kubepods", 6_000_000_000);
        node.collector.sample(at(4010));
        let stats = node.collector.summary().node;
        let cpu = stats.cpu.unwrap();
        assert_eq!(cpu.usage_core_nano_seconds, Some(6_000_000_000));
        assert_eq!(cpu.usage_nano_cores, Some(500_000_000));
        let memory = stats.memory.unwrap();
        assert_eq!(memory.working_set_bytes, Some(5000));
        assert_eq!(memory.available_bytes, Some((1 << 20) - 5000));
        assert_eq!(memory.mem_available_bytes, None, "the machine's is not its");
        let cgroups = node.collector.cadvisor_metrics(at(4010));
        assert!(cgroups.contains("id=\"/\""), "the root is still measured");
    }
}

#[test]
fn machine_cgroup_counts_its_own_processes() {
    for version in VERSIONS {
        let mut node = played(version);
        node.set("/kubepods", "pids.current", "150\n");
        node.collector.sample_filling(at(4000));
        let pids = node.collector.summary().observation().pids;
        assert_eq!(pids, None, "there is no summary before a measurement");
        node.collector.sample(at(4010));
        let pids = node.collector.summary().observation().pids.unwrap();
        assert_eq!((pids.max, pids.running), (Count(200), Count(150)));
    }
}

/// What the file `/etc/hosts` takes.
fn node_block(node: &FakeNode) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(node.machine.path("hosts/file"))
        .unwrap()
        .blocks()
        * 512
}

#[test]
fn only_cpu_and_memory_leaves_the_rest_out() {
    let node = measured(Version::V2);
    let summary = node.collector.cpu_and_memory().for_clients();
    let mut value = serde_json::to_value(&summary.pods).unwrap();
    let fields = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    let pod = &mut value[0];
    let mut found = fields(pod);
    found.sort();
    assert_eq!(
        found,
        ["containers", "cpu", "memory", "podRef", "startTime", "swap"]
    );
    assert_eq!(pod["startTime"], json!("1970-01-01T00:41:40Z"));
    let mut found = fields(&pod["containers"][0]);
    found.sort();
    assert_eq!(found, ["cpu", "memory", "name", "startTime", "swap"]);
    assert_eq!(summary.node.fs, None);
    assert_eq!(summary.node.network, None);
}

#[test]
fn removed_containers_are_forgotten_and_their_files_closed() {
    let mut node = measured(Version::V2);
    let open = |node: &FakeNode| {
        let prefix = node.machine.path("sys/fs/cgroup/kubepods/burstable");
        let fds = std::fs::read_dir("/proc/self/fd").unwrap();
        fds.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok())
            .filter(|target| target.starts_with(&prefix))
            .count()
    };
    assert!(open(&node) > 10, "descriptors are kept");
    node.collector
        .set_inventory(crate::stats::Inventory::default());
    assert_eq!(open(&node), 0);
    node.collector.sample(at(4020));
    assert!(node.collector.summary().pods.is_empty());
}

#[test]
fn a_pod_without_cgroup_is_the_sum_of_its_containers() {
    let mut node = measured(Version::V1);
    let mut inventory = node.inventory();
    inventory.pods[0].cgroup = super::node::path("/elsewhere");
    node.set_memory(&format!("{POD}/c2"), 4000, 0);
    node.collector.set_inventory(inventory);
    node.collector.sample(at(4020));
    let pod = pod(&node);
    assert_eq!(pod.memory.unwrap().working_set_bytes, Some(5500));
    assert_eq!(
        pod.cpu.unwrap().usage_core_nano_seconds,
        Some(11_000_000_000)
    );
}

#[test]
fn network_stats_use_any_process_if_the_sandbox_has_none() {
    let mut node = measured(Version::V1);
    let mut inventory = node.inventory();
    inventory.pods[0].sandbox = None;
    node.set(&format!("{POD}/c1"), "cgroup.procs", "42\n43\n");
    node.collector
        .set_inventory(crate::stats::Inventory::default());
    node.collector.set_inventory(inventory);
    node.collector.sample(at(4020));
    assert_eq!(pod(&node).network.unwrap().default.rx_bytes, Some(10));
}

#[test]
fn metrics_have_the_series_of_common_dashboards() {
    for version in VERSIONS {
        let mut node = measured(version);
        let container = format!("{POD}/c1");
        if node.is_v1() {
            node.set(&container, "cpu.cfs_quota_us", "50000\n");
            node.set(
                &container,
                "cpu.stat",
                "nr_periods 5\nnr_throttled 2\nthrottled_time 3000000000\n",
            );
            node.set(&container, "memory.oom_control", "oom_kill 4\n");
        } else {
            node.set(&container, "cpu.max", "50000 100000\n");
            let stat = "usage_usec 1\nnr_periods 5\nnr_throttled 2\nthrottled_usec 3000000\n";
            node.set(&container, "cpu.stat", stat);
            node.set(&container, "memory.events", "oom_kill 4\n");
            node.set(
                &container,
                "cpu.pressure",
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n",
            );
            node.collector.sample(at(4020));
        }
        let text = node.collector.cadvisor_metrics(at(4021));
        let labels = format!(
            "{{container=\"c1\",id=\"{container}\",image=\"image:1\",name=\"id-c1\",\
             namespace=\"ns\",pod=\"web\""
        );
        let value = |name: &str, extra: &str| -> f64 {
            let start = format!("{name}{labels}{extra}}} ");
            let line = text.lines().find_map(|line| line.strip_prefix(&start));
            let line = line.unwrap_or_else(|| panic!("no {start} in\n{text}"));
            line.split(' ').next().unwrap().parse().unwrap()
        };
        assert_eq!(value("container_cpu_cfs_periods_total", ""), 5.0);
        assert_eq!(value("container_cpu_cfs_throttled_seconds_total", ""), 3.0);
        assert_eq!(value("container_memory_working_set_bytes", ""), 1500.0);
        assert_eq!(value("container_oom_events_total", ""), 4.0);
        assert_eq!(value("container_spec_cpu_quota", ""), 50_000.0);
        assert_eq!(value("container_spec_memory_limit_bytes", ""), 0.0);
        assert_eq!(value("container_start_time_seconds", ""), 3000.0);
        assert_eq!(value("container_last_seen", ""), 4021.0);
        assert_eq!(value("container_processes", ""), 2.0);
        assert_eq!(
            value(
                "container_fs_usage_bytes",
                &format!(",device=\"{}\"", device(&text))
            ),
            500.0
        );
        let whole = "{container=\"\",id=\"/kubepods/burstable/podu-1\",image=\"\",name=\"\",\
                     namespace=\"ns\",pod=\"web\",interface=\"eth0\"} 10 4010000";
        if node.is_v1() {
            let line = format!("container_network_receive_bytes_total{whole}");
            assert!(text.contains(&line), "{text}");
            assert_eq!(
                value("container_cpu_usage_seconds_total", ",cpu=\"total\""),
                11.0
            );
        } else {
            assert_eq!(
                value("container_pressure_cpu_waiting_seconds_total", ""),
                5e-6
            );
        }
        assert!(text.contains("\nmachine_cpu_cores 2 "), "{text}");
        assert!(text.contains("\nmachine_memory_bytes 8388608 "), "{text}");
        assert!(text.contains("id=\"/kubepods/besteffort\""));
        assert_eq!(text.contains("container_pressure_"), !node.is_v1());
    }
}

/// The name of the device that writable layers are on, whatever it is here.
fn device(text: &str) -> String {
    let line = text
        .lines()
        .find(|line| line.starts_with("container_fs_usage_bytes{"));
    let (_, rest) = line.unwrap().split_once("device=\"").unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

#[test]
fn the_agent_counts_under_upstreams_names() {
    use std::time::Duration;
    let node = measured(Version::V1);
    let metrics = KubeletMetrics::new("node-1", Version::V1);
    metrics.evicted("memory.available", Some(Duration::from_secs(1)));
    metrics.set_running_pods(3);
    metrics.set_desired_pods(crate::stats::metrics::PodCounts {
        from_api: 2,
        from_files: 1,
    });
    metrics.set_containers("running", 5);
    metrics.runtime_called("run_podsandbox", Duration::from_millis(20), false);
    metrics.sandbox_started(true);
    metrics.image_pulled(11 << 20, Duration::from_secs(2));
    metrics.relisted(at(9), Duration::from_millis(1), None);
    let proc_self = std::path::Path::new("/proc/self");
    let text = metrics.text(&node.collector.summary(), proc_self, at(2000));
    for line in [
        "# HELP kubelet_evictions [ALPHA] Cumulative number of pod evictions by eviction signal.",
        "# TYPE kubelet_evictions counter",
        "kubelet_evictions{eviction_signal=\"memory.available\"} 1",
        "kubelet_eviction_stats_age_seconds_count{eviction_signal=\"memory.available\"} 1",
        "kubelet_running_pods 3",
        "kubelet_desired_pods{static=\"\"} 2",
        "kubelet_desired_pods{static=\"true\"} 1",
        "kubelet_running_containers{container_state=\"running\"} 5",
        "kubelet_node_name{node=\"node-1\"} 1",
        "kubelet_cgroup_version 1",
        "kubelet_runtime_operations_total{operation_type=\"run_podsandbox\"} 1",
        "kubelet_runtime_operations_errors_total{operation_type=\"run_podsandbox\"} 1",
        "kubelet_started_pods_total 1",
        "kubelet_image_pull_duration_seconds_sum{image_size_in_bytes=\"10MB-100MB\"} 2.0",
        "kubelet_pleg_last_seen_seconds 9",
        "process_start_time_seconds 2000",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "no {line} in\n{text}"
        );
    }
    let volume =
        "kubelet_volume_stats_inodes_used{namespace=\"ns\",persistentvolumeclaim=\"claim\"} 2";
    assert!(text.contains(volume), "{text}");
    assert!(!text.contains("# EOF"));
}
