//! The status of a pod in the API.
//!
//! [`compute`] turns what the runtime has, what probes found and why starts failed into a
//! [`PodStatus`]. It is a function of its input: reading files and writing to the API are for
//! others. A terminal phase is final, times of transitions are kept, and what was once known of a
//! container's end is not forgotten.
//!
//! Matches v1.36 pkg/kubelet/kubelet_pods.go, `generateAPIPodStatus`, and pkg/kubelet/status.
//!
//! Reading order: this file, `containers` (one status per container), `phase`, `conditions`,
//! `resources` (limits in force), `last` (what is filled in when a pod is over), `merge` (what the
//! API gets to see).

mod conditions;
mod containers;
mod last;
mod merge;
mod phase;
mod resources;

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus};
use plimsoll_core::eviction::Eviction;
use plimsoll_core::object::pod::PodView;
use plimsoll_core::object::pod::status::{DISRUPTION_TARGET, Failure};
use plimsoll_core::object::timestamp::Timestamp;

use super::observed::Observed;
use super::plan::{Actuated, Results};
use super::restart;
use crate::pod_fields;

pub use last::close;
pub use merge::{for_api, patch};

/// Bytes of termination messages a status may hold, of all containers together.
const MESSAGE_BYTES: usize = 12 * 1024;

/// Why a container could not be started, or has to wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartFailure {
    /// In one word: `CrashLoopBackOff`, `ErrImagePull`.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

/// That a pod is ended from outside: the reason stands in its status whatever its containers do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forced {
    /// Goes to `status.reason`.
    pub reason: String,
    /// Goes to `status.message`.
    pub message: String,
    /// Whether the pod is ended for the sake of others.
    pub is_disruption: bool,
    /// What the condition says of that, where it is not the message.
    pub condition_message: Option<&'static str>,
    /// Whether a pod that has done all its work is left to have succeeded.
    pub keeps_success: bool,
}

impl Forced {
    /// That it is evicted.
    pub fn evicted(eviction: &Eviction) -> Forced {
        let failure = eviction.failure();
        Forced {
            reason: failure.reason.to_owned(),
            message: failure.message.to_owned(),
            is_disruption: failure.is_disruption,
            ..Forced::default()
        }
    }
}

/// What a status is made from.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The pod with the resources allocated to it, and with the status the API has.
    pub pod: &'a Pod,
    /// What the runtime has.
    pub observed: &'a Observed,
    /// The runtime's name, the prefix of container ids.
    pub runtime_name: &'a str,
    /// The status computed last; the API's if there is none.
    pub previous: &'a PodStatus,
    /// Why starts failed, by name of the container.
    pub failures: &'a BTreeMap<String, StartFailure>,
    /// What probes have found, by runtime id.
    pub health: &'a Results,
    /// What containers were given last.
    pub actuated: &'a Actuated,
    /// Conditions about a resize.
    pub resize: &'a [PodCondition],
    /// Addresses of the node.
    pub host_ips: &'a [IpAddr],
    /// How far the pod is from its end.
    pub stage: Stage,
    /// That it is ended from outside.
    pub forced: Option<&'a Forced>,
    /// The time.
    pub now: Timestamp,
}

/// How far a pod is from its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It is to run.
    #[default]
    Running,
    /// It is being stopped.
    Terminating,
    /// Nothing of it runs, and nothing will.
    Terminated,
}

/// Computes the status.
pub fn compute(input: Input<'_>) -> PodStatus {
    let Input { pod, previous, .. } = input;
    let mut status = PodStatus {
        qos_class: PodView::from_api(pod)
            .ok()
            .map(|view| view.qos_class().as_str().to_owned()),
        container_statuses: Some(containers::app(input)),
        init_container_statuses: Some(containers::init(input)).filter(|list| !list.is_empty()),
        ephemeral_container_statuses: Some(containers::ephemeral(input))
            .filter(|list| !list.is_empty()),
        observed_generation: pod.metadata.generation.max(previous.observed_generation),
        ..PodStatus::default()
    };
    resources::add_pod_level(input, &mut status);
    set_phase(input, &mut status);
    conditions::set(input, &mut status);
    set_addresses(input, &mut status);
    status.start_time = previous
        .start_time
        .clone()
        .or_else(|| Some(input.now.to_api_seconds()));
    limit_messages(pod, &mut status);
    status
}

/// The status of a pod that the node does not take.
pub fn rejected(pod: &Pod, reason: &str, message: &str, now: Timestamp) -> PodStatus {
    let qos_class = PodView::from_api(pod)
        .ok()
        .map(|view| view.qos_class().as_str().to_owned());
    let previous = pod.status.as_ref();
    PodStatus {
        qos_class,
        phase: Some("Failed".to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(format!("Pod was rejected: {message}")),
        observed_generation: pod.metadata.generation,
        start_time: previous
            .and_then(|status| status.start_time.clone())
            .or_else(|| Some(now.to_api_seconds())),
        ..PodStatus::default()
    }
}

/// All container statuses that conditions and phase look at: init containers, then regular ones.
fn all_containers(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    let init = status.init_container_statuses.iter().flatten();
    init.chain(status.container_statuses.iter().flatten())
}

fn find<'a>(status: &'a PodStatus, name: &str) -> Option<&'a ContainerStatus> {
    all_containers(status).find(|own| own.name == name)
}

