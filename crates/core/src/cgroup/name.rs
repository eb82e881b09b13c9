//! Names of cgroups, and where they are in the file system.
//!
//! Matches v1.36 pkg/kubelet/cm/cgroup_manager_linux.go. Paths are relative to the mount point of
//! the controller (v1) or of the one tree (v2).

use std::fmt;

pub use crate::config::CgroupDriver as Driver;
use crate::object::identity::PodUid;
use crate::object::pod::QosClass;
use crate::problem::quoted;

/// A cgroup as a list of parts below the root, independent of the driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CgroupName(Vec<String>);

/// The path of a cgroup below the mount point; begins with a slash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CgroupPath(String);

/// A part that no cgroup may be called. Upstream forbids `_` because systemd names need it to
/// stand for `-`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid character in component [{}] of CgroupName", quoted(.0))]
pub struct InvalidComponent(String);

/// A text that is no path below a mount point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid cgroup path {}: it must not have `..` in it", quoted(.0))]
pub struct InvalidPath(String);

const SLICE_SUFFIX: &str = ".slice";
const POD_PREFIX: &str = "pod";

impl CgroupName {
    /// The root.
    pub const ROOT: CgroupName = CgroupName(Vec::new());

    /// The cgroup of all pods below `cgroupRoot`.
    #[must_use]
    pub fn kubepods(root: &CgroupName) -> CgroupName {
        root.with("kubepods".to_owned())
    }

    /// The parent cgroup of pods of the class, below that of all pods. Guaranteed pods have
    /// no tier of their own.
    #[must_use]
    pub fn qos_tier(kubepods: &CgroupName, class: QosClass) -> CgroupName {
        match class {
            QosClass::Guaranteed => kubepods.clone(),
            QosClass::Burstable => kubepods.with("burstable".to_owned()),
            QosClass::BestEffort => kubepods.with("besteffort".to_owned()),
        }
    }

    /// The cgroup of a pod of the class.
    pub fn pod(
        kubepods: &CgroupName,
        class: QosClass,
        uid: &PodUid,
    ) -> Result<CgroupName, InvalidComponent> {
        CgroupName::qos_tier(kubepods, class).child(&format!("{POD_PREFIX}{uid}"))
    }

    /// The pod that a cgroup directly below a tier is named after.
    pub fn pod_uid(&self) -> Option<PodUid> {
        let uid = self.0.last()?.strip_prefix(POD_PREFIX)?;
        // Upstream splits at the prefix, so that a uid which contains it again belongs to no pod.
        let is_uid = !uid.is_empty() && !uid.contains(POD_PREFIX);
        is_uid.then(|| PodUid::from(uid))
    }

    /// The parts below the root.
    pub fn parts(&self) -> &[String] {
        &self.0
    }

    /// A cgroup inside this one.
    pub fn child(&self, component: &str) -> Result<CgroupName, InvalidComponent> {
        if component.contains(['/', '_']) {
            return Err(InvalidComponent(component.to_owned()));
        }
        Ok(self.with(component.to_owned()))
    }

    fn with(&self, component: String) -> CgroupName {
        let mut parts = self.0.clone();
        parts.push(component);
        CgroupName(parts)
    }

    /// Reads a configured name: a path for cgroupfs, a slice for systemd, of which only the last
    /// part counts.
    pub fn parse(text: &str, driver: Driver) -> CgroupName {
        let parts: Vec<String> = match driver {
            Driver::Cgroupfs => text.split('/').map(str::to_owned).collect(),
            Driver::Systemd => {
                let last = text.trim_end_matches('/').rsplit('/').next();
                let slice = last.unwrap_or_default();
                let slice = slice.strip_suffix(SLICE_SUFFIX).unwrap_or(slice);
                slice
                    .split('-')
                    .map(|part| part.replace('_', "-"))
                    .collect()
            }
        };
        CgroupName(parts.into_iter().filter(|part| !part.is_empty()).collect())
    }

    /// Where the driver puts it.
    pub fn to_path(&self, driver: Driver) -> CgroupPath {
        if self.0.is_empty() {
            return CgroupPath("/".to_owned());
        }
        let mut path = String::new();
        let mut prefix = String::new();
        for part in &self.0 {
            path.push('/');
            match driver {
                Driver::Cgroupfs => path.push_str(part),
                Driver::Systemd => {
                    // A slice repeats the names of the slices around it.
                    prefix.push_str(&part.replace('-', "_"));
                    path.push_str(&prefix);
                    path.push_str(SLICE_SUFFIX);
                    prefix.push('-');
                }
            }
        }
        CgroupPath(path)
    }
}

