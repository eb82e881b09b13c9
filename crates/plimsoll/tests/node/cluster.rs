//! A cluster of one node: `plimsoll up`, its environment, and kubectl.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_testkit::cgroup::Tree;
use plimsoll_testkit::claim::Number;
use plimsoll_testkit::containerd::Containerd;
use plimsoll_testkit::images::{Image, busybox_archive};
use plimsoll_testkit::inventory::{Inventory, Place};
use plimsoll_testkit::kubectl::Kubectl;
use plimsoll_testkit::mount::unmount_below;
use plimsoll_testkit::process::Process;
use plimsoll_testkit::waiting::until;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::Api;

/// The image that pods of tests run: busybox.
pub(crate) const IMAGE: &str = "plimsoll.test/busybox:1";

/// The program.
pub(crate) const PLIMSOLL: &str = env!("CARGO_BIN_EXE_plimsoll");

/// The name of the node.
pub(crate) const NODE: &str = "n1";

/// The container runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    /// The embedded runtime.
    Embedded,
    /// A containerd that is started for the test.
    Containerd,
}

/// Makes a test of a case for each runtime: `on_both_runtimes!(name)` runs the function `name`.
macro_rules! on_both_runtimes {
    ($($case:ident),+ $(,)?) => {
        mod embedded {
            $(#[test]
            #[ignore = "tier: root"]
            fn $case() {
                super::$case(&mut crate::cluster::Cluster::start(crate::cluster::Runtime::Embedded));
            })+
        }
        mod containerd {
            $(#[test]
            #[ignore = "tier: root"]
            fn $case() {
                super::$case(&mut crate::cluster::Cluster::start(crate::cluster::Runtime::Containerd));
            })+
        }
    };
}
pub(crate) use on_both_runtimes;

/// Everything that a test of a node needs. On drop, `plimsoll down` removes the node, and the test
/// fails if something is left; then cgroups, mounts and files of the test are removed.
pub(crate) struct Cluster {
    /// The agent and everything that is one process with it.
    pub(crate) up: Process,
    /// Its command line.
    pub(crate) arguments: Vec<String>,
    pub(crate) runtime: Runtime,
    containerd: Option<Containerd>,
    kubectl: Kubectl,
    api: Api,
    cgroups: Tree,
    network: Bridge,
    folder: Folder,
    /// The inventory of the machine before the node.
    pub(crate) before: Inventory,
}

/// The cluster is accessed with kubectl.
impl Deref for Cluster {
    type Target = Kubectl;

    fn deref(&self) -> &Kubectl {
        &self.kubectl
    }
}

impl Cluster {
    /// A cluster with default settings whose node is ready.
    pub(crate) fn start(runtime: Runtime) -> Self {
        Self::start_with(runtime, |_| Vec::new())
    }

    /// With further arguments, which may name files in the folder given.
    pub(crate) fn start_with(
        runtime: Runtime,
        arguments: impl FnOnce(&Path) -> Vec<String>,
    ) -> Self {
        let folder = Folder::new();
        let cgroups = Tree::new();
        let network = Bridge::new();
        let further = arguments(folder.path());
        let containerd = match runtime {
            Runtime::Embedded => {
                import(folder.path(), &busybox_archive(folder.path(), IMAGE));
                None
            }
            Runtime::Containerd => {
                let containerd = match containerd_place(folder.path()).canonicalize() {
                    Ok(place) => Containerd::start_below(&place),
                    Err(_) => Containerd::start(),
                };
                containerd.import(&Image::busybox(), IMAGE);
                Some(containerd)
            }
        };
        let mut arguments = vec!["up".to_owned()];
        arguments.extend(["--listen", "127.0.0.1:0", "--data-dir"].map(str::to_owned));
        arguments.push(data_dir(folder.path()).display().to_string());
        arguments.extend(node_arguments(NODE, cgroups.path(), &network));
        if let Some(containerd) = &containerd {
            arguments.extend(["--runtime".to_owned(), containerd.endpoint()]);
        }
        if !further.iter().any(|argument| argument == "--config") {
            arguments.extend(calm(folder.path()));
        }
        arguments.extend(further);
        let before = Inventory::of_machine(&place(folder.path(), &cgroups, &network));
        let up = Process::start(PLIMSOLL, &folder.path().join("up.log"), &arguments);
        let kubeconfig = data_dir(folder.path()).join("admin.kubeconfig");
        let mut cluster = Cluster {
            up,
            arguments,
            runtime,
            containerd,
            kubectl: Kubectl::new(&kubeconfig, "default"),
            api: Api::new(&kubeconfig),
            cgroups,
            network,
            folder,
            before,
        };
        cluster.until_ready();
        cluster
    }

