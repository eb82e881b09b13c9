//! The calls of the runtime service: each looks up its object and delegates.

use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::cgroup::Driver;
use tokio::sync::watch;

use super::{Embedded, NAME, report, users};
use crate::wire::{
    AttachRequest, AuthConfig, Container, ContainerConfig, ContainerFilter, ContainerStats,
    ContainerStatus, ExecRequest, ExecSyncResponse, Image, ImageFsInfoResponse, ImageSpec,
    LinuxContainerResources, PodSandbox, PodSandboxConfig, PodSandboxFilter, PodSandboxStatus,
    RuntimeCondition, RuntimeStatus, VersionResponse,
};
use crate::{Error, Ports, Runtime, Session, UserNamespaceSupport};

/// The version of the runtime API.
const API_VERSION: &str = "v1";

/// Work that continues when its caller gives up: nothing would find half-done work again.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    match tokio::spawn(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::failed("complete the request", error)),
    }
}

/// This runtime is its only handler.
fn check_handler(handler: &str) -> Result<(), Error> {
    if handler.is_empty() {
        return Ok(());
    }
    let problem = format!("no runtime for {handler:?} is configured");
    Err(Error::failed("get sandbox runtime", problem))
}

#[async_trait]
impl Runtime for Embedded {
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(Embedded::changes(self))
    }

    async fn version(&self) -> Result<VersionResponse, Error> {
        Ok(VersionResponse {
            version: "0.1.0".to_owned(),
            runtime_name: NAME.to_owned(),
            runtime_version: env!("CARGO_PKG_VERSION").to_owned(),
            runtime_api_version: API_VERSION.to_owned(),
        })
    }

    async fn status(&self) -> Result<RuntimeStatus, Error> {
        let ready = |kind: &str| RuntimeCondition {
            r#type: kind.to_owned(),
            status: true,
            ..RuntimeCondition::default()
        };
        Ok(RuntimeStatus {
            conditions: vec![ready("RuntimeReady"), self.inner.network.condition()],
        })
    }

    async fn user_namespaces(&self) -> Result<UserNamespaceSupport, Error> {
        Ok(match users::lacking() {
            None => UserNamespaceSupport::Full,
            Some(why) => UserNamespaceSupport::Lacking(why.to_owned()),
        })
    }

    async fn cgroup_driver(&self) -> Result<Option<Driver>, Error> {
        Ok(Some(self.inner.cgroup_driver))
    }

    async fn update_pod_cidr(&self, cidr: &str) -> Result<(), Error> {
        self.inner.network.set_pod_cidr(cidr)
    }

    async fn run_pod_sandbox(
        &self,
        config: &PodSandboxConfig,
        handler: &str,
    ) -> Result<String, Error> {
        check_handler(handler)?;
        let (runtime, config) = (self.clone(), config.clone());
        to_the_end(async move { runtime.make_sandbox(&config).await }).await
    }

    async fn stop_pod_sandbox(&self, id: &str) -> Result<(), Error> {
        match self.inner.table.sandbox(id) {
            Ok(sandbox) => {
                let runtime = self.clone();
                to_the_end(async move { runtime.stop_sandbox(&sandbox).await }).await
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn remove_pod_sandbox(&self, id: &str) -> Result<(), Error> {
        match self.inner.table.sandbox(id) {
            Ok(sandbox) => {
                let runtime = self.clone();
                to_the_end(async move { runtime.remove_sandbox(&sandbox).await }).await
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn pod_sandbox_status(&self, id: &str) -> Result<PodSandboxStatus, Error> {
        Ok(report::sandbox_status(&*self.inner.table.sandbox(id)?))
    }

    async fn list_pod_sandboxes(
        &self,
        filter: &PodSandboxFilter,
    ) -> Result<Vec<PodSandbox>, Error> {
        let sandboxes = self.inner.table.sandboxes();
        let all = sandboxes.iter().map(|sandbox| report::sandbox(sandbox));
        Ok(all
            .filter(|sandbox| report::matches_sandbox(sandbox, filter))
            .collect())
    }

    async fn create_container(
        &self,
        sandbox: &str,
        config: &ContainerConfig,
        sandbox_config: &PodSandboxConfig,
    ) -> Result<String, Error> {
        let sandbox = self.inner.table.sandbox(sandbox)?;
        let (runtime, config, pod) = (self.clone(), config.clone(), sandbox_config.clone());
        to_the_end(async move { runtime.make_container(&sandbox, &config, &pod).await }).await
    }

    async fn start_container(&self, id: &str) -> Result<(), Error> {
        let (runtime, container) = (self.clone(), self.inner.table.container(id)?);
        to_the_end(async move { runtime.run_container(&container).await }).await
    }

    async fn stop_container(&self, id: &str, grace: Duration) -> Result<(), Error> {
        match self.inner.table.container(id) {
            Ok(container) => self.end_container(&container, grace).await,
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn remove_container(&self, id: &str) -> Result<(), Error> {
        match self.inner.table.container(id) {
            Ok(container) => {
                let runtime = self.clone();
                to_the_end(async move { runtime.delete_container(&container).await }).await
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn container_status(&self, id: &str) -> Result<ContainerStatus, Error> {
        Ok(report::container_status(&*self.inner.table.container(id)?))
    }

    async fn list_containers(&self, filter: &ContainerFilter) -> Result<Vec<Container>, Error> {
        let containers = self.inner.table.containers();
        let all = containers
            .iter()
            .map(|container| report::container(container));
        Ok(all
            .filter(|container| report::matches_container(container, filter))
            .collect())
    }

    async fn update_container_resources(
        &self,
        id: &str,
        resources: &LinuxContainerResources,
    ) -> Result<(), Error> {
        self.change_limits(&self.inner.table.container(id)?, resources)
            .await
    }

    async fn reopen_container_log(&self, id: &str) -> Result<(), Error> {
        self.reopen_log(&self.inner.table.container(id)?).await
    }

    async fn list_container_stats(&self) -> Result<Vec<ContainerStats>, Error> {
        let mut stats = Vec::new();
        for container in self.inner.table.containers() {
            match self.container_stats(&container).await {
                Ok(one) => stats.push(one),
                // It may have been removed meanwhile.
                Err(error) => {
                    let error = error.chain();
                    tracing::debug!(
                        container = container.id,
                        error,
                        "failed to read container stats"
                    );
                }
            }
        }
        Ok(stats)
    }

    async fn exec_sync(
        &self,
        id: &str,
        command: &[String],
        timeout: Duration,
    ) -> Result<ExecSyncResponse, Error> {
        self.run_command(&self.inner.table.container(id)?, command, timeout)
            .await
    }

    async fn exec(&self, request: &ExecRequest) -> Result<Session, Error> {
        let container = self.inner.table.container(&request.container_id)?;
        let streams = self.stream_command(&container, request).await?;
        Ok(Session::Here(Box::new(streams)))
    }

    async fn attach(&self, request: &AttachRequest) -> Result<Session, Error> {
        let container = self.inner.table.container(&request.container_id)?;
        let streams = self.join(&container, request).await?;
        Ok(Session::Here(Box::new(streams)))
    }

    async fn port_forward(&self, sandbox: &str) -> Result<Ports, Error> {
        let sandbox = self.inner.table.sandbox(sandbox)?;
        if !*sandbox.is_ready.borrow() {
            let message = format!("sandbox {:?} is not ready", sandbox.id);
            return Err(Error::Invalid(message));
        }
        Ok(self.dial(&sandbox))
    }

    async fn list_images(&self) -> Result<Vec<Image>, Error> {
        self.inner.images.list().await
    }

    async fn image_status(&self, image: &ImageSpec) -> Result<Option<Image>, Error> {
        self.inner.images.status(image).await
    }

    async fn pull_image(
        &self,
        image: &ImageSpec,
        auth: Option<&AuthConfig>,
        sandbox_config: &PodSandboxConfig,
    ) -> Result<String, Error> {
        self.inner.images.pull(image, auth, sandbox_config).await
    }

    async fn remove_image(&self, image: &ImageSpec) -> Result<(), Error> {
        self.inner.images.remove(image).await
    }

    async fn image_fs_info(&self) -> Result<ImageFsInfoResponse, Error> {
        self.inner.images.fs_info().await
    }
}
