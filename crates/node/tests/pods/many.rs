//! Pods beside each other: admission, names, orphans, resources that change.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::resources::Bytes;
use plimsoll_node::pods::host::{MemoryUsage, Resource};
use plimsoll_node::pods::set::Source;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::world::{World, pod, simple, uid};

fn requesting(name: &str, requests: Value, limits: Value) -> Pod {
    pod(
        name,
        json!({"containers": [{
            "name": "a", "image": "sleep:1",
            "resources": {"requests": requests, "limits": limits},
        }]}),
    )
}

fn condition(world: &World, name: &str, kind: &str) -> Option<(String, String)> {
    let conditions = world.status(name).conditions.unwrap_or_default();
    let found = conditions.into_iter().find(|c| c.type_ == kind)?;
    Some((
        found.reason.unwrap_or_default(),
        found.message.unwrap_or_default(),
    ))
}

#[tokio::test(start_paused = true)]
async fn pod_that_does_not_fit_fails_and_reserves_nothing() {
    let world = World::new();
    world.apply(requesting("big", json!({"cpu": "3"}), json!({})));
    world.until_phase("big", "Running").await;
    world.apply(requesting("late", json!({"cpu": "2"}), json!({})));
    world.until_finished("late").await;
    let status = world.status("late");
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    assert_eq!(status.reason.as_deref(), Some("OutOfcpu"));
    assert_eq!(
        status.message.as_deref(),
        Some(
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000"
        )
    );
    assert_eq!(status.container_statuses, None);
    // A rejected pod uses no resources.
    world.apply(requesting("small", json!({"cpu": "1"}), json!({})));
    world.until_phase("small", "Running").await;
}

#[tokio::test(start_paused = true)]
async fn critical_pod_waits_for_preempted_pods_to_end() {
    let world = World::new();
    world.apply(requesting("small", json!({"cpu": "1"}), json!({})));
    world.apply(requesting("big", json!({"cpu": "3"}), json!({})));
    world.until_phase("small", "Running").await;
    world.until_phase("big", "Running").await;
    let mut critical = requesting("critical", json!({"cpu": "2"}), json!({}));
    if let Some(spec) = &mut critical.spec {
        spec.priority = Some(2_000_000_000);
    }
    world.apply(critical);
    world.until_phase("critical", "Running").await;
    let status = world.status("big");
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    assert_eq!(status.reason.as_deref(), Some("Preempting"));
    assert_eq!(
        status.message.as_deref(),
        Some("Preempted in order to admit critical pod")
    );
    let condition = condition(&world, "big", "DisruptionTarget");
    assert_eq!(
        condition,
        Some((
            "TerminationByKubelet".to_owned(),
            "Pod was preempted by Kubelet to accommodate a critical pod.".to_owned()
        ))
    );
    assert_eq!(world.status("small").phase.as_deref(), Some("Running"));
}

#[tokio::test(start_paused = true)]
async fn finished_pod_keeps_its_status_after_a_restart() {
    let world = World::new();
    world.apply(simple("job", "exit-3:1", "Never"));
    world.until_finished("job").await;
    let known = world.status("job");
    world.runtime.collect_garbage();
    let next = world.restarted();
    let mut again = simple("job", "exit-3:1", "Never");
    again.status = Some(known.clone());
    next.apply(again);
    next.until_finished("job").await;
    assert_eq!(next.status("job"), known);
}

#[tokio::test(start_paused = true)]
async fn changes_without_an_event_are_found_within_a_second() {
    let world = World::with_silent_runtime();
    world.apply(simple("web", "sleep:1", "Always"));
    world.until_phase("web", "Running").await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    let begun = Instant::now();
    world.runtime.end("a", 0);
    world
        .until("it runs again", |world| {
            world.container("web", "a").restart_count == 1
        })
        .await;
    assert!(begun.elapsed() <= Duration::from_millis(1100));
}

