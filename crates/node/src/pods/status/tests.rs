//! Containers are named by what they are: `a…` regular, `i…` init, `s…` sidecar. What the runtime
//! has of them: `name:running`, `name:exited=3`, `name:created`; `name#2:…` is the third start.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus};
use serde_json::{Value, json};

use super::*;
use crate::pods::observed::{Container, Sandbox, State};
use crate::pods::plan::{Health, Verdict};

fn pod(policy: &str, containers: &str) -> Pod {
    let list = |prefixes: &[char]| -> Vec<Value> {
        let names = containers.split_whitespace();
        let own = names.filter(|name| name.starts_with(prefixes));
        own.map(|name| match name.starts_with('s') {
            true => json!({"name": name, "image": "img", "restartPolicy": "Always"}),
            false => json!({"name": name, "image": "img"}),
        })
        .collect()
    };
    serde_json::from_value(json!({
        "metadata": {"name": "foo", "namespace": "ns", "uid": "u", "generation": 4},
        "spec": {
            "restartPolicy": policy,
            "initContainers": list(&['i', 's']),
            "containers": list(&['a']),
        },
    }))
    .unwrap()
}

fn seen(text: &str) -> Container {
    let (name, state) = text.split_once(':').unwrap();
    let (name, count) = name.split_once('#').unwrap_or((name, "0"));
    let (state, exit_code) = state.split_once('=').unwrap_or((state, "0"));
    let count: u32 = count.parse().unwrap();
    let exit_code = exit_code.parse().unwrap();
    let at = |secs: i64| Timestamp::from_secs(1000 + 100 * i64::from(count) + secs);
    let state = match state {
        "created" => State::Created,
        "running" => State::Running,
        "exited" => State::Exited,
        "unknown" => State::Unknown,
        other => panic!("{other} is no state"),
    };
    let has_ended = state == State::Exited;
    let reason = if exit_code == 0 { "Completed" } else { "Error" };
    Container {
        id: format!("{name}-{count}"),
        name: name.to_owned(),
        sandbox_id: "sandbox".to_owned(),
        state,
        image: "img:1".to_owned(),
        image_ref: "img@sha256:1".to_owned(),
        restart_count: count,
        created_at: at(0),
        started_at: (state != State::Created).then(|| at(1)),
        finished_at: has_ended.then(|| at(2)),
        exit_code,
        reason: if has_ended { reason } else { "" }.to_owned(),
        ..Container::default()
    }
}

fn observed(states: &str) -> Observed {
    let sandbox = Sandbox {
        id: "sandbox".to_owned(),
        is_ready: true,
        has_network: true,
        ips: vec!["10.0.0.1".to_owned()],
        ..Sandbox::default()
    };
    Observed::new(vec![sandbox], states.split_whitespace().map(seen).collect())
}

/// A status and what leads to the next.
struct Case {
    pod: Pod,
    observed: Observed,
    previous: PodStatus,
    failures: BTreeMap<String, StartFailure>,
    health: Results,
    stage: Stage,
    forced: Option<Forced>,
    host_ips: Vec<IpAddr>,
    now: Timestamp,
}

impl Case {
    fn new(policy: &str, containers: &str, states: &str) -> Case {
        Case {
            pod: pod(policy, containers),
            observed: observed(states),
            previous: PodStatus::default(),
            failures: BTreeMap::new(),
            health: Results::new(),
            stage: Stage::Running,
            forced: None,
            host_ips: vec!["192.168.0.1".parse().unwrap()],
            now: Timestamp::from_secs(5000),
        }
    }

    fn compute(&self) -> PodStatus {
        compute(Input {
            pod: &self.pod,
            observed: &self.observed,
            runtime_name: "rt",
            previous: &self.previous,
            failures: &self.failures,
            health: &self.health,
            actuated: &Actuated::as_allocated(&self.pod),
            resize: &[],
            host_ips: &self.host_ips,
            stage: self.stage,
            forced: self.forced.as_ref(),
            now: self.now,
        })
    }

    /// The next status, with other things in the runtime.
    fn then(&mut self, states: &str) -> PodStatus {
        self.previous = self.compute();
        self.observed = observed(states);
        self.now = self.now.saturating_add(std::time::Duration::from_secs(60));
        self.compute()
    }

