//! The processes under test and their environment.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use plimsoll_testkit::cgroup::Tree;
use plimsoll_testkit::images::busybox_archive;
use plimsoll_testkit::mount::unmount_below;
use tempfile::TempDir;

/// The image of all pods.
pub(crate) const IMAGE: &str = "plimsoll.test/busybox:1";
/// The node.
pub(crate) const NODE: &str = "n1";

const BRIDGE: &str = "plbench0";

/// A place to run. Everything goes when it is dropped: first the processes, then what ran in the
/// cgroups, then the network, mounts and files.
pub(crate) struct Stage {
    processes: Processes,
    /// Of the node; a stage without one needs no root.
    cgroups: Option<Tree>,
    folder: Folder,
}

struct Processes(Vec<Child>);

impl Drop for Processes {
    fn drop(&mut self) {
        for process in self.0.iter_mut().rev() {
            // Fails only if it has ended already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

struct Folder(TempDir);

impl Drop for Folder {
    fn drop(&mut self) {
        // Both fail where no pod has needed them.
        let _ = plimsoll_runtime::embedded::stop_translating(BRIDGE);
        let _ = Command::new("ip").args(["link", "delete", BRIDGE]).output();
        unmount_below(self.0.path());
    }
}

impl Stage {
    pub(crate) fn new() -> Result<Stage> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        Ok(Stage {
            processes: Processes(Vec::new()),
            cgroups: None,
            folder: Folder(folder),
        })
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.data_dir().join("admin.kubeconfig")
    }

    /// A whole cluster; its process.
    pub(crate) fn up(&mut self) -> Result<u32> {
        self.import_image(&self.data_dir())?;
        let mut command = self.command("up", &self.data_dir());
        command.args(["--listen", "127.0.0.1:0"]);
        self.update_node(&mut command)?;
        self.start(command)
    }

    /// An API server alone; its process.
    pub(crate) fn server(&mut self) -> Result<u32> {
        let mut command = self.command("server", &self.data_dir());
        command.args(["--listen", "127.0.0.1:0"]);
        self.start(command)
    }

    /// An agent alone; its process.
    pub(crate) fn node(&mut self) -> Result<u32> {
        let directory = self.folder.0.path().join("node");
        self.import_image(&directory)?;
        let mut command = self.command("node", &directory);
        command.arg("--kubeconfig").arg(self.kubeconfig());
        self.update_node(&mut command)?;
        self.start(command)
    }

    /// A scheduler alone; its process.
    pub(crate) fn scheduler(&mut self) -> Result<u32> {
        let mut command = Command::new(program());
        command.args([
            "scheduler",
            "--leader-elect=false",
            "--listen",
            "127.0.0.1:0",
        ]);
        command.arg("--kubeconfig").arg(self.kubeconfig());
        self.start(command)
    }

    fn data_dir(&self) -> PathBuf {
        self.folder.0.path().join("data")
    }

    fn command(&self, word: &str, data_dir: &Path) -> Command {
        let mut command = Command::new(program());
        command.arg(word).arg("--data-dir").arg(data_dir);
        command
    }

    /// Settings under which the disk of this machine causes no eviction, and 110 pods fit.
    fn update_node(&mut self, command: &mut Command) -> Result<()> {
        let config = self.folder.0.path().join("node.yaml");
        let text = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n\
                    evictionHard: { memory.available: 100Mi }\nmaxPods: 200\n";
        std::fs::write(&config, text).context("cannot write the configuration")?;
        command.arg("--config").arg(config);
        command.args(["--node-name", NODE, "--kubelet-listen", "127.0.0.1:0"]);
        command.args(["--healthz-listen", "off", "--keep-kernel-settings"]);
        command.args(["--bridge", BRIDGE, "--pod-cidr", "10.89.0.0/16"]);
        let cgroups = self.cgroups.get_or_insert_with(Tree::new);
        command.args(["--cgroup-root", cgroups.path()]);
        Ok(())
    }

    fn import_image(&self, data_dir: &Path) -> Result<()> {
        let archive = busybox_archive(self.folder.0.path(), IMAGE);
        let mut command = Command::new(program());
        command.args(["image", "import", "--data-dir"]);
        let output = command.arg(data_dir).arg(archive).output();
        let output = output.context("cannot run plimsoll")?;
        if !output.status.success() {
            bail!("no image: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    fn start(&mut self, mut command: Command) -> Result<u32> {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.context("cannot run plimsoll")?;
        let id = child.id();
        self.processes.0.push(child);
        Ok(id)
    }
}

/// What is measured: the program that was built with this one, unless another is named.
fn program() -> PathBuf {
    let named = std::env::var_os("PLIMSOLL_PROGRAM");
    named.map_or_else(|| env!("CARGO_BIN_EXE_plimsoll").into(), PathBuf::from)
}
