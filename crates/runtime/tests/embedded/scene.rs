//! A runtime for one test, with a small image, and a check for leftovers.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use plimsoll_core::cgroup::Driver;
use plimsoll_runtime::embedded::{
    Embedded, ImageConfig, Images, NetworkOptions, Options, RootOwner,
};
use plimsoll_runtime::wire::*;
use plimsoll_runtime::{Error, Runtime};

/// The argument with which this binary is the runtime's helper.
pub(crate) const HELPER: &str = "runtime-helper";

/// The timeout of every wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// One image, `busybox`, laid out as plain directories.
#[derive(Debug)]
pub(crate) struct Busybox {
    dir: PathBuf,
}

const BUSYBOX: &str = "/bin/busybox";
const APPLETS: [&str; 27] = [
    "sh", "sleep", "cat", "echo", "ls", "id", "ps", "kill", "ip", "nc", "httpd", "wget", "mknod",
    "dd", "true", "false", "hostname", "readlink", "mount", "grep", "head", "tail", "stat",
    "touch", "stty", "tty", "mkdir",
];

impl Busybox {
    fn unpack(dir: &Path) {
        let image = dir.join("image");
        for part in ["bin", "etc", "tmp"] {
            fs::create_dir_all(image.join(part)).unwrap();
        }
        fs::copy(BUSYBOX, image.join("bin/busybox"))
            .expect("busybox is needed: apt-get install busybox-static");
        for applet in APPLETS {
            symlink("busybox", image.join("bin").join(applet)).unwrap();
        }
        fs::write(image.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n").unwrap();
        fs::create_dir_all(dir.join("roots")).unwrap();
    }
}

#[async_trait]
impl Images for Busybox {
    async fn resolve(&self, _: &ImageSpec) -> Result<ImageConfig, Error> {
        Ok(ImageConfig {
            id: "sha256:busybox".to_owned(),
            reference: "sha256:busybox".to_owned(),
            cmd: vec!["sh".to_owned()],
            ..ImageConfig::default()
        })
    }

    async fn prepare_root(
        &self,
        _: &str,
        root: &str,
        _: Option<&RootOwner>,
    ) -> Result<PathBuf, Error> {
        let target = self.dir.join("roots").join(root);
        let image = self.dir.join("image");
        for part in ["bin", "etc", "tmp"] {
            fs::create_dir_all(target.join(part)).unwrap();
            for entry in fs::read_dir(image.join(part)).unwrap() {
                let entry = entry.unwrap();
                let _ = fs::hard_link(entry.path(), target.join(part).join(entry.file_name()));
            }
        }
        Ok(target)
    }

    async fn remove_root(&self, root: &str) -> Result<(), Error> {
        let _ = fs::remove_dir_all(self.dir.join("roots").join(root));
        Ok(())
    }

    async fn list_roots(&self) -> Result<Vec<String>, Error> {
        let entries = fs::read_dir(self.dir.join("roots")).unwrap();
        Ok(entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect())
    }

    async fn root_usage(&self, _: &str) -> Result<FilesystemUsage, Error> {
        Ok(FilesystemUsage::default())
    }
    async fn list(&self) -> Result<Vec<Image>, Error> {
        Ok(Vec::new())
    }
    async fn status(&self, _: &ImageSpec) -> Result<Option<Image>, Error> {
        Ok(None)
    }
    async fn pull(
        &self,
        _: &ImageSpec,
        _: Option<&AuthConfig>,
        _: &PodSandboxConfig,
    ) -> Result<String, Error> {
        Ok(String::new())
    }
    async fn remove(&self, _: &ImageSpec) -> Result<(), Error> {
        Ok(())
    }
    async fn fs_info(&self) -> Result<ImageFsInfoResponse, Error> {
        Ok(ImageFsInfoResponse::default())
    }
}

/// The directory of a scene.
pub(crate) enum Dir {
    Own(tempfile::TempDir),
    /// Owned by another process.
    Lent(PathBuf),
}

impl Dir {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Dir::Own(dir) => dir.path(),
            Dir::Lent(path) => path,
        }
    }
}

static SCENES: AtomicU32 = AtomicU32::new(0);

/// A runtime and the environment of its pods.
pub(crate) struct Scene {
    pub(crate) dir: Dir,
    /// Unique among all scenes of all processes.
    pub(crate) name: String,
    images: Arc<Busybox>,
    pub(crate) network: NetworkOptions,
    runtime: Option<Embedded>,
    pods: u32,
}

