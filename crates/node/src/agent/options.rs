//! The options of an agent.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use plimsoll_core::allocatable::Machine;
use plimsoll_core::cgroup::{CgroupName, CgroupPath, Driver};
use plimsoll_core::config::{CgroupDriver, NodeConfig};
use plimsoll_core::eviction::MemorySource;
use plimsoll_runtime::image::{BuiltinImage, MaxImageSize};
use plimsoll_runtime::sysctl::Sysctls;
use tokio::sync::watch;

use crate::eviction::Waking;
use crate::eviction::protect::Protection;
use crate::identity::request::KeyedCertificate;
use crate::teardown::footprint::{self, Footprint};

/// The options of an agent.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the node.
    pub node_name: String,
    /// Its addresses, the main one first.
    pub node_ips: Vec<IpAddr>,
    /// Its configuration, without problems.
    pub config: NodeConfig,
    /// What it has, where that is not what the machine has; for tests under a parent cgroup.
    pub capacity: Option<Machine>,
    /// Where it keeps things.
    pub directories: Directories,
    /// The directory below which /proc and /sys are looked for: the root, but for tests.
    pub system_root: PathBuf,
    /// The container runtime.
    pub runtime: RuntimeChoice,
    /// The command that walks over directories: this binary with a hidden word. Without one the agent
    /// does so itself.
    pub walker: Vec<std::ffi::OsString>,
    /// The address of the kubelet API.
    pub listen: SocketAddr,
    /// Where its health is served without TLS, if anywhere.
    pub healthz: Option<SocketAddr>,
    /// The certificate authority of clients of the kubelet API; PEM.
    pub client_ca_pem: Option<String>,
    /// The serving certificate.
    pub serving: Serving,
    /// Whether kernel settings are put right, as upstream does.
    pub adjusts_kernel: bool,
    /// How pods are evicted, beyond what the configuration has words for.
    pub eviction: EvictionChoice,
}

/// How pods are evicted, beyond what the configuration has words for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionChoice {
    /// What wakes the eviction thread.
    pub waking: Waking,
    /// Whether pods get their grace even where the node runs dry before it is over.
    pub gives_grace_always: bool,
    /// Whether pods are left alone for a while where evicting them cannot bring memory back.
    pub back_off: bool,
    /// Where the memory signals come from.
    pub memory_source: MemorySource,
    /// What is done for the agent's own survival.
    pub protection: Protection,
}

impl Default for EvictionChoice {
    fn default() -> EvictionChoice {
        EvictionChoice {
            waking: Waking::default(),
            gives_grace_always: false,
            back_off: true,
            memory_source: MemorySource::default(),
            protection: Protection::default(),
        }
    }
}

impl Options {
    /// Kernel settings, as this agent changes them.
    pub(super) fn sysctls(&self) -> Sysctls {
        Sysctls::new(&self.system_root, &self.directories.data)
    }

    /// What the agent uses of the machine.
    pub(super) fn footprint(&self) -> Footprint {
        let config = &self.config;
        let driver = self.cgroup_driver();
        let root = CgroupName::parse(config.cgroup_root.as_str(), driver).to_path(driver);
        let own = match config.kubelet_cgroups.as_str() {
            "" => own_cgroup(&root),
            configured => configured.to_owned(),
        };
        Footprint {
            runtime: self.runtime.footprint(),
            uses_systemd_cgroups: driver == Driver::Systemd,
            cgroup_root: config.cgroup_root.value.clone(),
            agent_cgroup: own,
            root: self.directories.root.clone(),
            pod_logs: self.directories.pod_logs.clone(),
            container_logs: self.directories.container_logs.clone(),
        }
    }

    /// How the configuration has cgroups named; a runtime may know better.
    pub(super) fn cgroup_driver(&self) -> Driver {
        match *self.config.cgroup_driver {
            CgroupDriver::Cgroupfs => Driver::Cgroupfs,
            CgroupDriver::Systemd => Driver::Systemd,
        }
    }

    /// A node with a capacity of its own below a cgroup of its own has that cgroup for a machine.
    pub(super) fn played_machine(&self, root: &CgroupPath) -> Option<(CgroupPath, &Machine)> {
        let played = self.capacity.as_ref().filter(|_| root.as_str() != "/");
        played.map(|machine| (root.clone(), machine))
    }
}

/// The cgroup of an agent without a configured one, below that of all pods' root.
pub(super) fn own_cgroup(root: &CgroupPath) -> String {
    format!("{}/kubelet", root.as_str().trim_end_matches('/'))
}

/// The cgroup of the process that walks over directories for the agent: not inside of the agent's own,
/// since a cgroup of cgroup v2 with limits has processes or children.
pub(crate) fn walks_cgroup(root: &CgroupPath) -> String {
    format!("{}/kubelet-walks", root.as_str().trim_end_matches('/'))
}

/// Where an agent keeps things.
#[derive(Clone, Debug)]
pub struct Directories {
    /// All that is not elsewhere.
    pub data: PathBuf,
    /// Pods and volumes; a kubelet's root directory.
    pub root: PathBuf,
    /// Logs of pods.
    pub pod_logs: PathBuf,
    /// Links to the logs of all containers, for log collectors.
    pub container_logs: PathBuf,
    /// What the embedded runtime knows of its containers.
    pub runtime: PathBuf,
    /// The embedded runtime's images.
    pub images: PathBuf,
    /// A path that leads to the directory where device plugins register, besides the path below
    /// `root`.
    pub device_plugins_link: Option<PathBuf>,
}

/// The container runtime to use.
#[derive(Clone, Debug)]
pub enum RuntimeChoice {
    /// The agent's own runtime.
    Embedded(EmbeddedChoice),
    /// One behind a socket.
    Cri {
        /// `unix:///run/containerd/containerd.sock` or a path.
        endpoint: String,
    },
}

impl RuntimeChoice {
    fn footprint(&self) -> footprint::Runtime {
        match self {
            RuntimeChoice::Embedded(choice) => footprint::Runtime::Embedded {
                bridge: choice.bridge.clone(),
                pod_cidr: choice.pod_cidr.clone(),
                cni_conf_dir: choice.cni_config.clone(),
                cni_bin_dir: choice.cni_plugins.clone(),
            },
            RuntimeChoice::Cri { endpoint } => footprint::Runtime::Cri {
                endpoint: endpoint.clone(),
            },
        }
    }
}

/// How the embedded runtime is set up.
#[derive(Clone, Debug)]
pub struct EmbeddedChoice {
    /// The command that becomes a helper of the runtime: this binary with a hidden word.
    pub helper: Vec<std::ffi::OsString>,
    /// Addresses of pods where no network plugin is configured.
    pub pod_cidr: String,
    /// The bridge that joins pods there.
    pub bridge: String,
    /// Where network plugins are configured.
    pub cni_config: PathBuf,
    /// Where network plugins are.
    pub cni_plugins: PathBuf,
    /// Registries that are spoken to without TLS.
    pub insecure_registries: Vec<String>,
    /// How much an image may take of the disk.
    pub max_image_size: MaxImageSize,
    /// An image that is there from the start.
    pub builtin_image: Option<BuiltinImage>,
}

/// The certificate that the kubelet API serves with.
#[derive(Clone, Debug)]
pub enum Serving {
    /// This, and those that take its place.
    Given(watch::Receiver<KeyedCertificate>),
    /// What the cluster signs; until then what the node signs itself.
    Requested,
    /// What the node signs itself.
    SelfSigned,
}
