//! The environment of one case: a runtime, and names, directories and cgroups of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use plimsoll_runtime::Runtime;
use plimsoll_runtime::wire::{
    ContainerConfig, ContainerMetadata, ContainerState, ContainerStatus, ImageSpec,
    LinuxContainerConfig, LinuxContainerResources, LinuxContainerSecurityContext,
    LinuxPodSandboxConfig, LinuxSandboxSecurityContext, NamespaceMode, NamespaceOption,
    PodSandboxConfig, PodSandboxFilter, PodSandboxMetadata,
};
use plimsoll_testkit::cgroup;

use crate::backend::{BUSYBOX, Service};

/// A running case.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// The timeout of every wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// The interval of polls.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The label that distinguishes the pods of one case from all others.
const CASE_LABEL: &str = "plimsoll.test/case";

pub(crate) struct Scene {
    service: Arc<dyn Service>,
    folder: TempDir,
    cgroups: cgroup::Tree,
    name: String,
    pods: AtomicU32,
}

/// A running sandbox.
#[derive(Clone, Debug)]
pub(crate) struct Sandbox {
    pub(crate) id: String,
    pub(crate) config: PodSandboxConfig,
}

impl Scene {
    pub(crate) fn new(service: Arc<dyn Service>) -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        Self {
            service,
            folder: tempfile::tempdir().unwrap(),
            cgroups: cgroup::Tree::new(),
            name: format!("case{}-{serial}", std::process::id()),
            pods: AtomicU32::new(0),
        }
    }

    pub(crate) fn runtime(&self) -> Arc<dyn Runtime> {
        self.service.runtime()
    }

    /// Kills the runtime, runs a function, and starts the runtime again.
    pub(crate) async fn restart_and_meanwhile(&self, something: impl AsyncFnOnce()) {
        self.service.take_down().await;
        something().await;
        self.service.bring_up().await;
    }

    /// Imports again the images that other cases need.
    pub(crate) fn restock(&self) {
        self.service.restock();
    }

    /// The cpu weights to which the runtime may convert cpu shares on cgroup v2.
    pub(crate) fn cpu_weights(&self, shares: u64) -> Vec<u64> {
        self.service.cpu_weights(shares)
    }

    /// A folder on the node, for mounts.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Removes all pods of the case.
    pub(crate) async fn clear(&self) {
        let runtime = self.runtime();
        let filter = self.own_sandboxes();
        let sandboxes = runtime.list_pod_sandboxes(&filter).await.unwrap();
        for sandbox in sandboxes {
            runtime.stop_pod_sandbox(&sandbox.id).await.unwrap();
            runtime.remove_pod_sandbox(&sandbox.id).await.unwrap();
        }
    }

    /// Matches all sandboxes of the case and no others.
    pub(crate) fn own_sandboxes(&self) -> PodSandboxFilter {
        PodSandboxFilter {
            label_selector: labels(&[(CASE_LABEL, &self.name)]),
            ..PodSandboxFilter::default()
        }
    }

    /// A pod as an agent describes it, with a cgroup and a folder for logs.
    pub(crate) fn pod(&self) -> PodSandboxConfig {
        let serial = self.pods.fetch_add(1, Ordering::Relaxed);
        let name = format!("pod-{serial}");
        let uid = format!("{}-{serial}", self.name);
        let log_directory = self
            .folder()
            .join("logs")
            .join(format!("test_{name}_{uid}"));
        std::fs::create_dir_all(&log_directory).unwrap();
        PodSandboxConfig {
            hostname: name.clone(),
            log_directory: log_directory.to_string_lossy().into_owned(),
            labels: labels(&[
                (CASE_LABEL, &self.name),
                ("io.kubernetes.pod.name", &name),
                ("io.kubernetes.pod.namespace", "test"),
                ("io.kubernetes.pod.uid", &uid),
            ]),
            linux: Some(LinuxPodSandboxConfig {
                cgroup_parent: self.cgroups.make(&format!("kubepods/burstable/pod{uid}")),
                security_context: Some(LinuxSandboxSecurityContext {
                    namespace_options: Some(own_processes()),
                    ..LinuxSandboxSecurityContext::default()
                }),
                ..LinuxPodSandboxConfig::default()
            }),
            metadata: Some(PodSandboxMetadata {
                name,
                uid,
                namespace: "test".to_owned(),
                attempt: 0,
            }),
            ..PodSandboxConfig::default()
        }
    }

    pub(crate) async fn run(&self, config: PodSandboxConfig) -> Sandbox {
        let id = self.runtime().run_pod_sandbox(&config, "").await;
        let id = id.unwrap_or_else(|error| panic!("{}", error.chain()));
        Sandbox { id, config }
    }

    pub(crate) async fn run_pod(&self) -> Sandbox {
        self.run(self.pod()).await
    }

    pub(crate) async fn create(&self, sandbox: &Sandbox, config: &ContainerConfig) -> String {
        let log = log_path(sandbox, config);
        std::fs::create_dir_all(log.parent().unwrap()).unwrap();
        let runtime = self.runtime();
        let made = runtime.create_container(&sandbox.id, config, &sandbox.config);
        made.await
            .unwrap_or_else(|error| panic!("{}", error.chain()))
    }

    pub(crate) async fn start(&self, sandbox: &Sandbox, config: &ContainerConfig) -> String {
        let id = self.create(sandbox, config).await;
        let started = self.runtime().start_container(&id).await;
        started.unwrap_or_else(|error| panic!("{}", error.chain()));
        id
    }

    /// A container in a pod of its own.
    pub(crate) async fn start_alone(&self, config: &ContainerConfig) -> String {
        let sandbox = self.run_pod().await;
        self.start(&sandbox, config).await
    }

    /// Runs a container in a pod of its own until it exits; returns its output.
    pub(crate) async fn output(&self, config: &ContainerConfig) -> String {
        let sandbox = self.run_pod().await;
        self.output_in(&sandbox, config).await
    }

    pub(crate) async fn output_in(&self, sandbox: &Sandbox, config: &ContainerConfig) -> String {
        let id = self.start(sandbox, config).await;
        self.ended(&id).await;
        self.printed(sandbox, config).await
    }

    /// The output of an exited container, without the prefixes of the log.
    pub(crate) async fn printed(&self, sandbox: &Sandbox, config: &ContainerConfig) -> String {
        // The last lines may be written a moment after the exit is reported.
        let path = log_path(sandbox, config);
        let mut before = None;
        let text = until("the log is whole", async || {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let is_stable = before.as_deref() == Some(text.as_str());
            before = Some(text.clone());
            is_stable.then_some(text)
        })
        .await;
        let contents = text.lines().map(|line| line.splitn(4, ' ').nth(3).unwrap());
        contents.collect::<Vec<_>>().join("\n")
    }

    /// Waits until a log has a line with this end.
    pub(crate) async fn has_printed(&self, sandbox: &Sandbox, config: &ContainerConfig, end: &str) {
        let path = log_path(sandbox, config);
        until(&format!("{end:?} is printed"), async || {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            text.lines().any(|line| line.ends_with(end)).then_some(())
        })
        .await;
    }

    pub(crate) async fn status(&self, id: &str) -> ContainerStatus {
        let status = self.runtime().container_status(id).await;
        status.unwrap_or_else(|error| panic!("{}", error.chain()))
    }

    /// Waits until a container has exited.
    pub(crate) async fn ended(&self, id: &str) -> ContainerStatus {
        until("the container ends", async || {
            let status = self.status(id).await;
            (status.state() == ContainerState::ContainerExited).then_some(status)
        })
        .await
    }

    /// Runs a shell command, which must succeed, in a container; returns its output.
    pub(crate) async fn shell(&self, id: &str, script: &str) -> String {
        let command = ["sh", "-c", script].map(str::to_owned);
        let ran = self.runtime().exec_sync(id, &command, PATIENCE).await;
        let ran = ran.unwrap_or_else(|error| panic!("{}", error.chain()));
        let shown = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.exit_code, 0, "{script}: {shown}");
        String::from_utf8(ran.stdout).unwrap().trim_end().to_owned()
    }
}

