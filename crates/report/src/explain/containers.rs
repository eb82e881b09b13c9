//! Containers that fail: crashes, failing probes, images that cannot be pulled, failed starts,
//! missing volumes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    Event, Pod,
};
use plimsoll_core::object::timestamp::Timestamp;

use crate::text::span;

use super::ended::OOM_KILLED;
use super::events;
use super::probe;
use super::report::Trouble;

/// The last log lines of each container, or why they are unknown.
pub type Logs = BTreeMap<String, Result<Vec<String>, String>>;

/// Waiting reasons of a container whose image cannot be pulled.
const PULL_REASONS: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
];
/// Waiting reasons of a container that could not be created or started.
const START_REASONS: [&str; 5] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "PreCreateHookError",
    "PostStartHookError",
];
/// Termination reasons of a created container whose program could not be started.
const NOT_STARTED: [&str; 2] = ["StartError", "ContainerCannotRun"];
/// Warning events about what a pod needs before its containers start.
const PREPARATION: [&str; 5] = [
    "FailedMount",
    "FailedAttachVolume",
    "FailedMapVolume",
    "FailedCreatePodSandBox",
    "NetworkNotReady",
];

/// The containers whose log shows why they do not run, and whether the log is that of the previous
/// run.
pub fn with_relevant_log(pod: &Pod) -> Vec<(String, bool)> {
    let failed = statuses(pod).filter_map(|status| {
        let ended = last_end(status)?;
        let reason = ended.reason.as_deref().unwrap_or_default();
        let is_failure = ended.exit_code != 0 || is_waiting(status);
        (is_failure && !NOT_STARTED.contains(&reason)).then(|| {
            let has_ended = state(status).is_some_and(|state| state.terminated.is_some());
            (status.name.clone(), !has_ended)
        })
    });
    failed.collect()
}

/// The failures of the containers of a pod; containers that others wait for come first.
pub(crate) fn explain_containers(pod: &Pod, events: &[Event], logs: &Logs) -> Vec<Trouble> {
    let mut troubles: Vec<Trouble> = statuses(pod)
        .filter_map(|status| trouble(pod, status, events, logs))
        .collect();
    let is_unprepared = statuses(pod).any(|status| {
        let waiting = state(status).and_then(|state| state.waiting.as_ref());
        let reason = waiting.and_then(|waiting| waiting.reason.as_deref());
        matches!(reason, Some("ContainerCreating" | "PodInitializing"))
    });
    if troubles.is_empty() && is_unprepared {
        troubles.extend(unprepared(events));
    }
    troubles
}

fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.iter();
    status.flat_map(|status| {
        let init = status.init_container_statuses.iter().flatten();
        init.chain(status.container_statuses.iter().flatten())
    })
}

fn state(status: &ContainerStatus) -> Option<&ContainerState> {
    status.state.as_ref()
}

fn is_waiting(status: &ContainerStatus) -> bool {
    state(status).is_some_and(|state| state.waiting.is_some())
}

/// The termination of a container, present or before its restart.
fn last_end(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    let states = [&status.state, &status.last_state].into_iter();
    let mut ends = states.filter_map(|state| state.as_ref()?.terminated.as_ref());
    ends.next()
}

fn trouble(pod: &Pod, status: &ContainerStatus, events: &[Event], logs: &Logs) -> Option<Trouble> {
    let waiting = state(status).and_then(|state| state.waiting.as_ref());
    let reason = waiting.and_then(|waiting| waiting.reason.as_deref());
    let reason = reason.unwrap_or_default();
    if let Some(waiting) = waiting.filter(|_| PULL_REASONS.contains(&reason)) {
        return Some(pull(pod, status, waiting, events));
    }
    if let Some(waiting) = waiting.filter(|_| START_REASONS.contains(&reason)) {
        let message = waiting.message.clone().unwrap_or_default();
        return Some(not_started(status, reason, &message));
    }
    let ended = last_end(status);
    let end_reason = ended.and_then(|ended| ended.reason.as_deref());
    if end_reason == Some(OOM_KILLED) {
        // `ended::explain_oom` reports it with its limit and usage.
        return None;
    }
    if let Some(ended) = ended.filter(|ended| {
        let reason = ended.reason.as_deref().unwrap_or_default();
        NOT_STARTED.contains(&reason)
    }) {
        let message = ended.message.clone().unwrap_or_default();
        return Some(not_started(
            status,
            end_reason.unwrap_or_default(),
            &message,
        ));
    }
    let spec = container(pod, &status.name);
    if let Some(failing) = probe::failing(status, spec, events) {
        return Some(Trouble {
            log: log_of(status, logs),
            ..failing
        });
    }
    let ended = ended.filter(|ended| ended.exit_code != 0 || reason == "CrashLoopBackOff")?;
    Some(Trouble {
        log: log_of(status, logs),
        ..crash(pod, status, ended, waiting)
    })
}

fn container<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    let init = spec.init_containers.iter().flatten();
    let mut all = spec.containers.iter().chain(init);
    all.find(|container| container.name == name)
}

fn log_of(status: &ContainerStatus, logs: &Logs) -> Vec<String> {
    match logs.get(&status.name) {
        Some(Ok(lines)) => lines.clone(),
        _ => Vec::new(),
    }
}

/// ` (restarted 3 times)`.
pub(super) fn restarts(status: &ContainerStatus) -> String {
    match status.restart_count {
        0 => String::new(),
        1 => " (restarted once)".to_owned(),
        count => format!(" (restarted {count} times)"),
    }
}

