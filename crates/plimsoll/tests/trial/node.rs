//! The node of a trial: `plimsoll up` in the guest, and its API.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, MutexGuard};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Event as NodeEvent, Node as NodeObject, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client};
use plimsoll_client::watching::watch;
use plimsoll_core::eviction::record::Record;
use plimsoll_testkit::waiting::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::outcome::unix_nanos;
use crate::plan::{LINE_MIB, Setup};
use crate::sampler::become_urgent;
use crate::vm::PLIMSOLL;

const DATA: &str = "/var/lib/plimsoll";
const LOG: &str = "/var/log/plimsoll.log";
const CONFIG: &str = "/etc/plimsoll.yaml";
/// What it logs: decisions, and when they were in the API.
const LOGGED: &str = "warn,plimsoll_node::eviction=info,plimsoll_node::agent::heartbeat=debug";
/// What the node is called.
pub(crate) const NAME: &str = "n1";
/// Where bystanders write what they have to say.
pub(crate) const NOTES: &str = "/run/trial";
/// The image of all pods.
pub(crate) const IMAGE: &str = "plimsoll.test/busybox:1";

/// What the API says, as it came in.
#[derive(Default)]
struct Seen {
    pods: BTreeMap<String, Pod>,
    are_pods_listed: bool,
    is_ready: bool,
    is_pressed: bool,
    /// When that began, by the API's clients.
    pressed_at: Option<i64>,
}

/// A node that runs.
pub(crate) struct Node {
    process: Child,
    client: Client,
    seen: Arc<Mutex<Seen>>,
    runtime: Runtime,
}

impl Node {
    /// Starts it and waits until it is ready. Pods of an earlier agent keep running.
    pub(crate) fn start(setup: &Setup) -> Node {
        std::fs::write(CONFIG, configuration(setup)).unwrap();
        let process = launch(setup);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            // The watcher of the API must not cause the delay itself.
            .on_thread_start(become_urgent)
            .enable_all()
            .build();
        let runtime = runtime.unwrap();
        until("the node is registered", || {
            let log = log();
            match log.contains("export KUBECONFIG=") {
                true => Ok(()),
                false => Err(log),
            }
        });
        let client = runtime.block_on(client());
        let seen = Arc::new(Mutex::new(Seen::default()));
        runtime.spawn(follow_node(client.clone(), Arc::clone(&seen)));
        runtime.spawn(follow_pods(client.clone(), Arc::clone(&seen)));
        let node = Node {
            process,
            client,
            seen,
            runtime,
        };
        node.until("it is ready", |seen| seen.is_ready && seen.are_pods_listed);
        node
    }

    /// Stops it; its pods keep running.
    pub(crate) fn stop(mut self) {
        let id = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw);
        kill_process(id.unwrap(), Signal::INT).unwrap();
        let ended = self.process.wait().unwrap();
        assert!(ended.success(), "{ended}");
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    fn until(&self, what: &str, is_so: impl Fn(&Seen) -> bool) {
        until(what, || {
            let seen = self.seen();
            match is_so(&seen) {
                true => Ok(()),
                false => Err(format!("{:?}\n{}", seen.pods, log())),
            }
        });
    }

    /// Creates a pod.
    pub(crate) fn create(&self, pod: &Value) {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
        let parameters = PostParams::default();
        let created = self.runtime.block_on(pods.create(&parameters, &pod));
        created.unwrap();
    }

    /// Waits until a pod runs.
    pub(crate) fn until_running(&self, name: &str) {
        self.until(&format!("{name} runs"), |seen| {
            seen.pods
                .get(name)
                .is_some_and(|pod| phase(pod) == "Running")
        });
    }

    /// The pod as the API has it.
    pub(crate) fn pod(&self, name: &str) -> Option<Pod> {
        self.seen().pods.get(name).cloned()
    }