    fn failing(mut self, name: &str, reason: &'static str) -> Case {
        let failure = StartFailure {
            reason,
            message: "why".to_owned(),
        };
        self.failures.insert(name.to_owned(), failure);
        self
    }
}

fn own(status: &PodStatus, name: &str) -> ContainerStatus {
    let own = all_containers(status).find(|own| own.name == name);
    own.cloned().unwrap()
}

fn waiting_reason(own: &ContainerStatus) -> &str {
    let waiting = own.state.as_ref().and_then(|s| s.waiting.as_ref());
    waiting.and_then(|w| w.reason.as_deref()).unwrap_or("-")
}

fn end(own: &ContainerStatus) -> ContainerStateTerminated {
    own.state.clone().unwrap().terminated.unwrap()
}

fn condition(status: &PodStatus, kind: &str) -> PodCondition {
    let mut all = status.conditions.iter().flatten();
    all.find(|condition| condition.type_ == kind)
        .cloned()
        .unwrap()
}

#[test]
fn the_phase_follows_from_the_containers_and_the_policy() {
    for (policy, containers, states, expected) in [
        ("Always", "a1 a2", "", "Pending"),
        ("Always", "a1 a2", "a1:running", "Pending"),
        ("Always", "a1 a2", "a1:created a2:created", "Pending"),
        ("Always", "a1 a2", "a1:running a2:running", "Running"),
        ("Always", "a1 a2", "a1:running a2:exited=0", "Running"),
        ("Always", "a1 a2", "a1:exited=0 a2:exited=1", "Running"),
        ("OnFailure", "a1 a2", "a1:running a2:exited=0", "Running"),
        ("OnFailure", "a1 a2", "a1:exited=0 a2:exited=0", "Succeeded"),
        ("OnFailure", "a1 a2", "a1:exited=1 a2:exited=1", "Running"),
        ("Never", "a1 a2", "a1:running a2:exited=1", "Running"),
        ("Never", "a1 a2", "a1:exited=0 a2:exited=0", "Succeeded"),
        ("Never", "a1 a2", "a1:exited=0 a2:exited=1", "Failed"),
        ("Never", "a1 a2", "a1:exited=1", "Pending"),
        // Init containers.
        ("Always", "i1 a1", "", "Pending"),
        ("Always", "i1 a1", "i1:running", "Pending"),
        ("Always", "i1 a1", "i1:exited=0", "Pending"),
        ("Always", "i1 a1", "i1:exited=1", "Pending"),
        ("OnFailure", "i1 a1", "i1:exited=1", "Pending"),
        ("Never", "i1 a1", "i1:exited=1", "Failed"),
        ("Always", "i1 a1", "i1:exited=0 a1:running", "Running"),
        ("Always", "i1 a1", "a1:running", "Running"),
        ("Never", "i1 a1", "i1:exited=0 a1:exited=0", "Succeeded"),
        // Sidecars.
        ("Always", "s1 a1", "s1:running", "Pending"),
        ("Always", "s1 a1", "s1:running a1:running", "Running"),
        ("Always", "s1 a1", "s1:exited=1 a1:running", "Running"),
        ("Never", "s1 a1", "s1:running a1:exited=0", "Running"),
        ("Never", "s1 a1", "s1:exited=143 a1:exited=0", "Succeeded"),
        ("Never", "s1 a1", "s1:exited=0 a1:exited=1", "Failed"),
    ] {
        let status = Case::new(policy, containers, states).compute();
        assert_eq!(
            status.phase.as_deref(),
            Some(expected),
            "{policy} {containers}: {states}"
        );
    }
}

#[test]
fn stopped_pod_is_finished_for_any_restart_policy() {
    for (states, expected) in [
        ("a1:exited=0 a2:exited=0", "Succeeded"),
        ("a1:exited=0 a2:exited=143", "Failed"),
    ] {
        let mut case = Case::new("Always", "a1 a2", states);
        case.stage = Stage::Terminated;
        assert_eq!(case.compute().phase.as_deref(), Some(expected), "{states}");
    }
}

#[test]
fn a_terminal_phase_is_final() {
    let mut case = Case::new("Never", "a1", "a1:exited=1");
    assert_eq!(case.compute().phase.as_deref(), Some("Failed"));
    let status = case.then("a1:running");
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    // What the API says counts too, even against what the node thinks.
    let mut case = Case::new("Never", "a1", "a1:exited=1");
    case.pod.status = Some(PodStatus {
        phase: Some("Succeeded".to_owned()),
        ..PodStatus::default()
    });
    assert_eq!(case.compute().phase.as_deref(), Some("Succeeded"));
}

