//! What to do next for a pod that is to run.
//!
//! [`compute`] compares the spec with what the runtime has and answers with a [`Plan`]; the worker
//! carries it out in the order of its fields and looks again. Nothing here waits, reads or writes.
//!
//! Matches v1.36 pkg/kubelet/kuberuntime/kuberuntime_manager.go, `computePodActions`.
//!
//! Reading order: this file, `sandbox` (keep or replace), `init` (init containers and sidecars),
//! `app` (regular containers), `resize` (limits changed in place), `waiting` (back-off).

mod app;
mod init;
mod resize;
mod sandbox;
mod waiting;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod};

use super::observed::Observed;
use super::restart;
use crate::pod_fields::{self, Kind};

pub use resize::{Actuated, Amounts, Resize, Update};
pub(crate) use sandbox::compute as compute_sandbox;
pub(crate) use sandbox::has_created_any_app;
pub(crate) use waiting::go_duration;
pub use waiting::{Due, due, key};

/// What is known of the health of containers, by their runtime id.
pub type Results = BTreeMap<String, Health>;

/// What the probes of one container have found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// `None` before there is a result.
    pub liveness: Option<Verdict>,
    /// `None` before there is a result.
    pub readiness: Option<Verdict>,
    /// `None` before there is a result.
    pub startup: Option<Verdict>,
}

/// What a probe has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Success,
    /// Not as it should be.
    Failure,
    /// Not yet known.
    Unknown,
}

/// What a plan is made from.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The pod, with the resources the node has allocated to it.
    pub pod: &'a Pod,
    /// What the runtime has.
    pub observed: &'a Observed,
    /// What probes have found.
    pub health: &'a Results,
    /// The resources containers were given last; `None` if the pod cannot be resized.
    pub actuated: Option<&'a Actuated>,
    /// Whether all containers are to start over.
    pub restarts_all: bool,
}

/// What to do, in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Stop all containers and sandboxes.
    pub kills_pod: bool,
    /// Stop these containers.
    pub kill: Vec<Kill>,
    /// Remove these containers, stopping them first where they run.
    pub reset: Vec<Reset>,
    /// The sandbox to use or to make.
    pub sandbox: SandboxPlan,
    /// Change limits of running containers.
    pub resize: Resize,
    /// Start these containers, in order. An init container that does not start ends the list.
    pub start: Vec<Start>,
}

/// Which sandbox containers are started in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxPlan {
    /// Whether to make a new one.
    pub is_new: bool,
    /// The one to keep, or to be replaced.
    pub id: Option<String>,
    /// The how-manieth of the pod it is.
    pub attempt: u32,
}

/// A container to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kill {
    /// The runtime's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Why, for people.
    pub message: String,
    /// Why, for the choice of its grace period.
    pub reason: KillReason,
}

/// Why a container is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KillReason {
    /// The pod ends, or none of the below.
    #[default]
    Other,
    /// The startup probe failed.
    StartupProbe,
    /// The liveness probe failed.
    LivenessProbe,
}

/// A container to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    /// The runtime's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whether it has to be stopped first.
    pub is_running: bool,
}

/// A container to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Which list it stands in.
    pub kind: Kind,
    /// Where in that list.
    pub index: usize,
}

/// Decides what to do next.
pub fn compute(input: Input<'_>) -> Plan {
    let mut plan = Plan {
        sandbox: sandbox::compute(input.pod, input.observed),
        ..Plan::default()
    };
    plan.kills_pod = plan.sandbox.is_new;
    if input.restarts_all {
        plan.reset = containers_to_reset(input);
        return plan;
    }
    if plan.sandbox.is_new {
        sandbox::start_over(input, &mut plan);
        return plan;
    }
    // People may want to look around even before the pod is initialized.
    for (index, container) in pod_fields::ephemeral_containers(input.pod)
        .iter()
        .enumerate()
    {
        if input.observed.latest(&container.name).is_none() {
            plan.start.push(Start {
                kind: Kind::Ephemeral,
                index,
            });
        }
    }
    let is_initialized = init::compute(input, &mut plan);
    if !plan.kills_pod && is_initialized {
        app::compute(input, &mut plan);
    }
    resize::compute_pod(input, &mut plan);
    plan
}

/// All containers, those last that caused it: as long as they exist, so does the reason.
fn containers_to_reset(input: Input<'_>) -> Vec<Reset> {
    let (mut sources, mut others) = (Vec::new(), Vec::new());
    let app = pod_fields::app_containers(input.pod).iter();
    for container in app.chain(pod_fields::init_containers(input.pod)) {
        let all = input.observed.containers.iter();
        for seen in all.filter(|seen| seen.name == container.name) {
            let has_ended = seen.state == super::observed::State::Exited;
            let reset = Reset {
                id: seen.id.clone(),
                name: seen.name.clone(),
                is_running: !has_ended,
            };
            if has_ended && restart::restarts_all(container, seen.exit_code) {
                sources.push(reset);
            } else {
                others.push(reset);
            }
        }
    }
    others.extend(sources);
    others
}

/// Whether a container was made from another definition than the pod has.
fn is_changed(container: &Container, seen: &super::observed::Container) -> bool {
    super::spec::labels::container_hash(container) != seen.hash
}

#[cfg(test)]
mod tests;