    /// All evicted pods that still exist.
    pub(crate) fn evicted(&self) -> Vec<String> {
        let seen = self.seen();
        let evicted = seen.pods.iter().filter(|(_, pod)| {
            let status = pod.status.as_ref();
            status.and_then(|status| status.reason.as_deref()) == Some("Evicted")
        });
        evicted.map(|(name, _)| name.clone()).collect()
    }

    /// Deletes a pod and waits until it is gone.
    pub(crate) fn delete(&self, name: &str) {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let parameters = DeleteParams::default().grace_period(1);
        self.runtime
            .block_on(pods.delete(name, &parameters))
            .unwrap();
        let what = format!("{name} is gone");
        self.until(&what, |seen| !seen.pods.contains_key(name));
    }

    /// Waits until nothing presses, and forgets that something did.
    pub(crate) fn until_calm(&self) {
        self.until("nothing presses", |seen| !seen.is_pressed);
        self.seen().pressed_at = None;
    }

    /// When the API said that the node is under pressure.
    pub(crate) fn pressed_at(&self) -> Option<i64> {
        self.seen().pressed_at
    }

    /// Waits until an event of that reason is about an object; answers its annotations. What events
    /// call a node by is its name.
    pub(crate) fn until_event(&self, reason: &str, uid: &str) -> BTreeMap<String, String> {
        let events: Api<NodeEvent> = Api::default_namespaced(self.client.clone());
        let about = ListParams::default().fields(&format!("reason={reason}"));
        until(&format!("an event says {reason}"), || {
            let found = self.runtime.block_on(events.list(&about));
            let mut found = found.map_err(|error| error.to_string())?.items.into_iter();
            let is_it = |event: &NodeEvent| event.involved_object.uid.as_deref() == Some(uid);
            let event = found.find(is_it).ok_or_else(log)?;
            Ok(event.metadata.annotations.unwrap_or_default())
        })
    }

    /// The agent's log lines about the status it reports.
    pub(crate) fn log_of_status(&self) -> String {
        let log = log();
        let is_about =
            |line: &&str| line.contains("updated node status") || line.contains("evicting");
        let lines: Vec<&str> = log.lines().filter(is_about).collect();
        lines[lines.len().saturating_sub(4)..].join("\n")
    }

    /// Decisions from a time on, oldest first.
    pub(crate) fn decisions(&self, since: i64) -> Vec<Record> {
        let folder = Path::new(DATA).join("kubelet/decisions");
        let mut paths: Vec<_> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|e| e == "json"))
            .collect();
        paths.sort();
        let texts = paths.iter().filter_map(|path| std::fs::read(path).ok());
        let records = texts.filter_map(|text| serde_json::from_slice::<Record>(&text).ok());
        let is_later = |record: &Record| record.at.is_some_and(|at| at.as_nanos() >= since);
        records.filter(is_later).collect()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("--- log of plimsoll up:\n{}", log());
        }
    }
}

fn log() -> String {
    std::fs::read_to_string(LOG).unwrap_or_default()
}

pub(crate) fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    phase.unwrap_or_default()
}

fn configuration(setup: &Setup) -> String {
    let transition = setup.transition.as_secs();
    let reserved = match setup.is_reserved {
        true => "kubeReserved: { memory: 150Mi }\nsystemReserved: { memory: 150Mi }\n",
        false => "",
    };
    format!(
        "apiVersion: kubelet.config.k8s.io/v1beta1\n\
         kind: KubeletConfiguration\n\
         evictionHard: {{ memory.available: {LINE_MIB}Mi }}\n\
         evictionPressureTransitionPeriod: {transition}s\n\
         kubeletCgroups: /plimsoll\n\
         {reserved}"
    )
}

