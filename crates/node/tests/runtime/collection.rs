//! Garbage collection of dead containers and unused images, and rotation of logs.
//!
//! Garbage collection affects everything in a runtime, so these cases run alone.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use plimsoll_core::cgroup::Version;
use plimsoll_core::duration;
use plimsoll_core::eviction::container_gc::{self, Scope};
use plimsoll_core::eviction::image_gc;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::resources::Bytes;
use plimsoll_node::eviction::reclaim::containers::{Found, Run};
use plimsoll_node::eviction::reclaim::images::{Images, Warning};
use plimsoll_node::eviction::reclaim::logs;
use plimsoll_node::pods::reports::Report;
use plimsoll_node::stats::metrics::KubeletMetrics;
use plimsoll_runtime::wire::{ContainerConfig, ContainerFilter, PodSandboxFilter};
use plimsoll_testkit::registry::Registry;
use serde_json::json;

use crate::backend::BUSYBOX;
use crate::images::{pull, small, status};
use crate::scene::{Sandbox, Scene, lasting, log_path, named, script, until};

/// A pod as its worker reports it.
fn report(sandbox: &Sandbox, is_finished: bool, reason: Option<&str>) -> Report {
    let uid = &sandbox.config.metadata.as_ref().unwrap().uid;
    let pod: Pod = serde_json::from_value(json!({ "metadata": { "uid": uid } })).unwrap();
    let status = PodStatus {
        reason: reason.map(str::to_owned),
        ..PodStatus::default()
    };
    Report {
        pod: Arc::new(pod),
        status: Arc::new(status),
        may_run: !is_finished,
        is_finished,
        version: 0,
    }
}

/// A container with the labels of its pod, as agents set them.
fn of_pod(sandbox: &Sandbox, mut config: ContainerConfig) -> ContainerConfig {
    let uid = sandbox.config.metadata.as_ref().unwrap().uid.clone();
    config
        .labels
        .insert("io.kubernetes.pod.uid".to_owned(), uid);
    config
}

async fn found(scene: &Scene) -> Found {
    let found = Found::new(&*scene.runtime(), &scene.folder().join("logs")).await;
    found.unwrap_or_else(|error| panic!("{}", error.chain()))
}