fn set_phase(input: Input<'_>, status: &mut PodStatus) {
    let Input { pod, previous, .. } = input;
    let api_phase = pod_fields::phase(pod);
    let previous_phase = previous.phase.as_deref().unwrap_or_default();
    let mut phase = phase::compute(input, status);
    if !pod_fields::is_terminal_phase(phase) {
        // A pod never comes back from a terminal phase.
        phase = match (previous_phase, api_phase) {
            ("Failed", _) => "Failed",
            ("Succeeded", _) => "Succeeded",
            (_, "Failed") => "Failed",
            (_, "Succeeded") => "Succeeded",
            _ => phase,
        };
    }
    if phase == previous_phase {
        let api = pod.status.as_ref();
        let kept = |own: &Option<String>, api: Option<&String>| own.clone().or(api.cloned());
        status.reason = kept(&previous.reason, api.and_then(|s| s.reason.as_ref()));
        status.message = kept(&previous.message, api.and_then(|s| s.message.as_ref()));
    }
    status.phase = Some(phase.to_owned());
    if let Some(forced) = input.forced
        && !pod_fields::is_terminal_phase(api_phase)
    {
        let has_succeeded = phase == "Succeeded" && forced.keeps_success;
        let failure = Failure {
            reason: &forced.reason,
            message: &forced.message,
            is_disruption: forced.is_disruption,
            generation: pod_fields::generation(pod),
        };
        // The condition's place and time come with the others, see `conditions`.
        failure.apply(status, input.now);
        if has_succeeded {
            status.phase = Some(phase.to_owned());
        }
        let mut conditions = status.conditions.iter_mut().flatten();
        let disruption = conditions.find(|condition| condition.type_ == DISRUPTION_TARGET);
        if let (Some(condition), Some(message)) = (disruption, forced.condition_message) {
            condition.message = Some(message.to_owned());
        }
    }
    if pod_fields::is_terminal_phase(api_phase) {
        status.phase = Some(api_phase.to_owned());
    }
}

/// The pod's addresses in the order of the node's families, and the node's own.
fn set_addresses(input: Input<'_>, status: &mut PodStatus) {
    let Input { pod, previous, .. } = input;
    let mut ips = sorted_ips(input.observed.ips(), input.host_ips);
    if ips.is_empty() && input.stage > Stage::Running {
        // The runtime forgets addresses of what it has stopped; people still want to know them.
        let known = previous.pod_ips.iter().flatten();
        ips = known.map(|ip| ip.ip.clone()).collect();
    }
    if let [primary, ..] = input.host_ips {
        status.host_ip = Some(primary.to_string());
        let all = input.host_ips.iter().take(2);
        status.host_ips = Some(all.map(|ip| HostIP { ip: ip.to_string() }).collect());
        if pod_fields::uses_host_network(pod) {
            if ips.is_empty() {
                ips.push(primary.to_string());
            }
            if let ([_, second, ..], [only]) = (input.host_ips, ips.as_slice()) {
                let is_other_family = only
                    .parse::<IpAddr>()
                    .is_ok_and(|only| only.is_ipv4() != second.is_ipv4());
                if is_other_family {
                    ips.push(second.to_string());
                }
            }
        }
    } else {
        status.host_ip.clone_from(&previous.host_ip);
        status.host_ips.clone_from(&previous.host_ips);
    }
    status.pod_ip = ips.first().cloned();
    status.pod_ips = (!ips.is_empty()).then(|| ips.into_iter().map(|ip| PodIP { ip }).collect());
}

/// The first address of the node's family, then the first of the other.
pub fn sorted_ips(ips: &[String], host_ips: &[IpAddr]) -> Vec<String> {
    let wants_v4 = host_ips.first().is_none_or(IpAddr::is_ipv4);
    let parsed: Vec<IpAddr> = ips.iter().filter_map(|ip| ip.parse().ok()).collect();
    let first_of = |is_v4: bool| parsed.iter().find(|ip| ip.is_ipv4() == is_v4);
    let chosen = first_of(wants_v4).into_iter().chain(first_of(!wants_v4));
    chosen.map(IpAddr::to_string).collect()
}

/// Cuts termination messages so that all of them together are not too long.
fn limit_messages(pod: &Pod, status: &mut PodStatus) {
    let bytes = MESSAGE_BYTES / pod_fields::parts(pod).count().max(1);
    let init = status.init_container_statuses.iter_mut().flatten();
    let app = status.container_statuses.iter_mut().flatten();
    let ephemeral = status.ephemeral_container_statuses.iter_mut().flatten();
    for own in init.chain(app).chain(ephemeral) {
        for state in [&mut own.state, &mut own.last_state].into_iter().flatten() {
            let ended = state.terminated.as_mut();
            if let Some(message) = ended.and_then(|ended| ended.message.as_mut()) {
                message.truncate(message.floor_char_boundary(bytes));
            }
        }
    }
}

/// Whether all containers start over.
fn is_restarting_all(input: Input<'_>) -> bool {
    restart::is_restarting_all(input.pod, input.observed, input.previous)
}

/// The disruption condition that the pod already has.
fn known_disruption(input: Input<'_>) -> Option<PodCondition> {
    let mut previous = input.previous.conditions.iter().flatten();
    let known = previous.find(|condition| condition.type_ == DISRUPTION_TARGET);
    known.cloned()
}

#[cfg(test)]
mod tests;
