//! A runtime whose calls are counted and timed.
//!
//! Matches v1.36 pkg/kubelet/kuberuntime/instrumented_services.go: names of operations are
//! upstream's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use plimsoll_core::cgroup::Driver;
use tokio::sync::watch;

use crate::stats::metrics::KubeletMetrics;
use plimsoll_runtime::wire::{
    AttachRequest, AuthConfig, Container, ContainerConfig, ContainerFilter, ContainerStats,
    ContainerStatus, ExecRequest, ExecSyncResponse, Image, ImageFsInfoResponse, ImageSpec,
    LinuxContainerResources, PodSandbox, PodSandboxConfig, PodSandboxFilter, PodSandboxStatus,
    RuntimeStatus, VersionResponse,
};
use plimsoll_runtime::{Error, Ports, Runtime, Session, UserNamespaceSupport};

/// A runtime whose calls are counted.
#[derive(Debug)]
pub(super) struct MeteredRuntime {
    runtime: Arc<dyn Runtime>,
    metrics: Arc<KubeletMetrics>,
}

impl MeteredRuntime {
    pub(super) fn new(runtime: Arc<dyn Runtime>, metrics: Arc<KubeletMetrics>) -> MeteredRuntime {
        MeteredRuntime { runtime, metrics }
    }

    async fn metered<T>(
        &self,
        operation: &str,
        call: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let begun = Instant::now();
        let done = call.await;
        let duration = begun.elapsed();
        self.metrics
            .runtime_called(operation, duration, done.is_ok());
        done
    }
}

/// Methods that pass a call on, each with the name of its operation.
macro_rules! metered {
    ($($operation:literal $method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        #[async_trait]
        impl Runtime for MeteredRuntime {
            $(
                async fn $method(&self, $($argument: $type),*) -> Result<$answer, Error> {
                    self.metered($operation, self.runtime.$method($($argument),*)).await
                }
            )+

            async fn run_pod_sandbox(
                &self,
                config: &PodSandboxConfig,
                handler: &str,
            ) -> Result<String, Error> {
                let call = self.runtime.run_pod_sandbox(config, handler);
                let made = self.metered("run_podsandbox", call).await;
                self.metrics.sandbox_started(made.is_ok());
                made
            }

            async fn user_namespaces(&self) -> Result<UserNamespaceSupport, Error> {
                self.runtime.user_namespaces().await
            }

            fn changes(&self) -> Option<watch::Receiver<u64>> {
                self.runtime.changes()
            }
        }
    };
}

metered! {
    "version" version() -> VersionResponse;
    "status" status() -> RuntimeStatus;
    "runtime_config" cgroup_driver() -> Option<Driver>;
    "update_runtime_config" update_pod_cidr(cidr: &str) -> ();
    "stop_podsandbox" stop_pod_sandbox(id: &str) -> ();
    "remove_podsandbox" remove_pod_sandbox(id: &str) -> ();
    "podsandbox_status" pod_sandbox_status(id: &str) -> PodSandboxStatus;
    "list_podsandbox" list_pod_sandboxes(filter: &PodSandboxFilter) -> Vec<PodSandbox>;
    "create_container" create_container(
        sandbox: &str, config: &ContainerConfig, sandbox_config: &PodSandboxConfig
    ) -> String;
    "start_container" start_container(id: &str) -> ();
    "stop_container" stop_container(id: &str, grace: Duration) -> ();
    "remove_container" remove_container(id: &str) -> ();
    "container_status" container_status(id: &str) -> ContainerStatus;
    "list_containers" list_containers(filter: &ContainerFilter) -> Vec<Container>;
    "update_container" update_container_resources(
        id: &str, resources: &LinuxContainerResources
    ) -> ();
    "reopen_container_log" reopen_container_log(id: &str) -> ();
    "list_container_stats" list_container_stats() -> Vec<ContainerStats>;
    "exec_sync" exec_sync(id: &str, command: &[String], timeout: Duration) -> ExecSyncResponse;
    "exec" exec(request: &ExecRequest) -> Session;
    "attach" attach(request: &AttachRequest) -> Session;
    "port_forward" port_forward(sandbox: &str) -> Ports;
    "list_images" list_images() -> Vec<Image>;
    "image_status" image_status(image: &ImageSpec) -> Option<Image>;
    "pull_image" pull_image(
        image: &ImageSpec, auth: Option<&AuthConfig>, sandbox_config: &PodSandboxConfig
    ) -> String;
    "remove_image" remove_image(image: &ImageSpec) -> ();
    "image_fs_info" image_fs_info() -> ImageFsInfoResponse;
}
