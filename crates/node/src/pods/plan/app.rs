//! Regular containers: start what is to run, stop what is not well or not what the pod says.

use super::resize::Keep;
use super::{Input, Kill, KillReason, Plan, Start, Verdict, is_changed, resize};
use crate::pod_fields::{self, Kind};
use crate::pods::observed::{self, State};
use crate::pods::restart;

/// Plans regular containers of an initialized pod. If none of them runs or will, the pod ends.
pub(super) fn compute(input: Input<'_>, plan: &mut Plan) {
    let Input { pod, observed, .. } = input;
    let mut is_any_kept = false;
    let mut starts = Vec::new();
    for (index, container) in pod_fields::app_containers(pod).iter().enumerate() {
        let seen = observed.latest(&container.name);
        let Some(seen) = seen.filter(|seen| seen.state == State::Running) else {
            if restart::is_to_start(pod, container, observed) {
                starts.push(index);
                if let Some(seen) = seen.filter(|seen| seen.state == State::Unknown) {
                    let message = format!(
                        "Container is in {:?} state, try killing it before restart",
                        seen.state.as_str()
                    );
                    plan.kill.push(kill(seen, message, KillReason::Other));
                }
            }
            continue;
        };
        let name = &container.name;
        let health = input.health.get(&seen.id).copied().unwrap_or_default();
        let (message, reason, restarts) = if is_changed(container, seen) {
            let message = format!("Container {name} definition changed");
            (message, KillReason::Other, true)
        } else if health.liveness == Some(Verdict::Failure) {
            let message = format!("Container {name} failed liveness probe");
            let restarts = restart::restarts_when_killed(pod, container);
            (message, KillReason::LivenessProbe, restarts)
        } else if health.startup == Some(Verdict::Failure) {
            let message = format!("Container {name} failed startup probe");
            let restarts = restart::restarts_when_killed(pod, container);
            (message, KillReason::StartupProbe, restarts)
        } else {
            match resize::compute_container(input, container, seen, plan) {
                Keep::Yes => is_any_kept = true,
                Keep::No => starts.push(index),
            }
            continue;
        };
        if restarts {
            starts.push(index);
            let message = format!("{message}, will be restarted");
            plan.kill.push(kill(seen, message, reason));
        } else {
            plan.kill.push(kill(seen, message, reason));
        }
    }
    if !is_any_kept && starts.is_empty() {
        plan.kills_pod = true;
        // Sidecars must not keep alive a pod that is done.
        plan.start.clear();
    }
    plan.start.extend(starts.into_iter().map(|index| Start {
        kind: Kind::App,
        index,
    }));
}

fn kill(seen: &observed::Container, message: String, reason: KillReason) -> Kill {
    Kill {
        id: seen.id.clone(),
        name: seen.name.clone(),
        message,
        reason,
    }
}
