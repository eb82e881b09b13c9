//! Pods when the runtime, the API server or the agent fails.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::eviction::local_storage::LocalLimit;
use plimsoll_core::eviction::{Cause, Eviction};
use plimsoll_core::object::identity::{PodRef, PodUid};
use plimsoll_node::pods::note;
use plimsoll_node::pods::set::{Begun, Source};
use plimsoll_node::pods::status::Forced;
use plimsoll_runtime::wire::ContainerState;
use serde_json::json;
use tokio::time::Instant;

use crate::world::{World, pod, simple, uid};

fn starts(world: &World) -> usize {
    let log = world.runtime.log();
    log.iter().filter(|line| line.starts_with("start ")).count()
}

fn waiting_reason(world: &World, pod: &str) -> String {
    let state = world.container(pod, "a").state.unwrap_or_default();
    let waiting = state.waiting.unwrap_or_default();
    waiting.reason.unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_crashing_container_waits_longer_each_time() {
    let world = World::new();
    let begun = Instant::now();
    world.apply(simple("bad", "exit-1:1", "Always"));
    let mut delays = Vec::new();
    for count in 2..=5 {
        world
            .until("one more start", |world| starts(world) == count)
            .await;
        delays.push(begun.elapsed().as_secs());
    }
    // The first restart is immediate, the others follow after 10, 20 and 40 seconds.
    assert_eq!(delays, [0, 10, 30, 70]);
    world
        .until("it waits", |world| {
            waiting_reason(world, "bad") == "CrashLoopBackOff"
        })
        .await;
    let container = world.container("bad", "a");
    assert_eq!(container.restart_count, 4);
    let last = container.last_state.unwrap().terminated.unwrap();
    assert_eq!(last.exit_code, 1);
    let message = container.state.unwrap().waiting.unwrap().message.unwrap();
    assert_eq!(
        message,
        "back-off 1m20s restarting failed container=a pod=bad_default(uid-bad)"
    );
    assert_eq!(world.phase("bad"), "Running");
}

#[tokio::test(start_paused = true)]
async fn pulls_of_a_missing_image_back_off() {
    let world = World::new();
    world.apply(simple("bad", "missing:1", "Always"));
    world
        .until("the pull has failed", |world| {
            waiting_reason(world, "bad") == "ErrImagePull"
        })
        .await;
    assert_eq!(world.phase("bad"), "Pending");
    tokio::time::sleep(Duration::from_secs(100)).await;
    let log = world.runtime.log();
    let pulls = log.iter().filter(|line| line.starts_with("pull")).count();
    assert_eq!(pulls, 4, "at 0, 10, 30 and 70 seconds");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_does_not_wait_for_a_pull() {
    let world = World::new();
    let slow = simple("slow", "slow:1", "Always");
    world.apply(slow.clone());
    world
        .until("it pulls", |world| {
            world.runtime.log().contains(&"pull slow:1".to_owned())
        })
        .await;
    let begun = Instant::now();
    world.delete(&slow, 30);
    world.until_finished("slow").await;
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert_eq!(starts(&world), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lost_sandbox_is_replaced_and_init_containers_run_again() {
    let world = World::new();
    world.apply(pod(
        "web",
        json!({
            "initContainers": [{"name": "one", "image": "exit-0:1"}],
            "containers": [{"name": "a", "image": "sleep:1"}],
        }),
    ));
    world.until_phase("web", "Running").await;
    world.runtime.lose_sandboxes();
    world
        .until("it runs again", |world| {
            world.container("web", "a").restart_count == 1 && world.container("web", "a").ready
        })
        .await;
    let log = world.runtime.log();
    let starts: Vec<&String> = log.iter().filter(|line| line.starts_with("s")).collect();
    assert_eq!(
        starts,
        [
            "sandbox web 0",
            "start one 0",
            "start a 0",
            "sandbox web 1",
            "start one 1",
            "start a 1"
        ]
    );
    assert!(world.host.reasons().contains(&"SandboxChanged".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn restarted_agent_adopts_running_containers() {
    let world = World::new();
    let web = simple("web", "sleep:1", "Always");
    world.apply(web.clone());
    world.until_phase("web", "Running").await;
    let known = world.status("web");
    let next = world.restarted();
    let mut adopted = web;
    adopted.status = Some(known.clone());
    next.apply(adopted);
    next.until_phase("web", "Running").await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(starts(&world), 1);
    assert_eq!(next.status("web"), known);
}

#[tokio::test(start_paused = true)]
async fn evicted_pod_keeps_its_container_statuses() {
    let world = World::new();
    world.apply(simple("hog", "stubborn:1", "Always"));
    world.until_phase("hog", "Running").await;
    let forced = Forced {
        reason: "Evicted".to_owned(),
        message: "The node was low on resource: memory. ".to_owned(),
        is_disruption: true,
        ..Forced::default()
    };
    let begun = Instant::now();
    let killed = world.pods.kill(&uid("hog"), Some(1), Some(forced)).await;
    killed.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 2, "the minimum grace period");
    // Containers are removed without waiting for the status to be written.
    world.runtime.collect_garbage();
    world.until_finished("hog").await;
    let status = world.status("hog");
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    assert_eq!(status.reason.as_deref(), Some("Evicted"));
    let container = world.container("hog", "a");
    assert_eq!(container.restart_count, 0);
    let ended = container.state.unwrap().terminated.unwrap();
    assert_eq!(
        (ended.exit_code, ended.reason.as_deref()),
        (137, Some("Error"))
    );
    assert!(ended.started_at.is_some() && ended.finished_at.is_some());
    let conditions = status.conditions.unwrap();
    let disruption = conditions.iter().find(|c| c.type_ == "DisruptionTarget");
    assert_eq!(disruption.unwrap().status, "True");
}

#[tokio::test(start_paused = true)]
async fn a_shorter_grace_period_takes_effect_while_the_pod_ends() {
    let world = World::new();
    let web = simple("web", "stubborn:1", "Always");
    world.apply(web.clone());
    world.until_phase("web", "Running").await;
    let begun = Instant::now();
    world.delete(&web, 600);
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.delete(&web, 1200);
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.delete(&web, 20);
    world.until_finished("web").await;
    assert_eq!(begun.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn pod_fails_after_its_active_deadline() {
    let world = World::new();
    let mut web = simple("web", "sleep:1", "Always");
    web.spec.as_mut().unwrap().active_deadline_seconds = Some(30);
    world.apply(web);
    let begun = Instant::now();
    world.until_finished("web").await;
    assert_eq!(begun.elapsed().as_secs(), 30);
    let status = world.status("web");
    assert_eq!(status.reason.as_deref(), Some("DeadlineExceeded"));
    assert_eq!(status.phase.as_deref(), Some("Failed"));
}

#[tokio::test(start_paused = true)]
async fn failed_runtime_calls_are_retried() {
    for verb in [
        "run_pod_sandbox",
        "list_pod_sandboxes",
        "create_container",
        "start_container",
    ] {
        let world = World::new();
        world.runtime.fail(verb, 2);
        world.apply(simple("web", "sleep:1", "Always"));
        world.until_phase("web", "Running").await;
        let running = world.runtime.containers();
        let running = running
            .iter()
            .filter(|(_, state)| *state == ContainerState::ContainerRunning);
        assert_eq!(running.count(), 1, "{verb}");
    }
}

#[tokio::test(start_paused = true)]
async fn sandbox_gets_the_handler_of_the_runtime_class() {
    let world = World::new();
    let mut web = simple("web", "sleep:1", "Always");
    web.spec.as_mut().unwrap().runtime_class_name = Some("gvisor".to_owned());
    world.apply(web);
    world.until_phase("web", "Running").await;
    assert_eq!(world.runtime.handlers(), ["handler-of-gvisor"]);

    let mut web = simple("lost", "sleep:1", "Always");
    web.spec.as_mut().unwrap().runtime_class_name = Some("missing".to_owned());
    world.apply(web);
    let message =
        "Failed to create pod sandbox: runtimeclass.node.k8s.io \"missing\" not found".to_owned();
    let note = ("FailedCreatePodSandBox".to_owned(), message);
    while !world.host.notes().contains(&note) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(world.runtime.handlers(), ["handler-of-gvisor"]);
}

#[tokio::test(start_paused = true)]
async fn stopping_is_retried_until_it_succeeds() {
    let world = World::new();
    let web = simple("web", "sleep:1", "Always");
    world.apply(web.clone());
    world.until_phase("web", "Running").await;
    world.runtime.fail("stop_container", 2);
    world.runtime.fail("stop_pod_sandbox", 2);
    world.delete(&web, 5);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let report = world.report("web").unwrap();
    assert!(report.may_run && !report.is_finished);
    world.until_finished("web").await;
    let reasons = world.host.reasons();
    let failed = reasons.iter().filter(|reason| *reason == "FailedKillPod");
    assert_eq!(failed.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_ends_by_itself_is_started_again() {
    let world = World::new();
    world.apply(simple("web", "sleep:1", "Always"));
    world.until_phase("web", "Running").await;
    world.runtime.end("a", 0);
    world
        .until("it runs again", |world| {
            world.container("web", "a").restart_count == 1
        })
        .await;
    assert_eq!(starts(&world), 2);
}

#[tokio::test(start_paused = true)]
async fn exit_rule_may_restart_all_containers() {
    let world = World::new();
    world.apply(pod(
        "web",
        json!({
            "restartPolicy": "Never",
            "initContainers": [{"name": "one", "image": "exit-0:1"}],
            "containers": [
                {"name": "a", "image": "sleep:1"},
                {"name": "b", "image": "sleep:1", "restartPolicy": "Never", "restartPolicyRules": [
                    {"action": "RestartAllContainers",
                     "exitCodes": {"operator": "In", "values": [42]}},
                ]},
            ],
        }),
    ));
    world.until_phase("web", "Running").await;
    world.runtime.end("b", 42);
    world
        .until("all run again", |world| {
            let (a, b) = (world.container("web", "a"), world.container("web", "b"));
            a.ready && b.ready && a.restart_count == 1 && b.restart_count == 1
        })
        .await;
    world.runtime.set_exec_exit_code(0);
    world.until_phase("web", "Running").await;
}

#[tokio::test(start_paused = true)]
async fn pod_that_ended_by_itself_is_not_reported_as_evicted() {
    let world = World::new();
    world.apply(simple("job", "sleep:1", "Never"));
    world.until_phase("job", "Running").await;
    // The kernel OOM-kills the pod before the agent does.
    world.runtime.run_out_of_memory("a");
    let forced = evicted("");
    let killed = world.pods.kill(&uid("job"), Some(1), Some(forced)).await;
    killed.unwrap();
    world.until_finished("job").await;
    let status = world.status("job");
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    assert_eq!(status.reason, None);
    let ended = world
        .container("job", "a")
        .state
        .unwrap()
        .terminated
        .unwrap();
    assert_eq!(ended.reason.as_deref(), Some("OOMKilled"));
}

/// The status of an evicted pod.
fn evicted(message: &str) -> Forced {
    Forced {
        reason: "Evicted".to_owned(),
        message: message.to_owned(),
        is_disruption: true,
        ..Forced::default()
    }
}

/// An eviction of the job without a grace period.
fn immediate() -> Arc<Eviction> {
    Arc::new(Eviction {
        pod_ref: PodRef {
            namespace: "default".to_owned(),
            name: "job".to_owned(),
        },
        uid: PodUid::new(uid("job")),
        generation: 1,
        grace_period_seconds: 30,
        is_immediate: true,
        cause: Cause::LocalLimit(LocalLimit::ALL[0]),
        message: "low".to_owned(),
        annotations: BTreeMap::new(),
        exhausted_in: None,
    })
}

#[tokio::test(start_paused = true)]
async fn a_pod_killed_by_eviction_is_evicted_unless_the_kernel_was_first() {
    for (is_out_of_memory, reason, ended_by) in
        [(false, Some("Evicted"), "Error"), (true, None, "OOMKilled")]
    {
        let world = World::new();
        world.apply(simple("job", "sleep:1", "Never"));
        world.until_phase("job", "Running").await;
        let notice = world.pods.kill_notice(&uid("job")).unwrap();
        notice.give(&immediate());
        match is_out_of_memory {
            true => world.runtime.run_out_of_memory("a"),
            false => world.runtime.end("a", 137),
        }
        world.until_finished("job").await;
        let status = world.status("job");
        assert_eq!(status.phase.as_deref(), Some("Failed"));
        assert_eq!(status.reason.as_deref(), reason);
        let container = world.container("job", "a");
        assert_eq!(container.restart_count, 0);
        let ended = container.state.unwrap().terminated.unwrap();
        let end = (ended.exit_code, ended.reason.as_deref());
        assert_eq!(end, (137, Some(ended_by)));
    }
}

#[tokio::test(start_paused = true)]
async fn worker_knows_the_eviction_reason_from_the_kill_notice() {
    for restart_policy in ["Never", "Always"] {
        let world = World::new();
        world.apply(simple("job", "sleep:1", restart_policy));
        world.until_phase("job", "Running").await;
        world
            .pods
            .kill_notice(&uid("job"))
            .unwrap()
            .give(&immediate());
        let killed = Instant::now();
        world.runtime.end("a", 137);
        world.until_finished("job").await;
        let status = world.status("job");
        assert_eq!(status.phase.as_deref(), Some("Failed"));
        assert_eq!(status.reason.as_deref(), Some("Evicted"));
        assert_eq!(status.message.as_deref(), Some("low"));
        assert_eq!(world.container("job", "a").restart_count, 0);
        assert!(
            killed.elapsed() < Duration::from_secs(1),
            "nothing is waited for"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_killed_before_a_restart_is_evicted_and_not_started_again() {
    let cases = [
        ("Never", false, Some("Evicted")),
        ("Never", true, None),
        ("Always", false, Some("Evicted")),
    ];
    for (restart_policy, is_out_of_memory, reason) in cases {
        let world = World::new();
        world.apply(simple("job", "sleep:1", restart_policy));
        world.until_phase("job", "Running").await;
        // The agent is killed before it can report the eviction.
        world.stop.cancel();
        tokio::time::sleep(Duration::from_millis(10)).await;
        match is_out_of_memory {
            true => world.runtime.run_out_of_memory("a"),
            false => world.runtime.end("a", 137),
        }
        let job = simple("job", "sleep:1", restart_policy);
        let world = restarted_after_eviction(&world, job, Duration::ZERO);
        world.until_finished("job").await;
        let status = world.status("job");
        assert_eq!(status.phase.as_deref(), Some("Failed"), "{restart_policy}");
        assert_eq!(status.reason.as_deref(), reason, "{restart_policy}");
        assert_eq!(world.container("job", "a").restart_count, 0);
    }
}

/// A new agent that knows of an eviction with this remaining grace period.
fn restarted_after_eviction(world: &World, job: Pod, left: Duration) -> World {
    let world = world.restarted();
    let begun = Begun {
        forced: evicted("low"),
        until: world.clock.now().saturating_add(left),
        note: note::evicted("low", BTreeMap::new(), world.clock.now()),
    };
    world.pods.remember_begun([(uid("job"), begun)].into());
    world.apply(job);
    world
}

#[tokio::test(start_paused = true)]
async fn termination_resumes_after_a_restart_with_the_remaining_grace() {
    let cases = [
        ("Always", None, 7),
        ("Never", Some(0), 0),
        ("Always", Some(0), 0),
    ];
    for (restart_policy, ends_meanwhile, takes_secs) in cases {
        let world = World::new();
        let job = simple("job", "stubborn:1", restart_policy);
        world.apply(job.clone());
        world.until_phase("job", "Running").await;
        world.stop.cancel();
        tokio::time::sleep(Duration::from_millis(10)).await;
        if let Some(code) = ends_meanwhile {
            world.runtime.end("a", code);
        }
        let begun = Instant::now();
        let world = restarted_after_eviction(&world, job, Duration::from_secs(7));
        world.until_finished("job").await;
        let status = world.status("job");
        let reported = (status.reason.as_deref(), status.message.as_deref());
        assert_eq!(
            reported,
            (Some("Evicted"), Some("low")),
            "{ends_meanwhile:?}"
        );
        // It is unknown whether the earlier agent reported it.
        let note = ("Evicted".to_owned(), "low".to_owned());
        assert!(world.host.notes().contains(&note), "{ends_meanwhile:?}");
        assert_eq!(
            status.phase.as_deref(),
            Some("Failed"),
            "{ends_meanwhile:?}"
        );
        assert_eq!(world.container("job", "a").restart_count, 0);
        assert_eq!(begun.elapsed().as_secs(), takes_secs, "{ends_meanwhile:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_panics_loses_neither_its_pod_nor_others() {
    let world = World::new();
    world.apply(simple("other", "sleep:1", "Always"));
    world.until_phase("other", "Running").await;
    // In each of these calls.
    let before = plimsoll_client::restarts::of("podWorker");
    for verb in ["run_pod_sandbox", "create_container", "start_container"] {
        world.runtime.panic(verb, 2);
        let name = verb.replace('_', "-");
        world.apply(simple(&name, "sleep:1", "Always"));
        world.until_phase(&name, "Running").await;
        let message =
            format!("error syncing pod, trying again: it panicked: {verb} was made to panic");
        let note = ("FailedSync".to_owned(), message);
        let reported = world
            .host
            .notes()
            .into_iter()
            .filter(|reported| *reported == note);
        assert_eq!(reported.count(), 2, "{verb}");
    }
    let again = plimsoll_client::restarts::of("podWorker") - before;
    assert!(again >= 6, "{again}");
    world.runtime.panic("stop_container", 2);
    let pod = simple("start-container", "sleep:1", "Always");
    world.delete(&pod, 30);
    world.until_finished("start-container").await;
    for name in ["other", "run-pod-sandbox", "create-container"] {
        assert_eq!(world.phase(name), "Running");
        assert_eq!(world.container(name, "a").restart_count, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn repeatedly_panicking_worker_restarts_with_back_off() {
    let world = World::new();
    world.runtime.panic("run_pod_sandbox", 1000);
    world.apply(simple("bad", "sleep:1", "Always"));
    tokio::time::sleep(Duration::from_secs(600)).await;
    let notes = world.host.notes().into_iter();
    let failed = notes.filter(|(reason, _)| reason == "FailedSync").count();
    assert!((20..40).contains(&failed), "{failed}");
    world.runtime.panic("run_pod_sandbox", 0);
    world.until_phase("bad", "Running").await;
}

#[tokio::test(start_paused = true)]
async fn orphan_is_stopped_after_its_stop_panicked() {
    let world = World::new();
    world.apply(simple("web", "sleep:1", "Always"));
    world.until_phase("web", "Running").await;
    world.stop.cancel();
    let next = world.restarted();
    next.runtime.panic("stop_container", 1);
    for source in [Source::Api, Source::Files] {
        next.pods.replace(source, Vec::new());
    }
    next.until("the orphan is stopped", |next| {
        !next.runtime.is_anything_running()
    })
    .await;
}
