//! Probes and hooks.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::world::{World, pod};

fn probed(probe: &str, numbers: Value) -> k8s_openapi::api::core::v1::Pod {
    let mut spec = numbers;
    spec["exec"] = json!({"command": [probe]});
    pod(
        "web",
        json!({"containers": [{"name": "a", "image": "sleep:1", probe: spec}]}),
    )
}

#[tokio::test(start_paused = true)]
async fn container_is_ready_when_its_readiness_probe_succeeds() {
    let world = World::new();
    world.runtime.set_exec_exit_code(1);
    world.apply(probed("readinessProbe", json!({})));
    world.until_phase("web", "Running").await;
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert!(!world.container("web", "a").ready);
    let (reason, message) = world.host.notes().pop().unwrap();
    assert_eq!(reason, "Unhealthy");
    assert_eq!(message, "Readiness probe failed: output");
    world.runtime.set_exec_exit_code(0);
    let begun = Instant::now();
    world
        .until("it is ready", |world| world.container("web", "a").ready)
        .await;
    assert!(begun.elapsed() <= Duration::from_secs(10));
    world.runtime.set_exec_exit_code(1);
    let begun = Instant::now();
    world
        .until("it is not", |world| !world.container("web", "a").ready)
        .await;
    assert!(
        begun.elapsed() > Duration::from_secs(20),
        "after three failures"
    );
    assert_eq!(world.container("web", "a").restart_count, 0);
}

