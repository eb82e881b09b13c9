//! How much of a container may be swapped out.

pub use crate::config::SwapBehavior;
use crate::object::pod::{ContainerView, PodView, QosClass};
use crate::resources::{Bytes, ResourceName};
use crate::threshold::truncated;

/// What a container may swap on cgroup v2: memory request / machine memory of all swap for a
/// container whose memory request is not its limit, in a Burstable pod that is not critical; else
/// none. Matches v1.36 pkg/kubelet/kuberuntime/kuberuntime_container_linux.go.
pub(super) fn swap_limit(
    pod: &PodView,
    container: &ContainerView,
    behavior: SwapBehavior,
    machine_memory: Bytes,
    swap_capacity: Bytes,
) -> Bytes {
    let request = container
        .resources
        .requests
        .get_or_zero(&ResourceName::MEMORY);
    let limit = container
        .resources
        .limits
        .get_or_zero(&ResourceName::MEMORY);
    // Neither stated is one case of both being equal.
    let may_swap = behavior == SwapBehavior::LimitedSwap
        && !pod.is_critical()
        && pod.qos_class() == QosClass::Burstable
        && request != limit;
    let request = request.value();
    if !may_swap || machine_memory <= Bytes::ZERO || request > machine_memory.0 {
        return Bytes::ZERO;
    }
    #[expect(clippy::cast_precision_loss, reason = "upstream computes in floats")]
    let part = request as f64 / machine_memory.0 as f64 * swap_capacity.0 as f64;
    Bytes(truncated(part))
}
