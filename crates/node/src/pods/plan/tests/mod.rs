//! Cases in a short notation, most of them those of upstream's own tables.

mod notation;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::object::timestamp::Timestamp;
use serde_json::json;

use super::*;
use notation::{pod, sandboxes, seen, words};

fn check_pod(pod: &Pod, sandbox: &str, states: &str, expected: &str) {
    let mut health = Results::new();
    let containers = states
        .split_whitespace()
        .map(|text| seen(pod, text, &mut health))
        .collect();
    let observed = Observed::new(sandboxes(sandbox), containers);
    let plan = compute(Input {
        pod,
        observed: &observed,
        health: &health,
        actuated: None,
        restarts_all: restart::is_restarting_all(pod, &observed, &Default::default()),
    });
    assert_eq!(words(pod, &plan), expected, "{sandbox} {states}");
}

fn check(containers: &str, cases: &[(&str, &str, &str, &str)]) {
    for (policy, sandbox, states, expected) in cases {
        check_pod(&pod(policy, containers), sandbox, states, expected);
    }
}

#[test]
fn regular_containers_follow_the_restart_policy() {
    let all = "a1:running a2:running a3:running";
    check(
        "a1 a2 a3",
        &[
            ("Always", "ready", all, ""),
            ("Always", "none", "", "new@0, start a1 a2 a3"),
            (
                "Always",
                "ready",
                "a1:exited=0 a2:exited=111 a3:running",
                "start a1 a2",
            ),
            (
                "OnFailure",
                "ready",
                "a1:exited=0 a2:exited=111 a3:running",
                "start a2",
            ),
            (
                "OnFailure",
                "ready",
                "a1:exited=0 a2:created a3:running",
                "start a2",
            ),
            ("Never", "ready", "a1:exited=0 a2:exited=111 a3:running", ""),
            (
                "Never",
                "ready",
                "a1:running a2:created a3:running",
                "start a2",
            ),
            (
                "Never",
                "ready",
                "a1:running a2:unknown a3:running",
                "kill a2, start a2",
            ),
            (
                "Never",
                "ready",
                "a1:exited=0 a2:exited=1 a3:exited=0",
                "end",
            ),
        ],
    );
}

#[test]
fn unusable_sandbox_is_replaced_unless_the_pod_is_finished() {
    let all = "a1:running a2:running a3:running";
    let done = "a1:exited=0 a2:exited=0 a3:exited=0";
    check(
        "a1 a2 a3",
        &[
            ("Always", "dead", all, "new@1, start a1 a2 a3"),
            (
                "OnFailure",
                "dead",
                "a1:running a2:exited=0 a3:running",
                "new@1, start a1 a3",
            ),
            ("Always", "no-ip", all, "new@1, start a1 a2 a3"),
            ("Always", "host", all, "new@1, start a1 a2 a3"),
            ("Never", "dead@1", done, "end"),
            ("OnFailure", "dead@1", done, "end"),
            ("Never", "dead@2", "", "new@3, start a1 a2 a3"),
        ],
    );
}

#[test]
fn changed_and_unhealthy_containers_are_replaced() {
    check(
        "a1 a2",
        &[
            (
                "Always",
                "ready",
                "a1:running a2:running~",
                "kill a2, start a2",
            ),
            (
                "Never",
                "ready",
                "a1:running a2:running~",
                "kill a2, start a2",
            ),
            (
                "Always",
                "ready",
                "a1:running a2:running-alive",
                "kill a2, start a2",
            ),
            (
                "Always",
                "ready",
                "a1:running a2:running-up",
                "kill a2, start a2",
            ),
            ("Never", "ready", "a1:running a2:running-alive", "kill a2"),
            // Nothing is kept and nothing starts: the pod is over.
            (
                "Never",
                "ready",
                "a1:exited=0 a2:running-alive",
                "end, kill a2",
            ),
        ],
    );
}

