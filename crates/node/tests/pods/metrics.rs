//! What the agent counts of pods.

use std::path::Path;
use std::time::Duration;

use plimsoll_core::eviction::summary::Summary;
use plimsoll_core::object::timestamp::Timestamp;
use serde_json::json;

use crate::world::{World, pod, simple};

/// The value of a sample; `None` if there is none of that name and labels.
fn sample(world: &World, name: &str) -> Option<f64> {
    let proc_self = Path::new("/nowhere");
    let mut text = world
        .metrics
        .text(&Summary::default(), proc_self, Timestamp::from_secs(0));
    text.push_str(&world.metrics.probes_text());
    let line = text.lines().find(|line| {
        let (found, _) = line.rsplit_once(' ').unwrap_or_default();
        found == name
    });
    line.and_then(|line| line.rsplit_once(' ')?.1.parse().ok())
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_runs_and_ends_is_counted() {
    let world = World::new();
    for name in [
        "kubelet_pod_start_duration_seconds_count",
        "kubelet_pod_start_sli_duration_seconds_count",
        "kubelet_pod_start_total_duration_seconds_count",
        "kubelet_pod_worker_start_duration_seconds_count",
    ] {
        assert_eq!(sample(&world, name), Some(0.0), "{name}");
    }
    world.apply(pod(
        "web",
        json!({
            "restartPolicy": "Never",
            "initContainers": [{"name": "init", "image": "exit-0:1"}],
            "containers": [{"name": "a", "image": "sleep:1"}],
        }),
    ));
    world.until_phase("web", "Running").await;
    world.runtime.end("a", 3);
    world.until_phase("web", "Failed").await;
    let init = "{container_type=\"init_container\"";
    let app = "{container_type=\"container\"";
    for (name, count) in [
        ("kubelet_pod_start_duration_seconds_count".to_owned(), 1.0),
        (
            "kubelet_pod_start_sli_duration_seconds_count".to_owned(),
            1.0,
        ),
        (
            "kubelet_pod_worker_start_duration_seconds_count".to_owned(),
            1.0,
        ),
        (
            "kubelet_pod_worker_duration_seconds_count{operation_type=\"create\"}".to_owned(),
            1.0,
        ),
        (format!("kubelet_started_containers_total{init}}}"), 1.0),
        (format!("kubelet_started_containers_total{app}}}"), 1.0),
        (
            format!("kubelet_terminated_containers_total{app},exit_code=\"3\",reason=\"Error\"}}"),
            1.0,
        ),
    ] {
        assert_eq!(sample(&world, &name), Some(count), "{name}");
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let syncs = "kubelet_pod_worker_duration_seconds_count{operation_type=\"sync\"}";
    assert!(sample(&world, syncs).is_some_and(|count| count > 1.0));
    let listed = sample(&world, "kubelet_pleg_relist_interval_seconds_count");
    assert!(listed.is_some_and(|count| count > 0.0), "{listed:?}");
    assert!(sample(&world, "kubelet_pleg_last_seen_seconds") >= Some(1_700_000_000.0));
}

#[tokio::test(start_paused = true)]
async fn a_container_that_cannot_start_is_counted_with_its_reason() {
    let world = World::new();
    world.runtime.fail("create_container", 1);
    world.apply(simple("web", "sleep:1", "Always"));
    world.until_phase("web", "Running").await;
    let failed = "kubelet_started_containers_errors_total{container_type=\"container\",\
                  code=\"CreateContainerError\"}";
    assert_eq!(sample(&world, failed), Some(1.0));
    let started = "kubelet_started_containers_total{container_type=\"container\"}";
    assert_eq!(sample(&world, started), Some(2.0));
}

#[tokio::test(start_paused = true)]
async fn probes_are_counted_until_their_pod_is_over() {
    let world = World::new();
    let probed = pod(
        "web",
        json!({"containers": [{
            "name": "a", "image": "sleep:1", "readinessProbe": {"exec": {"command": ["x"]}},
        }]}),
    );
    world.apply(probed.clone());
    world.until_phase("web", "Running").await;
    tokio::time::sleep(Duration::from_secs(25)).await;
    let labels = "container=\"a\",pod=\"web\",namespace=\"default\"";
    let total = format!(
        "prober_probe_total{{probe_type=\"Readiness\",result=\"successful\",{labels},\
         pod_uid=\"uid-web\"}}"
    );
    assert!(sample(&world, &total) >= Some(2.0));
    let timed = format!("prober_probe_duration_seconds_count{{probe_type=\"Readiness\",{labels}}}");
    assert_eq!(sample(&world, &timed), sample(&world, &total));
    world.delete(&probed, 1);
    world.until_finished("web").await;
    assert_eq!(sample(&world, &total), None);
}
