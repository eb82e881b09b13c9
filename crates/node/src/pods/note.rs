//! Events about a pod, in the words of the kubelet.
//!
//! Reasons match v1.36 pkg/kubelet/events/event.go byte for byte.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod};
use plimsoll_core::admission::node_admit;
pub use plimsoll_core::object::event::Note;
use plimsoll_core::object::timestamp::Timestamp;

use crate::pod_fields::{self, Kind};

/// The note of the pod's eviction by a decision of that time.
pub fn evicted(
    message: impl Into<String>,
    annotations: BTreeMap<String, String>,
    at: Timestamp,
) -> Note {
    Note {
        annotations,
        at: Some(at),
        ..Note::warning(node_admit::REASON, message)
    }
}

/// The same note about a container of the pod. Ids of containers differ each time, names do not,
/// and events that are alike are counted: so the name stands for the id.
#[must_use]
pub fn about(mut note: Note, pod: &Pod, container: &Container, id: Option<&str>) -> Note {
    if let Some(id) = id.filter(|id| !id.is_empty()) {
        note.message = note.message.replace(id, &container.name);
    }
    note.field_path = pod_fields::part(pod, &container.name).map(|part| {
        let list = match part.kind {
            Kind::Init | Kind::Sidecar => "initContainers",
            Kind::App => "containers",
            Kind::Ephemeral => "ephemeralContainers",
        };
        format!("spec.{list}{{{}}}", container.name)
    });
    note
}

/// Reasons of events.
pub mod reason {
    /// A container was made.
    pub const CREATED: &str = "Created";
    /// A container was started.
    pub const STARTED: &str = "Started";
    /// A container, image or directory could not be made.
    pub const FAILED: &str = "Failed";
    /// A container is being stopped.
    pub const KILLING: &str = "Killing";
    /// A container or an image has to wait.
    pub const BACK_OFF: &str = "BackOff";
    /// A pod makes room for a critical one.
    pub const PREEMPTING: &str = "Preempting";
    /// The runtime took too long to stop a pod.
    pub const EXCEEDED_GRACE_PERIOD: &str = "ExceededGracePeriod";
    /// A pod could not be stopped.
    pub const FAILED_KILL_POD: &str = "FailedKillPod";
    /// The cgroup of a pod could not be made.
    pub const FAILED_CREATE_POD_CONTAINER: &str = "FailedCreatePodContainer";
    /// Volumes could not be made.
    pub const FAILED_MOUNT: &str = "FailedMount";
    /// The network is not there yet.
    pub const NETWORK_NOT_READY: &str = "NetworkNotReady";
    /// The state of a pod could not be read.
    pub const FAILED_SYNC: &str = "FailedSync";
    /// An image is being pulled.
    pub const PULLING: &str = "Pulling";
    /// An image is there.
    pub const PULLED: &str = "Pulled";
    /// It could not be found out whether an image is there.
    pub const INSPECT_FAILED: &str = "InspectFailed";
    /// An image is not there and may not be pulled.
    pub const ERR_IMAGE_NEVER_PULL: &str = "ErrImageNeverPull";
    /// A sandbox has to be replaced.
    pub const SANDBOX_CHANGED: &str = "SandboxChanged";
    /// A sandbox could not be made.
    pub const FAILED_CREATE_POD_SAND_BOX: &str = "FailedCreatePodSandBox";
    /// The state of a sandbox could not be read.
    pub const FAILED_POD_SAND_BOX_STATUS: &str = "FailedPodSandBoxStatus";
    /// A probe failed.
    pub const UNHEALTHY: &str = "Unhealthy";
    /// A probe succeeded, with a reservation.
    pub const PROBE_WARNING: &str = "ProbeWarning";
    /// A hook after the start failed.
    pub const FAILED_POST_START_HOOK: &str = "FailedPostStartHook";
    /// A hook before the end failed.
    pub const FAILED_PRE_STOP_HOOK: &str = "FailedPreStopHook";
    /// A resize is being carried out.
    pub const RESIZE_STARTED: &str = "ResizeStarted";
    /// A resize was carried out.
    pub const RESIZE_COMPLETED: &str = "ResizeCompleted";
    /// A resize has to wait for room.
    pub const RESIZE_DEFERRED: &str = "ResizeDeferred";
    /// A resize can never be carried out here.
    pub const RESIZE_INFEASIBLE: &str = "ResizeInfeasible";
    /// A resize went wrong.
    pub const RESIZE_ERROR: &str = "ResizeError";
    /// A hook with HTTPS was answered in plain HTTP.
    pub const LIFECYCLE_HTTP_FALLBACK: &str = "LifecycleHTTPFallback";
    /// The pod ran longer than it may.
    pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
}
