//! The loops together, on an API server in memory and with a simulated node.

mod cron_job;
mod stateful_set;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Options, supervise};
use crate::loops::Loops;
use plimsoll_client::informer::{Informers, Key};
use plimsoll_client::supervision::Supervisor;
use plimsoll_client::testing::Cluster;

/// All loops at work; they end when this is dropped.
struct Running {
    cluster: Arc<Cluster>,
    supervisor: Supervisor,
    _stop: DropGuard,
}

impl Running {
    fn start() -> Running {
        Running::start_with(&Options::default())
    }

    fn start_with(options: &Options) -> Running {
        let cluster = Cluster::new();
        let stop = CancellationToken::new();
        let informers = Informers::new(cluster.client());
        let supervisor = Supervisor::new(stop.clone(), Arc::default());
        let loops = Loops {
            supervisor: &supervisor,
            informers: &informers,
            stop: &stop,
        };
        supervise(&loops, options);
        tokio::spawn(play_node(Arc::clone(&cluster), stop.clone()));
        Running {
            cluster,
            supervisor,
            _stop: stop.drop_guard(),
        }
    }

    async fn until(&self, what: &str, holds: impl Fn(&Cluster) -> bool) {
        self.cluster.eventually(what, holds).await;
    }
}

/// Makes pods ready and lets those go that are being deleted.
async fn play_node(cluster: Arc<Cluster>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        for pod in cluster.list("pods") {
            let key = key_of(&pod);
            let is_leaving = !pod["metadata"]["deletionTimestamp"].is_null();
            let is_new = pod["status"]["phase"].is_null();
            if is_leaving
                && pod["metadata"]["finalizers"]
                    .as_array()
                    .is_none_or(Vec::is_empty)
            {
                cluster.remove("pods", &key);
            } else if is_leaving && pod["status"]["phase"] == "Running" {
                cluster.change("pods", &key, |pod| pod["status"]["phase"] = "Failed".into());
            } else if is_new {
                let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
                cluster.change("pods", &key, |pod| {
                    pod["status"] = json!({"phase": "Running", "conditions": ready});
                    pod["spec"]["nodeName"] = json!("n1");
                });
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn key_of(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    Key::new(text("namespace"), text("name"))
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}})
}

fn images(cluster: &Cluster) -> Vec<String> {
    let pods = cluster.list("pods").into_iter();
    let image = |pod: Value| {
        pod["spec"]["containers"][0]["image"]
            .as_str()
            .map(str::to_owned)
    };
    pods.filter_map(image).collect()
}

fn events(cluster: &Cluster, reason: &str) -> Vec<String> {
    let events = cluster.list("events").into_iter();
    let events = events.filter(|event| event["reason"] == reason);
    events
        .filter_map(|event| event["message"].as_str().map(str::to_owned))
        .collect()
}

