//! Start, probes and termination of containers.

use std::time::{Duration, Instant};

use plimsoll_testkit::waiting::until_within;
use serde_json::{Value, json};

use crate::cluster::{Cluster, on_both_runtimes};
use crate::manifest::{WAIT, container, pod, status};

on_both_runtimes!(
    readiness_gates_a_pod,
    container_with_failing_liveness_probe_is_restarted,
    a_slow_start_is_waited_for,
    failing_container_backs_off,
    init_containers_run_first_and_sidecars_stay,
    hooks_run_around_a_container,
    pod_is_killed_after_its_grace_period,
    logs_are_removed_soon_after_their_pod,
);

/// Much earlier than the next run of container garbage collection.
const SOON: Duration = Duration::from_secs(15);

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

fn readiness_gates_a_pod(cluster: &mut Cluster) {
    let mut main = container("main", WAIT);
    main["readinessProbe"] = json!({
        "exec": { "command": ["cat", "/tmp/ready"] },
        "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 30,
    });
    cluster.create(&pod("p", &[main]));
    cluster.until_phase("p", "Running");
    cluster.mentions(
        "get events --field-selector reason=Unhealthy",
        "Readiness probe failed: cat: can't open '/tmp/ready': No such file or directory",
    );
    assert!(!is_ready(&cluster.get("pod p")));
    cluster.kubectl("exec p -- touch /tmp/ready");
    cluster.until_object("pod p", "ready", is_ready);
    cluster.kubectl("exec p -- rm /tmp/ready");
    let pod = cluster.until_object("pod p", "no longer ready", |pod| {
        pod.is_object() && !is_ready(pod)
    });
    assert_eq!(status(&pod, "main")["restartCount"], 0);
}

fn container_with_failing_liveness_probe_is_restarted(cluster: &mut Cluster) {
    let serve = "mkdir /www; echo fine > /www/health; exec httpd -f -p 8080 -h /www";
    let mut main = container("main", serve);
    main["livenessProbe"] = json!({
        "httpGet": { "path": "/health", "port": "web" },
        "periodSeconds": 1, "failureThreshold": 2, "timeoutSeconds": 30,
    });
    main["ports"] = json!([{ "name": "web", "containerPort": 8080 }]);
    cluster.run(&pod("p", &[main]));
    cluster.kubectl("exec p -- rm /www/health");
    let pod = cluster.until_object("pod p", "started again", |pod| {
        let status = &pod["status"]["containerStatuses"][0];
        status["restartCount"] == 1 && status["ready"] == true
    });
    assert!(
        status(&pod, "main")["lastState"]["terminated"].is_object(),
        "{pod:#}"
    );
    let events = cluster.kubectl("events --for pod/p");
    for part in [
        "Liveness probe failed: HTTP probe failed with statuscode: 404",
        "Container main failed liveness probe, will be restarted",
    ] {
        assert!(events.contains(part), "{part} is missing in {events}");
    }
}

fn a_slow_start_is_waited_for(cluster: &mut Cluster) {
    let script = "while test ! -e /tmp/go; do sleep 0.1; done; exec nc -ll -p 9000 -e true";
    let mut main = container("main", script);
    let probe = json!({
        "tcpSocket": { "port": 9000 }, "periodSeconds": 1, "timeoutSeconds": 30,
        "failureThreshold": 1,
    });
    main["livenessProbe"] = probe.clone();
    main["startupProbe"] = probe;
    main["startupProbe"]["failureThreshold"] = json!(1000);
    cluster.create(&pod("p", &[main]));
    cluster.mentions(
        "get events --field-selector reason=Unhealthy",
        "Startup probe failed: dial tcp",
    );
    let pod = cluster.get("pod p");
    assert_eq!(status(&pod, "main")["started"], false);
    assert_eq!(status(&pod, "main")["restartCount"], 0);
    cluster.kubectl("exec p -- touch /tmp/go");
    let pod = cluster.until_running(&json!("p"));
    assert_eq!(status(&pod, "main")["started"], true);
    assert_eq!(status(&pod, "main")["restartCount"], 0);
}

fn failing_container_backs_off(cluster: &mut Cluster) {
    let failing = container("main", "echo why > /dev/termination-log; exit 3");
    cluster.create(&pod("p", &[failing]));
    let pod = cluster.until_object("pod p", "held back", |pod| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["reason"] == "CrashLoopBackOff"
    });
    let status = status(&pod, "main");
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    let printed = status["state"]["waiting"]["message"].as_str().unwrap();
    let delay = printed
        .strip_prefix("back-off ")
        .and_then(|rest| rest.split(' ').next());
    assert!(matches!(delay, Some("10s" | "20s")), "{printed}");
    let rest = format!(" restarting failed container=main pod=p_default({uid})");
    assert!(printed.ends_with(&rest), "{printed}");
    let last = &status["lastState"]["terminated"];
    assert_eq!(last["exitCode"], 3, "{pod:#}");
    assert_eq!(last["reason"], "Error", "{pod:#}");
    assert_eq!(last["message"], "why\n", "{pod:#}");
    cluster.mentions(
        "events --for pod/p",
        &format!("Back-off restarting failed container main in pod p_default({uid})"),
    );
}

