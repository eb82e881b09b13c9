//! Lifecycle, exit codes, reasons and listing of containers.

use std::time::{Duration, Instant};

use plimsoll_runtime::wire::{
    ContainerFilter, ContainerState, ContainerStateValue, ContainerStatus,
};
use plimsoll_testkit::cgroup;

use crate::backend::OPINIONATED;
use crate::sandboxes::now_nanos;
use crate::scene::{Scene, cgroup_of, image, labels, lasting, log_path, named, script};

pub(crate) async fn a_container_is_created_then_runs_then_ends(scene: &Scene) {
    let runtime = scene.runtime();
    let sandbox = scene.run_pod().await;
    let config = lasting();
    let id = scene.create(&sandbox, &config).await;
    let status = scene.status(&id).await;
    assert_eq!(status.state(), ContainerState::ContainerCreated);
    assert_eq!((status.started_at, status.finished_at), (0, 0));

    runtime.start_container(&id).await.unwrap();
    let status = scene.status(&id).await;
    assert_eq!(status.state(), ContainerState::ContainerRunning);
    assert_eq!(
        status.log_path,
        log_path(&sandbox, &config).to_string_lossy()
    );

    let long = Duration::from_secs(30);
    runtime.stop_container(&id, long).await.unwrap();
    let status = scene.status(&id).await;
    assert_eq!(status.state(), ContainerState::ContainerExited);

    runtime.remove_container(&id).await.unwrap();
    let error = runtime.container_status(&id).await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
}

pub(crate) async fn success_is_completed_with_code_zero(scene: &Scene) {
    let id = scene.start_alone(&script("exit 0")).await;
    assert_ended(&scene.ended(&id).await, 0, "Completed");
}

pub(crate) async fn failure_is_an_error_with_its_code(scene: &Scene) {
    let id = scene.start_alone(&script("exit 42")).await;
    assert_ended(&scene.ended(&id).await, 42, "Error");
}

pub(crate) async fn a_process_killed_by_a_signal_has_128_more(scene: &Scene) {
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &script("exec sleep 1000")).await;
    for process in cgroup::processes(&cgroup_of(&sandbox, &id)) {
        cgroup::kill(process);
    }
    assert_ended(&scene.ended(&id).await, 137, "Error");
}

pub(crate) async fn a_program_that_does_not_exist_does_not_start(scene: &Scene) {
    let mut config = lasting();
    config.command = vec!["/bin/no-such-program".to_owned()];
    let sandbox = scene.run_pod().await;
    let id = scene.create(&sandbox, &config).await;
    let error = scene.runtime().start_container(&id).await.unwrap_err();
    assert!(
        error.chain().contains("no-such-program"),
        "{}",
        error.chain()
    );
    let status = scene.status(&id).await;
    assert_ended(&status, 128, "StartError");
    assert!(status.message.contains("no-such-program"), "{status:?}");
}

pub(crate) async fn a_handler_of_the_stop_signal_ends_in_time(scene: &Scene) {
    let config = script("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.1; done");
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &config).await;
    scene.has_printed(&sandbox, &config, "ready").await;
    let took = stop(scene, &id, Duration::from_secs(60)).await;
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_ended(&scene.status(&id).await, 3, "Error");
    scene.has_printed(&sandbox, &config, "bye").await;

    let mut config = script("trap 'exit 4' USR1; echo ready; while :; do sleep 0.1; done");
    config.image = Some(image(OPINIONATED));
    let config = named(config, "own-signal", 0);
    let id = scene.start(&sandbox, &config).await;
    scene.has_printed(&sandbox, &config, "ready").await;
    stop(scene, &id, Duration::from_secs(60)).await;
    assert_ended(&scene.status(&id).await, 4, "Error");
}