#[test]
fn waiting_containers_have_a_reason() {
    for (containers, states, name, expected) in [
        ("a1", "", "a1", "ContainerCreating"),
        ("i1 a1", "", "a1", "PodInitializing"),
        ("i1 a1", "", "i1", "PodInitializing"),
        ("a1", "a1:created", "a1", "-"),
    ] {
        let status = Case::new("Always", containers, states).compute();
        assert_eq!(waiting_reason(&own(&status, name)), expected);
    }
    let status = Case::new("Always", "a1", "")
        .failing("a1", "ErrImagePull")
        .compute();
    assert_eq!(waiting_reason(&own(&status, "a1")), "ErrImagePull");
    let case = Case::new("Always", "a1", "a1#2:exited=1").failing("a1", "CrashLoopBackOff");
    let status = case.compute();
    let container = own(&status, "a1");
    assert_eq!(waiting_reason(&container), "CrashLoopBackOff");
    assert_eq!(container.restart_count, 2);
    let last = container.last_state.unwrap().terminated.unwrap();
    assert_eq!(last.exit_code, 1);
    // A container that is not to start again is over, whatever failed before.
    let case = Case::new("Never", "a1", "a1:exited=1").failing("a1", "CrashLoopBackOff");
    assert_eq!(end(&own(&case.compute(), "a1")).exit_code, 1);
}

#[test]
fn terminated_state_has_details_and_becomes_the_last_state() {
    let mut case = Case::new("Always", "a1", "a1#0:exited=3 a1#1:running");
    let container = own(&case.compute(), "a1");
    assert_eq!(container.container_id.as_deref(), Some("rt://a1-1"));
    assert_eq!(container.image_id, "img@sha256:1");
    assert_eq!(container.restart_count, 1);
    let last = container.last_state.clone().unwrap().terminated.unwrap();
    assert_eq!((last.exit_code, last.reason.as_deref()), (3, Some("Error")));
    assert_eq!(last.container_id.as_deref(), Some("rt://a1-0"));
    // The old container is removed; its end stays known.
    let later = own(&case.then("a1#1:running"), "a1");
    assert_eq!(later.last_state, container.last_state);
    assert_eq!(later.restart_count, 1);
}

#[test]
fn vanished_container_stays_in_the_status() {
    let mut case = Case::new("Always", "a1", "a1:running");
    let container = own(&case.then(""), "a1");
    assert_eq!(waiting_reason(&container), "ContainerCreating");
    let last = container.last_state.unwrap().terminated.unwrap();
    assert_eq!(last.reason.as_deref(), Some("ContainerStatusUnknown"));
    assert_eq!((last.exit_code, container.restart_count), (137, 1));
    // While the pod ends nothing starts again, so nothing is counted.
    let mut case = Case::new("Always", "a1", "a1:running");
    case.stage = Stage::Terminating;
    assert_eq!(own(&case.then(""), "a1").restart_count, 0);
    // An end that is known stays what it was.
    let mut case = Case::new("Never", "a1", "a1:exited=7");
    assert_eq!(end(&own(&case.then(""), "a1")).exit_code, 7);
    // Init containers that are gone were done, if regular ones exist.
    let status = Case::new("Always", "i1 a1", "a1:running").compute();
    let done = end(&own(&status, "i1"));
    assert_eq!(
        (done.exit_code, done.reason.as_deref()),
        (0, Some("Completed"))
    );
}

