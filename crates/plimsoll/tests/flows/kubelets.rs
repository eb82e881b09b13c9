//! Stand-ins for kubelets: nodes that exist in the API only.
//!
//! Each node's Lease is renewed, pods bound to it are reported as running, and pods that are
//! deleted are let go, as a kubelet would. What a pod's containers do is defined by the first one's
//! command: `true` ends well, `false` ends badly, everything else runs for ever. The image
//! `missing` can never be pulled.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::AbortHandle;

/// How often a node says that it lives.
const BEAT_EVERY: Duration = Duration::from_millis(500);

/// Pods that are looked after at the same time.
const PODS_AT_ONCE: usize = 16;

/// Tries at a write that fails for reasons that may pass.
const TRIES: u32 = 5;

const NODE_LEASES: &str = "kube-node-lease";

/// The nodes of a flow.
pub(crate) struct Kubelets {
    runtime: Runtime,
    client: Client,
    alive: Alive,
}

/// The nodes that send heartbeats, each with its work on its pods.
type Alive = Arc<Mutex<BTreeMap<String, AbortHandle>>>;

impl Kubelets {
    /// No nodes yet.
    pub(crate) fn start(kubeconfig: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let file = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
        let client = runtime.block_on(async {
            let options = KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(file, &options).await;
            Client::try_from(config.expect("a usable kubeconfig")).expect("a client")
        });
        let alive = Alive::default();
        runtime.spawn(send_heartbeats(client.clone(), Arc::clone(&alive)));
        Kubelets {
            runtime,
            client,
            alive,
        }
    }

    /// The cluster.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Runs something on the runtime of the nodes.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// A node registers, is ready, and begins to look after its pods.
    pub(crate) fn join(&self, node: &Value) {
        let name = node["metadata"]["name"].as_str().expect("nodes have names");
        let typed: Node = serde_json::from_value(node.clone()).expect("a node");
        self.runtime.block_on(async {
            let nodes: Api<Node> = Api::all(self.client.clone());
            let created = nodes.create(&PostParams::default(), &typed).await;
            created.expect("the node is registered");
        });
        self.wake(name, &node["status"]);
    }

    /// The node sends no more heartbeats, and does nothing.
    pub(crate) fn silence(&self, node: &str) {
        let work = self
            .alive
            .lock()
            .expect("the lock is not poisoned")
            .remove(node);
        work.expect("the node was alive").abort();
    }

    /// The node sends heartbeats: it posts this status, as ready, and looks after its pods.
    pub(crate) fn wake(&self, node: &str, status: &Value) {
        let status = json!({ "status": ready_status(status) });
        self.runtime.block_on(async {
            renew(&self.client, node).await;
            let nodes: Api<Node> = Api::all(self.client.clone());
            let (by, patch) = (PatchParams::default(), Patch::Strategic(&status));
            let posted = nodes.patch_status(node, &by, &patch).await;
            posted.expect("the node's status is taken");
        });
        let work = serve_pods(self.client.clone(), node.to_owned());
        let work = self.runtime.spawn(work).abort_handle();
        let before = self
            .alive
            .lock()
            .expect("the lock is not poisoned")
            .insert(node.to_owned(), work);
        assert!(before.is_none(), "{node} was alive already");
    }
}

async fn send_heartbeats(client: Client, alive: Alive) {
    let mut beats = tokio::time::interval(BEAT_EVERY);
    loop {
        beats.tick().await;
        let names: Vec<String> = {
            let alive = alive.lock().expect("the lock is not poisoned");
            alive.keys().cloned().collect()
        };
        futures::stream::iter(names)
            .for_each_concurrent(PODS_AT_ONCE, |name| {
                let client = client.clone();
                async move { renew(&client, &name).await }
            })
            .await;
    }
}

async fn renew(client: &Client, node: &str) {
    let leases: Api<Lease> = Api::namespaced(client.clone(), NODE_LEASES);
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": node },
        "spec": { "holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": micros() },
    });
    let by = PatchParams::apply("kubelet").force();
    // A beat that fails is followed by the next.
    let _ = leases.patch(node, &by, &Patch::Apply(&lease)).await;
}

