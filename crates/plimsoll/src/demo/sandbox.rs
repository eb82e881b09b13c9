//! Unique names of everything that the demo's cluster creates on the machine.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use plimsoll_core::cgroup::{CgroupName, CgroupPath, Driver};
use plimsoll_core::resources::Bytes;
use plimsoll_runtime::cgroup::Cgroups;

use super::network;

/// The memory of the node: small, so that it fills within seconds.
pub(super) const NODE_MEMORY: Bytes = Bytes(512 << 20);
/// Below this the node evicts a pod.
pub(super) const THRESHOLD: Bytes = Bytes(100 << 20);
/// The name of the node.
pub(super) const NODE: &str = "demo";

/// Only memory has a threshold: the machine's disks and swap do not affect the demo.
pub(super) const CONFIGURATION: &str = "\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard: { memory.available: 100Mi }
evictionPressureTransitionPeriod: 3s
failSwapOn: false
";

/// Where the cluster is.
#[derive(Debug)]
pub(super) struct Sandbox {
    directory: PathBuf,
    cgroup: String,
    bridge: String,
    pod_cidr: String,
}

impl Sandbox {
    /// Derives names from the id of this process. Creates nothing.
    pub(super) fn choose() -> Result<Sandbox> {
        let id = std::process::id();
        let name = format!("plimsoll-demo-{id}");
        Ok(Sandbox {
            directory: std::env::temp_dir().join(&name),
            cgroup: format!("/{name}"),
            // Names of network interfaces have at most 15 characters.
            bridge: format!("plmd{id}"),
            pod_cidr: network::free_subnet(id)?,
        })
    }

    /// The directory of all files.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn data_dir(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// The log of the cluster.
    pub(super) fn log(&self) -> PathBuf {
        self.directory.join("up.log")
    }

    fn configuration_file(&self) -> PathBuf {
        self.directory.join("node.yaml")
    }

    /// Creates the directory; fails if it exists, since it then belongs to another process.
    pub(super) fn make_directory(&self) -> Result<()> {
        let made = DirBuilder::new().mode(0o700).create(&self.directory);
        made.with_context(|| {
            let directory = self.directory.display();
            format!("cannot create directory {directory}; set TMPDIR to use another one")
        })
    }

    /// Creates the configuration and the cgroup.
    pub(super) fn make(&self) -> Result<()> {
        let file = self.configuration_file();
        std::fs::write(&file, CONFIGURATION)
            .with_context(|| format!("cannot write {}", file.display()))?;
        let made = cgroups()?.create(&self.cgroup_path());
        made.with_context(|| format!("cannot create cgroup {}", self.cgroup))
    }

    /// Kills the processes left in the cgroup and removes it.
    pub(super) fn remove_cgroup(&self) -> Result<()> {
        let removed = cgroups()?.remove(&self.cgroup_path());
        removed.with_context(|| format!("cannot remove the cgroup {}", self.cgroup))
    }

    fn cgroup_path(&self) -> CgroupPath {
        CgroupName::parse(&self.cgroup, Driver::Cgroupfs).to_path(Driver::Cgroupfs)
    }

    /// The command line of `plimsoll up` for this cluster.
    pub(super) fn up(&self) -> Vec<OsString> {
        let capacity = format!("memory={}", NODE_MEMORY.0);
        let (data_dir, configuration) = (self.data_dir(), self.configuration_file());
        let words = [
            "up".as_ref(),
            "--listen=127.0.0.1:0".as_ref(),
            "--data-dir".as_ref(),
            data_dir.as_os_str(),
            "--config".as_ref(),
            configuration.as_os_str(),
            "--capacity".as_ref(),
            capacity.as_ref(),
            "--node-name".as_ref(),
            NODE.as_ref(),
            "--kubelet-listen=127.0.0.1:0".as_ref(),
            "--healthz-listen=off".as_ref(),
            "--keep-kernel-settings".as_ref(),
            "--cgroup-root".as_ref(),
            self.cgroup.as_ref(),
            "--bridge".as_ref(),
            self.bridge.as_ref(),
            "--pod-cidr".as_ref(),
            self.pod_cidr.as_ref(),
        ];
        words.map(std::ffi::OsStr::to_owned).to_vec()
    }
}

/// The cgroups of this machine, from the root.
fn cgroups() -> Result<Cgroups> {
    Cgroups::detect(Path::new("/"), Driver::Cgroupfs, "/").context("cannot use cgroups")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::config::read_file;
    use plimsoll_core::quantity::Quantity;

    #[test]
    fn the_configuration_is_valid_and_has_the_threshold() {
        let reading = read_file(CONFIGURATION.as_bytes(), None);
        assert!(reading.problems.is_empty(), "{:?}", reading.problems);
        let line = &reading.config.eviction_hard["memory.available"];
        let line: Quantity = line.parse().unwrap();
        assert_eq!(Bytes::from_quantity(&line), THRESHOLD);
    }

    #[test]
    fn the_bridge_name_is_valid() {
        let sandbox = Sandbox::choose().unwrap();
        assert!(sandbox.bridge.len() <= 15, "{}", sandbox.bridge);
    }
}
