//! Pods that ask for devices.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ResourceHealth, ResourceStatus};
use plimsoll_node::pods::admission::Rejection;

use crate::world::{World, simple, uid};

fn health(health: &str) -> ResourceStatus {
    ResourceStatus {
        name: "example.com/gpu".to_owned(),
        resources: Some(vec![ResourceHealth {
            resource_id: "a".to_owned(),
            health: Some(health.to_owned()),
            message: None,
        }]),
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_gets_no_devices_fails_before_anything_of_it_runs() {
    let world = World::new();
    *world.host.no_devices.lock().unwrap() = Some(Rejection::of_devices("nothing is free"));
    world.apply(simple("web", "sleep:1", "Always"));
    world.until_finished("web").await;
    let status = world.status("web");
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    assert_eq!(status.reason.as_deref(), Some("UnexpectedAdmissionError"));
    assert_eq!(
        status.message.as_deref(),
        Some("Pod was rejected: Allocate failed due to nothing is free, which is unexpected")
    );
    assert_eq!(world.host.reasons(), ["UnexpectedAdmissionError"]);
    let log = world.runtime.log();
    assert!(
        !log.iter().any(|line| line.starts_with("start ")),
        "{log:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_runs_keeps_its_devices_when_the_agent_restarts() {
    let world = World::new();
    world.apply(simple("web", "sleep:1", "Always"));
    world.until_phase("web", "Running").await;
    let world = world.restarted();
    *world.host.no_devices.lock().unwrap() = Some(Rejection::of_devices("no plugin is back"));
    world.apply(simple("web", "sleep:1", "Always"));
    world.until_phase("web", "Running").await;
    assert_eq!(world.status("web").reason, None);
}

#[tokio::test(start_paused = true)]
async fn the_health_of_devices_is_in_the_status_and_stays_when_they_are_given_back() {
    let world = World::new();
    *world.host.devices.lock().unwrap() = vec![health("Healthy")];
    world.apply(simple("web", "sleep:1", "Always"));
    world.until_phase("web", "Running").await;
    let shown = |world: &World| world.container("web", "a").allocated_resources_status;
    assert_eq!(shown(&world), Some(vec![health("Healthy")]));
    *world.host.devices.lock().unwrap() = vec![health("Unhealthy")];
    world.pods.wake(&uid("web"));
    let unhealthy = Some(vec![health("Unhealthy")]);
    world
        .until("it is shown", |world| shown(world) == unhealthy)
        .await;
    world.host.devices.lock().unwrap().clear();
    world.pods.wake(&uid("web"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(shown(&world), unhealthy);
}
