//! Pods from admission to their last status.

use serde_json::json;

use crate::world::{World, pod, simple};

#[tokio::test(start_paused = true)]
async fn a_pod_runs_at_once() {
    let world = World::new();
    let begun = tokio::time::Instant::now();
    world.apply(simple("web", "sleep:1", "Always"));
    world.until_phase("web", "Running").await;
    assert!(begun.elapsed().as_millis() < 50, "{:?}", begun.elapsed());
    let status = world.status("web");
    assert_eq!(status.pod_ip.as_deref(), Some("10.0.0.1"));
    assert_eq!(status.host_ip.as_deref(), Some("192.168.0.1"));
    let container = world.container("web", "a");
    assert!(container.ready && container.started == Some(true));
    assert_eq!(
        container.container_id.as_deref(),
        Some("fake://container-2")
    );
    assert_eq!(
        world.host.reasons(),
        ["Pulling", "Pulled", "Created", "Started"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_is_stopped_with_its_grace_and_cleaned_up() {
    let world = World::new();
    let web = simple("web", "stubborn:1", "Always");
    world.apply(web.clone());
    world.until_phase("web", "Running").await;
    world.delete(&web, 7);
    world.until_finished("web").await;
    let container = world.container("web", "a");
    let ended = container.state.unwrap().terminated.unwrap();
    assert_eq!(ended.exit_code, 137);
    assert_eq!(container.restart_count, 0);
    assert_eq!(world.phase("web"), "Failed");
    assert_eq!(world.host.cleaned(), ["web"]);
    assert!(world.runtime.log().contains(&"stop a 7s".to_owned()));
    world.pods.remove("uid-web");
    assert!(world.report("web").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_done_is_over() {
    for (image, policy, phase) in [
        ("exit-0:1", "Never", "Succeeded"),
        ("exit-3:1", "Never", "Failed"),
        ("exit-0:1", "OnFailure", "Succeeded"),
        ("run-5-exit-0:1", "OnFailure", "Succeeded"),
    ] {
        let world = World::new();
        world.apply(simple("job", image, policy));
        world.until_finished("job").await;
        assert_eq!(world.phase("job"), phase, "{image} {policy}");
        let starts = world.runtime.log();
        let starts = starts.iter().filter(|line| line.starts_with("start"));
        assert_eq!(starts.count(), 1, "{image} {policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn init_containers_start_first_and_sidecars_stop_last() {
    let world = World::new();
    let web = pod(
        "web",
        json!({
            "restartPolicy": "Always",
            "initContainers": [
                {"name": "one", "image": "run-2-exit-0:1"},
                {"name": "car", "image": "sleep:1", "restartPolicy": "Always"},
                {"name": "two", "image": "exit-0:1"},
                {"name": "van", "image": "sleep:1", "restartPolicy": "Always"},
            ],
            "containers": [{"name": "a", "image": "sleep:1"}],
        }),
    );
    world.apply(web.clone());
    world.until_phase("web", "Running").await;
    let starts: Vec<String> = world
        .runtime
        .log()
        .into_iter()
        .filter(|line| line.starts_with("start"))
        .collect();
    assert_eq!(
        starts,
        [
            "start one 0",
            "start car 0",
            "start two 0",
            "start van 0",
            "start a 0"
        ]
    );
    world.delete(&web, 5);
    world.until_finished("web").await;
    let ends: Vec<String> = world
        .runtime
        .log()
        .into_iter()
        .filter(|line| line.starts_with("ended"))
        .collect();
    assert_eq!(ends[2..], ["ended a 143", "ended van 143", "ended car 143"]);
}