/// A container that runs a shell script.
pub(crate) fn script(text: &str) -> ContainerConfig {
    let name = "main".to_owned();
    ContainerConfig {
        image: Some(image(BUSYBOX)),
        command: ["sh", "-c", text].map(str::to_owned).to_vec(),
        log_path: format!("{name}/0.log"),
        labels: labels(&[("io.kubernetes.container.name", &name)]),
        metadata: Some(ContainerMetadata { name, attempt: 0 }),
        linux: Some(LinuxContainerConfig {
            resources: Some(LinuxContainerResources::default()),
            security_context: Some(LinuxContainerSecurityContext {
                namespace_options: Some(own_processes()),
                ..LinuxContainerSecurityContext::default()
            }),
        }),
        ..ContainerConfig::default()
    }
}

/// A container that runs until SIGTERM, and then exits at once.
pub(crate) fn lasting() -> ContainerConfig {
    script("trap 'exit 0' TERM; while :; do sleep 1000 & wait; done")
}

/// The same container under another name, so that a pod can have both.
pub(crate) fn named(mut config: ContainerConfig, name: &str, attempt: u32) -> ContainerConfig {
    config.log_path = format!("{name}/{attempt}.log");
    config.labels = labels(&[("io.kubernetes.container.name", name)]);
    config.metadata = Some(ContainerMetadata {
        name: name.to_owned(),
        attempt,
    });
    config
}

pub(crate) fn image(name: &str) -> ImageSpec {
    ImageSpec {
        image: name.to_owned(),
        user_specified_image: name.to_owned(),
        ..ImageSpec::default()
    }
}

pub(crate) fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(own).collect()
}

pub(crate) fn security(config: &mut ContainerConfig) -> &mut LinuxContainerSecurityContext {
    let linux = config.linux.as_mut().unwrap();
    linux.security_context.as_mut().unwrap()
}

pub(crate) fn resources(config: &mut ContainerConfig) -> &mut LinuxContainerResources {
    config.linux.as_mut().unwrap().resources.as_mut().unwrap()
}

/// A PID namespace of each container, the other namespaces shared: the default of pods.
pub(crate) fn own_processes() -> NamespaceOption {
    NamespaceOption {
        pid: NamespaceMode::Container.into(),
        ..NamespaceOption::default()
    }
}

pub(crate) fn log_path(sandbox: &Sandbox, config: &ContainerConfig) -> PathBuf {
    Path::new(&sandbox.config.log_directory).join(&config.log_path)
}

/// The cgroup of a container.
pub(crate) fn cgroup_of(sandbox: &Sandbox, id: &str) -> String {
    let parent = &sandbox.config.linux.as_ref().unwrap().cgroup_parent;
    format!("{parent}/{id}")
}

/// Polls until there is an answer.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        let is_late = tokio::time::Instant::now() > deadline;
        assert!(!is_late, "waited {PATIENCE:?} in vain: {what}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