#[test]
fn init_containers_run_one_after_another() {
    check(
        "i1 i2 i3 a1 a2",
        &[
            ("Always", "none", "", "new@0, start i1"),
            ("Always", "ready", "", "start i1"),
            ("Always", "ready", "i1:exited=0", "start i2"),
            ("Always", "ready", "i1:exited=0 i2:exited=0 i3:running", ""),
            (
                "Always",
                "ready",
                "i1:exited=0 i2:exited=0 i3:exited=0",
                "start a1 a2",
            ),
            // Those before the last may have been removed.
            ("Always", "ready", "i3:running", ""),
            ("Always", "ready", "i3:exited=0", "start a1 a2"),
            (
                "Always",
                "ready",
                "i1:exited=0 i2:exited=0 i3:exited=137",
                "start i3",
            ),
            (
                "OnFailure",
                "ready",
                "i1:exited=0 i2:exited=0 i3:exited=137",
                "start i3",
            ),
            (
                "Never",
                "ready",
                "i1:exited=0 i2:exited=0 i3:exited=137",
                "end",
            ),
            (
                "Always",
                "ready",
                "i1:exited=0 i2:exited=0 i3:unknown",
                "kill i3, start i3",
            ),
            (
                "Never",
                "ready",
                "i1:exited=0 i2:exited=0 i3:unknown",
                "end",
            ),
            (
                "Always",
                "ready",
                "i1:exited=0 i2:exited=0 i3:created",
                "start i3",
            ),
            (
                "Always",
                "dead",
                "i1:exited=0 i2:exited=0 i3:exited=0",
                "new@1, start i1",
            ),
            (
                "Never",
                "dead",
                "i1:exited=0 i2:exited=0 i3:exited=0",
                "end",
            ),
            ("Never", "dead", "", "new@1, start i1"),
            ("OnFailure", "dead", "i3:exited=137", "new@1, start i1"),
            // Once a regular container runs they are done with, whatever became of them.
            ("Always", "ready", "i3:exited=137 a1:running a2:running", ""),
        ],
    );
}

#[test]
fn sidecars_start_in_turn_and_are_kept_running() {
    let up = "s1:running s2p:running+up+alive";
    check(
        "s1 s2p s3p a1 a2",
        &[
            ("Always", "ready", "", "start s1"),
            ("Always", "ready", "s1:running", "start s2p"),
            ("Always", "ready", up, "start s3p"),
            ("Always", "ready", "s1:running s2p:running+up", "start s3p"),
            ("Always", "ready", "s1:running s2p:running", ""),
            (
                "Always",
                "ready",
                "s1:running s2p:running+up+alive s3p:created",
                "start s3p",
            ),
            (
                "Always",
                "ready",
                "s1:running s2p:running+up+alive s3p:running+up+alive",
                "start a1 a2",
            ),
            (
                "Always",
                "ready",
                "s1:running s2p:running+up+alive s3p:running+up-alive",
                "kill s3p, start s3p a1 a2",
            ),
            (
                "Always",
                "ready",
                "s1:running s2p:running+up+alive s3p:running-up",
                "kill s3p, start s3p",
            ),
            (
                "Always",
                "ready",
                "s1:running s2p:running+up+alive s3p:running~+up+alive",
                "kill s3p, start s3p a1 a2",
            ),
            (
                "Always",
                "ready",
                "s1:exited=0 s2p:running+up+alive s3p:exited=0",
                "start s1 s3p",
            ),
            (
                "Always",
                "ready",
                "s1:exited=0 s2p:running+up+alive s3p:running+up+alive",
                "start s1 a1 a2",
            ),
            // Whatever the pod's policy is, theirs is to run.
            (
                "Never",
                "ready",
                "s1:running s2p:running+up+alive s3p:exited=137",
                "start s3p",
            ),
            (
                "Never",
                "ready",
                "s1:running s2p:running+up+alive s3p:unknown",
                "kill s3p, start s3p",
            ),
            (
                "Never",
                "ready",
                "s1:running s2p:running+up+alive s3p:exited=137 a1:running a2:running",
                "start s3p",
            ),
            // They do not keep alive a pod that is done.
            (
                "Never",
                "ready",
                "s1:exited=1 s2p:running+up+alive s3p:running+up+alive a1:exited=0 a2:exited=0",
                "end",
            ),
            (
                "Always",
                "ready",
                "s3p:running+up+alive",
                "start s1 s2p a1 a2",
            ),
            (
                "Never",
                "dead",
                "s1:running s2p:running s3p:exited=137",
                "end",
            ),
            (
                "OnFailure",
                "dead",
                "s1:running s2p:running s3p:exited=137",
                "new@1, start s1",
            ),
        ],
    );
}

#[test]
fn ephemeral_containers_are_started_once() {
    check(
        "i1 a1 e1 e2",
        &[
            (
                "Always",
                "ready",
                "i1:exited=0 a1:running e1:running e2:running",
                "",
            ),
            (
                "Always",
                "ready",
                "i1:exited=0 a1:running e1:exited=1",
                "start e2",
            ),
            ("Always", "ready", "i1:running", "start e1 e2"),
            (
                "Never",
                "ready",
                "i1:exited=0 a1:running e1:unknown e2:running",
                "",
            ),
            (
                "Always",
                "dead",
                "i1:exited=0 a1:running e1:running",
                "new@1, start i1",
            ),
            (
                "Never",
                "ready",
                "i1:exited=0 a1:exited=0 e1:running",
                "end",
            ),
        ],
    );
}