/// Looks after the pods of a node.
async fn serve_pods(client: Client, node: String) {
    let pods: Api<Pod> = Api::all(client.clone());
    let of_node = watcher::Config::default().fields(&format!("spec.nodeName={node}"));
    let changes = watcher(pods, of_node).default_backoff().applied_objects();
    let work = changes.for_each_concurrent(PODS_AT_ONCE, |pod| {
        let client = client.clone();
        async move {
            if let Ok(pod) = pod {
                look_after(&client, &pod).await;
            }
        }
    });
    work.await;
}

async fn look_after(client: &Client, pod: &Pod) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    for _ in 0..TRIES {
        let done = if pod.metadata.deletion_timestamp.is_some() {
            let this = Preconditions {
                uid: pod.uid(),
                resource_version: None,
            };
            let now = DeleteParams::default().grace_period(0).preconditions(this);
            pods.delete(&pod.name_any(), &now).await.map(|_| ())
        } else if let Some(status) = next_status(pod) {
            let body = json!({ "metadata": { "uid": pod.uid() }, "status": status });
            let patch = Patch::Strategic(&body);
            let by = PatchParams::default();
            pods.patch_status(&pod.name_any(), &by, &patch)
                .await
                .map(|_| ())
        } else {
            return;
        };
        match done {
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => return,
            Err(_) => tokio::time::sleep(BEAT_EVERY).await,
            Ok(()) => return,
        }
    }
}

/// The status that a kubelet would report for a new pod, if that is a change.
fn next_status(pod: &Pod) -> Option<Value> {
    let spec = pod.spec.as_ref()?;
    let status = pod.status.as_ref()?;
    let first = spec.containers.first()?;
    let command = first.command.as_deref().unwrap_or_default().first();
    let image = first.image.as_deref().unwrap_or_default();
    let (phase, is_ready, state) = match command.map(String::as_str) {
        _ if image == "missing" => {
            let state = json!({ "waiting": { "reason": "ImagePullBackOff" } });
            ("Pending", false, state)
        }
        Some("true") => ("Succeeded", false, ended(0, "Completed")),
        Some("false") => ("Failed", false, ended(1, "Error")),
        _ => (
            "Running",
            true,
            json!({ "running": { "startedAt": seconds() } }),
        ),
    };
    let statuses = spec.containers.iter().map(|container| {
        json!({
            "name": container.name, "image": container.image, "imageID": "", "restartCount": 0,
            "ready": is_ready, "started": is_ready, "state": state,
        })
    });
    let word = if is_ready { "True" } else { "False" };
    // The node controller takes the readiness of pods on silent nodes, which give it back.
    let conditions = status.conditions.as_deref().unwrap_or_default();
    if conditions
        .iter()
        .any(|c| c.type_ == "Ready" && c.status == word)
    {
        return None;
    }
    let condition = |kind: &str, status: &str| {
        let time = seconds();
        json!({ "type": kind, "status": status, "lastTransitionTime": time })
    };
    Some(json!({
        "phase": phase, "startTime": seconds(), "hostIP": "10.0.0.1", "podIP": "10.1.0.1",
        "podIPs": [{ "ip": "10.1.0.1" }],
        "conditions": [
            condition("Initialized", "True"),
            condition("Ready", word),
            condition("ContainersReady", word),
        ],
        "containerStatuses": statuses.collect::<Vec<Value>>(),
    }))
}

fn ended(code: i32, reason: &str) -> Value {
    let time = seconds();
    let end = json!({
        "exitCode": code, "reason": reason, "startedAt": time, "finishedAt": time,
    });
    json!({ "terminated": end })
}

/// The status of the manifest with the conditions of a healthy node.
fn ready_status(given: &Value) -> Value {
    let mut status = given.clone();
    let condition = |kind: &str, is_so: bool, reason: &str| {
        let (word, time) = (if is_so { "True" } else { "False" }, seconds());
        json!({
            "type": kind, "status": word, "reason": reason, "message": "the flow says so",
            "lastHeartbeatTime": time, "lastTransitionTime": time,
        })
    };
    status["conditions"] = json!([
        condition("MemoryPressure", false, "KubeletHasSufficientMemory"),
        condition("DiskPressure", false, "KubeletHasNoDiskPressure"),
        condition("PIDPressure", false, "KubeletHasSufficientPID"),
        condition("Ready", true, "KubeletReady"),
    ]);
    status
}

fn seconds() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn micros() -> String {
    Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S.%6fZ")
        .to_string()
}