#[test]
fn started_and_ready_follow_the_probes() {
    let probed = |kind: &str| {
        let mut case = Case::new("Always", "a1", "a1:running");
        let container = &mut case.pod.spec.as_mut().unwrap().containers[0];
        match kind {
            "startup" => container.startup_probe = Some(Default::default()),
            _ => container.readiness_probe = Some(Default::default()),
        }
        case
    };
    let flags = |case: &Case| {
        let container = own(&case.compute(), "a1");
        (container.started, container.ready)
    };
    let plain = Case::new("Always", "a1", "a1:running");
    assert_eq!(flags(&plain), (Some(true), true));
    let mut startup = probed("startup");
    assert_eq!(flags(&startup), (Some(false), false));
    let said = |startup, readiness| Health {
        startup,
        readiness,
        ..Health::default()
    };
    let yes = Some(Verdict::Success);
    startup.health.insert("a1-0".to_owned(), said(yes, None));
    assert_eq!(flags(&startup), (Some(true), true));
    let mut readiness = probed("readiness");
    assert_eq!(flags(&readiness), (Some(true), false));
    readiness.health.insert("a1-0".to_owned(), said(None, yes));
    assert_eq!(flags(&readiness), (Some(true), true));
    // A new agent has no results yet: the status from the API counts, for the same container only.
    readiness.previous = readiness.compute();
    readiness.health.clear();
    assert_eq!(flags(&readiness), (Some(true), true));
    readiness.observed = observed("a1#1:running");
    assert_eq!(flags(&readiness), (Some(true), false));
}

#[test]
fn conditions_name_incomplete_containers() {
    let status = Case::new("Always", "i1 a1 a2", "i1:running").compute();
    let initialized = condition(&status, "Initialized");
    assert_eq!(
        initialized.reason.as_deref(),
        Some("ContainersNotInitialized")
    );
    assert_eq!(
        initialized.message.as_deref(),
        Some("containers with incomplete status: [i1]")
    );
    for kind in ["Ready", "ContainersReady"] {
        let ready = condition(&status, kind);
        assert_eq!(ready.status, "False");
        assert_eq!(ready.reason.as_deref(), Some("ContainersNotReady"));
        assert_eq!(
            ready.message.as_deref(),
            Some("containers with unready status: [a1 a2]")
        );
        assert_eq!(ready.observed_generation, Some(4));
    }
    assert_eq!(
        condition(&status, "PodReadyToStartContainers").status,
        "True"
    );
    assert_eq!(condition(&status, "PodScheduled").status, "True");
    let status = Case::new("Never", "a1", "a1:exited=0").compute();
    for (kind, expected) in [
        ("Initialized", "True"),
        ("Ready", "False"),
        ("ContainersReady", "False"),
    ] {
        let own = condition(&status, kind);
        assert_eq!(
            (own.status.as_str(), own.reason.as_deref()),
            (expected, Some("PodCompleted"))
        );
    }
    let status = Case::new("Never", "a1", "a1:exited=1").compute();
    assert_eq!(
        condition(&status, "Ready").reason.as_deref(),
        Some("PodFailed")
    );
}

#[test]
fn a_sidecar_that_starts_again_does_not_undo_the_initialization() {
    let status = Case::new("Always", "s1 a1", "s1:exited=1 a1:running").compute();
    assert_eq!(condition(&status, "Initialized").status, "True");
    let ready = condition(&status, "Ready");
    assert_eq!(
        ready.message.as_deref(),
        Some("containers with unready status: [s1]")
    );
    assert_eq!(status.phase.as_deref(), Some("Running"));
}

#[test]
fn times_of_transitions_are_kept_while_nothing_changes() {
    let mut case = Case::new("Always", "a1", "");
    let first = case.compute();
    let second = case.then("a1:running");
    let third = case.then("a1:running");
    let time = |status: &PodStatus, kind: &str| condition(status, kind).last_transition_time;
    assert_eq!(time(&first, "PodScheduled"), time(&third, "PodScheduled"));
    assert_ne!(time(&first, "Ready"), time(&second, "Ready"));
    assert_eq!(time(&second, "Ready"), time(&third, "Ready"));
    assert_eq!(first.start_time, third.start_time);
}

#[test]
fn readiness_gates_read_conditions_of_other_writers() {
    let mut case = Case::new("Always", "a1", "a1:running");
    let gates = json!([{"conditionType": "example.org/Gate"}]);
    case.pod.spec.as_mut().unwrap().readiness_gates = serde_json::from_value(gates).unwrap();
    let message = |case: &Case| condition(&case.compute(), "Ready").message;
    assert_eq!(
        message(&case).as_deref(),
        Some("corresponding condition of pod readiness gate \"example.org/Gate\" does not exist.")
    );
    let with = |status: &str| {
        serde_json::from_value(json!({"conditions": [
            {"type": "example.org/Gate", "status": status},
        ]}))
        .unwrap()
    };
    case.pod.status = Some(with("False"));
    assert_eq!(
        message(&case).as_deref(),
        Some("the status of pod readiness gate \"example.org/Gate\" is not \"True\", but False")
    );
    case.pod.status = Some(with("True"));
    assert_eq!(condition(&case.compute(), "Ready").status, "True");
}

