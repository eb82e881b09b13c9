//! The node as its pods see it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use plimsoll_core::cgroup::container::ContainerSettings;
use plimsoll_core::cgroup::{CgroupName, Driver};
use plimsoll_core::resources::ResourceList;

/// What of the node goes into configs. Nothing here changes while the agent runs.
#[derive(Clone, Debug)]
pub struct NodeContext {
    /// Addresses of the node; the first is the main one and its family comes first.
    pub ips: Vec<IpAddr>,
    /// `node.status.allocatable`, which stands in for limits that containers do not state.
    pub allocatable: ResourceList,
    /// `clusterDNS`.
    pub cluster_dns: Vec<IpAddr>,
    /// `clusterDomain`.
    pub cluster_domain: String,
    /// The kubelet's root directory.
    pub root_dir: PathBuf,
    /// `podLogsDir`.
    pub pod_logs_dir: PathBuf,
    /// The node's own hosts file, which pods on its network see.
    pub hosts_file: PathBuf,
    /// `seccompDefault`: whether containers without a profile get the runtime's default.
    pub seccomp_default: bool,
    /// Whether the runtime can make mounts read-only all the way down.
    pub supports_recursive_read_only: bool,
    /// Whether SELinux is on, so that the runtime has to label what containers mount.
    pub has_selinux: bool,
    /// Hidden from containers besides what always is: see
    /// [`thermal_throttle_paths`](super::security::thermal_throttle_paths).
    pub masked_paths: Vec<String>,
    /// The cgroup that all pods are in.
    pub kubepods: CgroupName,
    /// The cgroup driver.
    pub cgroup_driver: Driver,
    /// What shapes the limits of containers.
    pub container_settings: ContainerSettings,
}

impl NodeContext {
    /// The directory of a pod.
    pub fn pod_dir(&self, uid: &str) -> PathBuf {
        pod_dir(&self.root_dir, uid)
    }

    /// Where `Localhost` seccomp profiles are.
    pub fn seccomp_dir(&self) -> PathBuf {
        self.root_dir.join("seccomp")
    }
}

/// The directory of a pod below the kubelet's root directory.
pub(crate) fn pod_dir(root_dir: &Path, uid: &str) -> PathBuf {
    root_dir.join("pods").join(uid)
}
