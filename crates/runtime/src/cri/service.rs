//! The trait, verb by verb.

use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::cgroup::Driver;
use tonic::Code;

use super::super::wire::{
    AttachRequest, AttachResponse, AuthConfig, CgroupDriver, Container, ContainerConfig,
    ContainerFilter, ContainerStats, ContainerStatus, ContainerStatusRequest,
    ContainerStatusResponse, CreateContainerRequest, CreateContainerResponse, ExecRequest,
    ExecResponse, ExecSyncRequest, ExecSyncResponse, Image, ImageFsInfoRequest,
    ImageFsInfoResponse, ImageSpec, ImageStatusRequest, ImageStatusResponse,
    LinuxContainerResources, ListContainerStatsRequest, ListContainerStatsResponse,
    ListContainersRequest, ListContainersResponse, ListImagesRequest, ListImagesResponse,
    ListPodSandboxRequest, ListPodSandboxResponse, NetworkConfig, PodSandbox, PodSandboxConfig,
    PodSandboxFilter, PodSandboxStatus, PodSandboxStatusRequest, PodSandboxStatusResponse,
    PortForwardRequest, PortForwardResponse, PullImageRequest, PullImageResponse,
    RemoveContainerRequest, RemoveContainerResponse, RemoveImageRequest, RemoveImageResponse,
    RemovePodSandboxRequest, RemovePodSandboxResponse, ReopenContainerLogRequest,
    ReopenContainerLogResponse, RunPodSandboxRequest, RunPodSandboxResponse, RuntimeConfig,
    RuntimeConfigRequest, RuntimeConfigResponse, RuntimeStatus, StartContainerRequest,
    StartContainerResponse, StatusRequest, StatusResponse, StopContainerRequest,
    StopContainerResponse, StopPodSandboxRequest, StopPodSandboxResponse,
    UpdateContainerResourcesRequest, UpdateContainerResourcesResponse, UpdateRuntimeConfigRequest,
    UpdateRuntimeConfigResponse, VersionRequest, VersionResponse,
};
use super::super::{Error, Ports, Runtime, Session, UserNamespaceSupport};
use super::Cri;
use super::answer::{self, Lacking};
use super::client::{Refusal, describe_call};
use super::verb::{self, Verb};

impl Cri {
    async fn call_runtime<Q, A>(&self, verb: Verb, subject: &str, message: Q) -> Result<A, Error>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let limit = Some(self.limit);
        self.runtime.call(verb, subject, limit, message).await
    }

    async fn call_images<Q, A>(&self, verb: Verb, subject: &str, message: Q) -> Result<A, Error>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let limit = Some(self.limit);
        self.images.call(verb, subject, limit, message).await
    }
}

#[async_trait]
impl Runtime for Cri {
    async fn version(&self) -> Result<VersionResponse, Error> {
        let request = VersionRequest::default();
        let version: VersionResponse = self.call_runtime(verb::VERSION, "", request).await?;
        answer::check_version(&version).map_err(|lacking| bad(verb::VERSION, "", lacking))?;
        Ok(version)
    }

    async fn status(&self) -> Result<RuntimeStatus, Error> {
        let request = StatusRequest { verbose: false };
        let response: StatusResponse = self.call_runtime(verb::STATUS, "", request).await?;
        let status = response.status.unwrap_or_default();
        answer::check_runtime_status(&status).map_err(|lacking| bad(verb::STATUS, "", lacking))?;
        Ok(status)
    }

    /// Matches v1.36 HandlerSupportsUserNamespaces in pkg/kubelet/kubelet_getters.go: a runtime
    /// that does not report its handlers, such as containerd 1.6, has none.
    async fn user_namespaces(&self) -> Result<UserNamespaceSupport, Error> {
        let request = StatusRequest { verbose: false };
        let response: StatusResponse = self.call_runtime(verb::STATUS, "", request).await?;
        let mut handlers = response.runtime_handlers.iter();
        let default = handlers.find(|handler| handler.name.is_empty());
        let lacking = |why: &str| Ok(UserNamespaceSupport::Lacking(why.to_owned()));
        match default.map(|handler| handler.features.unwrap_or_default()) {
            Some(features) if features.user_namespaces => Ok(UserNamespaceSupport::Full),
            None if !response.runtime_handlers.is_empty() => {
                lacking("the handler \"\" is not known")
            }
            _ => lacking(""),
        }
    }