    fn until_ready(&mut self) {
        self.up.says("export KUBECONFIG=");
        self.until_object(
            &format!("node {NODE}"),
            "ready and without taints",
            |node| {
                let conditions = node["status"]["conditions"].as_array();
                let mut conditions = conditions.into_iter().flatten();
                let is_ready =
                    conditions.any(|one| one["type"] == "Ready" && one["status"] == "True");
                is_ready && node["spec"]["taints"].is_null()
            },
        );
        self.until_object("serviceaccount default", "there", Value::is_object);
    }

    /// Kills the agent and everything in its process without warning.
    pub(crate) fn kill(&mut self) {
        self.up.kill();
    }

    /// Stops it as Ctrl-C does.
    pub(crate) fn interrupt(&mut self) {
        let status = self.up.interrupt();
        assert!(status.success(), "{status}: {}", self.up.log());
    }

    /// Sends a signal to the agent's process.
    pub(crate) fn signal(&self, signal: Signal) {
        self.up.signal(signal);
    }

    /// Starts it after one of these.
    pub(crate) fn start_again(&mut self) {
        let log = self.folder.path().join("up-again.log");
        self.up = Process::start(PLIMSOLL, &log, &self.arguments);
        self.until_ready();
    }

    /// Imports another image.
    pub(crate) fn import(&self, image: &Image, name: &str) {
        if let Some(containerd) = &self.containerd {
            return containerd.import(image, name);
        }
        import_image(self.folder.path(), image, name);
    }

    /// A directory that is removed with the cluster.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its data directory.
    pub(crate) fn data_dir(&self) -> PathBuf {
        data_dir(self.folder.path())
    }

    /// The parent cgroup of all its pods.
    pub(crate) fn cgroup_root(&self) -> &str {
        self.cgroups.path()
    }

    /// The resources that it owns on the machine.
    pub(crate) fn place(&self) -> Place {
        place(self.folder.path(), &self.cgroups, &self.network)
    }

    /// Creates a cgroup below that one.
    pub(crate) fn make_cgroup(&self, below: &str) -> String {
        self.cgroups.make(below)
    }

    /// Creates objects, all with one command.
    pub(crate) fn create_all(&self, manifests: Vec<Value>) {
        self.create(&json!({ "apiVersion": "v1", "kind": "List", "items": manifests }));
    }

    /// Creates an object.
    pub(crate) fn create(&self, manifest: &Value) {
        self.kubectl_with("create -f -", &manifest.to_string());
    }

    /// The present object.
    pub(crate) fn get(&self, object: &str) -> Value {
        let answer = self.api.get(object);
        answer.unwrap_or_else(|error| panic!("{object}: {error}"))
    }

    /// Waits until the object meets a condition, and returns it.
    pub(crate) fn until_object(
        &self,
        object: &str,
        wanted: &str,
        is_right: impl Fn(&Value) -> bool,
    ) -> Value {
        until(&format!("{object} is {wanted}"), || {
            let value = self.api.get(object)?;
            if is_right(&value) {
                return Ok(value);
            }
            Err(format!("{value:#}"))
        })
    }

