//! Preemption by the node, in order of priority.

use plimsoll_testkit::cgroup::processes;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cluster::{Cluster, NODE, Runtime};
use crate::manifest::{WAIT, container, container_id, pod, sized, status};

fn with_configuration(further: &'static str, capacity: &'static str) -> Cluster {
    Cluster::start_with(Runtime::Embedded, move |folder| {
        let file = folder.join("kubelet.yaml");
        let text = format!(
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n\
             evictionHard: {{ memory.available: 100Mi }}\n{further}"
        );
        std::fs::write(&file, text).expect("the folder is ours");
        let file = file.display().to_string();
        ["--config", &file, "--capacity", capacity]
            .map(str::to_owned)
            .to_vec()
    })
}

fn condition<'a>(pod: &'a Value, kind: &str) -> &'a Value {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let found = conditions.find(|condition| condition["type"] == kind);
    found.unwrap_or_else(|| panic!("no condition {kind} in {pod:#}"))
}

#[test]
#[ignore = "tier: root"]
fn critical_pod_preempts_others() {
    let cluster = with_configuration("", "cpu=2");
    let asking = |name: &str, cpu: &str| {
        pod(
            name,
            &[sized("main", &json!({ "requests": { "cpu": cpu } }))],
        )
    };
    cluster.run(&asking("small", "200m"));
    cluster.run(&asking("big", "1"));
    let mut critical = asking("critical", "1500m");
    critical["spec"]["priorityClassName"] = json!("system-node-critical");
    // The scheduler would have preempted pods itself.
    critical["spec"]["nodeName"] = json!(NODE);
    cluster.run(&critical);
    let big = cluster.until_phase("big", "Failed");
    assert_eq!(big["status"]["reason"], "Preempting");
    assert_eq!(
        big["status"]["message"],
        "Preempted in order to admit critical pod"
    );
    assert_eq!(
        condition(&big, "DisruptionTarget")["message"],
        "Pod was preempted by Kubelet to accommodate a critical pod."
    );
    assert_eq!(cluster.get("pod small")["status"]["phase"], "Running");
    cluster.mentions("events --for pod/big", "Preempting");
}

#[test]
#[ignore = "tier: root"]
fn pods_end_in_order_during_a_node_shutdown() {
    let cluster = with_configuration(
        "shutdownGracePeriod: 40s\nshutdownGracePeriodCriticalPods: 20s\n",
        "cpu=2",
    );
    let notes = cluster.folder().join("notes");
    std::fs::create_dir(&notes).unwrap();
    let noting = |name: &str, words: &str| {
        let script = format!("trap '{words}' TERM; while true; do sleep 0.1 & wait; done");
        let mut main = container("main", &script);
        main["volumeMounts"] = json!([{ "name": "notes", "mountPath": "/notes" }]);
        let mut pod = pod(name, &[main]);
        pod["spec"]["terminationGracePeriodSeconds"] = json!(30);
        pod["spec"]["volumes"] = json!([{ "name": "notes", "hostPath": { "path": notes } }]);
        pod
    };
    let plain = cluster.run(&noting(
        "plain",
        "sleep 1; echo plain >> /notes/order; exit 1",
    ));
    let mut critical = noting("critical", "echo critical >> /notes/order; exit 0");
    critical["spec"]["priorityClassName"] = json!("system-node-critical");
    cluster.run(&critical);
    cluster.signal(Signal::POWER);
    let ended = cluster.until_phase("plain", "Failed");
    assert_eq!(ended["status"]["reason"], "Terminated");
    let message = "Pod was terminated in response to imminent node shutdown.";
    assert_eq!(ended["status"]["message"], message);
    assert_eq!(condition(&ended, "DisruptionTarget")["message"], message);
    assert_eq!(status(&ended, "main")["state"]["terminated"]["exitCode"], 1);
    cluster.until_object("pod critical", "ended", |pod| {
        pod["status"]["reason"] == "Terminated"
    });
    let order = std::fs::read_to_string(notes.join("order")).unwrap();
    assert_eq!(order, "plain\ncritical\n");
    let (root, id) = (cluster.cgroup_root(), container_id(&plain, "main"));
    let uid = plain["metadata"]["uid"].as_str().unwrap();
    let path = format!("{root}/kubepods/besteffort/pod{uid}/{id}");
    assert_eq!(processes(&path), [0; 0]);

    cluster.mentions(&format!("describe node {NODE}"), "node is shutting down");
    let mut late = pod("late", &[container("main", WAIT)]);
    late["spec"]["nodeName"] = json!(NODE);
    cluster.create(&late);
    let late = cluster.until_phase("late", "Failed");
    assert_eq!(late["status"]["reason"], "NodeShutdown");
    let events = cluster.kubectl("get events --field-selector reason=Shutdown");
    assert!(
        events.contains("Shutdown manager detected shutdown event"),
        "{events}"
    );
}
