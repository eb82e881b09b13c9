//! `plimsoll down`: the machine is as it was before.

use std::fs;
use std::process::Output;

use plimsoll_testkit::inventory::Inventory;
use plimsoll_testkit::mount::unmount_below;
use plimsoll_testkit::waiting::until;
use rustix::mount::MountFlags;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Runtime, down, on_both_runtimes};
use crate::manifest::{WAIT, container, pod};

/// A port that no other test uses.
const HOST_PORT: u16 = 19_321;

on_both_runtimes!(stops_pods_of_running_agent_and_next_one_runs_them);

fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(str::to_owned).collect()
}

/// The output of a successful `plimsoll down`.
fn succeeds(cluster: &Cluster, arguments: &[&str]) -> Vec<String> {
    let output = down(&cluster.data_dir(), arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    lines(&output)
}

fn is_as_before(cluster: &Cluster) {
    until("the machine is as it was before", || {
        let left = Inventory::of_machine(&cluster.place()).beyond(&cluster.before);
        match left.is_empty() {
            true => Ok(()),
            false => Err(format!("{left:#?}")),
        }
    });
}

/// A pod with volumes of all kinds.
fn with_volumes(name: &str, host_path: &str) -> Value {
    let mut main = container("main", WAIT);
    main["volumeMounts"] = json!([
        { "name": "disk", "mountPath": "/disk" },
        { "name": "memory", "mountPath": "/memory" },
        { "name": "colours", "mountPath": "/colours" },
        { "name": "host", "mountPath": "/host" },
        { "name": "disk", "mountPath": "/part", "subPath": "part" },
    ]);
    let mut pod = pod(name, &[main]);
    pod["spec"]["volumes"] = json!([
        { "name": "disk", "emptyDir": {} },
        { "name": "memory", "emptyDir": { "medium": "Memory" } },
        { "name": "colours", "configMap": { "name": "colours" } },
        { "name": "host", "hostPath": { "path": host_path } },
    ]);
    pod
}

#[test]
#[ignore = "tier: root"]
fn purge_after_kill_leaves_machine_as_it_was() {
    let mut cluster = Cluster::start(Runtime::Embedded);
    cluster.kill();
    cluster
        .arguments
        .retain(|argument| argument != "--keep-kernel-settings");
    cluster.start_again();
    let host_path = cluster.folder().join("host");
    fs::create_dir(&host_path).unwrap();
    fs::write(host_path.join("file"), "kept").unwrap();
    cluster.kubectl("create configmap colours --from-literal=sky=blue");
    let mut web = container("main", WAIT);
    web["ports"] = json!([{ "containerPort": 80, "hostPort": HOST_PORT }]);
    cluster.create_all(vec![
        with_volumes("files", &host_path.display().to_string()),
        pod("web", &[web]),
    ]);
    for name in ["files", "web"] {
        cluster.until_running(&json!(name));
    }
    let running = Inventory::of_machine(&cluster.place());
    for kind in [
        "bridge",
        "cgroup",
        "file",
        "in /run",
        "mount",
        "network card",
        "nftables table",
        "process",
    ] {
        assert!(running.kinds().contains(kind), "{kind}: {running:#?}");
    }
    cluster.kill();

    let bridge = cluster.place().bridge;
    let planned = succeeds(&cluster, &["--purge", "--dry-run"]);
    let pods = "would stop 2 pods: default/files, default/web".to_owned();
    assert_eq!(planned[0], pods);
    assert!(planned.contains(&format!("would remove bridge {bridge}")));
    assert_eq!(
        Inventory::of_machine(&cluster.place()).kinds(),
        running.kinds()
    );

    let done = succeeds(&cluster, &["--purge"]);
    assert_eq!(done[0], "stopped 2 pods: default/files, default/web");
    for line in [
        format!("removed bridge {bridge}"),
        format!("removed nftables table ip plimsoll-{bridge}"),
        format!("removed the data in {}", cluster.data_dir().display()),
    ] {
        assert!(done.contains(&line), "{line}: {done:#?}");
    }
    is_as_before(&cluster);
    assert_eq!(running.existing_interfaces(), Vec::<String>::new());
    assert!(!cluster.data_dir().exists());
    assert_eq!(fs::read_to_string(host_path.join("file")).unwrap(), "kept");

    let again = succeeds(&cluster, &["--purge"]);
    assert_eq!(again.len(), 1, "{again:?}");
    assert!(again[0].starts_with("nothing of the node"), "{again:?}");
}

fn stops_pods_of_running_agent_and_next_one_runs_them(cluster: &mut Cluster) {
    let folder = cluster.folder().join("host");
    fs::create_dir(&folder).unwrap();
    let mut main = container(
        "main",
        "trap 'echo stopped > /host/stopped; exit' TERM; while true; do sleep 1 & wait; done",
    );
    main["lifecycle"] = json!({ "preStop": { "exec": {
        "command": ["sh", "-c", "echo hook > /host/hook"],
    } } });
    main["volumeMounts"] = json!([{ "name": "host", "mountPath": "/host" }]);
    let mut patient = pod("patient", &[main]);
    patient["spec"]["volumes"] = json!([
        { "name": "host", "hostPath": { "path": folder.display().to_string() } },
    ]);
    // In an emulated machine even this takes a while.
    patient["spec"]["terminationGracePeriodSeconds"] = json!(60);
    cluster.run(&patient);
    let stubborn = container("main", "trap '' TERM; while true; do sleep 1; done");
    let mut stubborn = pod("stubborn", &[stubborn]);
    stubborn["spec"]["terminationGracePeriodSeconds"] = json!(3600);
    cluster.run(&stubborn);

    let done = succeeds(cluster, &["--grace-period", "20s"]);
    let ended = format!("ended plimsoll up (pid {})", cluster.up.id());
    assert_eq!(done[0], ended);
    assert_eq!(done[1], "stopped 2 pods: default/patient, default/stubborn");
    assert!(folder.join("hook").exists(), "{done:#?}");
    assert!(folder.join("stopped").exists(), "{done:#?}");
    until("nothing runs or is left", || {
        let left = Inventory::of_node(&cluster.place()).beyond(&cluster.before);
        match left.is_empty() {
            true => Ok(()),
            false => Err(format!("{left:#?}")),
        }
    });
    let again = succeeds(cluster, &[]);
    assert!(again[0].starts_with("nothing of the node"), "{again:?}");

    cluster.start_again();
    cluster.until_running(&json!("patient"));

    // Nothing is left for the directory of a node that has been down before.
    cluster.interrupt();
    for arguments in [["--grace-period", "0s"].as_slice(), &["--purge"]] {
        succeeds(cluster, arguments);
    }
    assert!(!cluster.data_dir().exists());
}

#[test]
#[ignore = "tier: root"]
fn purge_refuses_directory_that_is_not_a_nodes_and_mounts_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("thesis.tex"), "years of work").unwrap();
    let refused = down(&data, &["--purge"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(message.contains("is not a data directory of Plimsoll"));
    assert!(data.join("thesis.tex").exists());

    fs::create_dir_all(data.join("images/layers/others")).unwrap();
    let point = data.join("images/layers/others");
    rustix::mount::mount("tmpfs", &point, "tmpfs", MountFlags::empty(), None).unwrap();
    fs::write(point.join("file"), "precious").unwrap();
    let refused = down(&data, &["--purge"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(
        message.contains("a file system is mounted below it"),
        "{message}"
    );
    assert!(point.join("file").exists());

    unmount_below(folder.path());
    let removed = down(&data, &["--purge"]);
    assert!(removed.status.success(), "{removed:?}");
    let kept = lines(&removed);
    assert!(kept.last().unwrap().contains("thesis.tex"), "{kept:?}");
    assert!(data.join("thesis.tex").exists() && !data.join("images").exists());
}