    async fn cgroup_driver(&self) -> Result<Option<Driver>, Error> {
        let call = self.call_runtime(verb::RUNTIME_CONFIG, "", RuntimeConfigRequest {});
        let response: RuntimeConfigResponse = match call.await {
            // Runtimes from before 1.28, such as containerd 1.6, leave it to the configuration.
            Err(Error::Unimplemented { .. }) => return Ok(None),
            answered => answered?,
        };
        let Some(linux) = response.linux else {
            return Ok(None);
        };
        match CgroupDriver::try_from(linux.cgroup_driver) {
            Ok(CgroupDriver::Systemd) => Ok(Some(Driver::Systemd)),
            Ok(CgroupDriver::Cgroupfs) => Ok(Some(Driver::Cgroupfs)),
            Err(unknown) => {
                let problem = format!("runtime returned an unknown cgroup driver {}", unknown.0);
                Err(Error::failed(
                    describe_call(verb::RUNTIME_CONFIG, ""),
                    problem,
                ))
            }
        }
    }

    async fn update_pod_cidr(&self, cidr: &str) -> Result<(), Error> {
        let network_config = NetworkConfig {
            pod_cidr: cidr.to_owned(),
        };
        let request = UpdateRuntimeConfigRequest {
            runtime_config: Some(RuntimeConfig {
                network_config: Some(network_config),
            }),
        };
        let UpdateRuntimeConfigResponse {} = self
            .call_runtime(verb::UPDATE_RUNTIME_CONFIG, cidr, request)
            .await?;
        Ok(())
    }

    async fn run_pod_sandbox(
        &self,
        config: &PodSandboxConfig,
        handler: &str,
    ) -> Result<String, Error> {
        let pod = pod_name(config);
        let request = RunPodSandboxRequest {
            config: Some(config.clone()),
            runtime_handler: handler.to_owned(),
        };
        // Its network has to be set up, which may need a second try of the plug-in.
        let limit = Some(self.limit * 2);
        let call = self
            .runtime
            .call(verb::RUN_POD_SANDBOX, &pod, limit, request);
        let response: RunPodSandboxResponse = call.await?;
        answer::named(response.pod_sandbox_id, "PodSandboxId is not set")
            .map_err(|lacking| bad(verb::RUN_POD_SANDBOX, &pod, lacking))
    }

    async fn stop_pod_sandbox(&self, id: &str) -> Result<(), Error> {
        let request = StopPodSandboxRequest {
            pod_sandbox_id: id.to_owned(),
        };
        let StopPodSandboxResponse {} =
            unless_gone(self.call_runtime(verb::STOP_POD_SANDBOX, id, request).await)?;
        Ok(())
    }

    async fn remove_pod_sandbox(&self, id: &str) -> Result<(), Error> {
        let request = RemovePodSandboxRequest {
            pod_sandbox_id: id.to_owned(),
        };
        let RemovePodSandboxResponse {} = unless_gone(
            self.call_runtime(verb::REMOVE_POD_SANDBOX, id, request)
                .await,
        )?;
        Ok(())
    }

    async fn pod_sandbox_status(&self, id: &str) -> Result<PodSandboxStatus, Error> {
        let request = PodSandboxStatusRequest {
            pod_sandbox_id: id.to_owned(),
            verbose: false,
        };
        let response: PodSandboxStatusResponse = self
            .call_runtime(verb::POD_SANDBOX_STATUS, id, request)
            .await?;
        let status = response.status.unwrap_or_default();
        answer::check_sandbox_status(&status)
            .map_err(|lacking| bad(verb::POD_SANDBOX_STATUS, id, lacking))?;
        Ok(status)
    }

    async fn list_pod_sandboxes(
        &self,
        filter: &PodSandboxFilter,
    ) -> Result<Vec<PodSandbox>, Error> {
        let request = ListPodSandboxRequest {
            filter: Some(filter.clone()),
        };
        let response: ListPodSandboxResponse = self
            .call_runtime(verb::LIST_POD_SANDBOX, "", request)
            .await?;
        Ok(response.items)
    }

    async fn create_container(
        &self,
        sandbox: &str,
        config: &ContainerConfig,
        sandbox_config: &PodSandboxConfig,
    ) -> Result<String, Error> {
        let name = (config.metadata.as_ref()).map_or("", |metadata| metadata.name.as_str());
        let request = CreateContainerRequest {
            pod_sandbox_id: sandbox.to_owned(),
            config: Some(config.clone()),
            sandbox_config: Some(sandbox_config.clone()),
        };
        let response: CreateContainerResponse = self
            .call_runtime(verb::CREATE_CONTAINER, name, request)
            .await?;
        answer::named(response.container_id, "ContainerId is not set")
            .map_err(|lacking| bad(verb::CREATE_CONTAINER, name, lacking))
    }