impl Scene {
    pub(crate) async fn new() -> Scene {
        let dir = tempfile::Builder::new()
            .prefix("embedded")
            .tempdir()
            .unwrap();
        let number = SCENES.fetch_add(1, Ordering::Relaxed);
        let name = format!("emb{}x{number}", std::process::id());
        Busybox::unpack(&dir.path().join("images"));
        Scene::with(Dir::Own(dir), name).await
    }

    /// The scene of another process, while that process does not use it.
    pub(crate) async fn in_dir(dir: &Path, name: &str) -> Scene {
        Scene::with(Dir::Lent(dir.to_owned()), name.to_owned()).await
    }

    async fn with(dir: Dir, name: String) -> Scene {
        let images = Arc::new(Busybox {
            dir: dir.path().join("images"),
        });
        let network = NetworkOptions {
            cni_conf_dir: dir.path().join("cni"),
            cni_bin_dirs: vec!["/usr/lib/cni".into(), "/opt/cni/bin".into()],
            bridge: format!("b{name}").chars().take(15).collect(),
            pod_cidr: None,
            forwarding: None,
        };
        let mut scene = Scene {
            dir,
            name,
            images,
            network,
            runtime: None,
            pods: 0,
        };
        scene.start().await;
        scene
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            root: self.root(),
            helper: vec!["/proc/self/exe".into(), HELPER.into()],
            images: Arc::clone(&self.images) as Arc<dyn Images>,
            cgroup_driver: Driver::Cgroupfs,
            network: self.network.clone(),
        }
    }

    /// The runtime's directory.
    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("runtime")
    }

    /// Starts the runtime as a starting agent does.
    pub(crate) async fn start(&mut self) {
        self.runtime = Some(Embedded::new(self.options()).await.unwrap());
    }

    /// Stops the runtime and leaves its containers running.
    pub(crate) fn end(&mut self) {
        self.runtime = None;
    }

    pub(crate) fn runtime(&self) -> &Embedded {
        self.runtime.as_ref().unwrap()
    }

    pub(crate) fn cgroup_parent(&self) -> String {
        format!("/{}", self.name)
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.dir.path().join("logs")
    }

    /// A pod's configuration with a network of its own.
    pub(crate) fn pod(&mut self) -> PodSandboxConfig {
        self.pods += 1;
        let name = format!("pod-{}", self.pods);
        PodSandboxConfig {
            metadata: Some(PodSandboxMetadata {
                uid: format!("uid-{}-{name}", self.name),
                name: name.clone(),
                namespace: "test".to_owned(),
                attempt: 0,
            }),
            hostname: name,
            log_directory: self.logs().display().to_string(),
            linux: Some(LinuxPodSandboxConfig {
                cgroup_parent: self.cgroup_parent(),
                security_context: Some(LinuxSandboxSecurityContext {
                    namespace_options: Some(namespaces(NamespaceMode::Container)),
                    ..LinuxSandboxSecurityContext::default()
                }),
                ..LinuxPodSandboxConfig::default()
            }),
            ..PodSandboxConfig::default()
        }
    }

    /// Runs a container in a sandbox; returns its id.
    pub(crate) async fn run(
        &self,
        sandbox: &str,
        pod: &PodSandboxConfig,
        config: ContainerConfig,
    ) -> String {
        let runtime = self.runtime();
        let id = runtime
            .create_container(sandbox, &config, pod)
            .await
            .unwrap();
        runtime.start_container(&id).await.unwrap();
        id
    }

    /// Runs a command in a container; returns its output and exit code.
    pub(crate) async fn exec(&self, id: &str, command: &[&str]) -> (String, i32) {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let done = self
            .runtime()
            .exec_sync(id, &command, PATIENCE)
            .await
            .unwrap();
        let mut output = String::from_utf8(done.stdout).unwrap();
        output.push_str(&String::from_utf8(done.stderr).unwrap());
        (output, done.exit_code)
    }

    pub(crate) async fn status(&self, id: &str) -> ContainerStatus {
        self.runtime().container_status(id).await.unwrap()
    }

    pub(crate) async fn wait_for_exit(&self, id: &str) -> ContainerStatus {
        until("the container ends", || async {
            let status = self.status(id).await;
            (status.state() == ContainerState::ContainerExited).then_some(status)
        })
        .await
    }

    /// Removes all pods and checks for leftovers.
    pub(crate) async fn finish(mut self) {
        if self.runtime.is_none() {
            self.start().await;
        }
        let all = PodSandboxFilter::default();
        for sandbox in self.runtime().list_pod_sandboxes(&all).await.unwrap() {
            self.runtime()
                .remove_pod_sandbox(&sandbox.id)
                .await
                .unwrap();
        }
        self.end();
        let left = self.images.list_roots().await.unwrap();
        assert_eq!(left, Vec::<String>::new(), "roots are left over");
        for kind in ["sandboxes", "containers"] {
            let left = fs::read_dir(self.root().join(kind)).unwrap().count();
            assert_eq!(left, 0, "{kind} are left over");
        }
        for tree in trees() {
            let own = tree.join(&self.name);
            if own.exists() {
                fs::remove_dir(&own).expect("cgroups are left over");
            }
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let here = self.dir.path().display().to_string();
        assert!(!mounts.contains(&here), "mounts are left over");
        remove_link(&self.network.bridge);
    }
}

