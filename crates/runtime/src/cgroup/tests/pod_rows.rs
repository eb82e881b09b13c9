use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plimsoll_core::cgroup::pod::{PodSettings, pod_config};
use plimsoll_core::cgroup::{CgroupPath, MemoryQos, Version, WeightFormula, oom_score_adj};
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::resources::Bytes;
use serde_json::json;

use super::machines::{Machine, on_every_machine, pod};
use crate::cgroup::testing::{Waiting, eventually};
use crate::cgroup::{AGENT_OOM_SCORE_ADJ, Error, write_oom_score_adj};

const SETTINGS: PodSettings = PodSettings {
    enforces_cpu_limits: true,
    cpu_period_micros: 100_000,
    pids_limit: 100,
    memory_qos: MemoryQos::Off,
};

/// Shares, weight, quota and memory limit of a pod; `None` is not written.
type Row = (u64, u64, Option<i64>, Option<i64>);

on_every_machine! {
    fn pod_cgroup_values_follow_the_containers_and_read_back(machine: &Machine) {
        let both = json!({"cpu": "500m", "memory": "1Gi"});
        let c1 = json!({
            "requests": {"cpu": "250m", "memory": "64Mi"},
            "limits": {"cpu": "1", "memory": "128Mi"},
        });
        let c2 = json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "500m", "memory": "64Mi"}});
        let memory_only = json!({"requests": {"memory": "64Mi"}, "limits": {"memory": "128Mi"}});
        let rows: [(Vec<serde_json::Value>, Row); 7] = [
            (
                vec![json!({"requests": both, "limits": both})],
                (512, 20, Some(50_000), Some(1 << 30)),
            ),
            (vec![json!({"requests": {"cpu": "250m", "memory": "64Mi"}})], (256, 10, None, None)),
            (vec![c1.clone(), json!({})], (256, 10, None, None)),
            (vec![c1, c2], (358, 14, Some(150_000), Some(201_326_592))),
            (
                vec![memory_only, json!({"requests": {"cpu": "100m"}})],
                (102, 4, None, None),
            ),
            (
                vec![json!({"requests": {"cpu": "1m"}, "limits": {"cpu": "1m"}})],
                (2, 1, Some(1_000), None),
            ),
            (vec![json!({})], (2, 1, None, None)),
        ];
        for (index, (resources, (shares, weight, quota, memory))) in rows.into_iter().enumerate() {
            let pod = pod(&format!("row-{index}"), &resources);
            let name = machine.cgroups.ensure_pod(&pod, &SETTINGS).unwrap();
            let read = |file| machine.read(&name, file);
            if machine.by_version(true, false) {
                assert_eq!(read("cpu.shares"), shares.to_string());
                assert_eq!(read("cpu.cfs_quota_us"), quota.unwrap_or(-1).to_string());
                assert_eq!(read("cpu.cfs_period_us"), "100000");
                let unlimited = 9_223_372_036_854_771_712;
                assert_eq!(read("memory.limit_in_bytes"), memory.unwrap_or(unlimited).to_string());
            } else {
                assert_eq!(read("cpu.weight"), weight.to_string());
                let quota = quota.map_or("max".to_owned(), |quota| quota.to_string());
                assert_eq!(read("cpu.max"), format!("{quota} 100000"));
                let memory = memory.map_or("max".to_owned(), |memory| memory.to_string());
                assert_eq!(read("memory.max"), memory);
            }
            assert_eq!(read("pids.max"), "100");
            let path = machine.cgroups.path(&name);
            let config = pod_config(&pod, &SETTINGS);
            let files = machine.cgroups.host().render(&config, WeightFormula::Kubelet);
            assert_eq!(machine.cgroups.read_back(&path, &config).unwrap(), files);
            let rewritten = machine.cgroups.write(&path, &config).unwrap();
            assert!(rewritten.is_empty(), "{rewritten:?}");
            let found = machine.cgroups.read_config(&path).unwrap();
            assert_eq!(found.cpu_quota, Some(quota.unwrap_or(-1)));
            assert_eq!(found.memory.map(|bytes| bytes.0), Some(memory.unwrap_or(-1)));
        }
        let found = machine.cgroups.found_pods().unwrap();
        assert_eq!(found.len(), 7);
        let uid = PodUid::from("row-6");
        assert_eq!(found[&uid].pod_uid(), Some(uid));
    }

    fn a_pod_is_removed_with_all_that_runs_in_it(machine: &Machine) {
        let name = machine.cgroups.ensure_pod(&pod("gone", &[json!({})]), &SETTINGS).unwrap();
        let path = machine.cgroups.path(&name);
        let container = name.child("container").unwrap();
        let container = machine.cgroups.path(&container);
        machine.cgroups.create(&container).unwrap();
        machine.cgroups.reduce_cpu(&path).unwrap();
        let mut processes = Vec::new();
        // A folder cannot kill as cgroup v2 does, nor does it notice that a process has ended.
        if machine.is_kernel() {
            for _ in 0..3 {
                let process = Waiting::spawn("exit");
                machine.enter(&container, process.pid());
                processes.push(process);
            }
            assert_eq!(machine.cgroups.pids(&path).unwrap().len(), 3);
        }
        machine.cgroups.remove(&path).unwrap();
        for process in &mut processes {
            eventually("a killed process ends", || process.has_ended());
        }
        assert!(!machine.cgroups.exists(&name));
        assert!(machine.cgroups.found_pods().unwrap().is_empty());
        machine.cgroups.remove(&path).unwrap();
    }

    fn a_failed_write_names_cgroup_file_and_value(machine: &Machine) {
        let pod = pod("none", &[json!({"requests": {"cpu": "1"}})]);
        let name = machine.cgroups.pod_name(&pod).unwrap();
        let path = machine.cgroups.path(&name);
        let error = machine.cgroups.write(&path, &pod_config(&pod, &SETTINGS)).unwrap_err();
        let Error::Write { cgroup, file, value, .. } = error else {
            panic!("{error:?}");
        };
        let (want_file, want_value) = machine.by_version(("cpu.shares", "1024"), ("cpu.weight", "39"));
        assert_eq!((file.as_str(), value.as_str()), (want_file, want_value));
        assert_eq!(cgroup, path);
    }
}