#[tokio::test(start_paused = true)]
async fn unknown_pods_are_stopped_after_all_sources_are_known() {
    let world = World::new();
    world.apply(simple("web", "sleep:1", "Always"));
    world.until_phase("web", "Running").await;
    let next = world.restarted();
    next.pods.replace(Source::Files, Vec::new());
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(!world.runtime.log().contains(&"ended a 143".to_owned()));
    next.pods.replace(Source::Api, Vec::new());
    next.until("it is stopped", |next| {
        next.runtime.log().contains(&"ended a 143".to_owned())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn leftovers_of_unknown_pods_are_removed() {
    let world = World::new();
    let known = simple("web", "sleep:1", "Always");
    let left = [uid("web"), "gone".to_owned()];
    world.host.left.lock().unwrap().extend(left.clone());
    world.apply(known);
    world.until_phase("web", "Running").await;
    let is_left = |world: &World, uid: &str| world.host.left.lock().unwrap().contains(uid);
    assert!(is_left(&world, "gone"), "not all sources are known");
    world.pods.replace(Source::Files, Vec::new());
    let pods = vec![simple("web", "sleep:1", "Always")];
    world.pods.replace(Source::Api, pods);
    world
        .until("it is gone", |world| !is_left(world, "gone"))
        .await;
    assert!(is_left(&world, &left[0]));
}

#[tokio::test(start_paused = true)]
async fn a_static_pod_waits_for_the_end_of_its_predecessor() {
    let world = World::new();
    let of_file = |uid: &str| {
        let mut pod = simple("web", "stubborn:1", "Always");
        pod.metadata.uid = Some(uid.to_owned());
        let source = ("kubernetes.io/config.source".to_owned(), "file".to_owned());
        pod.metadata.annotations = Some([source].into());
        pod
    };
    world.pods.replace(Source::Files, vec![of_file("one")]);
    let phase = |world: &World, uid: &str| {
        let report = world.pods.reports().get(uid);
        report
            .and_then(|report| report.status.phase.clone())
            .unwrap_or_default()
    };
    world
        .until("the first runs", |world| phase(world, "one") == "Running")
        .await;
    world.pods.replace(Source::Files, vec![of_file("two")]);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(phase(&world, "two"), "");
    world
        .until("the second runs", |world| phase(world, "two") == "Running")
        .await;
    assert_eq!(phase(&world, "one"), "");
    // The same pod is deleted and created again while it terminates.
    world.pods.replace(Source::Files, Vec::new());
    world.pods.replace(Source::Files, vec![of_file("two")]);
    world
        .until("it runs again", |world| {
            let log = world.runtime.log();
            let starts = log.iter().filter(|line| line.starts_with("start"));
            starts.count() == 3 && phase(world, "two") == "Running"
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn resources_change_in_place() {
    let world = World::new();
    let (small, large) = (
        json!({"cpu": "1", "memory": "1Gi"}),
        json!({"cpu": "2", "memory": "2Gi"}),
    );
    world.apply(requesting("web", small.clone(), small));
    world.until_phase("web", "Running").await;
    let mut resized = requesting("web", large.clone(), large);
    resized.metadata.generation = Some(2);
    world.apply(resized);
    world
        .until("it is resized", |world| {
            let container = world.container("web", "a");
            let actual = container.resources.unwrap_or_default().limits;
            actual.is_some_and(|limits| limits["cpu"].0 == "2" && limits["memory"].0 == "2Gi")
                && condition(world, "web", "PodResizeInProgress").is_none()
        })
        .await;
    assert_eq!(world.container("web", "a").restart_count, 0);
    let log = world.runtime.log();
    let updates: Vec<&String> = log.iter().filter(|l| l.starts_with("update")).collect();
    assert_eq!(
        updates,
        [
            "update a shares=1024 quota=100000 memory=2147483648",
            "update a shares=2048 quota=200000 memory=2147483648",
        ]
    );
    assert_eq!(
        *world.host.resized.lock().unwrap(),
        [Resource::Memory, Resource::Cpu]
    );
    let reasons = world.host.reasons();
    assert!(reasons.contains(&"ResizeStarted".to_owned()));
    assert!(reasons.contains(&"ResizeCompleted".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn resize_policy_restarts_the_container_for_new_resources() {
    let world = World::new();
    let with = |memory: &str| {
        pod(
            "web",
            json!({"containers": [{
                "name": "a", "image": "sleep:1",
                "resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}],
                "resources": {"requests": {"memory": memory}, "limits": {"memory": memory}},
            }]}),
        )
    };
    world.apply(with("1Gi"));
    world.until_phase("web", "Running").await;
    world.apply(with("2Gi"));
    world
        .until("it is restarted", |world| {
            world.container("web", "a").restart_count == 1 && world.container("web", "a").ready
        })
        .await;
    let notes = world.host.notes();
    let expected = (
        "Killing".to_owned(),
        "Container a resize requires restart".to_owned(),
    );
    assert!(notes.contains(&expected), "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_resize_waits_for_room() {
    let world = World::new();
    let other = requesting("other", json!({"cpu": "3"}), json!({}));
    world.apply(other.clone());
    world.apply(requesting("web", json!({"cpu": "1"}), json!({})));
    world.until_phase("web", "Running").await;
    world.until_phase("other", "Running").await;
    let mut resized = requesting("web", json!({"cpu": "2"}), json!({}));
    resized.metadata.generation = Some(2);
    world.apply(resized);
    world
        .until("it is deferred", |world| {
            condition(world, "web", "PodResizePending").is_some()
        })
        .await;
    assert_eq!(
        condition(&world, "web", "PodResizePending").unwrap(),
        (
            "Deferred".to_owned(),
            "Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000"
                .to_owned()
        )
    );
    let allocated = world.container("web", "a").allocated_resources.unwrap();
    assert_eq!(allocated["cpu"].0, "1");
    world.delete(&other, 0);
    world.until_finished("other").await;
    world.pods.remove(&uid("other"));
    world
        .until("it is resized", |world| {
            let allocated = world.container("web", "a").allocated_resources;
            allocated.is_some_and(|allocated| allocated["cpu"].0 == "2")
                && condition(world, "web", "PodResizePending").is_none()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn resize_survives_a_restart() {
    let world = World::new();
    let other = requesting("other", json!({"cpu": "3"}), json!({}));
    world.apply(other.clone());
    world.apply(requesting("web", json!({"cpu": "1"}), json!({})));
    world.until_phase("web", "Running").await;
    let mut resized = requesting("web", json!({"cpu": "2"}), json!({}));
    world.apply(resized.clone());
    world
        .until("it is deferred", |world| {
            condition(world, "web", "PodResizePending").is_some()
        })
        .await;
    resized.status = Some(world.status("web"));
    let next = world.restarted();
    // The other pod has been removed meanwhile, so that there is room.
    next.pods.replace(Source::Api, vec![resized]);
    next.until("it is resized", |next| {
        let allocated = next.container("web", "a").allocated_resources;
        allocated.is_some_and(|allocated| allocated["cpu"].0 == "2")
    })
    .await;
    assert_eq!(next.container("web", "a").restart_count, 0);
}

#[tokio::test(start_paused = true)]
async fn memory_limit_does_not_shrink_below_usage() {
    let world = World::new();
    let with = |memory: &str| requesting("web", json!({}), json!({"memory": memory}));
    world.apply(with("2Gi"));
    world.until_phase("web", "Running").await;
    *world.host.memory.lock().unwrap() = MemoryUsage {
        pod: Some(Bytes(1 << 30)),
        containers: [("a".to_owned(), Bytes(1 << 30))].into(),
    };
    world.apply(with("1Gi"));
    world
        .until("it fails", |world| {
            condition(world, "web", "PodResizeInProgress")
                .is_some_and(|(reason, _)| reason == "Error")
        })
        .await;
    let (_, message) = condition(&world, "web", "PodResizeInProgress").unwrap();
    assert!(
        message.contains("below current usage (1073741824)"),
        "{message}"
    );
    world.host.memory.lock().unwrap().containers = [("a".to_owned(), Bytes(1 << 20))].into();
    world.host.memory.lock().unwrap().pod = Some(Bytes(1 << 20));
    world
        .until("it is resized", |world| {
            condition(world, "web", "PodResizeInProgress").is_none()
        })
        .await;
    let limits = world
        .container("web", "a")
        .resources
        .unwrap()
        .limits
        .unwrap();
    assert_eq!(limits["memory"].0, "1Gi");
}

#[tokio::test(start_paused = true)]
async fn ten_idle_pods_cause_no_work() {
    let world = World::new();
    for index in 0..10 {
        world.apply(simple(&format!("web-{index}"), "sleep:1", "Always"));
    }
    for index in 0..10 {
        world.until_phase(&format!("web-{index}"), "Running").await;
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    let before = world.runtime.calls();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let per_pod_and_minute = (world.runtime.calls() - before) / 100;
    assert!(per_pod_and_minute <= 6, "{per_pod_and_minute}");
}