fn launch(setup: &Setup) -> Child {
    // Others in the guest are not worth more than the agent, nor is the agent more than it says.
    let script = "echo 0 > /proc/self/oom_score_adj; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", PLIMSOLL, "up", "--data-dir", DATA]);
    command.args(["--config", CONFIG, "--node-name", NAME]);
    command.args([
        "--listen",
        "127.0.0.1:6443",
        "--kubelet-listen",
        "127.0.0.1:10250",
    ]);
    command.args(["--memory-signal", setup.memory_signal]);
    if setup.is_poll_only {
        command.arg("--poll-only");
    }
    command.env("RUST_LOG", LOGGED);
    let _ = std::fs::remove_file(LOG);
    let log = OpenOptions::new().create(true).append(true).open(LOG);
    let log = log.unwrap();
    command.stdout(log.try_clone().unwrap()).stderr(log);
    command.spawn().unwrap()
}

async fn client() -> Client {
    let file = Kubeconfig::read_from(format!("{DATA}/admin.kubeconfig")).unwrap();
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    Client::try_from(config.unwrap()).unwrap()
}

async fn follow_node(client: Client, seen: Arc<Mutex<Seen>>) {
    let nodes: Api<NodeObject> = Api::all(client);
    let mut events = std::pin::pin!(watch(nodes, Config::default()));
    while let Some(event) = events.next().await {
        let (Event::Apply(node) | Event::InitApply(node)) = event else {
            continue;
        };
        let conditions = node.status.and_then(|status| status.conditions);
        let conditions = conditions.unwrap_or_default();
        let is_so = |kind: &str| {
            let mut conditions = conditions.iter();
            conditions.any(|condition| condition.type_ == kind && condition.status == "True")
        };
        let mut seen = seen.lock().unwrap();
        seen.is_ready = is_so("Ready");
        seen.is_pressed = is_so("MemoryPressure");
        if seen.is_pressed && seen.pressed_at.is_none() {
            seen.pressed_at = Some(unix_nanos());
        }
    }
}

async fn follow_pods(client: Client, seen: Arc<Mutex<Seen>>) {
    let pods: Api<Pod> = Api::default_namespaced(client);
    let mut events = std::pin::pin!(watch(pods, Config::default()));
    while let Some(event) = events.next().await {
        let mut seen = seen.lock().unwrap();
        match event {
            Event::Apply(pod) | Event::InitApply(pod) => {
                let name = pod.metadata.name.clone().unwrap_or_default();
                seen.pods.insert(name, pod);
            }
            Event::Delete(pod) => {
                seen.pods
                    .remove(pod.metadata.name.as_deref().unwrap_or_default());
            }
            Event::InitDone => seen.are_pods_listed = true,
            Event::Init => {}
        }
    }
}

/// A pod that runs this program under a name of [`crate::load`]. With an amount of memory it is
/// Guaranteed.
pub(crate) fn pod(name: &str, role: &str, words: &[String], memory: Option<&str>) -> Value {
    let path = |name: &str, path: &str| json!({ "name": name, "hostPath": { "path": path } });
    let mount = |name: &str, path: &str| json!({ "name": name, "mountPath": path });
    let mut command = vec![format!("/test/{role}")];
    command.extend(words.iter().cloned());
    let mut container = json!({
        "name": "main", "image": IMAGE, "imagePullPolicy": "Never", "command": command,
        "volumeMounts": [
            mount("program", "/test"), mount("lib", "/lib"), mount("lib64", "/lib64"),
            mount("notes", NOTES), mount("data", "/data"),
        ],
    });
    if let Some(memory) = memory {
        let amounts = json!({ "cpu": "100m", "memory": memory });
        container["resources"] = json!({ "requests": amounts, "limits": amounts });
    }
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": {
            "nodeName": NAME, "restartPolicy": "Never", "containers": [container],
            "automountServiceAccountToken": false, "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 1, "tolerations": [{ "operator": "Exists" }],
            "volumes": [
                path("program", "/test"), path("lib", "/lib"), path("lib64", "/lib64"),
                path("notes", NOTES), path("data", "/data"),
            ],
        },
    })
}
