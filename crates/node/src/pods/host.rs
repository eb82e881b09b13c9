//! What workers need besides the runtime.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::net::IpAddr;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{Container, Pod, ResourceStatus};
use plimsoll_core::resources::Bytes;
use plimsoll_runtime::wire::{
    AuthConfig, ContainerConfig, ImageSpec, LinuxContainerResources, PodSandboxConfig,
};

use super::admission::{Facts, Rejection};
use super::note::Note;

/// Why the host did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct HostError {
    /// What was tried and why it failed, as users read it in statuses and events.
    pub message: String,
}

impl HostError {
    /// An error with that message.
    pub fn new(message: impl Into<String>) -> HostError {
        HostError {
            message: message.into(),
        }
    }
}

/// Why a pod could not be readied.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// Its cgroup could not be made.
    #[error(
        "failed to ensure that the pod: {uid} cgroups exist and are correctly applied: {source}"
    )]
    Cgroup {
        /// Uid of the pod.
        uid: String,
        /// Why.
        source: HostError,
    },
    /// Its directories could not be made.
    #[error("error making pod data directories: {0}")]
    Directories(HostError),
    /// Its volumes could not be made.
    #[error("Unable to attach or mount volumes: {0}")]
    Volumes(HostError),
}

/// What a container is made from.
#[derive(Clone, Copy, Debug)]
pub struct ContainerRequest<'a> {
    /// Its pod.
    pub pod: &'a Pod,
    /// The container; an ephemeral one in the form of a regular one.
    pub container: &'a Container,
    /// How often it was started before.
    pub restart_count: u32,
    /// The image, as the runtime refers to it.
    pub image: &'a ImageSpec,
    /// The pod's addresses, the primary one first.
    pub pod_ips: &'a [String],
    /// The runtime id of the container whose processes it shares.
    pub target: Option<&'a str>,
    /// The sandbox it is made in.
    pub sandbox_config: &'a PodSandboxConfig,
}

/// Everything about a node that pod workers rely on and do not do themselves.
///
/// All of it is idempotent: what is ready stays as it is.
#[async_trait]
pub trait Host: Debug + Send + Sync {
    /// What decides whether the node takes one more pod.
    fn admission_facts(&self) -> Facts;
    /// Why pods that do not share the node's network cannot start yet, if so.
    async fn network_problem(&self) -> Option<String>;
    /// The addresses of the node, the primary one first.
    fn host_ips(&self) -> Vec<IpAddr>;

    /// Gives the containers of a pod of which nothing runs their devices, or says why the node does not
    /// take the pod.
    async fn allocate_devices(&self, pod: &Pod) -> Result<(), Rejection>;
    /// The health of a container's devices.
    fn device_health(&self, pod: &Pod, container: &str) -> Vec<ResourceStatus>;

    /// Makes the pod's cgroup, directories and volumes, or brings them up to date.
    async fn prepare(&self, pod: &Pod) -> Result<(), PrepareError>;
    /// Thaws a pod that was frozen or has frozen itself, so that it can end: frozen processes
    /// answer no signal.
    async fn thaw(&self, pod: &Pod) -> Result<(), HostError>;
    /// Undoes [`Host::prepare`] for a pod of which nothing runs any more.
    async fn clean_up(&self, pod: &Pod) -> Result<(), HostError>;
    /// The uids of pods other than these of which [`Host::prepare`] has left something, and nothing
    /// runs in it.
    async fn leftovers(&self, known: BTreeSet<String>) -> BTreeSet<String>;

    /// The handler of the pod's RuntimeClass; empty without one.
    async fn runtime_handler(&self, pod: &Pod) -> Result<String, HostError>;
    /// How to make the pod's sandbox.
    async fn sandbox_config(&self, pod: &Pod, attempt: u32) -> Result<PodSandboxConfig, HostError>;
    /// How to make a container.
    async fn container_config(
        &self,
        request: ContainerRequest<'_>,
    ) -> Result<ContainerConfig, HostError>;
    /// With what to fetch an image, most fitting first. Empty if nothing is known.
    async fn credentials(&self, pod: &Pod, image: &str) -> Result<Vec<AuthConfig>, HostError>;

    /// The limits of a container.
    fn container_resources(&self, pod: &Pod, container: &Container) -> LinuxContainerResources;
    /// Writes a limit and request of the pod's cgroup anew.
    async fn resize_pod(&self, pod: &Pod, resource: Resource) -> Result<(), HostError>;
    /// How much memory the pod uses, and each container by name; for limits that are to shrink.
    async fn memory_usage(&self, pod: &Pod) -> Result<MemoryUsage, HostError>;
    /// Reports that the resources of pods have changed, so that QoS cgroups are brought up to date.
    fn pods_changed(&self);

    /// Records an event.
    fn record(&self, pod: &Pod, note: Note);
}

/// What can be changed in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Share and quota.
    Cpu,
    /// The limit.
    Memory,
}

/// Memory in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryUsage {
    /// By the pod.
    pub pod: Option<Bytes>,
    /// By containers.
    pub containers: std::collections::BTreeMap<String, Bytes>,
}