fn log_links(scene: &Scene) -> PathBuf {
    let folder = scene.folder().join("links");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

async fn collect(scene: &Scene, found: Found, scope: Scope, pods: &[Report]) {
    let run = Run {
        scope,
        policy: container_gc::Policy::default(),
        pods,
        are_all_pods_known: true,
        log_links: &log_links(scene),
        now: now(),
    };
    found.collect(&*scene.runtime(), run).await;
}

/// The names and attempts of all containers, and how many sandboxes there are.
async fn left(scene: &Scene) -> (Vec<(String, u32)>, usize) {
    let runtime = scene.runtime();
    let containers = runtime.list_containers(&ContainerFilter::default()).await;
    let metadata = containers.unwrap().into_iter().map(|c| c.metadata.unwrap());
    let mut left: Vec<_> = metadata.map(|m| (m.name, m.attempt)).collect();
    left.sort();
    let filter = PodSandboxFilter::default();
    let sandboxes = runtime.list_pod_sandboxes(&filter).await.unwrap();
    (left, sandboxes.len())
}

pub(crate) async fn newest_dead_container_stays_until_its_pod_is_deleted(scene: &Scene) {
    let sandbox = scene.run_pod().await;
    for attempt in 0..3 {
        let dead = named(script("exit 1"), "dead", attempt);
        let id = scene.start(&sandbox, &of_pod(&sandbox, dead)).await;
        scene.ended(&id).await;
    }
    let alive = of_pod(&sandbox, named(lasting(), "alive", 0));
    scene.start(&sandbox, &alive).await;
    let runtime = scene.runtime();
    let log_links = log_links(scene);
    let run = async |scope, pods: &[Report]| {
        collect(scene, found(scene).await, scope, pods).await;
        left(scene).await
    };
    let (alive, dead) = (("alive".to_owned(), 0), ("dead".to_owned(), 2));
    let living = [report(&sandbox, false, None)];
    for scope in [Scope::Periodic, Scope::AllUnused] {
        let (left, _) = run(scope, &living).await;
        assert_eq!(left, [alive.clone(), dead.clone()], "{scope:?}");
    }

    // It has exited; its object still exists, so that its log can be read.
    runtime.stop_pod_sandbox(&sandbox.id).await.unwrap();
    let ended = [report(&sandbox, true, None)];
    let (left, sandboxes) = run(Scope::Periodic, &ended).await;
    assert_eq!((left, sandboxes), (vec![alive, dead], 1));
    let (left, sandboxes) = run(Scope::AllUnused, &ended).await;
    assert_eq!((left, sandboxes), (Vec::new(), 0));
    let log = log_path(&sandbox, &named(script(""), "dead", 2));
    assert!(log.exists(), "{}", log.display());
    let link = log_links.join("dead.log");
    std::os::unix::fs::symlink(&log, &link).unwrap();

    // An evicted pod keeps nothing.
    let evicted = [report(&sandbox, true, Some("Evicted"))];
    run(Scope::Periodic, &evicted).await;
    assert!(!log.exists(), "{}", log.display());
    assert!(!link.is_symlink(), "{}", link.display());
}

/// Both happened: the log of a container that had just exited was removed.
pub(crate) async fn pod_that_starts_during_a_collection_keeps_dead_containers(scene: &Scene) {
    let before = found(scene).await;
    let sandbox = scene.run_pod().await;
    let ended = of_pod(&sandbox, named(script("exit 1"), "main", 0));
    let id = scene.start(&sandbox, &ended).await;
    scene.ended(&id).await;
    collect(scene, before, Scope::Periodic, &[]).await;
    let ended = ("main".to_owned(), 0);
    assert_eq!(left(scene).await, (vec![ended.clone()], 1));

    // Its successor exists but does not run yet.
    let next = of_pod(&sandbox, named(lasting(), "main", 1));
    scene.create(&sandbox, &next).await;
    let living = [report(&sandbox, false, None)];
    collect(scene, found(scene).await, Scope::Periodic, &living).await;
    let next = ("main".to_owned(), 1);
    assert_eq!(left(scene).await, (vec![ended, next], 1));
}

pub(crate) async fn unused_images_are_deleted_for_age_and_for_disk_space(scene: &Scene) {
    scene.start_alone(&lasting()).await;
    let registry = Registry::start();
    let unused = registry.push("unused", "v1", &small("unused"));
    pull(scene, &unused).await.unwrap();
    let runtime = scene.runtime();
    let minutes = |count: i64| duration::Duration::from_secs(60 * count);
    let policy = image_gc::Policy {
        high_threshold_percent: 100,
        low_threshold_percent: 80,
        min_age: minutes(2),
        max_age: minutes(60),
    };
    let began = now();
    let after = |count: i64| began + minutes(count);
    let is_there = async |name: &str| status(scene, name).await.is_some();

    let metrics = Arc::new(KubeletMetrics::new("n1", Version::V2));
    let mut images = Images::new(policy, began, Arc::clone(&metrics));
    images.detect(&*runtime, began).await.unwrap();
    images.collect_unused(&*runtime, after(1)).await.unwrap();
    assert!(is_there(&unused).await, "it is too young");
    images.collect(&*runtime, after(2)).await.unwrap();
    assert!(is_there(&unused).await, "it is not old, and there is room");
    let freed = images.collect_unused(&*runtime, after(3)).await.unwrap();
    assert!(freed > Bytes::ZERO);
    assert!(!is_there(&unused).await);
    assert!(is_there(BUSYBOX).await, "a container runs from it");

    pull(scene, &unused).await.unwrap();
    let warning = images.collect(&*runtime, after(61)).await.unwrap();
    assert_eq!(warning, None);
    assert!(!is_there(&unused).await, "unused for an hour");

    // Removing images never frees enough.
    pull(scene, &unused).await.unwrap();
    let greedy = image_gc::Policy {
        high_threshold_percent: 1,
        low_threshold_percent: 0,
        max_age: minutes(0),
        ..policy
    };
    let mut images = Images::new(greedy, began, metrics);
    images.detect(&*runtime, began).await.unwrap();
    let warning = images.collect(&*runtime, after(5)).await.unwrap();
    let left = (is_there(&unused).await, is_there(BUSYBOX).await);
    scene.restock();
    assert_eq!(left, (false, true), "a container runs from busybox");
    let Some(Warning { reason, message }) = warning else {
        panic!("a disk is never empty");
    };
    assert_eq!(reason, "FreeDiskSpaceFailed");
    assert!(message.starts_with("Insufficient free disk space on the node's image filesystem ("));
}

pub(crate) async fn full_logs_are_rotated_and_continue(scene: &Scene) {
    let talks = "i=0; while :; do i=$((i+1)); echo line $i; sleep 0.02; done";
    let config = script(talks);
    let sandbox = scene.run_pod().await;
    scene.start(&sandbox, &config).await;
    let log = log_path(&sandbox, &config);
    let policy = logs::Policy {
        max_size: Bytes(500),
        max_files: 3,
    };
    let runtime = scene.runtime();
    let began = now();
    for round in 0..4 {
        until("the log is full", async || {
            let size = std::fs::metadata(&log).map_or(0, |found| found.len());
            (size > 500).then_some(())
        })
        .await;
        let at = began + duration::Duration::from_secs(round);
        let done = logs::rotate_all(&*runtime, policy, at).await;
        done.unwrap_or_else(|error| panic!("{}", error.chain()));
    }
    scene.has_printed(&sandbox, &config, "0").await;
    let entries = std::fs::read_dir(log.parent().unwrap()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    let shape: Vec<bool> = names.iter().map(|name| name.ends_with(".gz")).collect();
    assert_eq!(shape, [false, true, false], "{names:?}");
    assert_eq!(names[0], "0.log");
    // No line is lost between the last two.
    let read = |name: &String| std::fs::read_to_string(log.with_file_name(name)).unwrap();
    let text = read(&names[2]) + &read(&names[0]);
    let numbers = text.lines().map(|line| line.rsplit(' ').next().unwrap());
    let numbers: Vec<u32> = numbers.map(|number| number.parse().unwrap()).collect();
    let expected: Vec<u32> = (numbers[0]..).take(numbers.len()).collect();
    assert_eq!(numbers, expected);
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let since: Duration = since.unwrap();
    Timestamp::from_nanos(i64::try_from(since.as_nanos()).unwrap())
}
