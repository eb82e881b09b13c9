//! The scheduler with its shell, against a small API in memory.

use std::time::Duration;

use plimsoll_core::scheduling::configuration::Configuration;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Options, run};
use plimsoll_client::testing::TestApi;

fn pod_path(name: &str) -> String {
    format!("/api/v1/namespaces/default/pods/{name}")
}

fn add_pod(api: &TestApi, name: &str, cpu: &str, priority: i32) {
    let spec = json!({
        "priority": priority,
        "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
    });
    api.put(&pod_path(name), json!({"spec": spec, "status": {}}));
}

fn add_node(api: &TestApi, name: &str, cpu: &str) {
    let allocatable = json!({"cpu": cpu, "memory": "8Gi", "pods": "110"});
    let path = format!("/api/v1/nodes/{name}");
    api.put(&path, json!({"status": {"allocatable": allocatable}}));
}

fn start(api: &TestApi, leader_elect: bool) -> (CancellationToken, JoinHandle<anyhow::Result<()>>) {
    let mut configuration = Configuration::default();
    configuration.leader_election.leader_elect = leader_elect;
    let stop = CancellationToken::new();
    let options = Options {
        seed: Some(1),
        ..Options::new(configuration)
    };
    let running = tokio::spawn(run(api.client(), options, stop.clone()));
    (stop, running)
}

fn node_of(api: &TestApi, name: &str) -> Option<Value> {
    api.get(&pod_path(name))?.pointer("/spec/nodeName").cloned()
}

/// Waits for a condition, in virtual time.
async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..60_000 {
        if holds() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("not within ten minutes: {what}");
}

#[tokio::test(start_paused = true)]
async fn pods_are_bound_with_events() {
    let api = TestApi::default();
    add_node(&api, "n", "4");
    for name in ["a", "b", "c"] {
        add_pod(&api, name, "1", 0);
    }
    let (stop, running) = start(&api, false);
    until("bound", || node_of(&api, "c").is_some()).await;
    add_pod(&api, "d", "1", 0);
    until("bound", || node_of(&api, "d").is_some()).await;
    until("recorded", || {
        api.list("/apis/events.k8s.io/v1/events").len() == 4
    })
    .await;
    let event = &api.list("/apis/events.k8s.io/v1/events")[0];
    assert_eq!(event["reason"], "Scheduled");
    assert_eq!(event["action"], "Binding");
    assert_eq!(event["note"], "Successfully assigned default/a to n");
    assert_eq!(event["reportingController"], "default-scheduler");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn unschedulable_pod_gets_condition_and_preempts_lower_priority() {
    let api = TestApi::default();
    add_node(&api, "n", "1");
    add_pod(&api, "low", "1", 0);
    let (stop, running) = start(&api, false);
    until("bound", || node_of(&api, "low").is_some()).await;
    add_pod(&api, "equal", "1", 0);
    let condition = |name: &str| {
        let pod = api.get(&pod_path(name))?;
        pod.pointer("/status/conditions/0").cloned()
    };
    until("condition", || condition("equal").is_some()).await;
    let message = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, \
                   preemption: 0/1 nodes are available: 1 No preemption victims found for \
                   incoming pod.";
    let written = condition("equal").unwrap();
    assert_eq!(written["message"], message);
    assert_eq!(written["reason"], "Unschedulable");
    assert_eq!(written["status"], "False");
    add_pod(&api, "high", "1", 100);
    until("bound", || node_of(&api, "high").is_some()).await;
    assert!(api.get(&pod_path("low")).is_none());
    assert_eq!(api.requests("PATCH /api/v1/namespaces/default/pods/low"), 1);
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn bindings_survive_server_errors_and_lost_answers() {
    let api = TestApi::default();
    add_node(&api, "n", "20");
    let mut count = 0;
    api.set_fault(move |_, path| {
        count += 1;
        let is_binding = path.ends_with("/binding");
        match count % 3 {
            0 if is_binding => Some(503),
            1 if is_binding => Some(0),
            _ => None,
        }
    });
    let names: Vec<String> = (0..20).map(|number| format!("p{number}")).collect();
    for name in &names {
        add_pod(&api, name, "1", 0);
    }
    let (stop, running) = start(&api, false);
    until("all bound", || {
        names.iter().all(|name| node_of(&api, name).is_some())
    })
    .await;
    until("all events recorded", || {
        api.list("/apis/events.k8s.io/v1/events").len() == names.len()
    })
    .await;
    let events = api.list("/apis/events.k8s.io/v1/events");
    assert!(events.iter().all(|event| event["reason"] == "Scheduled"));
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn only_leader_schedules_and_next_leader_continues() {
    let api = TestApi::default();
    add_node(&api, "n", "4");
    let (stop, first) = start(&api, true);
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler";
    until("led", || api.get(lease).is_some()).await;
    let (second_stop, second) = start(&api, true);
    add_pod(&api, "a", "1", 0);
    until("bound", || node_of(&api, "a").is_some()).await;
    stop.cancel();
    first.await.unwrap().unwrap();
    add_pod(&api, "b", "1", 0);
    until("bound", || node_of(&api, "b").is_some()).await;
    assert_eq!(api.requests("POST /api/v1/namespaces/default/pods"), 2);
    second_stop.cancel();
    second.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn randomly_killed_schedulers_bind_every_pod_exactly_once() {
    let api = TestApi::default();
    api.set_latency(Duration::from_millis(30));
    for number in 0..10 {
        add_node(&api, &format!("n{number}"), "30");
    }
    let names: Vec<String> = (0..300).map(|number| format!("p{number}")).collect();
    let mut waiting = names.iter();
    while waiting.len() > 0 {
        for name in waiting.by_ref().take(40) {
            add_pod(&api, name, "1", 0);
        }
        let (_, running) = start(&api, false);
        sleep(Duration::from_millis(fastrand::u64(1..200))).await;
        running.abort();
    }
    let (stop, running) = start(&api, false);
    until("all bound", || {
        names.iter().all(|name| node_of(&api, name).is_some())
    })
    .await;
    // All room is needed, so that any overcommitment leaves a pod without a node.
    for number in 0..10 {
        let node = json!(format!("n{number}"));
        let on_node = names
            .iter()
            .filter(|name| node_of(&api, name) == Some(node.clone()));
        assert_eq!(on_node.count(), 30, "{node}");
    }
    stop.cancel();
    running.await.unwrap().unwrap();
}