pub(crate) async fn a_process_that_ignores_the_stop_signal_is_killed(scene: &Scene) {
    let config = script("trap '' TERM; echo ready; while :; do sleep 0.1; done");
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &config).await;
    scene.has_printed(&sandbox, &config, "ready").await;
    let took = stop(scene, &id, Duration::from_secs(1)).await;
    assert!(took >= Duration::from_secs(1), "{took:?}");
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_ended(&scene.status(&id).await, 137, "Error");
}

pub(crate) async fn stopping_without_grace_kills_at_once(scene: &Scene) {
    let config = script("trap 'exit 3' TERM; echo ready; while :; do sleep 0.1; done");
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &config).await;
    scene.has_printed(&sandbox, &config, "ready").await;
    stop(scene, &id, Duration::ZERO).await;
    assert_ended(&scene.status(&id).await, 137, "Error");
}

pub(crate) async fn stopping_an_exited_container_succeeds(scene: &Scene) {
    let id = scene.start_alone(&script("exit 5")).await;
    scene.ended(&id).await;
    for _ in 0..2 {
        stop(scene, &id, Duration::from_secs(5)).await;
    }
    assert_ended(&scene.status(&id).await, 5, "Error");
    scene.runtime().remove_container(&id).await.unwrap();
    scene.runtime().remove_container(&id).await.unwrap();
    stop(scene, &id, Duration::from_secs(5)).await;
}

pub(crate) async fn removing_ends_a_running_container_but_keeps_its_log(scene: &Scene) {
    let config = script("echo ready; while :; do sleep 1; done");
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &config).await;
    scene.has_printed(&sandbox, &config, "ready").await;
    let cgroup = cgroup_of(&sandbox, &id);
    scene.runtime().remove_container(&id).await.unwrap();
    let error = scene.runtime().container_status(&id).await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    assert_eq!(cgroup::processes(&cgroup), [0; 0]);
    scene.has_printed(&sandbox, &config, "ready").await;
}

pub(crate) async fn lists_are_filtered_by_id_state_sandbox_and_labels(scene: &Scene) {
    let one = scene.run_pod().await;
    let two = scene.run_pod().await;
    let runs = scene.start(&one, &named(lasting(), "runs", 0)).await;
    let made = scene.create(&one, &named(lasting(), "made", 0)).await;
    let other = scene.start(&two, &named(lasting(), "runs", 0)).await;

    let in_one = ContainerFilter {
        pod_sandbox_id: one.id.clone(),
        ..ContainerFilter::default()
    };
    let mut both = vec![runs.clone(), made.clone()];
    both.sort();
    assert_eq!(listed(scene, &in_one).await, both);

    let mut by_state = in_one.clone();
    by_state.state = Some(ContainerStateValue {
        state: ContainerState::ContainerCreated.into(),
    });
    assert_eq!(listed(scene, &by_state).await, [made.as_str()]);

    let mut by_label = in_one.clone();
    by_label.label_selector = labels(&[("io.kubernetes.container.name", "runs")]);
    assert_eq!(listed(scene, &by_label).await, [runs.as_str()]);

    let by_id = ContainerFilter {
        id: other.clone(),
        ..ContainerFilter::default()
    };
    assert_eq!(listed(scene, &by_id).await, [other.as_str()]);
    let all = listed(scene, &ContainerFilter::default()).await;
    assert!([runs, made, other].iter().all(|id| all.contains(id)));
}

pub(crate) async fn container_metadata_labels_and_annotations_are_returned(scene: &Scene) {
    let mut config = named(lasting(), "web", 7);
    config.annotations = labels(&[
        ("io.kubernetes.container.hash", "1a2b3c"),
        ("io.kubernetes.container.ports", r#"[{"containerPort":80}]"#),
    ]);
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &config).await;
    let status = scene.status(&id).await;
    assert_eq!(status.id, id);
    assert_eq!(status.metadata, config.metadata);
    assert_eq!(status.labels, config.labels);
    assert_eq!(status.annotations, config.annotations);
    let filter = ContainerFilter {
        id: id.clone(),
        ..ContainerFilter::default()
    };
    let list = scene.runtime().list_containers(&filter).await.unwrap();
    assert_eq!(list[0].metadata, config.metadata);
    assert_eq!(list[0].labels, config.labels);
    assert_eq!(list[0].annotations, config.annotations);
    assert_eq!(list[0].pod_sandbox_id, sandbox.id);
    assert_eq!(list[0].created_at, status.created_at);
    assert_eq!(list[0].state(), ContainerState::ContainerRunning);
}