    async fn start_container(&self, id: &str) -> Result<(), Error> {
        let request = StartContainerRequest {
            container_id: id.to_owned(),
        };
        let StartContainerResponse {} = self
            .call_runtime(verb::START_CONTAINER, id, request)
            .await?;
        Ok(())
    }

    async fn stop_container(&self, id: &str, grace: Duration) -> Result<(), Error> {
        let request = StopContainerRequest {
            container_id: id.to_owned(),
            timeout: whole_seconds(grace),
        };
        // Killing takes time too, after the grace.
        let limit = Some(self.limit + grace);
        let call = self.runtime.call(verb::STOP_CONTAINER, id, limit, request);
        let StopContainerResponse {} = unless_gone(call.await)?;
        Ok(())
    }

    async fn remove_container(&self, id: &str) -> Result<(), Error> {
        let request = RemoveContainerRequest {
            container_id: id.to_owned(),
        };
        let RemoveContainerResponse {} =
            unless_gone(self.call_runtime(verb::REMOVE_CONTAINER, id, request).await)?;
        Ok(())
    }

    async fn container_status(&self, id: &str) -> Result<ContainerStatus, Error> {
        let request = ContainerStatusRequest {
            container_id: id.to_owned(),
            verbose: false,
        };
        let response: ContainerStatusResponse = self
            .call_runtime(verb::CONTAINER_STATUS, id, request)
            .await?;
        let status = response.status.unwrap_or_default();
        answer::check_container_status(&status)
            .map_err(|lacking| bad(verb::CONTAINER_STATUS, id, lacking))?;
        Ok(status)
    }

    async fn list_containers(&self, filter: &ContainerFilter) -> Result<Vec<Container>, Error> {
        let request = ListContainersRequest {
            filter: Some(filter.clone()),
        };
        let response: ListContainersResponse = self
            .call_runtime(verb::LIST_CONTAINERS, "", request)
            .await?;
        Ok(response.containers)
    }

    async fn update_container_resources(
        &self,
        id: &str,
        resources: &LinuxContainerResources,
    ) -> Result<(), Error> {
        let request = UpdateContainerResourcesRequest {
            container_id: id.to_owned(),
            linux: Some(resources.clone()),
            ..UpdateContainerResourcesRequest::default()
        };
        let UpdateContainerResourcesResponse {} = self
            .call_runtime(verb::UPDATE_CONTAINER_RESOURCES, id, request)
            .await?;
        Ok(())
    }

    async fn reopen_container_log(&self, id: &str) -> Result<(), Error> {
        let request = ReopenContainerLogRequest {
            container_id: id.to_owned(),
        };
        let ReopenContainerLogResponse {} = self
            .call_runtime(verb::REOPEN_CONTAINER_LOG, id, request)
            .await?;
        Ok(())
    }

    async fn list_container_stats(&self) -> Result<Vec<ContainerStats>, Error> {
        let request = ListContainerStatsRequest::default();
        let response: ListContainerStatsResponse = self
            .call_runtime(verb::LIST_CONTAINER_STATS, "", request)
            .await?;
        Ok(response.stats)
    }

    async fn exec_sync(
        &self,
        id: &str,
        command: &[String],
        timeout: Duration,
    ) -> Result<ExecSyncResponse, Error> {
        let request = ExecSyncRequest {
            container_id: id.to_owned(),
            cmd: command.to_vec(),
            timeout: whole_seconds(timeout),
        };
        // The runtime ends the command in time; the rest is for clearing up after it.
        let limit = (!timeout.is_zero()).then(|| self.limit + timeout);
        let call = self.runtime.call(verb::EXEC_SYNC, id, limit, request);
        match call.await {
            Err(Error::TimedOut { verb, .. }) => Err(Error::TimedOut {
                verb,
                after: timeout,
            }),
            answered => answered,
        }
    }

    async fn exec(&self, request: &ExecRequest) -> Result<Session, Error> {
        let id = &request.container_id;
        let response: ExecResponse = self.call_runtime(verb::EXEC, id, request.clone()).await?;
        let url = answer::named(response.url, NO_URL).map_err(|e| bad(verb::EXEC, id, e))?;
        Ok(Session::Elsewhere(url))
    }

