//! The pods and containers to measure, as the agent knows them from the API and the runtime.

use std::path::PathBuf;

use plimsoll_core::cgroup::CgroupPath;
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::object::timestamp::Timestamp;

/// Everything that is measured by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Pods with a sandbox.
    pub pods: Vec<Pod>,
    /// Where the runtime keeps images; `None` while it has not said.
    pub image_fs: Option<RuntimeFs>,
    /// Where it keeps writable layers, if elsewhere.
    pub container_fs: Option<RuntimeFs>,
}

/// A pod on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its unique id.
    pub uid: PodUid,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its cgroup.
    pub cgroup: CgroupPath,
    /// When its sandbox was made.
    pub started: Option<Timestamp>,
    /// What holds its namespaces.
    pub sandbox: Option<Sandbox>,
    /// Containers that run.
    pub containers: Vec<Container>,
    /// Volumes that are there.
    pub volumes: Vec<Volume>,
    /// Where its logs are; files directly in it count for the pod.
    pub log_directory: Option<PathBuf>,
    /// Its `/etc/hosts`, as a file of the node.
    pub etc_hosts: Option<PathBuf>,
    /// Whether it goes when it holds too much on disk.
    pub is_limited: bool,
}

/// The sandbox of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Its id.
    pub id: String,
    /// A process in its network namespace.
    pub pid: Option<i32>,
    /// The image it was made from, if any.
    pub image: String,
    /// Its cgroup inside that of the pod, if it has one.
    pub cgroup: Option<CgroupPath>,
}

/// A container of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its id.
    pub id: String,
    /// Its name in the pod.
    pub name: String,
    /// Its image.
    pub image: String,
    /// Its cgroup.
    pub cgroup: CgroupPath,
    /// When it was made.
    pub started: Option<Timestamp>,
    /// The directory of its log files.
    pub log_directory: Option<PathBuf>,
    /// Its writable layer.
    pub root_fs: RootFs,
}

/// How the size of a writable layer is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RootFs {
    /// It is not.
    #[default]
    Unknown,
    /// By walking over the directory.
    Directory(PathBuf),
    /// Reported by the runtime.
    Reported {
        /// Bytes taken.
        used_bytes: Option<u64>,
        /// Inodes taken.
        inodes_used: Option<u64>,
        /// When the runtime measured it.
        time: Option<Timestamp>,
    },
}

/// A volume of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its name in the pod.
    pub name: String,
    /// Where it is on the node.
    pub path: PathBuf,
    /// How it is measured.
    pub measure: VolumeMeasure,
    /// Whether it counts as the pod's ephemeral storage: emptyDir on disk, configMap,
    /// downwardAPI.
    pub is_ephemeral: bool,
    /// Name and namespace of the claim it came from.
    pub claim: Option<(String, String)>,
}

/// How a volume is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeMeasure {
    /// By what is in its directory: it shares its file system.
    Directory,
    /// By its file system, which is its own.
    FileSystem,
}

/// A file system that the runtime uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeFs {
    /// A path on it.
    pub mount_point: PathBuf,
    /// What the runtime takes of it.
    pub used_bytes: Option<u64>,
    /// How many inodes.
    pub inodes_used: Option<u64>,
    /// When the runtime measured it.
    pub time: Option<Timestamp>,
}
