//! Pods and the API server.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_client::testing::{self, Known, check_follows_pods};
use plimsoll_node::pods::api::{keep_mirrors, watch_pods, write_statuses};
use plimsoll_node::pods::manifest::{folder, parse};
use plimsoll_node::pods::set::Source;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fake_api::FakeApi;
use crate::world::{World, pod, simple};

/// A node and its API server.
struct Cluster {
    world: World,
    api: FakeApi,
}

impl Cluster {
    fn new() -> Cluster {
        Cluster::join(World::new(), FakeApi::default())
    }

    fn join(world: World, api: FakeApi) -> Cluster {
        let stop = CancellationToken::new();
        let (client, pods, token) = (api.client(), world.pods.clone(), stop.clone());
        tokio::spawn(async move { watch_pods(client, "n", &pods, token).await });
        let (client, pods, token) = (api.client(), world.pods.clone(), stop.clone());
        tokio::spawn(async move { write_statuses(client, &pods, token).await });
        let (client, pods) = (api.client(), world.pods.clone());
        tokio::spawn(async move { keep_mirrors(client, "n", &pods, stop).await });
        Cluster { world, api }
    }

    fn status(&self, name: &str) -> Value {
        let pod = self.api.pod(name).unwrap_or_default();
        pod["status"].clone()
    }