/// Killing one process after the other would never end here.
#[test]
#[ignore = "tier: root"]
fn a_cgroup_that_forks_all_the_time_is_killed_at_once() {
    let machine = Machine::kernel();
    let name = machine
        .cgroups
        .ensure_pod(&pod("forks", &[json!({})]), &SETTINGS)
        .unwrap();
    let path = machine.cgroups.path(&name);
    let mut process = Waiting::spawn("while :; do (while :; do (:) & done) & done");
    machine.enter(&path, process.pid());
    process.go();
    let count = || machine.cgroups.pids(&path).unwrap().len();
    eventually("there are many", || count() > 20);
    machine.cgroups.kill(&path).unwrap();
    eventually("none is left", || count() == 0);
}

/// On a machine of 32Gi, by what the container requests.
#[test]
#[ignore = "tier: root"]
fn processes_are_killed_in_the_order_of_their_requests() {
    let process = Waiting::spawn("exit");
    let all = json!({"cpu": "1", "memory": "1Gi"});
    let guaranteed = json!({"requests": all, "limits": all});
    let burstable = |memory: &str| json!({"requests": {"memory": memory}});
    let rows = [
        (burstable("1"), 999),
        (burstable("32Mi"), 999),
        (burstable("1Gi"), 969),
        (burstable("4Gi"), 875),
        (burstable("16Gi"), 500),
        (burstable("32665Mi"), 4),
        (burstable("32Gi"), 3),
        (json!({"requests": {"cpu": "1"}}), 999),
        (json!({}), 1000),
        (guaranteed, -997),
    ];
    for (resources, want) in rows {
        let pod = pod("oom", std::slice::from_ref(&resources));
        let score = oom_score_adj(&pod, &pod.containers[0], Bytes(32 << 30));
        assert_eq!(score, want, "{resources}");
        check_oom_score(process.pid(), score);
    }
    check_oom_score(process.pid(), AGENT_OOM_SCORE_ADJ);
}

/// Root without CAP_SYS_RESOURCE may raise scores only.
fn check_oom_score(pid: u32, score: i64) {
    let proc = Path::new("/proc");
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:\t"));
    let effective = u64::from_str_radix(effective.unwrap(), 16).unwrap();
    let may_lower = effective & (1 << 24) != 0;
    match write_oom_score_adj(proc, pid, score) {
        Err(error) if score < 0 && !may_lower => {
            assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
        }
        written => {
            written.unwrap();
            let path = proc.join(pid.to_string()).join("oom_score_adj");
            let text = std::fs::read_to_string(path).unwrap();
            assert_eq!(text.trim(), score.to_string());
        }
    }
}

#[test]
fn a_frozen_cgroup_of_v1_is_signalled_and_thawed() {
    let machine = Machine::folder(Version::V1);
    let name = machine
        .cgroups
        .ensure_pod(&pod("frozen", &[json!({})]), &SETTINGS)
        .unwrap();
    let path = machine.cgroups.path(&name);
    let mut process = Waiting::spawn("exit");
    machine.enter(&path, process.pid());
    machine.cgroups.kill(&path).unwrap();
    eventually("the process ends", || process.has_ended());
    assert_eq!(machine.read(&name, "freezer.state"), "THAWED");
}

