//! Init containers run one after another; sidecars are started in turn and kept running.
//!
//! Matches v1.36 pkg/kubelet/kuberuntime/kuberuntime_container.go, `computeInitContainerActions`.

use k8s_openapi::api::core::v1::{Container, Pod};

use super::resize::Keep;
use super::{Input, Kill, KillReason, Plan, Start, Verdict, is_changed, resize};
use crate::pod_fields::{self, Kind};
use crate::pods::observed::{self, Observed, State};
use crate::pods::restart;

/// What is done about one init container or sidecar.
enum Step {
    /// Nothing: it is busy, or done with and others decide.
    Leave,
    /// It has done its part; the next one may start.
    Done,
    /// Start it (again).
    Start,
    /// The pod has failed.
    Fail,
}

/// Plans init containers; answers whether regular containers may run.
///
/// The walk goes from the last to the first, because those that are done may have been removed:
/// whatever comes before one that was started needs no second look, unless it is a sidecar.
pub(super) fn compute(input: Input<'_>, plan: &mut Plan) -> bool {
    let containers = pod_fields::init_containers(input.pod);
    if containers.is_empty() {
        return true;
    }
    let mut is_initialized = is_any_app_active(input.pod, input.observed);
    let mut is_later_one_started = is_initialized;
    let mut starts = Vec::new();
    for (index, container) in containers.iter().enumerate().rev() {
        let is_sidecar = pod_fields::is_sidecar(container);
        let Some(seen) = input.observed.latest(&container.name) else {
            if is_later_one_started && is_sidecar {
                starts.push(index);
            }
            continue;
        };
        if is_later_one_started && !is_sidecar {
            continue;
        }
        let step = if is_sidecar {
            sidecar_step(input, container, seen, plan)
        } else {
            init_step(input, container, seen, plan)
        };
        match step.decision {
            Step::Fail => {
                plan.kills_pod = true;
                plan.start.clear();
                return false;
            }
            Step::Leave => {}
            Step::Start => starts.push(index),
            Step::Done => {
                if index == containers.len() - 1 {
                    is_initialized = true;
                } else if !is_later_one_started {
                    starts.push(index + 1);
                }
                if step.restarts {
                    starts.push(index);
                }
            }
        }
        is_later_one_started = true;
    }
    if !is_later_one_started {
        starts.push(0);
    }
    let starts = starts.into_iter().rev();
    plan.start
        .extend(starts.map(|index| start_of(&containers[index], index)));
    is_initialized
}

/// The start of an init container or sidecar.
pub(super) fn start_of(container: &Container, index: usize) -> Start {
    let kind = match pod_fields::is_sidecar(container) {
        true => Kind::Sidecar,
        false => Kind::Init,
    };
    Start { kind, index }
}

struct Decided {
    decision: Step,
    /// A sidecar that is done is yet to be started again.
    restarts: bool,
}

impl From<Step> for Decided {
    fn from(decision: Step) -> Decided {
        Decided {
            decision,
            restarts: false,
        }
    }
}

/// Whether some regular container runs or is about to: then all init containers were done once.
///
/// One that has ended does not count, as it may be from before the machine was restarted.
fn is_any_app_active(pod: &Pod, observed: &Observed) -> bool {
    pod_fields::app_containers(pod).iter().any(|container| {
        let seen = observed.latest(&container.name);
        seen.is_some_and(|seen| matches!(seen.state, State::Created | State::Running))
    })
}

fn init_step(
    input: Input<'_>,
    container: &Container,
    seen: &observed::Container,
    plan: &mut Plan,
) -> Decided {
    let step = match seen.state {
        // The runtime failed to start it; it would stay so for ever.
        State::Created => Step::Start,
        State::Running => {
            resize::compute_container(input, container, seen, plan);
            Step::Leave
        }
        State::Exited if seen.exit_code == 0 => Step::Done,
        State::Exited if restart::is_to_start(input.pod, container, input.observed) => Step::Start,
        State::Unknown if restart::restarts_when_killed(input.pod, container) => {
            plan.kill.push(kill_unknown(seen));
            Step::Start
        }
        State::Exited | State::Unknown => Step::Fail,
    };
    step.into()
}

fn sidecar_step(
    input: Input<'_>,
    container: &Container,
    seen: &observed::Container,
    plan: &mut Plan,
) -> Decided {
    match seen.state {
        State::Created | State::Exited => Step::Start.into(),
        State::Unknown => {
            plan.kill.push(kill_unknown(seen));
            Step::Start.into()
        }
        State::Running => running_sidecar_step(input, container, seen, plan),
    }
}

fn running_sidecar_step(
    input: Input<'_>,
    container: &Container,
    seen: &observed::Container,
    plan: &mut Plan,
) -> Decided {
    let name = &container.name;
    let health = input.health.get(&seen.id).copied().unwrap_or_default();
    if container.startup_probe.is_some() {
        match health.startup {
            Some(Verdict::Success) => {}
            Some(Verdict::Failure) => {
                let message = format!("Init container {name} failed startup probe");
                plan.kill
                    .push(kill(seen, message, KillReason::StartupProbe));
                return Step::Start.into();
            }
            Some(Verdict::Unknown) | None => return Step::Leave.into(),
        }
    }
    let again = Decided {
        decision: Step::Done,
        restarts: true,
    };
    if is_changed(container, seen) {
        let message = format!("Init container {name} definition changed");
        plan.kill.push(kill(seen, message, KillReason::Other));
        return again;
    }
    if container.liveness_probe.is_some() {
        match health.liveness {
            None => return Step::Done.into(),
            Some(Verdict::Failure) => {
                let message = format!("Init container {name} failed liveness probe");
                plan.kill
                    .push(kill(seen, message, KillReason::LivenessProbe));
                return again;
            }
            Some(Verdict::Success | Verdict::Unknown) => {}
        }
    }
    match resize::compute_container(input, container, seen, plan) {
        Keep::Yes => Step::Done.into(),
        Keep::No => again,
    }
}

fn kill(seen: &observed::Container, message: String, reason: KillReason) -> Kill {
    Kill {
        id: seen.id.clone(),
        name: seen.name.clone(),
        message,
        reason,
    }
}

fn kill_unknown(seen: &observed::Container) -> Kill {
    let message = format!(
        "Init container is in {:?} state, try killing it before restart",
        seen.state.as_str()
    );
    kill(seen, message, KillReason::Other)
}
