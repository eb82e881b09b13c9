//! A node in a folder: one pod of two containers, and numbers that are easy to distinguish.

use std::fs;

use plimsoll_core::cgroup::{CgroupPath, Driver, Version};
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_runtime::cgroup::Cgroups;
use plimsoll_runtime::cgroup::fake::FakeMachine;
use plimsoll_runtime::walk::Walker;

use crate::project_quota::ProjectQuotas;
use crate::stats::{
    Collector, Container, Inventory, Pod, RootFs, RuntimeFs, Sandbox, Settings, Volume,
    VolumeMeasure,
};

pub(super) struct FakeNode {
    pub(super) machine: FakeMachine,
    pub(super) cgroups: Cgroups,
    pub(super) collector: Collector,
}

pub(super) const POD: &str = "/kubepods/burstable/podu-1";

pub(super) fn path(text: &str) -> CgroupPath {
    CgroupPath::parse(text).unwrap()
}

impl FakeNode {
    pub(super) fn new(version: Version) -> FakeNode {
        FakeNode::with(version, |_| {})
    }

    /// With other settings.
    pub(super) fn with(version: Version, change: impl FnOnce(&mut Settings)) -> FakeNode {
        let machine = FakeMachine::new(version);
        let cgroups = machine.cgroups(Driver::Cgroupfs);
        machine.write(
            "proc/meminfo",
            "MemTotal: 8192 kB\nMemAvailable: 4096 kB\nSwapTotal: 100 kB\nSwapFree: 40 kB\n",
        );
        machine.write("proc/loadavg", "0.1 0.2 0.3 2/77 1234\n");
        machine.write("proc/sys/kernel/pid_max", "4194304\n");
        machine.write("proc/sys/kernel/threads-max", "1000\n");
        machine.write("proc/stat", "cpu 1\nbtime 1000\n");
        machine.write("proc/cpuinfo", "processor : 0\nprocessor : 1\n");
        let pressure = "some avg10=2.00 avg60=1.00 avg300=0.50 total=9\n\
                        full avg10=1.00 avg60=0.50 avg300=0.25 total=4\n";
        for resource in ["cpu", "memory", "io"] {
            machine.write(&format!("proc/pressure/{resource}"), pressure);
        }
        machine.write(
            "proc/1/net/dev",
            "\n\n eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n",
        );
        machine.write(
            "proc/42/net/dev",
            "\n\n eth0: 10 0 1 0 0 0 0 0 20 0 2 0 0 0 0 0\n",
        );
        for name in ["kubelet", "images"] {
            fs::create_dir_all(machine.path(name)).unwrap();
        }
        let mut settings = Settings {
            node_name: "node-1".to_owned(),
            mount_root: machine.root().to_owned(),
            root_dir: machine.path("kubelet"),
            kubepods: path("/kubepods"),
            qos_tiers: vec![path("/kubepods/burstable"), path("/kubepods/besteffort")],
            kubelet: Some(path("/agent")),
            runtime: None,
            misc: Some(path("/none")),
            started: Timestamp::from_secs(2000),
            kept_files: 1000,
            played: None,
            quotas: ProjectQuotas::default(),
            walker: Walker::here(),
        };
        change(&mut settings);
        let collector = Collector::new(settings, cgroups.layout().clone());
        let node = FakeNode {
            machine,
            cgroups,
            collector,
        };
        for cgroup in ["/agent", "/kubepods/besteffort", POD] {
            node.cgroups.create(&path(cgroup)).unwrap();
        }
        for container in ["c1", "c2"] {
            let cgroup = path(&format!("{POD}/{container}"));
            node.cgroups.create(&cgroup).unwrap();
        }
        node.set_memory("/", 5 << 20, 1 << 20);
        node
    }

    /// What a cgroup uses, and how much of it is inactive page cache.
    pub(super) fn set_memory(&self, cgroup: &str, usage: u64, inactive_file: u64) {
        let anonymous = usage - inactive_file;
        let stat_v1 = format!(
            "cache 1\npgfault 7\npgmajfault 3\ntotal_cache {inactive_file}\n\
             total_rss {anonymous}\ntotal_inactive_file {inactive_file}\ntotal_swap 0\n"
        );
        let stat_v2 = format!(
            "anon {anonymous}\nfile {inactive_file}\ninactive_file {inactive_file}\n\
             pgfault 7\npgmajfault 3\n"
        );
        let usage = usage.to_string();
        if self.is_v1() {
            self.set(cgroup, "memory.usage_in_bytes", &usage);
            self.set(cgroup, "memory.stat", &stat_v1);
        } else {
            self.set(cgroup, "memory.stat", &stat_v2);
            if cgroup != "/" {
                self.set(cgroup, "memory.current", &usage);
            }
        }
    }

    pub(super) fn set_cpu(&self, cgroup: &str, nanos: u64) {
        if self.is_v1() {
            self.set(cgroup, "cpuacct.usage", &nanos.to_string());
        } else {
            let micros = nanos / 1000;
            self.set(cgroup, "cpu.stat", &format!("usage_usec {micros}\n"));
        }
    }

    pub(super) fn set(&self, cgroup: &str, file: &str, text: &str) {
        let controller = match file.split('.').next().unwrap() {
            "cgroup" => "cpu",
            controller => controller,
        };
        let layout = self.cgroups.layout();
        let directory = layout.directory(controller, &path(cgroup)).unwrap();
        fs::write(directory.join(file), text).unwrap();
    }

    pub(super) fn is_v1(&self) -> bool {
        self.cgroups.version() == Version::V1
    }

    /// The pod, with logs, a volume and writable layers.
    pub(super) fn inventory(&self) -> Inventory {
        let directory = |relative: &str, bytes: usize| {
            let path = self.machine.path(relative);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("file"), vec![1; bytes]).unwrap();
            path
        };
        let container = |name: &str, root_fs| Container {
            id: format!("id-{name}"),
            name: name.to_owned(),
            image: "image:1".to_owned(),
            cgroup: path(&format!("{POD}/{name}")),
            started: Some(Timestamp::from_secs(3000)),
            log_directory: Some(directory(&format!("logs/{name}"), 100)),
            root_fs,
        };
        let reported = RootFs::Reported {
            used_bytes: Some(500),
            inodes_used: Some(5),
            time: Some(Timestamp::from_secs(3500)),
        };
        let volume = |name: &str, is_ephemeral| Volume {
            name: name.to_owned(),
            path: directory(&format!("volumes/{name}"), 10_000),
            measure: VolumeMeasure::Directory,
            is_ephemeral,
            claim: (!is_ephemeral).then(|| ("claim".to_owned(), "ns".to_owned())),
        };
        let pod = Pod {
            uid: PodUid::from("u-1"),
            name: "web".to_owned(),
            namespace: "ns".to_owned(),
            cgroup: path(POD),
            started: Some(Timestamp::from_secs(2500)),
            sandbox: Some(Sandbox {
                id: "sandbox-1".to_owned(),
                pid: Some(42),
                ..Sandbox::default()
            }),
            containers: vec![
                container("c1", reported),
                container("c2", RootFs::Directory(directory("upper/c2", 5_000))),
            ],
            volumes: vec![volume("scratch", true), volume("data", false)],
            log_directory: Some(self.machine.path("logs")),
            etc_hosts: Some(directory("hosts", 10).join("file")),
            is_limited: false,
        };
        Inventory {
            pods: vec![pod],
            image_fs: Some(RuntimeFs {
                mount_point: self.machine.path("images"),
                used_bytes: Some(1234),
                inodes_used: Some(12),
                time: None,
            }),
            container_fs: None,
        }
    }
}