/// A failing test leaves nothing running.
impl Drop for Scene {
    fn drop(&mut self) {
        self.end();
        if !std::thread::panicking() || matches!(self.dir, Dir::Lent(_)) {
            return;
        }
        for kind in ["sandboxes", "containers"] {
            for entry in fs::read_dir(self.root().join(kind))
                .into_iter()
                .flatten()
                .flatten()
            {
                for name in ["pause.json", "started.json", "monitor.json"] {
                    let path = entry.path().join(name);
                    if path.exists() && alive(pid_in(&path)) {
                        kill(pid_in(&path));
                    }
                }
                let shm = entry.path().join("shm");
                if shm.exists() {
                    let _ = std::process::Command::new("umount").arg(shm).status();
                }
            }
        }
        for tree in trees() {
            let own = tree.join(&self.name);
            for entry in fs::read_dir(&own).into_iter().flatten().flatten() {
                let deadline = Instant::now() + PATIENCE;
                while entry.path().is_dir()
                    && fs::remove_dir(entry.path()).is_err()
                    && Instant::now() < deadline
                {
                    std::thread::yield_now();
                }
            }
            let _ = fs::remove_dir(own);
        }
        remove_link(&self.network.bridge);
    }
}

/// The roots of all trees of cgroups.
pub(crate) fn trees() -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    if root.join("cgroup.controllers").exists() {
        return vec![root.to_owned()];
    }
    let entries = fs::read_dir(root).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

pub(crate) fn remove_link(name: &str) {
    if Path::new("/sys/class/net").join(name).exists() {
        let _ = plimsoll_runtime::embedded::stop_translating(name);
        let done = std::process::Command::new("ip")
            .args(["link", "del", name])
            .status();
        assert!(done.unwrap().success(), "{name} is left over");
    }
}

/// The process recorded in a file of the runtime.
pub(crate) fn pid_in(path: &Path) -> i32 {
    let record: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let process = record.get("process").unwrap_or(&record);
    i32::try_from(process["pid"].as_i64().unwrap()).unwrap()
}

pub(crate) fn alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

pub(crate) fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// All namespaces are the pod's, except the container's PID namespace.
pub(crate) fn namespaces(pid: NamespaceMode) -> NamespaceOption {
    NamespaceOption {
        network: NamespaceMode::Pod.into(),
        pid: pid.into(),
        ipc: NamespaceMode::Pod.into(),
        ..NamespaceOption::default()
    }
}

/// A container that runs a line of shell.
pub(crate) fn shell(name: &str, line: &str) -> ContainerConfig {
    let command = ["sh", "-c", line].map(str::to_owned).to_vec();
    ContainerConfig {
        metadata: Some(ContainerMetadata {
            name: name.to_owned(),
            attempt: 0,
        }),
        image: Some(ImageSpec {
            image: "busybox".to_owned(),
            ..ImageSpec::default()
        }),
        command,
        log_path: format!("{name}/0.log"),
        linux: Some(LinuxContainerConfig {
            resources: Some(LinuxContainerResources {
                cpu_shares: 512,
                memory_limit_in_bytes: 64 << 20,
                oom_score_adj: 900,
                ..LinuxContainerResources::default()
            }),
            security_context: Some(LinuxContainerSecurityContext {
                namespace_options: Some(namespaces(NamespaceMode::Container)),
                ..LinuxContainerSecurityContext::default()
            }),
        }),
        labels: BTreeMap::from([("name".to_owned(), name.to_owned())]),
        ..ContainerConfig::default()
    }
}

/// Polls until there is an answer.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(what: &str, ask: impl Fn() -> F) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(
            Instant::now() < deadline,
            "waited {PATIENCE:?} in vain until {what}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