#[test]
fn containers_may_have_a_policy_of_their_own() {
    let with = |pod_policy: &str, own: &str| {
        let mut pod = pod(pod_policy, "a1 a2 a3");
        for container in &mut pod.spec.as_mut().unwrap().containers[..2] {
            container.restart_policy = Some(own.to_owned());
        }
        pod
    };
    let states = "a1:exited=0 a2:exited=111 a3:running";
    check_pod(&with("Never", "Always"), "ready", states, "start a1 a2");
    check_pod(&with("Never", "OnFailure"), "ready", states, "start a2");
    check_pod(&with("Always", "Never"), "ready", states, "");
    let killed = "a1:running-alive a2:running a3:running";
    check_pod(&with("Always", "Never"), "ready", killed, "kill a1");
    check_pod(
        &with("Never", "Always"),
        "ready",
        killed,
        "kill a1, start a1",
    );
    check_pod(
        &with("Always", "OnFailure"),
        "dead",
        "a1:running a2:exited=0 a3:running",
        "new@1, start a1 a3",
    );
}

#[test]
fn restart_all_containers_removes_the_triggering_container_last() {
    let mut pod = pod("Never", "i1 a1 a2");
    let rules = json!([{
        "action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]},
    }]);
    let container = &mut pod.spec.as_mut().unwrap().containers[0];
    container.restart_policy = Some("Never".to_owned());
    container.restart_policy_rules = serde_json::from_value(rules).unwrap();
    check_pod(
        &pod,
        "ready",
        "i1:exited=0 a1:exited=42 a2:running",
        "reset a2 i1 a1",
    );
    check_pod(&pod, "ready", "i1:exited=0 a1:exited=1 a2:running", "");
    check_pod(&pod, "ready", "", "start i1");
}

#[test]
fn a_deleted_pod_starts_nothing_again() {
    let mut pod = pod("Always", "a1 a2");
    pod.metadata.deletion_timestamp = Some(Timestamp::from_secs(1).to_api());
    check_pod(&pod, "ready", "a1:running a2:exited=1", "");
}

#[test]
fn resources_change_by_the_containers_resize_policy() {
    let mut pod = pod("Always", "a1 a2");
    let resources = |cpu: &str| serde_json::from_value(json!({"limits": {"cpu": cpu}})).unwrap();
    for (container, cpu) in pod
        .spec
        .as_mut()
        .unwrap()
        .containers
        .iter_mut()
        .zip(["3", "1"])
    {
        container.resources = Some(resources(cpu));
    }
    let mut before = pod.clone();
    for container in &mut before.spec.as_mut().unwrap().containers {
        container.resources = Some(resources("2"));
    }
    let actuated = Actuated::as_allocated(&before);
    let mut health = Results::new();
    let containers = ["a1:running", "a2:running"].map(|text| seen(&pod, text, &mut health));
    let observed = Observed::new(sandboxes("ready"), containers.into());
    let plan_of = |pod: &Pod| {
        compute(Input {
            pod,
            observed: &observed,
            health: &health,
            actuated: Some(&actuated),
            restarts_all: false,
        })
    };
    let plan = plan_of(&pod);
    let names: Vec<&str> = plan.resize.cpu.iter().map(|u| u.name.as_str()).collect();
    assert_eq!(names, ["a2", "a1"], "what shrinks makes room first");
    assert!(plan.resize.memory.is_empty() && plan.kill.is_empty());
    let policy = json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
    pod.spec.as_mut().unwrap().containers[0].resize_policy =
        serde_json::from_value(policy).unwrap();
    let plan = plan_of(&pod);
    assert_eq!(words(&pod, &plan), "kill a1, start a1");
    assert_eq!(plan.kill[0].message, "Container a1 resize requires restart");
    assert!(plan.resize.changes_pod);
}

#[test]
fn a_container_that_failed_lately_waits() {
    use crate::pods::back_off::BackOff;
    let pod = pod("Always", "a1");
    let container = pod_fields::part(&pod, "a1").unwrap().container.into_owned();
    let at = Timestamp::from_secs;
    let ended = seen(&pod, "a1:exited=1", &mut Results::new());
    let observed = Observed::new(sandboxes("ready"), vec![ended]);
    let mut back_off = BackOff::new(crate::pods::back_off::MAX);
    let due_at = |back_off: &BackOff, now| due(&pod, &container, &observed, back_off, at(now));
    let now = Due::Now {
        last_end: Some(at(1)),
    };
    assert_eq!(due_at(&back_off, 1), now);
    back_off.remember(&key(&container), at(1), at(1));
    let Due::Later { wait, message } = due_at(&back_off, 5) else {
        panic!("it has to wait");
    };
    assert_eq!(wait.until, at(11));
    assert_eq!(
        message,
        "back-off 10s restarting failed container=a1 pod=foo_ns(u)"
    );
    assert_eq!(due_at(&back_off, 11), now);
}
