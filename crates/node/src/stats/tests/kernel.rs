//! Real processes in real cgroups.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_core::cgroup::CgroupPath;
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_runtime::cgroup::Cgroups;
use plimsoll_runtime::cgroup::testing::{KernelCgroups, Waiting, eventually};
use rustix::time::{ClockId, clock_gettime};

use crate::project_quota::ProjectQuotas;
use crate::stats::{Collector, Container, Inventory, Pod, RootFs, Sandbox, Settings};

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_nanos(i64::try_from(since.as_nanos()).unwrap())
}

fn collector(cgroups: &Cgroups) -> Collector {
    let kubepods = cgroups.path(&cgroups.kubepods());
    let settings = Settings {
        node_name: "node".to_owned(),
        mount_root: Path::new("/").to_owned(),
        root_dir: std::env::temp_dir(),
        qos_tiers: Vec::new(),
        kubelet: Some(kubepods.clone()),
        runtime: None,
        misc: None,
        started: now(),
        kept_files: Settings::affordable_files(),
        played: None,
        quotas: ProjectQuotas::default(),
        walker: plimsoll_runtime::walk::Walker::here(),
        kubepods,
    };
    Collector::new(settings, cgroups.layout().clone())
}

fn pod(cgroups: &Cgroups, uid: &str, pid: Option<i32>) -> Pod {
    let cgroup = cgroups.path(&cgroups.kubepods().child(&format!("pod{uid}")).unwrap());
    let container = CgroupPath::parse(&format!("{cgroup}/c")).unwrap();
    cgroups.create(&container).unwrap();
    Pod {
        uid: PodUid::from(uid),
        name: uid.to_owned(),
        namespace: "default".to_owned(),
        cgroup,
        started: None,
        sandbox: Some(Sandbox {
            pid,
            ..Sandbox::default()
        }),
        containers: vec![Container {
            id: format!("{uid}-c"),
            name: "c".to_owned(),
            image: "busybox".to_owned(),
            cgroup: container,
            started: None,
            log_directory: None,
            root_fs: RootFs::Unknown,
        }],
        volumes: Vec::new(),
        log_directory: None,
        etc_hosts: None,
        is_limited: false,
    }
}

#[test]
#[ignore = "tier: root"]
fn a_busy_process_and_a_large_one_are_measured() {
    let machine = KernelCgroups::new();
    let cgroups = machine.cgroups();
    let mut busy = Waiting::spawn("while :; do :; done");
    let mut large = Waiting::spawn("exec dd if=/dev/zero bs=20M");
    let pid = i32::try_from(busy.pid()).unwrap();
    let pods = vec![pod(cgroups, "busy", Some(pid)), pod(cgroups, "large", None)];
    for (pod, pid) in pods.iter().zip([busy.pid(), large.pid()]) {
        cgroups.enter(&pod.containers[0].cgroup, pid).unwrap();
    }
    let mut collector = collector(cgroups);
    collector.set_inventory(Inventory {
        pods,
        ..Inventory::default()
    });
    collector.sample(now());
    busy.go();
    large.go();
    eventually("both show", || {
        collector.sample(now());
        let summary = collector.summary();
        let [busy, large] = summary.pods.as_slice() else {
            return false;
        };
        let cores = busy.cpu.as_ref().unwrap().usage_nano_cores;
        let large = large.memory.as_ref().unwrap().working_set_bytes;
        cores > Some(100_000_000) && large > Some(20 << 20)
    });
    let summary = collector.summary();
    let busy = &summary.pods[0];
    let cores = busy.cpu.as_ref().unwrap().usage_nano_cores.unwrap();
    assert!(cores < 1_100_000_000, "one process on one core: {cores}");
    assert_eq!(busy.process_stats.as_ref().unwrap().process_count, Some(1));
    assert!(busy.network.is_some());
    let node = &summary.node;
    let memory = node.memory.as_ref().unwrap();
    assert!(memory.working_set_bytes > Some(20 << 20));
    assert!(memory.available_bytes < memory.mem_available_bytes.map(|bytes| bytes * 4));
    assert!(node.cpu.as_ref().unwrap().usage_nano_cores > Some(100_000_000));
    assert!(node.rlimit.as_ref().unwrap().curproc > Some(1));
    assert_eq!(node.system_containers.len(), 2);
    let text = collector.cadvisor_metrics(now());
    assert!(
        text.contains("container_memory_rss{container=\"c\""),
        "{text}"
    );
}

#[test]
#[ignore = "tier: root"]
fn process_counts_are_never_cached() {
    let machine = KernelCgroups::new();
    let cgroups = machine.cgroups();
    let pods = vec![pod(cgroups, "forks", None)];
    let cgroup = pods[0].containers[0].cgroup.clone();
    let mut collector = collector(cgroups);
    collector.set_inventory(Inventory {
        pods,
        ..Inventory::default()
    });
    let mut processes = Vec::new();
    for count in 1..=4_u64 {
        let process = Waiting::spawn("exit");
        cgroups.enter(&cgroup, process.pid()).unwrap();
        processes.push(process);
        collector.sample(now());
        let summary = collector.summary();
        let counted = summary.pods[0].process_stats.as_ref().unwrap();
        assert_eq!(counted.process_count, Some(count));
    }
}

/// The budget is three percent of a core with 110 pods, measured every ten seconds.
#[test]
#[ignore = "tier: root"]
fn measuring_110_pods_costs_little() {
    let machine = KernelCgroups::new();
    let cgroups = machine.cgroups();
    let pods = (0..110)
        .map(|index| pod(cgroups, &format!("p{index}"), None))
        .collect();
    let mut collector = collector(cgroups);
    collector.set_inventory(Inventory {
        pods,
        ..Inventory::default()
    });
    collector.sample(now());
    let cpu_time = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap());
        seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap())
    };
    let mut timed = || {
        let before = cpu_time();
        collector.sample(now());
        cpu_time() - before
    };
    let per_sample = (0..10).map(|_| timed()).min().unwrap();
    let before = cpu_time();
    let text = collector.cadvisor_metrics(now());
    let scrape = cpu_time() - before;
    println!(
        "a measurement takes {per_sample:?}, a scrape {scrape:?} for {} bytes",
        text.len()
    );
    // An emulated processor is some thirty times slower.
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let factor = if cpuinfo.contains("QEMU TCG") { 30 } else { 1 };
    let budget = Duration::from_millis(300) * factor;
    assert!(per_sample < budget, "{per_sample:?}");
    assert_eq!(collector.summary().pods.len(), 110);
}