    async fn attach(&self, request: &AttachRequest) -> Result<Session, Error> {
        let id = &request.container_id;
        let response: AttachResponse = self.call_runtime(verb::ATTACH, id, request.clone()).await?;
        let url = answer::named(response.url, NO_URL).map_err(|e| bad(verb::ATTACH, id, e))?;
        Ok(Session::Elsewhere(url))
    }

    async fn port_forward(&self, sandbox: &str) -> Result<Ports, Error> {
        let request = PortForwardRequest {
            pod_sandbox_id: sandbox.to_owned(),
            port: Vec::new(),
        };
        let response: PortForwardResponse = self
            .call_runtime(verb::PORT_FORWARD, sandbox, request)
            .await?;
        let url = answer::named(response.url, NO_URL)
            .map_err(|lacking| bad(verb::PORT_FORWARD, sandbox, lacking))?;
        Ok(Ports::Elsewhere(url))
    }

    async fn list_images(&self) -> Result<Vec<Image>, Error> {
        let request = ListImagesRequest::default();
        let response: ListImagesResponse = self.call_images(verb::LIST_IMAGES, "", request).await?;
        Ok(response.images)
    }

    async fn image_status(&self, image: &ImageSpec) -> Result<Option<Image>, Error> {
        let request = ImageStatusRequest {
            image: Some(image.clone()),
            verbose: false,
        };
        let name = &image.image;
        let response: ImageStatusResponse =
            self.call_images(verb::IMAGE_STATUS, name, request).await?;
        if let Some(found) = &response.image {
            answer::check_image(name, found).map_err(|e| bad(verb::IMAGE_STATUS, name, e))?;
        }
        Ok(response.image)
    }

    async fn pull_image(
        &self,
        image: &ImageSpec,
        auth: Option<&AuthConfig>,
        sandbox_config: &PodSandboxConfig,
    ) -> Result<String, Error> {
        let request = PullImageRequest {
            image: Some(image.clone()),
            auth: auth.cloned(),
            sandbox_config: Some(sandbox_config.clone()),
        };
        let name = &image.image;
        // The runtime itself gives up a pull that makes no progress.
        let call = (self.images).call(verb::PULL_IMAGE, name, None, request);
        let response: PullImageResponse = call.await.map_err(plain_words)?;
        answer::named(
            response.image_ref,
            format!("imageRef of image {name:?} is not set"),
        )
        .map_err(|lacking| bad(verb::PULL_IMAGE, name, lacking))
    }

    async fn remove_image(&self, image: &ImageSpec) -> Result<(), Error> {
        let request = RemoveImageRequest {
            image: Some(image.clone()),
        };
        let name = &image.image;
        let call = self.call_images(verb::REMOVE_IMAGE, name, request);
        let RemoveImageResponse {} = unless_gone(call.await)?;
        Ok(())
    }

    async fn image_fs_info(&self) -> Result<ImageFsInfoResponse, Error> {
        let request = ImageFsInfoRequest {};
        self.call_images(verb::IMAGE_FS_INFO, "", request).await
    }
}

const NO_URL: &str = "URL is not set";

/// An answer that cannot be relied on.
fn bad(verb: Verb, subject: &str, lacking: Lacking) -> Error {
    Error::failed(describe_call(verb, subject), lacking)
}

/// What is gone needs no stopping and no removing; runtimes differ in whether they say so.
fn unless_gone<A: Default>(answered: Result<A, Error>) -> Result<A, Error> {
    match answered {
        Err(error) if error.is_not_found() => Ok(A::default()),
        answered => answered,
    }
}

/// Failed pulls are read by users: an unknown code would only be noise.
fn plain_words(error: Error) -> Error {
    let Error::Failed { doing, source } = error else {
        return error;
    };
    match source.downcast::<Refusal>() {
        Ok(refusal) if refusal.code == Code::Unknown => Error::failed(doing, refusal.words),
        Ok(refusal) => Error::Failed {
            doing,
            source: refusal,
        },
        Err(source) => Error::Failed { doing, source },
    }
}

/// The protocol counts in seconds. Zero has a meaning of its own, so fractions count as whole ones.
fn whole_seconds(duration: Duration) -> i64 {
    let started = u64::from(duration.subsec_nanos() > 0);
    i64::try_from(duration.as_secs().saturating_add(started)).unwrap_or(i64::MAX)
}

/// The pod a sandbox is for, for messages.
fn pod_name(config: &PodSandboxConfig) -> String {
    match &config.metadata {
        Some(metadata) => format!("{}/{}", metadata.namespace, metadata.name),
        None => String::new(),
    }
}