fn crash(
    pod: &Pod,
    status: &ContainerStatus,
    ended: &ContainerStateTerminated,
    waiting: Option<&ContainerStateWaiting>,
) -> Trouble {
    let name = &status.name;
    let code = exit_code(ended);
    let verb = if waiting.is_some() { "ends" } else { "ended" };
    let mut why = vec![format!("{name} ended with {code}{}.", lifetime(ended))];
    if let Some(message) = &ended.message {
        why.push(format!("Its termination message: {}", message.trim()));
    }
    if let Some(message) = waiting.and_then(|waiting| waiting.message.as_deref()) {
        // `back-off 40s restarting failed container=main pod=web_default(…)`
        let pause = message.strip_prefix("back-off ");
        let pause = pause.and_then(|rest| rest.split_whitespace().next());
        why.extend(pause.map(|pause| format!("It is started again after a back-off of {pause}.")));
    }
    Trouble {
        container: Some(name.clone()),
        reason: match waiting {
            Some(waiting) => waiting.reason.clone().unwrap_or_default(),
            None => ended.reason.clone().unwrap_or_default(),
        },
        summary: format!("container {name} {verb} with {code}{}", restarts(status)),
        why,
        log: Vec::new(),
        help: help_after(pod, ended),
    }
}

/// `exit code 139 (SIGSEGV)`.
fn exit_code(ended: &ContainerStateTerminated) -> String {
    let code = ended.exit_code;
    let signal = match ended.signal.unwrap_or(code - 128) {
        2 => "SIGINT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        15 => "SIGTERM",
        _ => return format!("exit code {code}"),
    };
    format!("exit code {code} ({signal})")
}

fn lifetime(ended: &ContainerStateTerminated) -> String {
    let time = |time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time| {
        Timestamp::from_rfc3339(&time.0.to_string())
    };
    let started = ended.started_at.as_ref().and_then(time);
    let finished = ended.finished_at.as_ref().and_then(time);
    match (started, finished) {
        (Some(started), Some(finished)) => {
            let at = events::whole_seconds(finished);
            let ran = finished.saturating_since(started).as_secs_f64();
            match ran < 1.0 {
                true => format!(" at {at}, within a second of its start"),
                false => format!(" at {at}, {} after its start", span(ran)),
            }
        }
        _ => String::new(),
    }
}

fn help_after(pod: &Pod, ended: &ContainerStateTerminated) -> Vec<String> {
    let spec = pod.spec.as_ref();
    let policy = spec.and_then(|spec| spec.restart_policy.as_deref());
    let text = match ended.exit_code {
        0 if policy.is_none_or(|policy| policy == "Always") => {
            "restartPolicy Always starts it again though it succeeded: keep its process in the \
             foreground, or run it as a Job"
        }
        126 => "the command cannot be executed: compare command and args with the image",
        127 => "the command was not found: compare command and args with the image",
        _ => return Vec::new(),
    };
    vec![text.to_owned()]
}

fn not_started(status: &ContainerStatus, reason: &str, message: &str) -> Trouble {
    let name = &status.name;
    let help = match reason {
        "CreateContainerConfigError" => {
            "create the ConfigMap, Secret or key that is missing, or mark the reference optional"
        }
        "PostStartHookError" => "correct lifecycle.postStart of the container",
        _ => "correct command, args and workingDir of the container, or its image",
    };
    Trouble {
        container: Some(name.clone()),
        reason: reason.to_owned(),
        summary: format!("container {name} cannot be started{}", restarts(status)),
        why: vec![format!("{reason}: {}", message.trim())],
        log: Vec::new(),
        help: vec![help.to_owned()],
    }
}

fn pull(
    pod: &Pod,
    status: &ContainerStatus,
    waiting: &ContainerStateWaiting,
    events: &[Event],
) -> Trouble {
    let name = &status.name;
    let reason = waiting.reason.clone().unwrap_or_default();
    let spec = container(pod, name);
    let image = spec.and_then(|container| container.image.as_deref());
    let image = image.unwrap_or(&status.image);
    // During the back-off the status has only the reason ImagePullBackOff; the event has the error.
    let failures = events.iter().filter(|event| {
        let message = event.message.as_deref().unwrap_or_default();
        event.reason.as_deref() == Some("Failed") && message.contains(image)
    });
    let failure = failures.max_by_key(|event| events::timestamp(event));
    let message = failure.and_then(|event| event.message.clone());
    let message = message.or_else(|| waiting.message.clone());
    Trouble {
        container: Some(name.clone()),
        summary: format!("the image {image} of container {name} cannot be pulled"),
        why: vec![format!("{reason}: {}", message.unwrap_or_default().trim())],
        log: Vec::new(),
        help: vec![match reason.as_str() {
            "ErrImageNeverPull" => {
                "import the image on the node, or change imagePullPolicy Never".to_owned()
            }
            "InvalidImageName" => format!("correct the name of the image: {image}"),
            _ => {
                "correct the name or tag of the image; a private registry needs imagePullSecrets, \
                  and the node has to reach the registry"
                    .to_owned()
            }
        }],
        reason,
    }
}

/// Failures of what the pod needs before any container starts.
fn unprepared(events: &[Event]) -> Option<Trouble> {
    let failures = events.iter().filter(|event| {
        let reason = event.reason.as_deref().unwrap_or_default();
        PREPARATION.contains(&reason)
    });
    let failure = failures.max_by_key(|event| events::timestamp(event))?;
    let reason = failure.reason.clone().unwrap_or_default();
    let what = match reason.as_str() {
        "FailedCreatePodSandBox" | "NetworkNotReady" => "its sandbox cannot be made",
        _ => "a volume cannot be mounted",
    };
    Some(Trouble {
        container: None,
        summary: what.to_owned(),
        why: vec![format!(
            "{reason}: {}",
            failure.message.clone().unwrap_or_default().trim()
        )],
        log: Vec::new(),
        help: Vec::new(),
        reason,
    })
}
