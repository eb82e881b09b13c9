//! Runs containers: runtimes, the images of the embedded one, cgroups, and the files that pods can
//! write to.
//!
//! [`Runtime`] is one trait shaped by CRI's verbs. [`embedded`] needs nothing but the program's own
//! binary; [`cri`] talks to containerd or CRI-O. The messages are CRI's own ([`wire`]). One suite of
//! contract tests (`crates/node/tests/runtime`) runs on both: what it asserts is what the agent may
//! rely on. Verbs are idempotent where CRI says so: stopping what is stopped and removing what is
//! gone succeed.
//!
//! This crate knows nothing of the API, of pods' objects, or of the agent's decisions.
//!
//! Reading order: [`wire`], [`cri`], [`embedded`] (the runtimes); [`image`] (what the embedded runtime
//! runs); [`cgroup`] (core's plan written into the kernel); [`walk`] (what directories hold, at a
//! bounded price); [`beneath`] (files, and no links out of their directory); [`mount_table`],
//! `mapped_mount` (mounts, and those with other owners); [`sysctl`] (kernel settings, and what they
//! were); [`open_files`], [`huge_pages`] (limits of this process).

pub mod beneath;
pub mod cgroup;
pub mod cri;
pub mod embedded;
mod error;
pub mod huge_pages;
pub mod image;
mod mapped_mount;
pub mod mount_table;
pub mod open_files;
mod stream;
pub mod sysctl;
pub mod walk;
pub mod wire;

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::cgroup::Driver;
use tokio::sync::watch;

pub use error::Error;
pub use stream::{Connection, Dial, Input, Output, Ports, ProcessStreams, Session, TerminalSize};

use wire::{
    AttachRequest, AuthConfig, Container, ContainerConfig, ContainerFilter, ContainerStats,
    ContainerStatus, ExecRequest, ExecSyncResponse, Image, ImageFsInfoResponse, ImageSpec,
    LinuxContainerResources, PodSandbox, PodSandboxConfig, PodSandboxFilter, PodSandboxStatus,
    RuntimeStatus, VersionResponse,
};

/// Whether pods can have users of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserNamespaceSupport {
    /// With mounts that are mapped to them.
    Full,
    /// They cannot, and why, if that is known.
    Lacking(String),
}

/// The requests of the agent to a container runtime.
#[async_trait]
pub trait Runtime: Debug + Send + Sync {
    /// Name and version.
    async fn version(&self) -> Result<VersionResponse, Error>;
    /// Conditions `RuntimeReady` and `NetworkReady`.
    async fn status(&self) -> Result<RuntimeStatus, Error>;
    /// The cgroup driver of the runtime, if it reports one.
    async fn cgroup_driver(&self) -> Result<Option<Driver>, Error>;
    /// Whether pods can have users of their own. A runtime that does not say so has none.
    async fn user_namespaces(&self) -> Result<UserNamespaceSupport, Error> {
        Ok(UserNamespaceSupport::Lacking(String::new()))
    }
    /// Sets the node's pod CIDR in the runtime.
    async fn update_pod_cidr(&self, cidr: &str) -> Result<(), Error>;

    /// Changes whenever a container or sandbox has ended by itself; `None` if the runtime does not
    /// report changes and has to be polled.
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// Makes a sandbox, ready for containers; returns its id. `handler` is that of the pod's
    /// RuntimeClass, empty for the default.
    async fn run_pod_sandbox(
        &self,
        config: &PodSandboxConfig,
        handler: &str,
    ) -> Result<String, Error>;
    /// Ends all processes of a sandbox and gives its network back.
    async fn stop_pod_sandbox(&self, id: &str) -> Result<(), Error>;
    /// Removes a sandbox and its containers, by force if they run.
    async fn remove_pod_sandbox(&self, id: &str) -> Result<(), Error>;
    /// State and addresses of a sandbox.
    async fn pod_sandbox_status(&self, id: &str) -> Result<PodSandboxStatus, Error>;
    /// All sandboxes that match.
    async fn list_pod_sandboxes(&self, filter: &PodSandboxFilter)
    -> Result<Vec<PodSandbox>, Error>;

    /// Makes a container in a sandbox without starting it; returns its id.
    async fn create_container(
        &self,
        sandbox: &str,
        config: &ContainerConfig,
        sandbox_config: &PodSandboxConfig,
    ) -> Result<String, Error>;
    /// Starts a created container.
    async fn start_container(&self, id: &str) -> Result<(), Error>;
    /// Sends the stop signal, waits, then kills. Returns when the container has ended.
    async fn stop_container(&self, id: &str, grace: Duration) -> Result<(), Error>;
    /// Removes a container, by force if it runs. Its log stays.
    async fn remove_container(&self, id: &str) -> Result<(), Error>;
    /// State, exit code and reason (`OOMKilled`, `Completed`, `Error`), mounts and log path.
    async fn container_status(&self, id: &str) -> Result<ContainerStatus, Error>;
    /// All containers that match.
    async fn list_containers(&self, filter: &ContainerFilter) -> Result<Vec<Container>, Error>;
    /// Changes the limits of a running container.
    async fn update_container_resources(
        &self,
        id: &str,
        resources: &LinuxContainerResources,
    ) -> Result<(), Error>;
    /// Opens the log anew after it was renamed.
    async fn reopen_container_log(&self, id: &str) -> Result<(), Error>;
    /// What containers use: their writable layers, cpu, memory.
    async fn list_container_stats(&self) -> Result<Vec<ContainerStats>, Error>;

    /// Runs a command to its end. Zero means no time limit.
    async fn exec_sync(
        &self,
        id: &str,
        command: &[String],
        timeout: Duration,
    ) -> Result<ExecSyncResponse, Error>;
    /// Runs a command with live streams.
    async fn exec(&self, request: &ExecRequest) -> Result<Session, Error>;
    /// Joins the streams of a container's first process.
    async fn attach(&self, request: &AttachRequest) -> Result<Session, Error>;
    /// Reaches ports inside a sandbox.
    async fn port_forward(&self, sandbox: &str) -> Result<Ports, Error>;

    /// All images.
    async fn list_images(&self) -> Result<Vec<Image>, Error>;
    /// One image by name, digest or id.
    async fn image_status(&self, image: &ImageSpec) -> Result<Option<Image>, Error>;
    /// Fetches an image; returns its reference.
    async fn pull_image(
        &self,
        image: &ImageSpec,
        auth: Option<&AuthConfig>,
        sandbox_config: &PodSandboxConfig,
    ) -> Result<String, Error>;
    /// Removes an image that no container uses.
    async fn remove_image(&self, image: &ImageSpec) -> Result<(), Error>;
    /// Where images and writable layers lie, and how much they take.
    async fn image_fs_info(&self) -> Result<ImageFsInfoResponse, Error>;
}
