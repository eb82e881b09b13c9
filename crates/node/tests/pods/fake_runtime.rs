//! A runtime that keeps state and runs nothing.
//!
//! Containers do what their image says: `sleep` runs until it is stopped, `stubborn` until it is
//! killed, `exit-N` ends at once with that code, `run-S-exit-N` after so many seconds. An image
//! `missing` cannot be pulled. Everything done is in the log, for invariants to be checked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::cgroup::Driver;
use plimsoll_node::pods::Clock;
use plimsoll_runtime::wire::*;
use plimsoll_runtime::{Error, Ports, Runtime, Session};
use tokio::sync::watch;
use tokio::time::Instant;

/// The runtime.
#[derive(Debug)]
pub(crate) struct FakeRuntime {
    this: Weak<FakeRuntime>,
    clock: Clock,
    state: Mutex<State>,
    /// Increases with every change, unless the runtime sends no events.
    changes: watch::Sender<u64>,
    is_silent: bool,
}

#[derive(Debug, Default)]
struct State {
    next_id: u32,
    sandboxes: BTreeMap<String, PodSandboxStatus>,
    containers: BTreeMap<String, FakeContainer>,
    images: BTreeMap<String, Image>,
    log: Vec<String>,
    exec_exit_code: i32,
    fails: BTreeMap<&'static str, u32>,
    panics: BTreeMap<&'static str, u32>,
    calls: usize,
    stops: Vec<Stop>,
    made: Vec<String>,
}

/// A call to stop a container.
#[derive(Debug)]
struct Stop {
    id: String,
    deadline: Instant,
}

#[derive(Debug)]
struct FakeContainer {
    sandbox: String,
    status: ContainerStatus,
    behaviour: String,
    ended: watch::Sender<bool>,
}

fn not_found(what: &'static str, id: &str) -> Error {
    Error::NotFound {
        what,
        id: id.to_owned(),
    }
}

fn fits(labels: &BTreeMap<String, String>, selector: &BTreeMap<String, String>) -> bool {
    selector
        .iter()
        .all(|(key, value)| labels.get(key) == Some(value))
}

impl FakeRuntime {
    pub(crate) fn new(clock: Clock) -> Arc<FakeRuntime> {
        FakeRuntime::build(clock, false)
    }

    /// A runtime that sends no events.
    pub(crate) fn silent(clock: Clock) -> Arc<FakeRuntime> {
        FakeRuntime::build(clock, true)
    }

