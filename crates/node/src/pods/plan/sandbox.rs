//! Whether the pod needs a new sandbox, and what is started in it.
//!
//! Matches v1.36 pkg/kubelet/kuberuntime/util/util.go, `PodSandboxChanged`.

use k8s_openapi::api::core::v1::Pod;

use super::{Input, Plan, SandboxPlan, Start};
use crate::pod_fields::{self, Kind};
use crate::pods::observed::{Observed, State};
use crate::pods::restart;

/// The sandbox to use: the newest one if it is the only ready one and has what the pod needs.
pub(crate) fn compute(pod: &Pod, observed: &Observed) -> SandboxPlan {
    let Some(newest) = observed.sandboxes.first() else {
        return SandboxPlan {
            is_new: true,
            id: None,
            attempt: 0,
        };
    };
    let ready = observed.sandboxes.iter().filter(|s| s.is_ready).count();
    let uses_host_network = pod_fields::uses_host_network(pod);
    let is_of_other_network = newest.uses_host_network != uses_host_network;
    let lacks_address = !uses_host_network && newest.has_network && newest.ips.is_empty();
    let is_new = ready > 1 || !newest.is_ready || is_of_other_network || lacks_address;
    let is_usable = ready == 1 && newest.is_ready;
    SandboxPlan {
        is_new,
        id: (!(is_usable && is_of_other_network)).then(|| newest.id.clone()),
        attempt: newest.attempt + u32::from(is_new),
    }
}

/// What starts in a new sandbox: everything from the beginning, unless the pod is done.
pub(super) fn start_over(input: Input<'_>, plan: &mut Plan) {
    let Input { pod, observed, .. } = input;
    let was_tried = plan.sandbox.attempt != 0 && !observed.containers.is_empty();
    if !restart::pod_restarts_failed(pod) && was_tried {
        plan.sandbox.is_new = false;
        return;
    }
    let app = pod_fields::app_containers(pod).iter().enumerate();
    let wanted: Vec<Start> = app
        .filter(|(_, container)| {
            let has_succeeded = observed
                .latest(&container.name)
                .is_some_and(|seen| seen.state == State::Exited && seen.exit_code == 0);
            !(has_succeeded && restart::runs_until_success(pod, container))
        })
        .map(|(index, _)| Start {
            kind: Kind::App,
            index,
        })
        .collect();
    if wanted.is_empty() && has_created_any_app(pod, observed) {
        plan.sandbox.is_new = false;
    } else if let Some(first) = pod_fields::init_containers(pod).first() {
        plan.start = vec![super::init::start_of(first, 0)];
    } else {
        plan.start = wanted;
    }
}

/// Whether any regular container got as far as being made, which is after all init containers.
pub(crate) fn has_created_any_app(pod: &Pod, observed: &Observed) -> bool {
    pod_fields::app_containers(pod).iter().any(|container| {
        observed
            .latest(&container.name)
            .is_some_and(|seen| seen.state != State::Unknown)
    })
}