#[test]
fn evicted_pod_that_completed_may_succeed() {
    let mut case = Case::new("Never", "a1", "a1:exited=0");
    case.stage = Stage::Terminating;
    let mut forced = Forced {
        reason: "Terminated".to_owned(),
        message: "off".to_owned(),
        is_disruption: true,
        condition_message: Some("going off"),
        keeps_success: true,
    };
    case.forced = Some(forced.clone());
    let status = case.compute();
    assert_eq!(status.phase.as_deref(), Some("Succeeded"));
    assert_eq!(status.reason.as_deref(), Some("Terminated"));
    let disruption = condition(&status, "DisruptionTarget");
    assert_eq!(disruption.message.as_deref(), Some("going off"));
    forced.keeps_success = false;
    case.forced = Some(forced);
    assert_eq!(case.compute().phase.as_deref(), Some("Failed"));
}

#[test]
fn eviction_is_final_whatever_the_containers_exit_with() {
    let mut case = Case::new("Always", "a1", "a1:running");
    case.stage = Stage::Terminating;
    case.forced = Some(Forced {
        reason: "Evicted".to_owned(),
        message: "low on memory".to_owned(),
        is_disruption: true,
        ..Forced::default()
    });
    let first = case.compute();
    let status = case.then("a1:exited=0");
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    assert_eq!(status.reason.as_deref(), Some("Evicted"));
    let disruption = condition(&status, "DisruptionTarget");
    assert_eq!(disruption.reason.as_deref(), Some("TerminationByKubelet"));
    let time = |status| condition(status, "DisruptionTarget").last_transition_time;
    assert_eq!(time(&first), time(&status));
    let conditions = status.conditions.as_ref().unwrap();
    let count = conditions
        .iter()
        .filter(|c| c.type_ == "DisruptionTarget")
        .count();
    assert_eq!(count, 1);
    // The API learns of it when nothing runs any more.
    let api = PodStatus {
        phase: Some("Running".to_owned()),
        ..PodStatus::default()
    };
    let shown = for_api(&case.pod, &api, &status, true, case.now);
    assert_eq!(shown.phase.as_deref(), Some("Running"));
    assert!(shown.reason.is_none());
    let kinds = |status: &PodStatus| -> Vec<String> {
        let conditions = status.conditions.iter().flatten();
        conditions
            .map(|condition| condition.type_.clone())
            .collect()
    };
    assert!(!kinds(&shown).contains(&"DisruptionTarget".to_owned()));
    let shown = for_api(&case.pod, &api, &status, false, case.now);
    assert_eq!(shown.phase.as_deref(), Some("Failed"));
    assert!(kinds(&shown).contains(&"DisruptionTarget".to_owned()));
}

#[test]
fn pod_ips_follow_the_order_of_the_nodes_families() {
    let ips = |list: &[&str], host: &[&str]| {
        let list: Vec<String> = list.iter().map(ToString::to_string).collect();
        let host: Vec<IpAddr> = host.iter().map(|ip| ip.parse().unwrap()).collect();
        sorted_ips(&list, &host)
    };
    let both = ["fd00::2", "10.0.0.2", "10.0.0.3"];
    assert_eq!(ips(&both, &["192.168.0.1"]), ["10.0.0.2", "fd00::2"]);
    assert_eq!(ips(&both, &["fd00::1"]), ["fd00::2", "10.0.0.2"]);
    assert_eq!(ips(&both, &[]), ["10.0.0.2", "fd00::2"]);
    let mut case = Case::new("Always", "a1", "");
    case.pod.spec.as_mut().unwrap().host_network = Some(true);
    case.observed.sandboxes[0].ips.clear();
    case.host_ips.push("fd00::1".parse().unwrap());
    let status = case.compute();
    let all: Vec<String> = status
        .pod_ips
        .unwrap()
        .into_iter()
        .map(|ip| ip.ip)
        .collect();
    assert_eq!(all, ["192.168.0.1", "fd00::1"]);
    // What has been stopped keeps its address.
    let mut case = Case::new("Never", "a1", "a1:running");
    case.previous = case.compute();
    case.observed.sandboxes[0].is_ready = false;
    case.stage = Stage::Terminated;
    assert_eq!(case.compute().pod_ip.as_deref(), Some("10.0.0.1"));
}