#[test]
fn frozen_child_cgroups_are_thawed_by_a_kill_or_thaw() {
    type Release = fn(&Machine, &CgroupPath);
    let killed: Release = |machine, path| machine.cgroups.kill(path).unwrap();
    let thawed: Release = |machine, _| machine.cgroups.thaw_pod(&"frozen".into()).unwrap();
    for (version, file, frozen, expected, release) in [
        (Version::V1, "freezer.state", "FROZEN", "THAWED", killed),
        (Version::V1, "freezer.state", "FROZEN", "THAWED", thawed),
        (Version::V2, "cgroup.freeze", "1", "0", thawed),
    ] {
        let machine = Machine::folder(version);
        let made = machine
            .cgroups
            .ensure_pod(&pod("frozen", &[json!({})]), &SETTINGS);
        let path = machine.cgroups.path(&made.unwrap());
        let below = CgroupPath::parse(&format!("{path}/container/own/deeper")).unwrap();
        machine.cgroups.create(&below).unwrap();
        let layout = machine.cgroups.layout();
        let directory = layout.directory(file.split('.').next().unwrap(), &below);
        let directory = directory.unwrap_or_else(|| layout.directories(&below).remove(0));
        for cgroup in directory.ancestors().take(2) {
            std::fs::write(cgroup.join(file), frozen).unwrap();
        }
        release(&machine, &path);
        for cgroup in directory.ancestors().take(2) {
            let state = std::fs::read_to_string(cgroup.join(file)).unwrap();
            assert_eq!(state, expected, "{}", cgroup.display());
        }
    }
}

/// Freezes a pod's cgroup as a kill does; a plain folder lacks the kernel's requested state.
fn freeze(machine: &Machine, path: &CgroupPath) {
    let files = match machine.cgroups.version() {
        Version::V1 => vec![("freezer.state", "FROZEN"), ("freezer.self_freezing", "1")],
        Version::V2 => vec![("cgroup.freeze", "1")],
    };
    let directory = machine.cgroups.layout().directories(path);
    let holds_file = |directory: &&PathBuf| directory.join(files[0].0).exists();
    let directory = directory.iter().find(holds_file).unwrap();
    let count = if machine.is_kernel() { 1 } else { files.len() };
    for (file, value) in &files[..count] {
        std::fs::write(directory.join(file), value).unwrap();
    }
}

#[test]
fn pod_frozen_but_not_signalled_is_thawed() {
    let machine = Machine::folder(Version::V1);
    let [frozen, other] = ["frozen", "other"].map(|uid| {
        let made = machine
            .cgroups
            .ensure_pod(&pod(uid, &[json!({})]), &SETTINGS);
        made.unwrap()
    });
    freeze(&machine, &machine.cgroups.path(&frozen));
    // Frozen with one above it: that is not undone here.
    let below = machine
        .cgroups
        .layout()
        .directory("freezer", &machine.cgroups.path(&other));
    let state = below.unwrap().join("freezer.state");
    std::fs::write(state, "FROZEN").unwrap();
    assert_eq!(machine.cgroups.finish_kills().unwrap(), BTreeSet::new());
    assert_eq!(machine.read(&frozen, "freezer.state"), "THAWED");
    assert_eq!(machine.read(&other, "freezer.state"), "FROZEN");
}

#[test]
fn v2_leaves_frozen_pods_alone_where_cgroup_kill_exists() {
    for (can_kill, expected) in [(true, "1"), (false, "0")] {
        let machine = Machine::folder(Version::V2);
        let made = machine
            .cgroups
            .ensure_pod(&pod("paused", &[json!({})]), &SETTINGS);
        let name = made.unwrap();
        let path = machine.cgroups.path(&name);
        freeze(&machine, &path);
        let directory = machine.cgroups.layout().directories(&path).remove(0);
        if !can_kill {
            std::fs::remove_file(directory.join("cgroup.kill")).unwrap();
        }
        assert_eq!(machine.cgroups.finish_kills().unwrap(), BTreeSet::new());
        let frozen = std::fs::read_to_string(directory.join("cgroup.freeze"));
        assert_eq!(frozen.unwrap(), expected);
    }
}

#[test]
#[ignore = "tier: root"]
fn interrupted_kill_of_a_frozen_pod_is_finished() {
    let machine = Machine::kernel();
    if machine.cgroups.version() == Version::V2 {
        // Nothing is frozen there.
        return;
    }
    let made = machine
        .cgroups
        .ensure_pod(&pod("frozen", &[json!({})]), &SETTINGS);
    let name = made.unwrap();
    let path = machine.cgroups.path(&name);
    let mut processes = [Waiting::spawn("exit"), Waiting::spawn("exit")];
    for process in &processes {
        machine.enter(&path, process.pid());
    }
    freeze(&machine, &path);
    eventually("it is frozen", || {
        machine.read(&name, "freezer.state") == "FROZEN"
    });
    let first = i32::try_from(processes[0].pid()).unwrap();
    let first = rustix::process::Pid::from_raw(first).unwrap();
    rustix::process::kill_process(first, rustix::process::Signal::KILL).unwrap();
    let uid = PodUid::from("frozen");
    assert_eq!(machine.cgroups.finish_kills().unwrap(), [uid].into());
    for process in &mut processes {
        eventually("all end", || process.has_ended());
    }
    assert_eq!(machine.cgroups.finish_kills().unwrap(), BTreeSet::new());
}
