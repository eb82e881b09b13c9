//! A runtime whose containers are what a test says.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::cgroup::Driver;
use plimsoll_runtime::wire::*;
use plimsoll_runtime::{Error, Ports, Runtime, Session};

type OnExec = Box<dyn Fn(&ExecRequest) -> Result<Session, Error> + Send + Sync>;
type OnAttach = Box<dyn Fn(&AttachRequest) -> Result<Session, Error> + Send + Sync>;
type OnForward = Box<dyn Fn(&str) -> Result<Ports, Error> + Send + Sync>;

/// A container of a test.
#[derive(Clone, Debug)]
pub(super) struct FakeContainer {
    pub(super) id: String,
    pub(super) pod_uid: String,
    pub(super) name: String,
    pub(super) log_path: String,
    pub(super) is_running: bool,
}

/// Containers, and their behaviour on requests.
#[derive(Default)]
pub(in crate::server) struct FakeRuntime {
    pub(super) containers: Mutex<Vec<FakeContainer>>,
    pub(super) on_exec: Option<OnExec>,
    pub(super) on_attach: Option<OnAttach>,
    pub(super) on_forward: Option<OnForward>,
}

impl fmt::Debug for FakeRuntime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FakeRuntime").finish_non_exhaustive()
    }
}

impl FakeRuntime {
    /// Adds a running container `app` of pod `uid-web`.
    pub(in crate::server) fn with_app(log_path: &str) -> FakeRuntime {
        let runtime = FakeRuntime::default();
        runtime.containers.lock().unwrap().push(FakeContainer {
            id: "c1".to_owned(),
            pod_uid: "uid-web".to_owned(),
            name: "app".to_owned(),
            log_path: log_path.to_owned(),
            is_running: true,
        });
        runtime
    }

    /// The container's process has ended.
    pub(in crate::server) fn stop(&self, id: &str) {
        let mut containers = self.containers.lock().unwrap();
        for container in containers.iter_mut().filter(|c| c.id == id) {
            container.is_running = false;
        }
    }
}

fn unimplemented<T>(verb: &'static str) -> Result<T, Error> {
    Err(Error::Unimplemented { verb })
}

fn state(container: &FakeContainer) -> ContainerState {
    if container.is_running {
        ContainerState::ContainerRunning
    } else {
        ContainerState::ContainerExited
    }
}

#[async_trait]
impl Runtime for FakeRuntime {
    async fn version(&self) -> Result<VersionResponse, Error> {
        unimplemented("Version")
    }

    async fn status(&self) -> Result<RuntimeStatus, Error> {
        unimplemented("Status")
    }

    async fn cgroup_driver(&self) -> Result<Option<Driver>, Error> {
        Ok(None)
    }

    async fn update_pod_cidr(&self, _: &str) -> Result<(), Error> {
        Ok(())
    }

    async fn run_pod_sandbox(&self, _: &PodSandboxConfig, _: &str) -> Result<String, Error> {
        unimplemented("RunPodSandbox")
    }

    async fn stop_pod_sandbox(&self, _: &str) -> Result<(), Error> {
        unimplemented("StopPodSandbox")
    }

    async fn remove_pod_sandbox(&self, _: &str) -> Result<(), Error> {
        unimplemented("RemovePodSandbox")
    }

    async fn pod_sandbox_status(&self, _: &str) -> Result<PodSandboxStatus, Error> {
        unimplemented("PodSandboxStatus")
    }

    /// Every pod that has containers has a sandbox.
    async fn list_pod_sandboxes(
        &self,
        filter: &PodSandboxFilter,
    ) -> Result<Vec<PodSandbox>, Error> {
        let uid = filter.label_selector.get("io.kubernetes.pod.uid");
        let containers = self.containers.lock().unwrap();
        let mut uids: Vec<&String> = containers.iter().map(|c| &c.pod_uid).collect();
        uids.dedup();
        let sandboxes = uids
            .into_iter()
            .filter(|found| uid.is_none_or(|u| u == *found));
        let sandboxes = sandboxes.map(|uid| PodSandbox {
            id: format!("sandbox-{uid}"),
            ..PodSandbox::default()
        });
        Ok(sandboxes.collect())
    }