impl CgroupPath {
    /// Reads a path as `/proc/<pid>/cgroup` and configurations have it.
    pub fn parse(text: &str) -> Result<CgroupPath, InvalidPath> {
        let parts = text.split('/').filter(|part| !matches!(*part, "" | "."));
        let mut path = String::new();
        for part in parts {
            if part == ".." {
                return Err(InvalidPath(text.to_owned()));
            }
            path.push('/');
            path.push_str(part);
        }
        if path.is_empty() {
            path.push('/');
        }
        Ok(CgroupPath(path))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CgroupPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The container runtimes whose cgroup names are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// containerd.
    Containerd,
    /// CRI-O.
    CriO,
}

/// Where the runtime puts a container of the pod.
pub fn container_path(
    pod: &CgroupPath,
    driver: Driver,
    runtime: Runtime,
    container_id: &str,
) -> CgroupPath {
    let last = match (driver, runtime) {
        (Driver::Systemd, Runtime::Containerd) => format!("cri-containerd-{container_id}.scope"),
        (Driver::Systemd, Runtime::CriO) => format!("crio-{container_id}.scope"),
        (Driver::Cgroupfs, Runtime::Containerd) => container_id.to_owned(),
        (Driver::Cgroupfs, Runtime::CriO) => format!("crio-{container_id}"),
    };
    CgroupPath(format!("{}/{last}", pod.0.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(uid: &str, class: QosClass) -> Result<CgroupName, InvalidComponent> {
        let kubepods = CgroupName::kubepods(&CgroupName::ROOT);
        CgroupName::pod(&kubepods, class, &PodUid::from(uid))
    }

    #[test]
    fn slices_repeat_their_parents_and_turn_dashes_into_underscores() {
        let name = pod("12-ab", QosClass::Burstable).unwrap();
        assert_eq!(
            name.to_path(Driver::Systemd).as_str(),
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_ab.slice"
        );
        assert_eq!(
            name.to_path(Driver::Cgroupfs).as_str(),
            "/kubepods/burstable/pod12-ab"
        );
        assert_eq!(CgroupName::ROOT.to_path(Driver::Systemd).as_str(), "/");
    }

    #[test]
    fn cgroup_path_converts_back_to_its_name() {
        let name = pod("12-ab", QosClass::BestEffort).unwrap();
        for driver in [Driver::Cgroupfs, Driver::Systemd] {
            let path = name.to_path(driver);
            assert_eq!(CgroupName::parse(path.as_str(), driver), name);
        }
        assert_eq!(CgroupName::parse("/", Driver::Cgroupfs), CgroupName::ROOT);
    }

    #[test]
    fn names_that_systemd_cannot_unescape_are_refused() {
        let error = pod("a_b", QosClass::Guaranteed).unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid character in component [\"poda_b\"] of CgroupName"
        );
    }

    #[test]
    fn a_pod_is_known_by_the_last_part() {
        let uid = |name: &str| CgroupName::parse(name, Driver::Cgroupfs).pod_uid();
        assert_eq!(uid("/kubepods/pod1-2"), Some(PodUid::from("1-2")));
        for name in [
            "/",
            "/kubepods/pod",
            "/kubepods/podpod",
            "/kubepods/burstable",
        ] {
            assert_eq!(uid(name), None, "{name}");
        }
    }

    #[test]
    fn paths_stay_below_the_mount_point() {
        let path = |text| CgroupPath::parse(text).map(|path| path.to_string());
        assert_eq!(path("a//b/.").as_deref(), Ok("/a/b"));
        assert_eq!(path("").as_deref(), Ok("/"));
        assert!(path("/a/../b").is_err());
    }

    #[test]
    fn each_runtime_names_containers_its_own_way() {
        let path = pod("1", QosClass::Guaranteed)
            .unwrap()
            .to_path(Driver::Systemd);
        assert_eq!(
            container_path(&path, Driver::Systemd, Runtime::Containerd, "c").as_str(),
            "/kubepods.slice/kubepods-pod1.slice/cri-containerd-c.scope"
        );
        assert_eq!(
            container_path(&path, Driver::Systemd, Runtime::CriO, "c").as_str(),
            "/kubepods.slice/kubepods-pod1.slice/crio-c.scope"
        );
    }
}