    fn build(clock: Clock, is_silent: bool) -> Arc<FakeRuntime> {
        Arc::new_cyclic(|this| FakeRuntime {
            this: this.clone(),
            clock,
            state: Mutex::default(),
            changes: watch::Sender::new(0),
            is_silent,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap();
        state.calls += 1;
        state
    }

    /// The runtime handlers of all sandboxes, in order.
    pub(crate) fn handlers(&self) -> Vec<String> {
        let state = self.state();
        let handlers = state.sandboxes.values();
        handlers
            .map(|sandbox| sandbox.runtime_handler.clone())
            .collect()
    }

    /// All calls, in order.
    pub(crate) fn log(&self) -> Vec<String> {
        self.state().log.clone()
    }

    /// The next so many calls of a verb fail.
    pub(crate) fn fail(&self, verb: &'static str, times: u32) {
        self.state().fails.insert(verb, times);
    }

    /// The next so many calls of a verb panic, as a bug in the agent would.
    pub(crate) fn panic(&self, verb: &'static str, times: u32) {
        self.state().panics.insert(verb, times);
    }

    /// Sets the exit code of commands in containers.
    pub(crate) fn set_exec_exit_code(&self, code: i32) {
        self.state().exec_exit_code = code;
    }

    /// The number of calls to the runtime.
    pub(crate) fn calls(&self) -> usize {
        self.state().calls
    }

    /// The number of containers of that name that were created.
    pub(crate) fn made(&self, name: &str) -> usize {
        let state = self.state();
        let made = state.made.iter();
        made.filter(|own| *own == name).count()
    }

    /// Whether any container runs.
    pub(crate) fn is_anything_running(&self) -> bool {
        let mut containers = self.containers().into_iter();
        containers.any(|(_, state)| state == ContainerState::ContainerRunning)
    }

    /// A later call must not extend the grace period of a container that is being stopped, except
    /// for the minimum of two seconds.
    pub(crate) fn check_stops(&self) {
        let state = self.state();
        for (index, stop) in state.stops.iter().enumerate() {
            let mut before = state.stops[..index].iter().rev();
            if let Some(before) = before.find(|before| before.id == stop.id) {
                let floor = Duration::from_millis(2_100);
                let latest = before.deadline.max(Instant::now() + floor);
                assert!(stop.deadline <= latest, "{stop:?} after {before:?}");
            }
        }
    }

    /// Forgets all calls to stop containers.
    pub(crate) fn forget_stops(&self) {
        self.state().stops.clear();
    }

    /// Names and states of all containers, oldest first.
    pub(crate) fn containers(&self) -> Vec<(String, ContainerState)> {
        let state = self.state();
        let mut all: Vec<&FakeContainer> = state.containers.values().collect();
        all.sort_by_key(|container| container.status.created_at);
        all.iter()
            .map(|container| {
                let name = container.status.metadata.as_ref().unwrap().name.clone();
                let state = ContainerState::try_from(container.status.state).unwrap();
                (name, state)
            })
            .collect()
    }

    /// Ends the running container of that name, as if by itself.
    pub(crate) fn end(&self, name: &str, exit_code: i32) {
        for id in self.running_ids(name) {
            self.exit(&id, exit_code, None);
        }
    }

    /// The kernel kills the running container of that name.
    pub(crate) fn run_out_of_memory(&self, name: &str) {
        for id in self.running_ids(name) {
            self.exit(&id, 137, Some("OOMKilled"));
        }
    }

    fn running_ids(&self, name: &str) -> Vec<String> {
        let state = self.state();
        let all = state.containers.iter();
        all.filter(|(_, c)| {
            c.status.metadata.as_ref().unwrap().name == name
                && c.status.state == ContainerState::ContainerRunning as i32
        })
        .map(|(id, _)| id.clone())
        .collect()
    }

    /// Kills the sandbox of a pod with its containers, as when the machine restarts.
    pub(crate) fn lose_sandboxes(&self) {
        let ids: Vec<String> = {
            let mut state = self.state();
            for sandbox in state.sandboxes.values_mut() {
                sandbox.state = PodSandboxState::SandboxNotready as i32;
            }
            state.containers.keys().cloned().collect()
        };
        for id in ids {
            self.exit(&id, 255, Some("Unknown"));
        }
    }

    /// Removes containers that have ended, as an eager garbage collector would.
    pub(crate) fn collect_garbage(&self) {
        let mut state = self.state();
        state
            .containers
            .retain(|_, c| c.status.state != ContainerState::ContainerExited as i32);
    }

    fn notify(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn check(&self, verb: &'static str) -> Result<(), Error> {
        let mut state = self.state();
        if let Some(left) = state.panics.get_mut(verb).filter(|left| **left > 0) {
            *left -= 1;
            drop(state);
            panic!("{verb} was made to panic");
        }
        if let Some(left) = state.fails.get_mut(verb).filter(|left| **left > 0) {
            *left -= 1;
            return Err(Error::failed(format!("{verb} something"), "made to fail"));
        }
        Ok(())
    }

    fn exit(&self, id: &str, exit_code: i32, reason: Option<&str>) {
        let now = self.clock.now().as_nanos();
        {
            let mut state = self.state();
            let Some(container) = state.containers.get_mut(id) else {
                return;
            };
            if container.status.state != ContainerState::ContainerRunning as i32 {
                return;
            }
            let default = if exit_code == 0 { "Completed" } else { "Error" };
            container.status.state = ContainerState::ContainerExited as i32;
            container.status.exit_code = exit_code;
            container.status.reason = reason.unwrap_or(default).to_owned();
            container.status.finished_at = now;
            container.ended.send_replace(true);
            let name = container.status.metadata.as_ref().unwrap().name.clone();
            state.log.push(format!("ended {name} {exit_code}"));
        }
        self.notify();
    }

    fn is_running(&self, id: &str) -> bool {
        let state = self.state();
        let container = state.containers.get(id);
        container.is_some_and(|c| c.status.state == ContainerState::ContainerRunning as i32)
    }
}

/// How long and with what a behaviour ends by itself.
fn own_end(behaviour: &str) -> Option<(Duration, i32)> {
    if let Some(code) = behaviour.strip_prefix("exit-") {
        return Some((Duration::ZERO, code.parse().unwrap()));
    }
    let (secs, code) = behaviour.strip_prefix("run-")?.split_once("-exit-")?;
    Some((
        Duration::from_secs(secs.parse().unwrap()),
        code.parse().unwrap(),
    ))
}

#[async_trait]
impl Runtime for FakeRuntime {
    async fn version(&self) -> Result<VersionResponse, Error> {
        Ok(VersionResponse::default())
    }

    async fn status(&self) -> Result<RuntimeStatus, Error> {
        Ok(RuntimeStatus::default())
    }

    async fn cgroup_driver(&self) -> Result<Option<Driver>, Error> {
        Ok(None)
    }

    async fn update_pod_cidr(&self, _cidr: &str) -> Result<(), Error> {
        Ok(())
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        (!self.is_silent).then(|| self.changes.subscribe())
    }

    async fn run_pod_sandbox(
        &self,
        config: &PodSandboxConfig,
        handler: &str,
    ) -> Result<String, Error> {
        self.check("run_pod_sandbox")?;
        let mut state = self.state();
        state.next_id += 1;
        let id = format!("sandbox-{}", state.next_id);
        let metadata = config.metadata.clone().unwrap();
        let is_host_network = config
            .linux
            .as_ref()
            .and_then(|linux| linux.security_context.as_ref())
            .and_then(|security| security.namespace_options.as_ref())
            .is_some_and(|options| options.network == NamespaceMode::Node as i32);
        let ip = if is_host_network {
            String::new()
        } else {
            format!("10.0.0.{}", state.next_id)
        };
        let network = if is_host_network {
            NamespaceMode::Node
        } else {
            NamespaceMode::Pod
        };
        let line = format!("sandbox {} {}", metadata.name, metadata.attempt);
        state.log.push(line);
        let status = PodSandboxStatus {
            id: id.clone(),
            metadata: Some(metadata),
            state: PodSandboxState::SandboxReady as i32,
            created_at: self.clock.now().as_nanos() + i64::from(state.next_id),
            runtime_handler: handler.to_owned(),
            network: Some(PodSandboxNetworkStatus {
                ip,
                additional_ips: Vec::new(),
            }),
            linux: Some(LinuxPodSandboxStatus {
                namespaces: Some(Namespace {
                    options: Some(NamespaceOption {
                        network: network as i32,
                        ..NamespaceOption::default()
                    }),
                }),
            }),
            labels: config.labels.clone(),
            ..PodSandboxStatus::default()
        };
        state.sandboxes.insert(id.clone(), status);
        Ok(id)
    }

    async fn stop_pod_sandbox(&self, id: &str) -> Result<(), Error> {
        self.check("stop_pod_sandbox")?;
        let ids: Vec<String> = {
            let mut state = self.state();
            let Some(sandbox) = state.sandboxes.get_mut(id) else {
                return Ok(());
            };
            sandbox.state = PodSandboxState::SandboxNotready as i32;
            let all = state.containers.iter();
            all.filter(|(_, c)| c.sandbox == id)
                .map(|(id, _)| id.clone())
                .collect()
        };
        for id in ids {
            self.exit(&id, 137, None);
        }
        Ok(())
    }

    async fn remove_pod_sandbox(&self, id: &str) -> Result<(), Error> {
        self.stop_pod_sandbox(id).await?;
        let mut state = self.state();
        state.sandboxes.remove(id);
        state.containers.retain(|_, c| c.sandbox != id);
        Ok(())
    }

    async fn pod_sandbox_status(&self, id: &str) -> Result<PodSandboxStatus, Error> {
        let state = self.state();
        let status = state.sandboxes.get(id).cloned();
        status.ok_or_else(|| not_found("sandbox", id))
    }

    async fn list_pod_sandboxes(
        &self,
        filter: &PodSandboxFilter,
    ) -> Result<Vec<PodSandbox>, Error> {
        self.check("list_pod_sandboxes")?;
        let state = self.state();
        let all = state.sandboxes.values();
        Ok(all
            .filter(|s| fits(&s.labels, &filter.label_selector))
            .map(|s| PodSandbox {
                id: s.id.clone(),
                metadata: s.metadata.clone(),
                state: s.state,
                created_at: s.created_at,
                labels: s.labels.clone(),
                ..PodSandbox::default()
            })
            .collect())
    }

    async fn create_container(
        &self,
        sandbox: &str,
        config: &ContainerConfig,
        _sandbox_config: &PodSandboxConfig,
    ) -> Result<String, Error> {
        self.check("create_container")?;
        let mut state = self.state();
        let is_ready = state
            .sandboxes
            .get(sandbox)
            .is_some_and(|s| s.state == PodSandboxState::SandboxReady as i32);
        if !is_ready {
            return Err(Error::failed("create container", "sandbox is not ready"));
        }
        state.next_id += 1;
        let id = format!("container-{}", state.next_id);
        let metadata = config.metadata.clone().unwrap();
        let clash = state
            .containers
            .values()
            .any(|c| c.sandbox == sandbox && c.status.metadata.as_ref() == Some(&metadata));
        assert!(!clash, "{metadata:?} was made before");
        state.made.push(metadata.name.clone());
        let image = config.image.clone().unwrap();
        let status = ContainerStatus {
            id: id.clone(),
            metadata: Some(metadata),
            state: ContainerState::ContainerCreated as i32,
            created_at: self.clock.now().as_nanos() + i64::from(state.next_id),
            image: Some(ImageSpec {
                image: image.user_specified_image.clone(),
                ..ImageSpec::default()
            }),
            image_ref: image.image.clone(),
            labels: config.labels.clone(),
            annotations: config.annotations.clone(),
            resources: config.linux.as_ref().map(|linux| ContainerResources {
                linux: linux.resources.clone(),
            }),
            ..ContainerStatus::default()
        };
        let name = image.user_specified_image.clone();
        let behaviour = name.split(':').next().unwrap().to_owned();
        let container = FakeContainer {
            sandbox: sandbox.to_owned(),
            status,
            behaviour,
            ended: watch::Sender::new(false),
        };
        state.containers.insert(id.clone(), container);
        Ok(id)
    }

    async fn start_container(&self, id: &str) -> Result<(), Error> {
        self.check("start_container")?;
        let behaviour = {
            let mut state = self.state();
            let now = self.clock.now().as_nanos();
            let container = state
                .containers
                .get_mut(id)
                .ok_or_else(|| not_found("container", id))?;
            assert_eq!(
                container.status.state,
                ContainerState::ContainerCreated as i32,
                "{id} is started twice"
            );
            container.status.state = ContainerState::ContainerRunning as i32;
            container.status.started_at = now;
            let behaviour = container.behaviour.clone();
            let uid = container.status.labels["io.kubernetes.pod.uid"].clone();
            let metadata = container.status.metadata.clone().unwrap();
            let line = format!("start {} {}", metadata.name, metadata.attempt);
            let running = state.containers.values().filter(|c| {
                c.status.labels.get("io.kubernetes.pod.uid") == Some(&uid)
                    && c.status.metadata.as_ref().unwrap().name == metadata.name
                    && c.status.state == ContainerState::ContainerRunning as i32
            });
            assert_eq!(running.count(), 1, "{} runs twice", metadata.name);
            state.log.push(line);
            behaviour
        };
        if let Some((after, code)) = own_end(&behaviour) {
            if after.is_zero() {
                self.exit(id, code, None);
            } else if let Some(this) = self.this.upgrade() {
                let id = id.to_owned();
                tokio::spawn(async move {
                    tokio::time::sleep(after).await;
                    this.exit(&id, code, None);
                });
            }
        }
        Ok(())
    }

    async fn stop_container(&self, id: &str, grace: Duration) -> Result<(), Error> {
        self.check("stop_container")?;
        if !self.is_running(id) {
            return Ok(());
        }
        let (behaviour, mut ended) = {
            let mut state = self.state();
            let container = &state.containers[id];
            let behaviour = container.behaviour.clone();
            let ended = container.ended.subscribe();
            let name = container.status.metadata.as_ref().unwrap().name.clone();
            let line = format!("stop {name} {}s", grace.as_secs_f64().round());
            state.log.push(line);
            state.stops.push(Stop {
                id: id.to_owned(),
                deadline: Instant::now() + grace,
            });
            (behaviour, ended)
        };
        if behaviour == "stubborn" {
            tokio::select! {
                _ = ended.wait_for(|ended| *ended) => {}
                () = tokio::time::sleep(grace) => self.exit(id, 137, None),
            }
        } else {
            self.exit(id, 143, None);
        }
        Ok(())
    }

    async fn remove_container(&self, id: &str) -> Result<(), Error> {
        let mut state = self.state();
        if let Some(container) = state.containers.remove(id) {
            let name = &container.status.metadata.as_ref().unwrap().name;
            let line = format!("remove {name}");
            state.log.push(line);
        }
        Ok(())
    }

    async fn container_status(&self, id: &str) -> Result<ContainerStatus, Error> {
        let state = self.state();
        let container = state.containers.get(id);
        let status = container.map(|container| container.status.clone());
        status.ok_or_else(|| not_found("container", id))
    }

    async fn list_containers(&self, filter: &ContainerFilter) -> Result<Vec<Container>, Error> {
        let state = self.state();
        let all = state.containers.values();
        Ok(all
            .filter(|c| fits(&c.status.labels, &filter.label_selector))
            .map(|c| Container {
                id: c.status.id.clone(),
                pod_sandbox_id: c.sandbox.clone(),
                metadata: c.status.metadata.clone(),
                state: c.status.state,
                created_at: c.status.created_at,
                labels: c.status.labels.clone(),
                ..Container::default()
            })
            .collect())
    }

    async fn update_container_resources(
        &self,
        id: &str,
        resources: &LinuxContainerResources,
    ) -> Result<(), Error> {
        self.check("update_container_resources")?;
        let mut state = self.state();
        let container = state
            .containers
            .get_mut(id)
            .ok_or_else(|| not_found("container", id))?;
        container.status.resources = Some(ContainerResources {
            linux: Some(resources.clone()),
        });
        let name = container.status.metadata.as_ref().unwrap().name.clone();
        let line = format!(
            "update {name} shares={} quota={} memory={}",
            resources.cpu_shares, resources.cpu_quota, resources.memory_limit_in_bytes
        );
        state.log.push(line);
        Ok(())
    }

    async fn reopen_container_log(&self, _id: &str) -> Result<(), Error> {
        Ok(())
    }

    async fn list_container_stats(&self) -> Result<Vec<ContainerStats>, Error> {
        Ok(Vec::new())
    }

    async fn exec_sync(
        &self,
        id: &str,
        command: &[String],
        _timeout: Duration,
    ) -> Result<ExecSyncResponse, Error> {
        if let [program, seconds] = command
            && program == "sleep"
        {
            tokio::time::sleep(Duration::from_secs(seconds.parse().unwrap())).await;
        }
        let mut state = self.state();
        let container = state
            .containers
            .get(id)
            .ok_or_else(|| not_found("container", id))?;
        let name = container.status.metadata.as_ref().unwrap().name.clone();
        state.log.push(format!("exec {name} {}", command.join(" ")));
        Ok(ExecSyncResponse {
            exit_code: state.exec_exit_code,
            stdout: b"output".to_vec(),
            ..ExecSyncResponse::default()
        })
    }

    async fn exec(&self, _request: &ExecRequest) -> Result<Session, Error> {
        Err(Error::Unimplemented { verb: "exec" })
    }

    async fn attach(&self, _request: &AttachRequest) -> Result<Session, Error> {
        Err(Error::Unimplemented { verb: "attach" })
    }

    async fn port_forward(&self, _sandbox: &str) -> Result<Ports, Error> {
        Err(Error::Unimplemented {
            verb: "port_forward",
        })
    }

    async fn list_images(&self) -> Result<Vec<Image>, Error> {
        Ok(self.state().images.values().cloned().collect())
    }

    async fn image_status(&self, image: &ImageSpec) -> Result<Option<Image>, Error> {
        Ok(self.state().images.get(&image.image).cloned())
    }

    async fn pull_image(
        &self,
        image: &ImageSpec,
        _auth: Option<&AuthConfig>,
        _sandbox_config: &PodSandboxConfig,
    ) -> Result<String, Error> {
        self.check("pull_image")?;
        self.state().log.push(format!("pull {}", image.image));
        if image.image.starts_with("missing") {
            return Err(not_found("image", &image.image));
        }
        if image.image.starts_with("slow") {
            tokio::time::sleep(Duration::from_secs(600)).await;
        }
        let mut state = self.state();
        let id = format!("sha256:{}", image.image);
        let pulled = Image {
            id: id.clone(),
            size: 42,
            ..Image::default()
        };
        state.images.insert(image.image.clone(), pulled);
        Ok(id)
    }

    async fn remove_image(&self, image: &ImageSpec) -> Result<(), Error> {
        self.state().images.remove(&image.image);
        Ok(())
    }

    async fn image_fs_info(&self) -> Result<ImageFsInfoResponse, Error> {
        Ok(ImageFsInfoResponse::default())
    }
}