    async fn create_container(
        &self,
        _: &str,
        _: &ContainerConfig,
        _: &PodSandboxConfig,
    ) -> Result<String, Error> {
        unimplemented("CreateContainer")
    }

    async fn start_container(&self, _: &str) -> Result<(), Error> {
        unimplemented("StartContainer")
    }

    async fn stop_container(&self, _: &str, _: Duration) -> Result<(), Error> {
        unimplemented("StopContainer")
    }

    async fn remove_container(&self, _: &str) -> Result<(), Error> {
        unimplemented("RemoveContainer")
    }

    async fn container_status(&self, id: &str) -> Result<ContainerStatus, Error> {
        let containers = self.containers.lock().unwrap();
        let found = containers.iter().find(|container| container.id == id);
        let container = found.ok_or_else(|| Error::NotFound {
            what: "container",
            id: id.to_owned(),
        })?;
        Ok(ContainerStatus {
            id: id.to_owned(),
            state: state(container).into(),
            log_path: container.log_path.clone(),
            ..ContainerStatus::default()
        })
    }

    async fn list_containers(&self, filter: &ContainerFilter) -> Result<Vec<Container>, Error> {
        let containers = self.containers.lock().unwrap();
        let wanted = filter.state.as_ref().map(|value| value.state);
        let found = containers.iter().filter(|container| {
            let labels: BTreeMap<&str, &String> = [
                ("io.kubernetes.pod.uid", &container.pod_uid),
                ("io.kubernetes.container.name", &container.name),
            ]
            .into();
            let mut selector = filter.label_selector.iter();
            selector.all(|(key, value)| labels.get(key.as_str()) == Some(&value))
                && wanted.is_none_or(|wanted| wanted == i32::from(state(container)))
        });
        let found = found.map(|container| Container {
            id: container.id.clone(),
            ..Container::default()
        });
        Ok(found.collect())
    }

    async fn update_container_resources(
        &self,
        _: &str,
        _: &LinuxContainerResources,
    ) -> Result<(), Error> {
        unimplemented("UpdateContainerResources")
    }

    async fn reopen_container_log(&self, _: &str) -> Result<(), Error> {
        unimplemented("ReopenContainerLog")
    }

    async fn list_container_stats(&self) -> Result<Vec<ContainerStats>, Error> {
        unimplemented("ListContainerStats")
    }

    async fn exec_sync(
        &self,
        _: &str,
        command: &[String],
        _: Duration,
    ) -> Result<ExecSyncResponse, Error> {
        let fails = command.first().is_some_and(|word| word == "false");
        Ok(ExecSyncResponse {
            stdout: command.join(" ").into_bytes(),
            stderr: b"!".to_vec(),
            exit_code: i32::from(fails),
        })
    }

    async fn exec(&self, request: &ExecRequest) -> Result<Session, Error> {
        match &self.on_exec {
            Some(on_exec) => on_exec(request),
            None => unimplemented("Exec"),
        }
    }

    async fn attach(&self, request: &AttachRequest) -> Result<Session, Error> {
        match &self.on_attach {
            Some(on_attach) => on_attach(request),
            None => unimplemented("Attach"),
        }
    }

    async fn port_forward(&self, sandbox: &str) -> Result<Ports, Error> {
        match &self.on_forward {
            Some(on_forward) => on_forward(sandbox),
            None => unimplemented("PortForward"),
        }
    }

    async fn list_images(&self) -> Result<Vec<Image>, Error> {
        unimplemented("ListImages")
    }

    async fn image_status(&self, _: &ImageSpec) -> Result<Option<Image>, Error> {
        unimplemented("ImageStatus")
    }

    async fn pull_image(
        &self,
        _: &ImageSpec,
        _: Option<&AuthConfig>,
        _: &PodSandboxConfig,
    ) -> Result<String, Error> {
        unimplemented("PullImage")
    }

    async fn remove_image(&self, _: &ImageSpec) -> Result<(), Error> {
        unimplemented("RemoveImage")
    }

    async fn image_fs_info(&self) -> Result<ImageFsInfoResponse, Error> {
        unimplemented("ImageFsInfo")
    }
}
