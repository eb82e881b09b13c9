//! Containers keep running across restarts of the runtime or of the agent.

use std::time::Duration;

use plimsoll_runtime::wire::{ContainerConfig, ContainerState, Mount, PodSandboxState};
use plimsoll_testkit::cgroup;

use crate::scene::{Scene, cgroup_of, named, script, until};

/// A container that prints a line for each file added to a directory, and exits after the last.
const COUNTER: &str = "i=0; while :; do test -e /go/$i && echo saw $i && i=$((i+1)); test -e /go/end && exit 7; sleep 0.05; done";

pub(crate) async fn containers_and_sandboxes_survive_a_restart(scene: &Scene) {
    let go = scene.folder().join("go");
    let sandbox = scene.run_pod().await;
    let config = counter(scene);
    let runs = scene.start(&sandbox, &config).await;
    let ended = scene
        .start(&sandbox, &named(script("exit 9"), "ended", 0))
        .await;
    scene.ended(&ended).await;
    let made = scene
        .create(&sandbox, &named(script("exit 0"), "made", 0))
        .await;
    std::fs::write(go.join("0"), "").unwrap();
    scene.has_printed(&sandbox, &config, "saw 0").await;
    let before = [scene.status(&runs).await, scene.status(&ended).await];

    scene.restart_and_meanwhile(async || ()).await;

    assert_eq!(
        [scene.status(&runs).await, scene.status(&ended).await],
        before
    );
    let runtime = scene.runtime();
    let status = runtime.pod_sandbox_status(&sandbox.id).await.unwrap();
    assert_eq!(status.state(), PodSandboxState::SandboxReady);
    assert_eq!(status.metadata, sandbox.config.metadata);
    assert_eq!(status.labels, sandbox.config.labels);
    // The log continues, exec works, and the exit is reported.
    std::fs::write(go.join("1"), "").unwrap();
    scene.has_printed(&sandbox, &config, "saw 1").await;
    assert_eq!(scene.shell(&runs, "echo hello").await, "hello");
    std::fs::write(go.join("end"), "").unwrap();
    assert_eq!(scene.ended(&runs).await.exit_code, 7);
    // A created container can be started, and the sandbox accepts more containers.
    let state = scene.status(&made).await.state();
    assert_eq!(state, ContainerState::ContainerCreated);
    runtime.start_container(&made).await.unwrap();
    assert_eq!(scene.ended(&made).await.exit_code, 0);
    let more = scene
        .start(&sandbox, &named(script("exit 3"), "more", 0))
        .await;
    assert_eq!(scene.ended(&more).await.exit_code, 3);
}

pub(crate) async fn exit_during_an_agent_restart_is_reported(scene: &Scene) {
    let go = scene.folder().join("go");
    let sandbox = scene.run_pod().await;
    let config = counter(scene);
    let id = scene.start(&sandbox, &config).await;
    std::fs::write(go.join("0"), "").unwrap();
    scene.has_printed(&sandbox, &config, "saw 0").await;

    let at = cgroup_of(&sandbox, &id);
    scene
        .restart_and_meanwhile(async || {
            std::fs::write(go.join("end"), "").unwrap();
            until("it has ended", async || {
                cgroup::processes(&at).is_empty().then_some(())
            })
            .await;
        })
        .await;

    let status = scene.ended(&id).await;
    assert_eq!((status.exit_code, status.reason.as_str()), (7, "Error"));
    assert!(status.finished_at >= status.started_at);
    let runtime = scene.runtime();
    runtime.stop_container(&id, Duration::ZERO).await.unwrap();
    runtime.remove_container(&id).await.unwrap();
}

fn counter(scene: &Scene) -> ContainerConfig {
    let go = scene.folder().join("go");
    std::fs::create_dir(&go).unwrap();
    let mut config = script(COUNTER);
    config.mounts = vec![Mount {
        host_path: go.to_string_lossy().into_owned(),
        container_path: "/go".to_owned(),
        ..Mount::default()
    }];
    config
}