#[tokio::test(start_paused = true)]
async fn readiness_is_reported_at_once() {
    let world = World::new();
    let begun = Instant::now();
    world.apply(probed("readinessProbe", json!({})));
    world
        .until("it is ready", |world| world.container("web", "a").ready)
        .await;
    assert!(begun.elapsed() < Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn container_with_failing_liveness_probe_is_replaced() {
    let world = World::new();
    world.runtime.set_exec_exit_code(1);
    let numbers = json!({
        "periodSeconds": 5, "failureThreshold": 2, "terminationGracePeriodSeconds": 3,
    });
    world.apply(probed("livenessProbe", numbers));
    let begun = Instant::now();
    world
        .until("it is replaced", |world| {
            world.container("web", "a").restart_count == 1
        })
        .await;
    assert_eq!(begun.elapsed().as_secs(), 10, "two failures, 5 s apart");
    assert!(world.runtime.log().contains(&"stop a 3s".to_owned()));
    let notes = world.host.notes();
    let killing = notes.iter().find(|(reason, _)| reason == "Killing");
    assert_eq!(
        killing.unwrap().1,
        "Container a failed liveness probe, will be restarted"
    );
}

#[tokio::test(start_paused = true)]
async fn only_the_startup_probe_runs_until_it_succeeds() {
    let world = World::new();
    world.runtime.set_exec_exit_code(1);
    world.apply(pod(
        "web",
        json!({"containers": [{
            "name": "a", "image": "sleep:1",
            "startupProbe": {"exec": {"command": ["up"]}, "failureThreshold": 100, "periodSeconds": 1},
            "livenessProbe": {"exec": {"command": ["alive"]}, "failureThreshold": 1},
            "readinessProbe": {"exec": {"command": ["ready"]}},
        }]}),
    ));
    world.until_phase("web", "Running").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let container = world.container("web", "a");
    assert_eq!((container.started, container.ready), (Some(false), false));
    assert_eq!(container.restart_count, 0);
    assert!(!world.runtime.log().contains(&"exec a alive".to_owned()));
    world.runtime.set_exec_exit_code(0);
    world
        .until("it is ready", |world| world.container("web", "a").ready)
        .await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let log = world.runtime.log();
    assert!(log.contains(&"exec a alive".to_owned()));
    let up = log.iter().rposition(|line| line == "exec a up");
    let ready = log.iter().position(|line| line == "exec a ready");
    assert!(up < ready, "startup is not asked again");
}

#[tokio::test(start_paused = true)]
async fn container_with_failing_startup_probe_is_replaced() {
    let world = World::new();
    world.runtime.set_exec_exit_code(1);
    let numbers = json!({"periodSeconds": 2, "failureThreshold": 3});
    world.apply(probed("startupProbe", numbers));
    let begun = Instant::now();
    world
        .until("it is replaced", |world| {
            world.container("web", "a").restart_count == 1
        })
        .await;
    assert_eq!(begun.elapsed().as_secs(), 6);
}

#[tokio::test(start_paused = true)]
async fn probes_do_not_wait_for_a_slow_pull_of_another_container() {
    let world = World::new();
    world.apply(pod(
        "web",
        json!({
            "initContainers": [{
                "name": "car", "image": "sleep:1", "restartPolicy": "Always",
                "readinessProbe": {"exec": {"command": ["ready"]}},
            }],
            "containers": [{"name": "a", "image": "slow:1"}],
        }),
    ));
    world
        .until("the sidecar is ready", |world| {
            world.container("web", "car").ready
        })
        .await;
    assert!(world.runtime.log().contains(&"pull slow:1".to_owned()));
    assert_eq!(world.phase("web"), "Pending");
}

#[tokio::test(start_paused = true)]
async fn next_container_waits_for_the_sidecars_startup_probe() {
    let world = World::new();
    world.runtime.set_exec_exit_code(1);
    world.apply(pod(
        "web",
        json!({
            "initContainers": [{
                "name": "car", "image": "sleep:1", "restartPolicy": "Always",
                "startupProbe": {"exec": {"command": ["up"]}, "failureThreshold": 100},
            }],
            "containers": [{"name": "a", "image": "sleep:1"}],
        }),
    ));
    tokio::time::sleep(Duration::from_secs(65)).await;
    assert!(!world.runtime.log().contains(&"start a 0".to_owned()));
    world.runtime.set_exec_exit_code(0);
    world.until_phase("web", "Running").await;
    // A new agent knows that the sidecar had started, without a probe.
    let next = world.restarted();
    let mut adopted = pod(
        "web",
        json!({
            "initContainers": [{
                "name": "car", "image": "sleep:1", "restartPolicy": "Always",
                "startupProbe": {"exec": {"command": ["up"]}, "failureThreshold": 100},
            }],
            "containers": [{"name": "a", "image": "sleep:1"}],
        }),
    );
    adopted.status = Some(world.status("web"));
    world.runtime.set_exec_exit_code(1);
    next.apply(adopted);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(next.container("web", "car").started, Some(true));
    assert_eq!(next.container("web", "car").restart_count, 0);
}

#[tokio::test(start_paused = true)]
async fn post_start_hook_delays_the_container_and_its_failure_stops_it() {
    let world = World::new();
    let hooked = |command: Value| {
        pod(
            "web",
            json!({"containers": [{
                "name": "a", "image": "sleep:1",
                "lifecycle": {"postStart": {"exec": {"command": command}}},
            }]}),
        )
    };
    world.apply(hooked(json!(["sleep", "5"])));
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(world.phase("web"), "Pending");
    world.until_phase("web", "Running").await;

    let world = World::new();
    world.runtime.set_exec_exit_code(7);
    world.apply(hooked(json!(["true"])));
    world
        .until("it waits to be started again", |world| {
            let state = world.container("web", "a").state.unwrap_or_default();
            let waiting = state.waiting.unwrap_or_default();
            waiting.reason.as_deref() == Some("CrashLoopBackOff")
        })
        .await;
    let reasons = world.host.reasons();
    assert!(reasons.contains(&"FailedPostStartHook".to_owned()));
    assert!(world.runtime.log().contains(&"ended a 143".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn pre_stop_hook_counts_towards_the_grace_period() {
    for (hook_secs, grace, expected_stop, expected_total) in
        [("10", 30, "stop a 20s", 30), ("60", 30, "stop a 2s", 32)]
    {
        let world = World::new();
        let web = pod(
            "web",
            json!({"containers": [{
                "name": "a", "image": "stubborn:1",
                "lifecycle": {"preStop": {"exec": {"command": ["sleep", hook_secs]}}},
            }]}),
        );
        world.apply(web.clone());
        world.until_phase("web", "Running").await;
        let begun = Instant::now();
        world.delete(&web, grace);
        world.until_finished("web").await;
        let log = world.runtime.log();
        assert!(log.contains(&expected_stop.to_owned()), "{log:?}");
        assert_eq!(begun.elapsed().as_secs(), expected_total);
    }
}

#[tokio::test(start_paused = true)]
async fn terminating_pod_still_runs_its_readiness_probe() {
    let world = World::new();
    let web = pod(
        "web",
        json!({"containers": [{
            "name": "a", "image": "stubborn:1",
            "readinessProbe": {"exec": {"command": ["ready"]}, "periodSeconds": 1, "failureThreshold": 1},
            "livenessProbe": {"exec": {"command": ["alive"]}, "periodSeconds": 1, "failureThreshold": 1},
        }]}),
    );
    world.apply(web.clone());
    world
        .until("it is ready", |world| world.container("web", "a").ready)
        .await;
    world.delete(&web, 60);
    world.runtime.set_exec_exit_code(1);
    world
        .until("it is not ready", |world| {
            !world.container("web", "a").ready
        })
        .await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(world.report("web").unwrap().may_run);
    assert_eq!(world.container("web", "a").restart_count, 0);
    world.until_finished("web").await;
}