#[test]
fn messages_of_all_containers_together_are_limited() {
    let mut case = Case::new("Never", "a1 a2 a3", "a1:exited=1 a2:exited=1 a3:exited=1");
    for container in &mut case.observed.containers {
        container.message = "é".repeat(4096);
    }
    let status = case.compute();
    let message = end(&own(&status, "a1")).message.unwrap();
    assert_eq!(message.len(), 4096);
}

#[test]
fn every_container_is_terminated_in_the_end() {
    let mut status = Case::new("Always", "a1 a2", "a1:running").compute();
    close(&pod("Always", "a1 a2"), &mut status);
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    for name in ["a1", "a2"] {
        let end = end(&own(&status, name));
        assert_eq!(end.exit_code, 137);
        assert_eq!(end.reason.as_deref(), Some("ContainerStatusUnknown"));
    }
    // Regular containers that were never to start have not failed.
    let mut status = Case::new("Never", "i1 i2 a1", "i1:exited=1").compute();
    close(&pod("Never", "i1 i2 a1"), &mut status);
    assert_eq!(waiting_reason(&own(&status, "a1")), "PodInitializing");
    assert_eq!(waiting_reason(&own(&status, "i2")), "PodInitializing");
    assert_eq!(end(&own(&status, "i1")).exit_code, 1);
}

#[test]
fn status_patch_sends_changes_and_removals() {
    let mut case = Case::new("Always", "a1", "");
    let first = case.compute();
    assert_eq!(patch("u", &first, &first), None);
    let second = case.then("a1:running");
    let sent = patch("u", &first, &second).unwrap();
    assert_eq!(sent["metadata"]["uid"], "u");
    let status = sent["status"].as_object().unwrap();
    let mut fields: Vec<&str> = status.keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["conditions", "containerStatuses", "phase"]);
    let conditions = sent["status"]["conditions"].as_array().unwrap();
    let ready = conditions.iter().find(|c| c["type"] == "Ready").unwrap();
    assert_eq!(ready["status"], "True");
    assert!(ready["reason"].is_null() && ready.get("reason").is_some());
    let mut without = second.clone();
    let conditions = without.conditions.as_mut().unwrap();
    conditions.retain(|condition| condition.type_ != "Ready");
    without.pod_ips = Some(vec![PodIP {
        ip: "10.0.0.9".to_owned(),
    }]);
    let sent = patch("u", &second, &without).unwrap();
    assert_eq!(
        sent["status"]["conditions"],
        json!([{"$patch": "delete", "type": "Ready"}])
    );
    assert_eq!(
        sent["status"]["podIPs"],
        json!([{"$patch": "replace"}, {"ip": "10.0.0.9"}])
    );
}

#[test]
fn resource_status_has_the_actual_resources() {
    use plimsoll_runtime::wire::LinuxContainerResources;
    let mut case = Case::new("Always", "a1", "a1:running");
    let stated = json!({
        "requests": {"cpu": "500m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"},
    });
    case.pod.spec.as_mut().unwrap().containers[0].resources =
        serde_json::from_value(stated).unwrap();
    let of = |case: &Case| own(&case.compute(), "a1").resources.unwrap();
    let plain = of(&case);
    assert_eq!(plain.limits.as_ref().unwrap()["cpu"].0, "1");
    case.observed.containers[0].resources = Some(LinuxContainerResources {
        cpu_shares: 1024,
        cpu_quota: 200_000,
        cpu_period: 100_000,
        memory_limit_in_bytes: 256 << 20,
        ..LinuxContainerResources::default()
    });
    let actual = of(&case);
    let (requests, limits) = (actual.requests.unwrap(), actual.limits.unwrap());
    assert_eq!(requests["cpu"].0, "1");
    assert_eq!(
        (limits["cpu"].0.as_str(), limits["memory"].0.as_str()),
        ("2", "256Mi")
    );
    let allocated = own(&case.compute(), "a1").allocated_resources.unwrap();
    assert_eq!(allocated["cpu"].0, "500m");
}
