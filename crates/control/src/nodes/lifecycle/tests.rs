use std::sync::atomic::Ordering;

use plimsoll_core::object::taint::{
    NODE_MEMORY_PRESSURE, NODE_NOT_READY, NODE_UNREACHABLE, NODE_UNSCHEDULABLE,
};
use serde_json::{Value, json};

use super::*;
use plimsoll_client::testing::{Cluster, VIRTUAL_START, clock_that_is_set, virtual_clock};

fn node(name: &str, zone: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"topology.kubernetes.io/zone": zone, "kubernetes.io/os": "linux"},
        },
        "spec": {},
        "status": {"conditions": [
            {"type": "MemoryPressure", "status": "False"},
            {"type": "Ready", "status": "True", "reason": "KubeletReady",
             "lastHeartbeatTime": "2026-01-01T00:00:00Z"},
        ]},
    })
}

fn lease(name: &str, renewed: u64) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": "kube-node-lease", "name": name},
        "spec": {"renewTime": format!("2026-01-01T00:00:00.{renewed:06}Z")},
    })
}

fn pod(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": name},
        "spec": {"containers": [], "nodeName": node},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn start(cluster: &Arc<Cluster>) -> (CancellationToken, Clock) {
    start_with(cluster, virtual_clock())
}

fn start_with(cluster: &Arc<Cluster>, clock: Clock) -> (CancellationToken, Clock) {
    let stop = CancellationToken::new();
    let options = Options {
        clock: clock.clone(),
        ..Options::default()
    };
    tokio::spawn(run(Informers::new(cluster.client()), options, stop.clone()));
    (stop, clock)
}

/// Renews the Lease of a node every ten seconds, for as long as the guard lives.
fn keep_alive(cluster: &Arc<Cluster>, name: &'static str) -> tokio_util::sync::DropGuard {
    let (cluster, stop) = (Arc::clone(cluster), CancellationToken::new());
    let stopped = stop.clone();
    tokio::spawn(async move {
        for renewal in 0.. {
            cluster.put(lease(name, renewal));
            tokio::select! {
                () = stopped.cancelled() => return,
                () = tokio::time::sleep(Duration::from_secs(10)) => {}
            }
        }
    });
    stop.drop_guard()
}

fn key(name: &str) -> Key {
    Key::new("", name)
}

fn has_taint(cluster: &Cluster, name: &str, taint: &str, effect: &str) -> bool {
    let node = cluster.get("nodes", &key(name)).unwrap();
    let taints = node["spec"]["taints"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    taints
        .iter()
        .any(|t| t["key"] == taint && t["effect"] == effect)
}

fn condition(cluster: &Cluster, plural: &str, key: &Key, kind: &str) -> Value {
    let object = cluster.get(plural, key).unwrap();
    let conditions = object["status"]["conditions"].as_array().cloned();
    let mut conditions = conditions.unwrap_or_default().into_iter();
    conditions.find(|c| c["type"] == kind).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn node_without_heartbeat_is_tainted_until_it_returns() {
    let cluster = Cluster::new();
    cluster.put(node("a", "z"));
    cluster.put(node("b", "z"));
    cluster.put(pod("p", "a"));
    let alive = keep_alive(&cluster, "b");
    let dying = keep_alive(&cluster, "a");
    let (stop, clock) = start(&cluster);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(
        condition(&cluster, "nodes", &key("a"), "Ready")["status"],
        "True"
    );
    drop(dying);
    let silent = clock.now();
    // Its last heartbeat may be ten seconds old; it may take five to be noticed, twice.
    tokio::time::sleep(Duration::from_secs(39)).await;
    assert!(!has_taint(&cluster, "a", NODE_UNREACHABLE, "NoSchedule"));
    cluster
        .eventually("the node is unreachable", |c| {
            has_taint(c, "a", NODE_UNREACHABLE, "NoSchedule")
                && has_taint(c, "a", NODE_UNREACHABLE, "NoExecute")
        })
        .await;
    let waited = clock.now().saturating_since(silent).as_secs();
    assert!((40..=66).contains(&waited), "after {waited} s");
    let ready = condition(&cluster, "nodes", &key("a"), "Ready");
    assert_eq!(ready["status"], "Unknown");
    assert_eq!(ready["reason"], "NodeStatusUnknown");
    let never = condition(&cluster, "nodes", &key("a"), "PIDPressure");
    assert_eq!(never["reason"], "NodeStatusNeverUpdated");
    let pod_key = Key::new("default", "p");
    cluster
        .eventually("its pod is not ready", |c| {
            condition(c, "pods", &pod_key, "Ready")["status"] == "False"
        })
        .await;
    assert_eq!(
        condition(&cluster, "nodes", &key("b"), "Ready")["status"],
        "True"
    );

    cluster.change("nodes", &key("a"), |node| {
        for condition in node["status"]["conditions"].as_array_mut().unwrap() {
            if condition["type"] == "Ready" {
                condition["status"] = "False".into();
                condition["lastHeartbeatTime"] = "2026-01-01T00:10:00Z".into();
            }
        }
    });
    cluster
        .eventually("one taint is exchanged for the other", |c| {
            has_taint(c, "a", NODE_NOT_READY, "NoExecute")
                && !has_taint(c, "a", NODE_UNREACHABLE, "NoExecute")
                && !has_taint(c, "a", NODE_UNREACHABLE, "NoSchedule")
        })
        .await;
    let _alive_again = keep_alive(&cluster, "a");
    cluster.change("nodes", &key("a"), |node| {
        node["status"]["conditions"] = json!([{"type": "Ready", "status": "True",
            "lastHeartbeatTime": "2026-01-01T00:20:00Z"}]);
    });
    cluster
        .eventually("no taint is left", |c| {
            let node = c.get("nodes", &key("a")).unwrap();
            node["spec"]["taints"].as_array().is_none_or(Vec::is_empty)
        })
        .await;
    cluster
        .eventually("an event is recorded", |c| {
            let events = c.list("events");
            let has = |reason: &str| events.iter().any(|e| e["reason"] == reason);
            has("RegisteredNode") && has("NodeNotReady")
        })
        .await;
    drop(alive);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn conditions_cordons_and_labels_are_followed_at_once() {
    let cluster = Cluster::new();
    cluster.put(node("a", "z"));
    let _alive = keep_alive(&cluster, "a");
    let (stop, _) = start(&cluster);
    cluster
        .eventually("the old label is set", |c| {
            let node = c.get("nodes", &key("a")).unwrap();
            node["metadata"]["labels"]["beta.kubernetes.io/os"] == "linux"
        })
        .await;
    cluster.change("nodes", &key("a"), |node| {
        node["spec"]["unschedulable"] = true.into();
        node["status"]["conditions"][0]["status"] = "True".into();
    });
    cluster
        .eventually("both taints are put on", |c| {
            has_taint(c, "a", NODE_MEMORY_PRESSURE, "NoSchedule")
                && has_taint(c, "a", NODE_UNSCHEDULABLE, "NoSchedule")
        })
        .await;
    cluster.change("nodes", &key("a"), |node| {
        node["status"]["conditions"][0]["status"] = "False".into();
    });
    cluster
        .eventually("the pressure is over", |c| {
            !has_taint(c, "a", NODE_MEMORY_PRESSURE, "NoSchedule")
                && has_taint(c, "a", NODE_UNSCHEDULABLE, "NoSchedule")
        })
        .await;
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn no_node_is_evicted_if_all_lack_heartbeats() {
    let cluster = Cluster::new();
    cluster.put(node("a", "y"));
    cluster.put(node("b", "z"));
    let (stop, _) = start(&cluster);
    tokio::time::sleep(Duration::from_secs(600)).await;
    for name in ["a", "b"] {
        assert_eq!(
            condition(&cluster, "nodes", &key(name), "Ready")["status"],
            "Unknown"
        );
        assert!(has_taint(&cluster, name, NODE_UNREACHABLE, "NoSchedule"));
        assert!(!has_taint(&cluster, name, NODE_UNREACHABLE, "NoExecute"));
    }
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn partially_disrupted_zone_is_not_evicted() {
    let cluster = Cluster::new();
    let _alive: Vec<_> = ["a0", "a1", "b0", "b1"]
        .map(|name| keep_alive(&cluster, name))
        .into();
    for name in ["a0", "a1", "a2", "a3", "a4"] {
        cluster.put(node(name, "a"));
    }
    for name in ["b0", "b1", "b2"] {
        cluster.put(node(name, "b"));
    }
    let (stop, _) = start(&cluster);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(has_taint(&cluster, "b2", NODE_UNREACHABLE, "NoExecute"));
    for name in ["a2", "a3", "a4"] {
        assert!(has_taint(&cluster, name, NODE_UNREACHABLE, "NoSchedule"));
    }
    // Three of five were silent before the first of them could be given up at the normal rate.
    let given_up = ["a2", "a3", "a4"]
        .iter()
        .filter(|name| has_taint(&cluster, name, NODE_UNREACHABLE, "NoExecute"));
    assert!(given_up.count() <= 1);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn clock_change_alters_no_nodes_health() {
    let cluster = Cluster::new();
    cluster.put(node("alive", "z"));
    let _alive = keep_alive(&cluster, "alive");
    let (ahead, clock) = clock_that_is_set();
    let (stop, _) = start_with(&cluster, clock);
    let jumps = [365 * 24 * 3600, -3600, -VIRTUAL_START, 0];
    for (dead, jump) in ["d0", "d1", "d2", "d3"].into_iter().zip(jumps) {
        cluster.put(node(dead, "z"));
        let dying = keep_alive(&cluster, dead);
        let of = |name: &str| condition(&cluster, "nodes", &key(name), "Ready")["status"].clone();
        tokio::time::sleep(Duration::from_secs(30)).await;
        ahead.store(jump, Ordering::Relaxed);
        for _ in 0..80 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            for name in ["alive", dead] {
                assert_eq!(of(name), "True", "{name}, ahead by {jump}");
                assert!(!has_taint(&cluster, name, NODE_UNREACHABLE, "NoExecute"));
            }
        }
        drop(dying);
        tokio::time::sleep(Duration::from_secs(80)).await;
        assert_eq!(of("alive"), "True", "ahead by {jump}");
        assert_eq!(of(dead), "Unknown", "ahead by {jump}");
    }
    stop.cancel();
}
