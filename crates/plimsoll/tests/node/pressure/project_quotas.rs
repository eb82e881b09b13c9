//! A node whose file system has project quotas.

use std::path::Path;
use std::process::Command;

use plimsoll_testkit::disk::{WITH_PROJECTS, where_projects_are_counted};
use plimsoll_testkit::vm::Machine;
use plimsoll_testkit::waiting::until;
use serde_json::{Value, json};

use super::disk::Disk;
use super::{SUMMARY, configured, with_scratch};
use crate::cluster::{Cluster, Runtime, data_dir};
use crate::manifest::WAIT;
use crate::vm::PLIMSOLL;

#[test]
#[ignore = "tier: vm"]
fn volumes_are_counted_by_the_kernel_and_limits_are_kept() {
    let machine = || {
        let machine = Machine::new()
            .memory_mib(2048)
            .tool("kubectl")
            .tool("lsattr");
        machine.program(Path::new(PLIMSOLL), PLIMSOLL)
    };
    let test = "pressure::project_quotas::volumes_are_counted_by_the_kernel_and_limits_are_kept";
    where_projects_are_counted(test, machine, || {
        let cluster = start();
        many_files_are_counted_as_du_does(&cluster);
        pod_above_its_volume_size_limit_is_evicted(&cluster);
        cluster.run_on(&["many"]);
    });
}

fn start() -> Cluster {
    Cluster::start_with(Runtime::Embedded, |folder| {
        let data = data_dir(folder);
        Disk::mount_with(folder, &data, 256, 8192, &WITH_PROJECTS);
        let settings = json!({
            "evictionHard": { "memory.available": "100Mi" },
            "featureGates": { "LocalStorageCapacityIsolationFSQuotaMonitoring": true },
        });
        configured(folder, &settings)
    })
}

fn many_files_are_counted_as_du_does(cluster: &Cluster) {
    let script = "i=0; while [ $i -lt 400 ]; do echo $i > /scratch/$i; i=$((i+1)); done;";
    let script = format!("{script} head -c 5m /dev/zero > /scratch/large; {WAIT}");
    let pod = cluster.run(&with_scratch("many", &script));
    let uid = pod["metadata"]["uid"].as_str().expect("an id");
    let volume = cluster.data_dir().join("kubelet/pods").join(uid);
    let volume = volume.join("volumes/kubernetes.io~empty-dir/scratch");
    let volume = volume.display().to_string();
    until_summary_agrees(cluster, "many", &volume);
    assert_ne!(project_of(&volume), "0");
}

/// Waits until the usage of the volume `scratch` in the summary equals that of `du`.
fn until_summary_agrees(cluster: &Cluster, pod: &str, volume: &str) {
    until("the summary says what du does", || {
        let summary = cluster.kubectl(SUMMARY);
        let summary: Value = serde_json::from_str(&summary).unwrap_or_default();
        let mut pods = summary["pods"].as_array().into_iter().flatten();
        let pod = pods.find(|found| found["podRef"]["name"] == pod);
        let printed = pod.map(|pod| &pod["volume"][0]["usedBytes"]);
        let inodes = pod.and_then(|pod| pod["volume"][0]["inodesUsed"].as_u64());
        let printed = printed.and_then(Value::as_u64).unwrap_or_default();
        let du = du(volume);
        match printed == du && inodes >= Some(402) {
            true => Ok(()),
            false => Err(format!("{printed} and {inodes:?}, but du says {du}")),
        }
    });
}

fn du(path: &str) -> u64 {
    let printed = output(Command::new("du").args(["-sk", path]));
    let kibibytes = printed.split_whitespace().next().unwrap_or_default();
    kibibytes.parse::<u64>().expect("a number") * 1024
}

/// The project of a directory, as `lsattr` has it: `1048577 -----… directory`.
fn project_of(path: &str) -> String {
    let printed = output(Command::new("lsattr").args(["-p", "-d", path]));
    let project = printed.split_whitespace().next().unwrap_or_default();
    project.to_owned()
}

fn output(command: &mut Command) -> String {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn pod_above_its_volume_size_limit_is_evicted(cluster: &Cluster) {
    let mut limited = with_scratch("limited", WAIT);
    limited["spec"]["volumes"][0]["emptyDir"] = json!({ "sizeLimit": "2Mi" });
    cluster.run(&limited);
    cluster.kubectl("exec limited -- dd if=/dev/zero of=/scratch/f bs=1M count=3");
    let (_, message) = cluster.until_evicted("limited");
    assert_eq!(
        message,
        "Usage of EmptyDir volume \"scratch\" exceeds the limit \"2Mi\". "
    );
}