fn status(cluster: &Cluster, plural: &str, name: &str) -> Value {
    let object = cluster.get(plural, &Key::new("default", name));
    object
        .map(|object| object["status"].clone())
        .unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn deployment_is_rolled_out_changed_and_rolled_back() {
    let running = Running::start();
    let cluster = &running.cluster;
    cluster.put(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "generation": 1},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template("v1"),
            "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        },
    }));
    let key = Key::new("default", "web");
    let is_settled = |cluster: &Cluster, image: &str| {
        let status = status(cluster, "deployments", "web");
        status["availableReplicas"] == 3
            && status["updatedReplicas"] == 3
            && status["replicas"] == 3
            && images(cluster) == [image; 3]
    };
    running
        .until("rolled out", |cluster| is_settled(cluster, "v1"))
        .await;
    cluster.change("deployments", &key, |deployment| {
        deployment["spec"]["template"] = template("v2");
        deployment["metadata"]["generation"] = json!(2);
    });
    running
        .until("changed", |cluster| is_settled(cluster, "v2"))
        .await;
    cluster.change("deployments", &key, |deployment| {
        deployment["spec"]["template"] = template("v1");
        deployment["metadata"]["generation"] = json!(3);
    });
    running
        .until("undone", |cluster| is_settled(cluster, "v1"))
        .await;
    running
        .until("the revision is known", |cluster| {
            let deployment = cluster.get("deployments", &key).unwrap_or_default();
            deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
        })
        .await;
    assert_eq!(cluster.list("replicasets").len(), 2);
    running
        .until("an event is recorded", |cluster| {
            !events(cluster, "ScalingReplicaSet").is_empty()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn failed_controller_is_restarted_and_continues() {
    let running = Running::start();
    let cluster = &running.cluster;
    cluster.put(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "generation": 1},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template("v1")},
    }));
    let key = Key::new("default", "web");
    running
        .until("rolled out", |cluster| {
            status(cluster, "deployments", "web")["availableReplicas"] == 1
        })
        .await;
    let names = running.supervisor.checks();
    assert_eq!(names.len(), 8);
    for (round, (name, _)) in names.into_iter().enumerate() {
        assert!(running.supervisor.end(name), "{name} does not run");
        let replicas = round + 2;
        cluster.change("deployments", &key, |deployment| {
            deployment["spec"]["replicas"] = json!(replicas);
            deployment["metadata"]["generation"] = json!(replicas);
        });
        running
            .until(&format!("scaled after {name} ended"), |cluster| {
                status(cluster, "deployments", "web")["availableReplicas"] == replicas
            })
            .await;
        running
            .until(&format!("{name} runs again"), |_| {
                running.supervisor.restarts(name) == 1
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn orphans_are_adopted_and_non_matching_pods_released() {
    let running = Running::start();
    let cluster = &running.cluster;
    cluster.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "orphan", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": []},
    }));
    cluster.put(json!({
        "apiVersion": "v1", "kind": "ReplicationController",
        "metadata": {"name": "rc", "namespace": "default", "generation": 1},
        "spec": {"replicas": 2, "selector": {"app": "web"}, "template": template("v1")},
    }));
    running
        .until("two are ready", |cluster| {
            status(cluster, "replicationcontrollers", "rc")["readyReplicas"] == 2
        })
        .await;
    let orphan = Key::new("default", "orphan");
    let owner = cluster.get("pods", &orphan).unwrap()["metadata"]["ownerReferences"].clone();
    assert_eq!(owner[0]["kind"], "ReplicationController");
    cluster.change("pods", &orphan, |pod| {
        pod["metadata"]["labels"]["app"] = json!("other")
    });
    running
        .until("it is released and replaced", |cluster| {
            let pod = cluster.get("pods", &orphan).unwrap_or_default();
            let owners = pod["metadata"]["ownerReferences"].as_array().cloned();
            owners.is_none_or(|owners| owners.is_empty()) && cluster.list("pods").len() == 3
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_follows_nodes_and_its_template() {
    let running = Running::start();
    let cluster = &running.cluster;
    let node = |name: &str| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"disk": "ssd"}}});
    cluster.put(node("n1"));
    cluster.put(json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "d", "namespace": "default", "generation": 1},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}}, "template": template("v1"), "revisionHistoryLimit": 10,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
        },
    }));
    running
        .until("one is there", |cluster| {
            status(cluster, "daemonsets", "d")["numberAvailable"] == 1
        })
        .await;
    let pod = &cluster.list("pods")[0];
    let required =
        &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(
        required["nodeSelectorTerms"][0]["matchFields"][0]["values"],
        json!(["n1"])
    );
    cluster.change("daemonsets", &Key::new("default", "d"), |set| {
        set["spec"]["template"] = template("v2");
        set["metadata"]["generation"] = json!(2);
    });
    running
        .until("the template is new", |cluster| {
            let status = status(cluster, "daemonsets", "d");
            images(cluster) == ["v2"]
                && status["updatedNumberScheduled"] == 1
                && status["numberAvailable"] == 1
        })
        .await;
    let revisions = cluster.list("controllerrevisions");
    let mut numbers: Vec<i64> = revisions
        .iter()
        .filter_map(|r| r["revision"].as_i64())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
    cluster.change("nodes", &Key::new("", "n1"), |node| {
        node["spec"] = json!({"taints": [{"key": "k", "effect": "NoExecute"}]});
    });
    running
        .until("none is left", |cluster| cluster.list("pods").is_empty())
        .await;
}