pub(crate) async fn attempts_live_side_by_side(scene: &Scene) {
    let sandbox = scene.run_pod().await;
    let first = scene
        .start(&sandbox, &named(script("exit 1"), "web", 0))
        .await;
    scene.ended(&first).await;
    let second = scene.start(&sandbox, &named(lasting(), "web", 1)).await;
    assert_ended(&scene.status(&first).await, 1, "Error");
    let status = scene.status(&second).await;
    assert_eq!(status.state(), ContainerState::ContainerRunning);
    assert_eq!(status.metadata.unwrap().attempt, 1);
}

pub(crate) async fn times_are_in_order(scene: &Scene) {
    let before = now_nanos();
    // containerd records a start at its end, when a short-lived container may have exited.
    let id = scene.start_alone(&lasting()).await;
    stop(scene, &id, Duration::from_secs(30)).await;
    let status = scene.status(&id).await;
    let times = [
        before,
        status.created_at,
        status.started_at,
        status.finished_at,
        now_nanos(),
    ];
    assert!(times.is_sorted(), "{times:?}");
}

pub(crate) async fn many_pods_start_at_once(scene: &Scene) {
    let config = script("echo hello");
    let pods = (0..8).map(|_| scene.output(&config));
    for printed in futures::future::join_all(pods).await {
        assert_eq!(printed, "hello");
    }
}

pub(crate) async fn two_may_stop_one_container(scene: &Scene) {
    let config = script("trap '' TERM; echo ready; while :; do sleep 0.1; done");
    let sandbox = scene.run_pod().await;
    let id = scene.start(&sandbox, &config).await;
    scene.has_printed(&sandbox, &config, "ready").await;
    // The second call has a shorter grace period.
    let patient = stop(scene, &id, Duration::from_secs(60));
    let hasty = stop(scene, &id, Duration::from_secs(1));
    let (patient, hasty) = futures::join!(patient, hasty);
    assert!(
        patient.max(hasty) < Duration::from_secs(30),
        "{patient:?} {hasty:?}"
    );
    assert_ended(&scene.status(&id).await, 137, "Error");
}

pub(crate) async fn unknown_containers_are_not_found(scene: &Scene) {
    let runtime = scene.runtime();
    let error = runtime.container_status("0badc0de").await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    let error = runtime.start_container("0badc0de").await.unwrap_err();
    assert!(error.chain().contains("0badc0de"), "{}", error.chain());
    let command = ["true".to_owned()];
    let ran = runtime.exec_sync("0badc0de", &command, Duration::ZERO);
    assert!(ran.await.unwrap_err().is_not_found());
    runtime
        .stop_container("0badc0de", Duration::ZERO)
        .await
        .unwrap();
    runtime.remove_container("0badc0de").await.unwrap();
}

fn assert_ended(status: &ContainerStatus, code: i32, reason: &str) {
    assert_eq!(status.state(), ContainerState::ContainerExited);
    let ended = (status.exit_code, status.reason.as_str());
    assert_eq!(ended, (code, reason), "{}", status.message);
}

async fn stop(scene: &Scene, id: &str, grace: Duration) -> Duration {
    let begun = Instant::now();
    scene.runtime().stop_container(id, grace).await.unwrap();
    begun.elapsed()
}

async fn listed(scene: &Scene, filter: &ContainerFilter) -> Vec<String> {
    let list = scene.runtime().list_containers(filter).await.unwrap();
    let mut ids: Vec<String> = list.into_iter().map(|item| item.id).collect();
    ids.sort();
    ids
}