    async fn until(&self, what: &str, holds: impl Fn(&Cluster) -> bool) {
        for _ in 0..36_000 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{what} never came to hold\napi: {:#?}", self.api.log());
    }

    async fn until_phase(&self, name: &str, phase: &str) {
        let what = format!("{name} is {phase}");
        self.until(&what, |cluster| cluster.status(name)["phase"] == phase)
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn agent_follows_pods() {
    let (world, cluster) = (World::new(), testing::Cluster::new());
    let (client, pods) = (cluster.client(), world.pods.clone());
    tokio::spawn(async move { watch_pods(client, "n", &pods, CancellationToken::new()).await });
    let pod = |name: &str| serde_json::to_value(simple(name, "sleep:1", "Always")).unwrap();
    check_follows_pods(&cluster, pod, async || {
        let pods = world.pods.list().into_iter();
        let name_and_uid = |pod: Pod| (pod.metadata.name.unwrap(), pod.metadata.uid.unwrap());
        pods.map(name_and_uid).collect::<Known>()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn api_pod_runs_and_its_status_is_reported() {
    let cluster = Cluster::new();
    cluster.api.put(&simple("web", "sleep:1", "Always"));
    cluster.until_phase("web", "Running").await;
    cluster
        .until("it is ready", |cluster| {
            let conditions = cluster.status("web")["conditions"].clone();
            let conditions = conditions.as_array().cloned().unwrap_or_default();
            conditions
                .iter()
                .any(|c| c["type"] == "Ready" && c["status"] == "True")
        })
        .await;
    let status = cluster.status("web");
    assert_eq!(status["podIPs"], json!([{"ip": "10.0.0.1"}]));
    assert_eq!(status["qosClass"], "BestEffort");
    let writes = cluster.api.log().len();
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(cluster.api.log().len(), writes, "all statuses were written");
}

#[tokio::test(start_paused = true)]
async fn unreadable_pod_of_the_node_keeps_no_other_from_running() {
    let api = FakeApi::default();
    let nested = (0..200).fold(json!({}), |inner, _| json!({"f:a": inner}));
    api.put_as_it_is(json!({"metadata": {"name": "odd"}, "spec": 5}));
    api.put_as_it_is(json!({"metadata": {"name": "deep", "labels": nested}}));
    api.put(&simple("first", "sleep:1", "Always"));
    let cluster = Cluster::join(World::new(), api);
    cluster.until_phase("first", "Running").await;
    cluster
        .api
        .put_as_it_is(json!({"metadata": {"name": "odder"}, "spec": {"containers": 5}}));
    cluster.api.put(&simple("second", "sleep:1", "Always"));
    cluster.until_phase("second", "Running").await;
    // A pod that has become unparsable is still terminated when it is removed.
    cluster
        .api
        .change("first", |pod| pod["spec"]["containers"] = json!(5));
    cluster.api.remove("first");
    cluster
        .until("it is forgotten", |cluster| {
            cluster.world.report("first").is_none()
        })
        .await;
    assert_eq!(cluster.status("second")["phase"], "Running");
}

#[tokio::test(start_paused = true)]
async fn deleted_pod_is_removed_after_its_containers() {
    let cluster = Cluster::new();
    cluster.api.put(&simple("web", "stubborn:1", "Always"));
    cluster.until_phase("web", "Running").await;
    cluster.api.delete("web", 30);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(cluster.status("web")["phase"], "Running", "it still runs");
    cluster
        .until("it is gone", |cluster| cluster.api.pod("web").is_none())
        .await;
    let log = cluster.api.log();
    assert_eq!(log.last().unwrap(), "delete web");
    let deletions = log.iter().filter(|line| line.starts_with("delete"));
    assert_eq!(deletions.count(), 1);
    cluster
        .until("it is forgotten", |cluster| {
            cluster.world.report("web").is_none()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn finished_pod_is_removed_at_once_when_deleted() {
    let cluster = Cluster::new();
    cluster.api.put(&simple("job", "exit-0:1", "Never"));
    cluster.until_phase("job", "Succeeded").await;
    cluster.world.until_finished("job").await;
    cluster.api.delete("job", 30);
    cluster
        .until("it is gone", |cluster| cluster.api.pod("job").is_none())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_phase_is_terminal_only_when_nothing_runs() {
    let cluster = Cluster::new();
    let mut job = simple("job", "stubborn:1", "Never");
    job.spec.as_mut().unwrap().active_deadline_seconds = Some(10);
    cluster.api.put(&job);
    cluster.until_phase("job", "Running").await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(cluster.world.phase("job"), "Failed");
    assert_eq!(cluster.status("job")["phase"], "Running");
    cluster.until_phase("job", "Failed").await;
    assert_eq!(cluster.status("job")["reason"], "DeadlineExceeded");
}

#[tokio::test(start_paused = true)]
async fn failed_status_writes_are_retried_and_foreign_ones_corrected() {
    let cluster = Cluster::new();
    cluster.api.refuse(5);
    cluster.api.put(&simple("web", "sleep:1", "Always"));
    cluster.until_phase("web", "Running").await;
    cluster.api.change("web", |pod| {
        pod["status"]["phase"] = json!("Pending");
        pod["status"]["conditions"]
            .as_array_mut()
            .unwrap()
            .push(json!({"type": "example.org/Mine", "status": "True"}));
    });
    cluster.until_phase("web", "Running").await;
    let conditions = cluster.status("web")["conditions"].clone();
    let mut types = conditions.as_array().unwrap().iter().map(|c| &c["type"]);
    assert!(types.any(|kind| kind == "example.org/Mine"));
}

#[tokio::test(start_paused = true)]
async fn readiness_gates_are_opened_by_others() {
    let cluster = Cluster::new();
    cluster.api.put(&pod(
        "web",
        json!({
            "readinessGates": [{"conditionType": "example.org/Gate"}],
            "containers": [{"name": "a", "image": "sleep:1"}],
        }),
    ));
    cluster.until_phase("web", "Running").await;
    let ready = |cluster: &Cluster| {
        let conditions = cluster.status("web")["conditions"].clone();
        let conditions = conditions.as_array().cloned().unwrap_or_default();
        let ready = conditions.into_iter().find(|c| c["type"] == "Ready");
        ready.unwrap_or_default()
    };
    cluster
        .until("the gate is closed", |cluster| {
            ready(cluster)["reason"] == "ReadinessGatesNotReady"
        })
        .await;
    cluster.api.change("web", |pod| {
        pod["status"]["conditions"]
            .as_array_mut()
            .unwrap()
            .push(json!({"type": "example.org/Gate", "status": "True"}));
    });
    cluster
        .until("the pod is ready", |cluster| {
            ready(cluster)["status"] == "True"
        })
        .await;
    assert!(ready(&cluster)["reason"].is_null());
}

const STATIC: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: a, image: 'sleep:1'}]}
";

#[tokio::test(start_paused = true)]
async fn static_pods_have_an_image_in_the_api() {
    let cluster = Cluster::new();
    let from_file = |text: &str| vec![parse(text, "/web.yaml", "n").unwrap()];
    cluster.world.pods.replace(Source::Files, from_file(STATIC));
    cluster.until_phase("web-n", "Running").await;
    let image = cluster.api.pod("web-n").unwrap();
    let annotations = &image["metadata"]["annotations"];
    let hash = &annotations["kubernetes.io/config.hash"];
    assert_eq!(annotations["kubernetes.io/config.mirror"], *hash);
    assert_eq!(image["metadata"]["ownerReferences"][0]["uid"], "node-uid");

    // Deleting the mirror does not affect the pod; the mirror is created again.
    let uid = image["metadata"]["uid"].clone();
    cluster.api.delete("web-n", 30);
    cluster
        .until("it is back", |cluster| {
            let image = cluster.api.pod("web-n").unwrap_or_default();
            !image.is_null() && image["metadata"]["uid"] != uid
        })
        .await;
    cluster.until_phase("web-n", "Running").await;

    // Another pod in the file gets another mirror, once the first has terminated.
    let changed = STATIC.replace("sleep:1", "sleep:2");
    let next = from_file(&changed);
    let next_hash = next[0].metadata.uid.clone().unwrap();
    cluster.world.pods.replace(Source::Files, next);
    cluster
        .until("the image is another", |cluster| {
            let image = cluster.api.pod("web-n").unwrap_or_default();
            image["metadata"]["annotations"]["kubernetes.io/config.mirror"] == json!(next_hash)
                && image["status"]["phase"] == "Running"
        })
        .await;
    cluster.world.pods.replace(Source::Files, Vec::new());
    cluster
        .until("it is gone", |cluster| cluster.api.pod("web-n").is_none())
        .await;
    let log = cluster.world.runtime.log();
    let starts = log.iter().filter(|line| line.starts_with("start"));
    assert_eq!(starts.count(), 2);
}

#[tokio::test]
async fn a_folder_of_manifests_is_followed() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let (path, pods) = (folder.path().to_owned(), world.pods.clone());
    let stop = CancellationToken::new();
    let token = stop.clone();
    let watching = tokio::spawn(async move {
        folder::watch(&path, "n", folder::PERIOD, &pods, token).await;
    });
    std::fs::write(folder.path().join("web.yaml"), STATIC).unwrap();
    let phase = |world: &World| {
        let reports = world.pods.reports().all();
        let report = reports.first();
        report
            .and_then(|report| report.status.phase.clone())
            .unwrap_or_default()
    };
    world
        .until("it runs", |world| phase(world) == "Running")
        .await;
    std::fs::remove_file(folder.path().join("web.yaml")).unwrap();
    world
        .until("it is gone", |world| world.pods.reports().all().is_empty())
        .await;
    stop.cancel();
    watching.await.unwrap();
}
