//! Containers survive the agent, and the next agent adopts them all.

use plimsoll_testkit::cgroup::processes;
use serde_json::{Value, json};

use crate::cluster::{Cluster, on_both_runtimes};
use crate::manifest::{WAIT, container, container_id, pod, sized, status};

on_both_runtimes!(
    containers_outlive_an_agent_that_is_killed,
    containers_outlive_an_agent_that_is_stopped,
    exit_during_an_agent_restart_is_noticed,
);

/// Where the containers of the burstable pods of a test run, and which processes.
fn running(cluster: &Cluster, names: &[&str]) -> Vec<(String, Vec<u32>)> {
    let places = names.iter().map(|name| {
        let pod = cluster.get(&format!("pod {name}"));
        let uid = pod["metadata"]["uid"].as_str().unwrap();
        let root = cluster.cgroup_root();
        let id = container_id(&pod, "main");
        let path = format!("{root}/kubepods/burstable/pod{uid}/{id}");
        let processes = processes(&path);
        assert!(!processes.is_empty(), "nothing runs in {path}");
        (path, processes)
    });
    places.collect()
}

fn burstable() -> Value {
    json!({ "requests": { "cpu": "10m" } })
}

fn containers_outlive_an_agent_that_is_killed(cluster: &mut Cluster) {
    survives(cluster, Cluster::kill);
}

fn containers_outlive_an_agent_that_is_stopped(cluster: &mut Cluster) {
    survives(cluster, Cluster::interrupt);
}

fn survives(cluster: &mut Cluster, end: fn(&mut Cluster)) {
    let mut talking = container(
        "main",
        "echo before; while test ! -e /go; do sleep 1; done; echo after; exec sleep 100000",
    );
    talking["resources"] = burstable();
    let mut quiet = sized("main", &burstable());
    quiet["command"] = json!(["sleep", "100000"]);
    cluster.run(&pod("talking", &[talking]));
    cluster.run(&pod("quiet", &[quiet]));
    let names = ["talking", "quiet"];
    let before = running(cluster, &["quiet"]);
    let ids = |cluster: &Cluster| {
        names
            .map(|name| status(&cluster.get(&format!("pod {name}")), "main")["containerID"].clone())
    };
    let ids_before = ids(cluster);
    end(cluster);
    for (path, ids) in &before {
        assert_eq!(&processes(path), ids, "{path}");
    }
    cluster.start_again();
    for name in names {
        let pod = cluster.until_running(&json!(name));
        assert_eq!(status(&pod, "main")["restartCount"], 0, "{pod:#}");
    }
    assert_eq!(cluster.kubectl("exec quiet -- echo hello"), "hello\n");
    cluster.shows("logs talking", "before\n");
    // Its output is still logged.
    cluster.kubectl("exec talking -- touch /go");
    cluster.shows("logs talking", "before\nafter\n");
    // Enough time for an agent to start a container twice.
    assert_eq!(running(cluster, &["quiet"]), before);
    assert_eq!(ids(cluster), ids_before);
    let sandboxes = cluster.kubectl("get events --field-selector reason=SandboxChanged -o name");
    assert_eq!(sandboxes, "");
    for name in names {
        cluster.kubectl(&format!("delete pod {name} --wait=false"));
        cluster.is_gone(&format!("pod {name}"));
    }
    for (path, _) in before {
        assert_eq!(processes(&path), [0; 0], "{path}");
    }
}

fn exit_during_an_agent_restart_is_noticed(cluster: &mut Cluster) {
    let mut once = container(
        "main",
        "while test ! -e /keep/go; do sleep 0.1; done; exit 7",
    );
    once["volumeMounts"] = json!([{ "name": "keep", "mountPath": "/keep" }]);
    let mut once = pod("once", &[once]);
    once["spec"]["restartPolicy"] = json!("Never");
    let keep = cluster.folder().join("keep");
    std::fs::create_dir(&keep).unwrap();
    once["spec"]["volumes"] = json!([{ "name": "keep", "hostPath": { "path": keep } }]);
    cluster.run(&once);
    let stays = container("main", WAIT);
    cluster.run(&pod("goes", &[stays]));
    cluster.kill();
    std::fs::write(keep.join("go"), "").unwrap();
    cluster.start_again();
    let once = cluster.until_phase("once", "Failed");
    assert_eq!(status(&once, "main")["state"]["terminated"]["exitCode"], 7);
    cluster.kubectl("delete pod goes --wait=false");
    cluster.is_gone("pod goes");
}