fn init_containers_run_first_and_sidecars_stay(cluster: &mut Cluster) {
    let mount = json!([{ "name": "log", "mountPath": "/log" }]);
    let step = |name: &str, script: &str| {
        let mut step = container(name, script);
        step["volumeMounts"] = mount.clone();
        step
    };
    let mut sidecar = step(
        "sidecar",
        "echo sidecar >> /log/order; trap 'echo bye; exit' TERM; while true; do sleep 0.1; done",
    );
    sidecar["restartPolicy"] = json!("Always");
    sidecar["startupProbe"] = json!({
        "exec": { "command": ["grep", "sidecar", "/log/order"] },
        "periodSeconds": 1, "timeoutSeconds": 30, "failureThreshold": 30,
    });
    let mut pod = pod(
        "p",
        &[step(
            "main",
            "echo main >> /log/order; sleep 1; cat /log/order",
        )],
    );
    pod["spec"]["initContainers"] = json!([
        step("first", "sleep 1; echo first >> /log/order"),
        sidecar,
        step("second", "echo second >> /log/order"),
    ]);
    pod["spec"]["volumes"] = json!([{ "name": "log", "emptyDir": {} }]);
    pod["spec"]["restartPolicy"] = json!("Never");
    pod["spec"]["terminationGracePeriodSeconds"] = json!(30);
    cluster.create(&pod);
    cluster.mentions("get pod p", "Init:");
    let pod = cluster.until_phase("p", "Succeeded");
    cluster.shows("logs p -c main", "first\nsidecar\nsecond\nmain\n");
    let sidecar = &status(&pod, "sidecar")["state"]["terminated"];
    assert_eq!(sidecar["exitCode"], 0, "{pod:#}");
    cluster.shows("logs p -c sidecar", "bye\n");

    let failing = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "failing" },
        "spec": {
            "restartPolicy": "Never",
            "initContainers": [container("init", "exit 9")],
            "containers": [container("main", "echo never")],
        },
    });
    cluster.create(&failing);
    let pod = cluster.until_phase("failing", "Failed");
    assert_eq!(status(&pod, "init")["state"]["terminated"]["exitCode"], 9);
    let main = &status(&pod, "main")["state"];
    assert_eq!(main["waiting"]["reason"], "PodInitializing", "{main}");
    cluster.mentions("get pod failing", "Init:Error");
}

fn hooks_run_around_a_container(cluster: &mut Cluster) {
    let notes = cluster.folder().join("notes");
    std::fs::create_dir(&notes).unwrap();
    let mut main = container(
        "main",
        "trap 'echo term >> /notes/order; exit' TERM; while true; do sleep 0.1; done",
    );
    main["volumeMounts"] = json!([{ "name": "notes", "mountPath": "/notes" }]);
    let note = |word: &str| {
        let script = format!("sleep 1; echo {word} >> /notes/order");
        json!({ "exec": { "command": ["sh", "-c", script] } })
    };
    main["lifecycle"] = json!({ "postStart": note("started"), "preStop": note("stopping") });
    let mut p = pod("p", &[main]);
    p["spec"]["terminationGracePeriodSeconds"] = json!(60);
    p["spec"]["volumes"] = json!([{ "name": "notes", "hostPath": { "path": notes } }]);
    cluster.run(&p);
    cluster.kubectl("delete pod p --wait=false");
    cluster.is_gone("pod p");
    let order = std::fs::read_to_string(notes.join("order")).unwrap();
    assert_eq!(order, "started\nstopping\nterm\n");

    let mut main = container("main", WAIT);
    main["lifecycle"] = json!({ "postStart": { "exec": { "command": ["false"] } } });
    cluster.create(&pod("failing", &[main]));
    cluster.mentions("events --for pod/failing", "FailedPostStartHook");
}

fn pod_is_killed_after_its_grace_period(cluster: &mut Cluster) {
    let stubborn = container("main", "trap '' TERM; while true; do sleep 0.1; done");
    cluster.run(&pod("p", &[stubborn]));
    let begun = Instant::now();
    cluster.kubectl("delete pod p --wait=false");
    cluster.is_gone("pod p");
    let taken = begun.elapsed();
    assert!(taken >= Duration::from_secs(2), "{taken:?}");
    cluster.mentions("events --for pod/p", "Stopping container main");
}

fn logs_are_removed_soon_after_their_pod(cluster: &mut Cluster) {
    let talks = pod(
        "talks",
        &[container("main", &format!("echo hello; {WAIT}"))],
    );
    let keeps = pod(
        "keeps",
        &[container("main", &format!("echo hello; {WAIT}"))],
    );
    cluster.run(&keeps);
    cluster.run(&talks);
    // By name: directories of pods, and links for collectors of container logs.
    let count = |pod: &str| {
        let folders = ["log/pods", "log/containers"].map(|name| cluster.data_dir().join(name));
        let entries = folders
            .iter()
            .flat_map(std::fs::read_dir)
            .flatten()
            .flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.contains(pod)).count()
    };
    assert_eq!((count("talks"), count("keeps")), (2, 2));
    cluster.kubectl("delete pod talks --wait=false");
    cluster.is_gone("pod talks");
    until_within(SOON, "its logs are gone", || match count("talks") {
        0 => Ok(()),
        left => Err(left.to_string()),
    });
    assert_eq!(count("keeps"), 2);
}