    /// Waits until the object is deleted.
    pub(crate) fn is_gone(&self, object: &str) {
        until(&format!("{object} is gone"), || {
            match self.api.get(object) {
                Err(error) if error.contains("NotFound") => Ok(()),
                Err(error) => Err(error),
                Ok(value) => Err(format!("{value:#}")),
            }
        });
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.up.kill();
        // A test that has failed shows its own failure.
        let output = down(&self.data_dir(), &["--grace-period", "0s"]);
        if std::thread::panicking() {
            return;
        }
        until("nothing is left of the node", || {
            let left = Inventory::of_node(&self.place()).beyond(&self.before);
            match left.is_empty() {
                true => Ok(()),
                false => Err(format!("{left:#?}\nby {output:?}")),
            }
        });
        assert!(output.status.success(), "{output:?}");
    }
}

/// The resources that a node with this directory, cgroup and network owns.
pub(crate) fn place(folder: &Path, cgroups: &Tree, network: &Bridge) -> Place {
    Place {
        folder: folder.to_owned(),
        data: data_dir(folder),
        cgroups: cgroups.path().to_owned(),
        bridge: network.name.clone(),
    }
}

/// Removes a node with this data directory.
pub(crate) fn down(data_dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(PLIMSOLL);
    command.args(["down", "--data-dir"]).arg(data_dir);
    command.args(arguments).output().expect("plimsoll starts")
}

/// A temporary folder in which agents mount things.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        unmount_below(self.0.path());
    }
}

/// A bridge with a unique name and subnet. The agent creates it.
pub(crate) struct Bridge {
    name: String,
    addresses: Number,
}

impl Bridge {
    pub(crate) fn new() -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let id = std::process::id();
        // Names of network cards have 15 characters at most.
        Bridge {
            name: format!("plt{id}x{serial}"),
            addresses: Number::claim(),
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // Both fail if no pod has used them.
        let _ = plimsoll_runtime::embedded::stop_translating(&self.name);
        let mut command = Command::new("ip");
        let _ = command.args(["link", "delete", &self.name]).output();
    }
}

/// The flags of every test node.
pub(crate) fn node_arguments(name: &str, cgroup_root: &str, network: &Bridge) -> Vec<String> {
    let subnet = format!("10.90.{}.0/24", network.addresses.value());
    let arguments = [
        "--node-name",
        name,
        "--kubelet-listen",
        "127.0.0.1:0",
        "--healthz-listen",
        "off",
        "--keep-kernel-settings",
        "--cgroup-root",
        cgroup_root,
        "--bridge",
        &network.name,
        "--pod-cidr",
        &subnet,
    ];
    arguments.map(str::to_owned).to_vec()
}

/// A configuration under which the disk of the test machine causes no eviction.
pub(crate) fn calm(folder: &Path) -> [String; 2] {
    let file = folder.join("calm.yaml");
    let text = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n\
                evictionHard: { memory.available: 100Mi }\n";
    std::fs::write(&file, text).expect("the folder is ours");
    ["--config".to_owned(), file.display().to_string()]
}

/// Writes a configuration of a node, and returns the arguments that name it.
pub(crate) fn configured(folder: &Path, settings: &Value) -> Vec<String> {
    let mut configuration = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        // Tests wait for the images in the node's status.
        "nodeStatusUpdateFrequency": "2s",
    });
    let fields = settings.as_object().into_iter().flatten();
    for (name, value) in fields {
        configuration[name] = value.clone();
    }
    let file = folder.join("node.yaml");
    std::fs::write(&file, configuration.to_string()).expect("the folder is ours");
    vec!["--config".to_owned(), file.display().to_string()]
}

/// The data directory of a cluster in this directory.
pub(crate) fn data_dir(folder: &Path) -> PathBuf {
    folder.join("data")
}

/// The directory of containerd's files if a test has created it; another one if not.
pub(crate) fn containerd_place(folder: &Path) -> PathBuf {
    folder.join("containerd")
}

fn import_image(folder: &Path, image: &Image, name: &str) {
    let archive = folder.join("import.tar");
    std::fs::write(&archive, image.docker_archive(&[name])).expect("the folder is ours");
    import(folder, &archive);
}

fn import(folder: &Path, archive: &Path) {
    let mut command = Command::new(PLIMSOLL);
    command.args(["image", "import", "--data-dir"]);
    let output = command.arg(data_dir(folder)).arg(archive).output();
    let output = output.expect("plimsoll starts");
    assert!(output.status.success(), "{output:?}");
}