#[tokio::test(start_paused = true)]
async fn job_completes_and_removes_pod_finalizers() {
    let running = Running::start();
    let cluster = &running.cluster;
    cluster.put(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", "generation": 1},
        "spec": {
            "parallelism": 2, "completions": 3, "backoffLimit": 6, "completionMode": "Indexed",
            "selector": {"matchLabels": {"app": "web"}}, "template": template("v1"),
        },
    }));
    let succeed = |cluster: &Cluster| {
        for pod in cluster.list("pods") {
            if pod["status"]["phase"] == "Running" {
                cluster.change("pods", &key_of(&pod), |pod| {
                    pod["status"] = json!({"phase": "Succeeded"})
                });
            }
        }
    };
    for _ in 0..200 {
        succeed(cluster);
        if status(cluster, "jobs", "j")["completionTime"].is_string() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let status = status(cluster, "jobs", "j");
    assert_eq!(
        (&status["succeeded"], &status["completedIndexes"]),
        (&json!(3), &json!("0-2"))
    );
    let types: Vec<&str> = status["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|c| c["type"].as_str())
        .collect();
    assert_eq!(types, ["SuccessCriteriaMet", "Complete"]);
    let pods = cluster.list("pods");
    assert_eq!(pods.len(), 3);
    assert!(pods.iter().all(|pod| {
        pod["metadata"]["finalizers"]
            .as_array()
            .is_none_or(Vec::is_empty)
    }));
    running
        .until("an event is recorded", |cluster| {
            events(cluster, "Completed") == ["Job completed"]
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn deleted_job_removes_pod_finalizers() {
    let running = Running::start();
    let cluster = &running.cluster;
    cluster.put(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", "generation": 1},
        "spec": {"parallelism": 1, "completions": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template("v1")},
    }));
    running
        .until("one runs", |cluster| cluster.list("pods").len() == 1)
        .await;
    cluster.remove("jobs", &Key::new("default", "j"));
    running
        .until("its finalizer is gone", |cluster| {
            let pods = cluster.list("pods");
            pods.iter().all(|pod| {
                pod["metadata"]["finalizers"]
                    .as_array()
                    .is_none_or(Vec::is_empty)
            })
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_budget_follows_the_scale_of_a_deployment() {
    let running = Running::start();
    let cluster = &running.cluster;
    cluster.put(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default", "generation": 1},
        "spec": {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
    }));
    running
        .until("no pods", |cluster| {
            status(cluster, "poddisruptionbudgets", "b")["observedGeneration"] == 1
        })
        .await;
    assert_eq!(
        status(cluster, "poddisruptionbudgets", "b")["disruptionsAllowed"],
        0
    );
    cluster.put(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "generation": 1},
        "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": template("v1")},
    }));
    running
        .until("two may go", |cluster| {
            let status = status(cluster, "poddisruptionbudgets", "b");
            status["disruptionsAllowed"] == 2
                && status["expectedPods"] == 4
                && status["conditions"][0]["reason"] == "SufficientPods"
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn replica_set_waits_while_its_pods_are_evicted_repeatedly() {
    let running = Running::start();
    let cluster = &running.cluster;
    cluster.put(json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "rs", "namespace": "default", "uid": "rs", "generation": 1},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template("v1")},
    }));
    let now = Options::default().clock.now();
    let before = |seconds: i64| {
        let nanos = now.as_nanos() - seconds * 1_000_000_000;
        let time = plimsoll_core::object::timestamp::Timestamp::from_nanos(nanos);
        serde_json::to_value(time.to_api_seconds()).unwrap()
    };
    for (name, created, evicted) in [("a", 90, 60), ("b", 50, 20), ("c", 15, 2)] {
        let ready =
            json!([{"type": "Ready", "status": "False", "lastTransitionTime": before(evicted)}]);
        cluster.put(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "default", "labels": {"app": "web"}, "creationTimestamp": before(created),
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": true}],
            },
            "spec": {"containers": []},
            "status": {"phase": "Failed", "reason": "Evicted", "conditions": ready},
        }));
    }
    cluster.change("replicasets", &Key::new("default", "rs"), |set| {
        set["spec"]["replicas"] = json!(1);
        set["metadata"]["generation"] = json!(2);
    });
    running
        .until("the set was looked at", |cluster| {
            status(cluster, "replicasets", "rs")["observedGeneration"] == 2
        })
        .await;
    assert_eq!(cluster.list("pods").len(), 3);
}
