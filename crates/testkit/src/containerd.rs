//! A real containerd for tests: own folders and socket, gone when dropped with all it started.

use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::cgroup;
use crate::claim::Number;
use crate::images::Image;
use crate::mount::unmount_below;

/// How long containerd may take to listen.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Between two looks at whether it listens.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The image of sandboxes; there is no registry to pull one from.
const PAUSE_IMAGE: &str = "plimsoll.test/pause:1";

/// Where Debian puts CNI's plug-ins.
const CNI_PLUGINS: &str = "/usr/lib/cni";

/// Where libcni remembers the addresses it gave.
const CNI_RESULTS: &str = "/var/lib/cni/results";

const INSTALL_HINT: &str =
    "hint: apt-get install containerd runc containernetworking-plugins, or run scripts/test";

/// A containerd with runc, overlayfs and a small network.
#[derive(Debug)]
pub struct Containerd {
    process: Child,
    network: String,
    _addresses: Number,
    folder: TempDir,
}

impl Containerd {
    /// Starts the `containerd` of the `PATH` and waits until it listens. Must be root.
    ///
    /// # Panics
    ///
    /// With an install hint if there is none, with its log if it does not come up.
    pub fn start() -> Self {
        Self::start_below(&std::env::temp_dir())
    }

    /// As [`Self::start`], with all it keeps in a folder below that one.
    ///
    /// # Panics
    ///
    /// As [`Self::start`].
    pub fn start_below(parent: &Path) -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let folder = tempfile::tempdir_in(parent).expect("there is room for temporary files");
        let network = format!("plimsoll-test-{}-{serial}", std::process::id());
        let addresses = Number::claim();
        write_configuration(folder.path(), &network, addresses.value());
        let process = launch(folder.path());
        let mut containerd = Self {
            process,
            network,
            _addresses: addresses,
            folder,
        };
        containerd.wait_until_ready();
        containerd.import_pause();
        containerd
    }

    /// Takes in the image of sandboxes, which is removed as unused like any other.
    ///
    /// # Panics
    ///
    /// If containerd refuses.
    pub fn import_pause(&self) {
        self.import(&pause_image(), PAUSE_IMAGE);
    }

    /// Where clients connect to.
    pub fn endpoint(&self) -> String {
        format!("unix://{}", socket(self.folder.path()).display())
    }

    /// Takes an image in under a name.
    ///
    /// # Panics
    ///
    /// If containerd refuses.
    pub fn import(&self, image: &Image, name: &str) {
        let archive = self.folder.path().join("import.tar");
        fs::write(&archive, image.docker_archive(&[name])).expect("the folder exists");
        let output = Command::new("ctr")
            .arg("--address")
            .arg(socket(self.folder.path()))
            .args(["--namespace", "k8s.io", "images", "import"])
            .arg(&archive)
            .output()
            .unwrap_or_else(|e| panic!("cannot run ctr: {e}\n{INSTALL_HINT}"));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "cannot import {name}: {stderr}");
        let _ = fs::remove_file(archive);
    }

    /// Kills it as a crash does; containers keep running.
    pub fn kill(&mut self) {
        // Fails only if it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(socket(self.folder.path()));
    }

    /// Starts it after [`Self::kill`], with all it had.
    ///
    /// # Panics
    ///
    /// With its log if it does not come up.
    pub fn start_again(&mut self) {
        self.process = launch(self.folder.path());
        self.wait_until_ready();
    }

    fn wait_until_ready(&mut self) {
        let deadline = Instant::now() + READY_WITHIN;
        while UnixStream::connect(socket(self.folder.path())).is_err() {
            let ended = self.process.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > deadline {
                let log = fs::read_to_string(log_file(self.folder.path()));
                let log = log.unwrap_or_default();
                panic!("containerd did not start ({ended:?}):\n{log}");
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        self.kill();
        let folder = self.folder.path();
        end_containers(folder);
        unmount_below(folder);
        forget_addresses(&self.network);
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("containerd.sock")
}

fn log_file(folder: &Path) -> PathBuf {
    folder.join("log")
}

fn write_configuration(folder: &Path, network: &str, subnet: u8) {
    let at = folder.display();
    let configuration = format!(
        r#"
version = 2
root = "{at}/root"
state = "{at}/state"
disabled_plugins = ["io.containerd.internal.v1.tracing", "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{at}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  netns_mounts_under_state_dir = true
  restrict_oom_score_adj = {restrict}
  stats_collect_period = 1
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = "{at}/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
      Root = "{at}/runc"
"#,
        socket = socket(folder).display(),
        // Sandboxes want less than the usual score, which not every root may have.
        restrict = !may_lower_oom_scores(),
    );
    // A link per pod that goes with it; a bridge would stay behind.
    let plugin = format!(
        r#"{{"cniVersion": "0.4.0", "name": "{network}", "type": "ptp", "ipam": {{"type": "host-local",
            "dataDir": "{at}/addresses", "ranges": [[{{"subnet": "10.89.{subnet}.0/24"}}]],
            "routes": [{{"dst": "0.0.0.0/0"}}]}}}}"#
    );
    let write = |path: PathBuf, text: &str| fs::write(path, text).expect("the folder is ours");
    fs::create_dir(folder.join("net.d")).expect("the folder is ours");
    write(folder.join("config.toml"), &configuration);
    write(folder.join("net.d/10-test.conf"), &plugin);
}

/// Whether this process may lower the scores by which the kernel picks its victims.
pub fn may_lower_oom_scores() -> bool {
    const CAP_SYS_RESOURCE: u32 = 24;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits & (1 << CAP_SYS_RESOURCE) != 0)
}

fn launch(folder: &Path) -> Child {
    let log = File::create(log_file(folder)).expect("the folder is ours");
    let log_too = log.try_clone().expect("the file is open");
    let mut command = Command::new("containerd");
    command
        .arg("--config")
        .arg(folder.join("config.toml"))
        .stdout(log)
        .stderr(log_too);
    command
        .spawn()
        .unwrap_or_else(|e| panic!("cannot run containerd: {e}\n{INSTALL_HINT}"))
}

/// Busybox that waits. It has to hold the namespaces of a sandbox and nothing else; containerd ends
/// it with a signal that needs no handler.
fn pause_image() -> Image {
    let mut image = Image::busybox();
    image.config["Cmd"] = ["sleep", "2147483647"].as_slice().into();
    image
}

/// Ends shims and the processes they started. Both are found by the folder, which is unique.
fn end_containers(folder: &Path) {
    let bundles = folder.join("state/io.containerd.runtime.v2.task/k8s.io");
    for bundle in fs::read_dir(bundles).into_iter().flatten().flatten() {
        let listening = fs::read_to_string(bundle.path().join("address")).unwrap_or_default();
        let first = fs::read_to_string(bundle.path().join("init.pid")).unwrap_or_default();
        if let Ok(id) = first.trim().parse() {
            cgroup::kill(id);
        }
        if let Some(path) = listening.trim().strip_prefix("unix://") {
            let _ = fs::remove_file(path);
        }
    }
    let address = socket(folder).display().to_string();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(id) = process.file_name().to_string_lossy().parse() else {
            continue;
        };
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        if words.any(|word| word == address.as_bytes()) {
            cgroup::kill(id);
        }
    }
}

fn forget_addresses(network: &str) {
    for entry in fs::read_dir(CNI_RESULTS).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(network) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
