//! `emptyDir` volumes, which live as long as their pod.
//!
//! Matches v1.36 pkg/volume/emptydir.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::EmptyDirVolumeSource;
use plimsoll_core::cgroup::pod::{PodSettings, pod_config};
use plimsoll_core::cgroup::{HugePageSize, MemoryQos};
use plimsoll_core::object::pod::PodView;
use plimsoll_core::quantity::Quantity;
use plimsoll_core::resources::{Bytes, ResourceList, ResourceName};
use plimsoll_runtime::mount_table::MountTable;

use crate::project_quota::ProjectQuotas;

use super::ownership::Ownership;
use super::{SetUpError, mount_point, removal};

/// Any container of the pod may use it, whatever its user.
const MODE: u32 = 0o777;

/// What a directory is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// The disk of the node.
    Disk,
    /// Memory, at most that much.
    Memory(Bytes),
    /// Huge pages of that size.
    HugePages(Bytes),
}

/// The medium that the pod requests.
pub fn medium(
    source: &EmptyDirVolumeSource,
    pod: &PodView,
    allocatable: &ResourceList,
) -> Result<Medium, SetUpError> {
    match source.medium.as_deref().unwrap_or_default() {
        "" => Ok(Medium::Disk),
        "Memory" => {
            let limit = source.size_limit.as_ref();
            let limit = limit.map(|limit| limit.0.parse::<Quantity>()).transpose();
            let limit = limit.map_err(|error| SetUpError::Quantity(error.to_string()))?;
            let limit = limit.as_ref().map(Bytes::from_quantity);
            Ok(Medium::Memory(memory_size(limit, pod, allocatable)))
        }
        medium if medium == "HugePages" || medium.starts_with("HugePages-") => {
            huge_page_size(medium, pod).map(Medium::HugePages)
        }
        other => Err(SetUpError::Medium(other.to_owned())),
    }
}

/// The least of what all pods may use, what this pod may use, and what the volume may hold.
pub fn memory_size(limit: Option<Bytes>, pod: &PodView, allocatable: &ResourceList) -> Bytes {
    let settings = PodSettings {
        enforces_cpu_limits: false,
        cpu_period_micros: 100_000,
        pids_limit: 0,
        memory_qos: MemoryQos::Off,
    };
    let all = Bytes::from_quantity(&allocatable.get_or_zero(&ResourceName::MEMORY));
    let of_pod = pod_config(pod, &settings).memory;
    let bounds = [of_pod, limit].into_iter().flatten();
    bounds.fold(all, |size, bound| match bound {
        bound if bound > Bytes::ZERO && bound <= size => bound,
        _ => size,
    })
}

/// The size of the pages that the pod requests; of the stated one if the medium states it.
fn huge_page_size(medium: &str, pod: &PodView) -> Result<Bytes, SetUpError> {
    let stated = match medium.strip_prefix("HugePages-") {
        None => None,
        Some(size) => {
            let size = size.parse::<Quantity>();
            let size = size.map_err(|error| SetUpError::HugePages(error.to_string()))?;
            Some(Bytes::from_quantity(&size))
        }
    };
    let pod_level = pod.resources.iter().map(|resources| &resources.requests);
    let containers = pod
        .all_containers()
        .map(|container| &container.resources.requests);
    let mut found: Option<Bytes> = None;
    for name in pod_level.chain(containers).flat_map(ResourceList::names) {
        let Some(HugePageSize(size)) = HugePageSize::from_resource(name) else {
            continue;
        };
        match stated {
            Some(stated) if stated != size => continue,
            None if found.is_some_and(|found| found != size) => {
                return Err(SetUpError::HugePages(format!(
                    "medium: {medium} can't be used if container requests multiple huge page sizes"
                )));
            }
            _ => found = Some(size),
        }
    }
    found.ok_or_else(|| {
        SetUpError::HugePages(format!(
            "medium {medium}: hugePages storage requested, but there is no resource request for \
             huge pages"
        ))
    })
}

/// A directory to be set up.
#[derive(Clone, Debug)]
pub struct EmptyDir {
    /// Where.
    pub path: PathBuf,
    /// The marker that the directory was set up: containers may have changed it since, and
    /// nothing of that is to be undone.
    pub ready_dir: PathBuf,
    /// What it is made of.
    pub medium: Medium,
    /// Its group.
    pub ownership: Option<Ownership>,
    /// The quotas that count the content of a directory on disk.
    pub quotas: ProjectQuotas,
}

impl EmptyDir {
    /// Makes it, unless it is there already.
    pub fn set_up(&self, mounts: &MountTable) -> Result<(), SetUpError> {
        let mounted = mounts.at(&self.path);
        let is_there = match self.medium {
            Medium::Disk => removal::is_directory(&self.path),
            Medium::Memory(_) | Medium::HugePages(_) => mounted.is_some(),
        };
        let ready = self.ready_dir.join("ready");
        if is_there && ready.exists() {
            return Ok(());
        }
        self.make_dir().map_err(SetUpError::write(&self.path))?;
        let mount = |what, done: io::Result<()>| {
            done.map_err(|source| SetUpError::Mount {
                what,
                path: self.path.clone(),
                source,
            })
        };
        match self.medium {
            Medium::Memory(size) if mounted.is_none() => {
                mount("tmpfs", mount_point::tmpfs(&self.path, Some(size)))?;
            }
            Medium::HugePages(size) if mounted.is_none() => {
                mount("hugetlbfs", mount_point::huge_pages(&self.path, size))?;
            }
            Medium::Disk => {
                // Without, it is walked over.
                if let Err(error) = self.quotas.assign(&self.path) {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "failed to set project quota"
                    );
                }
            }
            Medium::Memory(_) | Medium::HugePages(_) => {}
        }
        if let Some(ownership) = self.ownership {
            ownership
                .apply(&self.path)
                .map_err(SetUpError::write(&self.path))?;
        }
        mount_point::make_dirs(&self.ready_dir, 0o750)
            .and_then(|()| fs::write(&ready, b""))
            .map_err(SetUpError::write(&ready))
    }

    fn make_dir(&self) -> io::Result<()> {
        if let Some(parent) = self.path.parent() {
            mount_point::make_dirs(parent, 0o750)?;
        }
        mount_point::make_dirs(&self.path, MODE)?;
        if fs::symlink_metadata(&self.path)?.permissions().mode() & 0o777 != MODE {
            // The umask took something away.
            fs::set_permissions(&self.path, fs::Permissions::from_mode(MODE))?;
        }
        Ok(())
    }
}

/// The marker that a directory is set up.
pub(super) fn ready_dir(pod_dir: &Path, name: &str) -> PathBuf {
    pod_dir.join("plugins/kubernetes.io~empty-dir").join(name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::pods::spec::testing::pod_with;

    fn view(containers: Value) -> PodView {
        PodView::from_api(&pod_with(json!({"containers": containers}))).unwrap()
    }

    fn medium_for(source: Value, containers: Value) -> Result<Medium, String> {
        let allocatable = [(ResourceName::MEMORY, "8Gi".parse().unwrap())];
        let source: EmptyDirVolumeSource = serde_json::from_value(source).unwrap();
        let allocatable = allocatable.into_iter().collect();
        medium(&source, &view(containers), &allocatable).map_err(|error| error.to_string())
    }

    #[test]
    fn memory_is_bounded_by_node_pod_and_volume() {
        let limited =
            |memory: &str| json!([{"name": "c", "resources": {"limits": {"memory": memory}}}]);
        let unlimited = || json!([{"name": "c"}]);
        let memory = |size: &str| json!({"medium": "Memory", "sizeLimit": size});
        let gib = |count: i64| Ok(Medium::Memory(Bytes(count << 30)));
        assert_eq!(medium_for(json!({"medium": "Memory"}), unlimited()), gib(8));
        assert_eq!(medium_for(memory("2Gi"), unlimited()), gib(2));
        assert_eq!(medium_for(memory("20Gi"), unlimited()), gib(8));
        assert_eq!(medium_for(memory("0"), unlimited()), gib(8));
        assert_eq!(medium_for(memory("2Gi"), limited("1Gi")), gib(1));
        assert_eq!(medium_for(memory("1Gi"), limited("2Gi")), gib(1));
        assert_eq!(medium_for(json!({}), unlimited()), Ok(Medium::Disk));
    }

    #[test]
    fn huge_pages_are_of_the_size_that_containers_request() {
        let request = |sizes: &[&str]| {
            let list: serde_json::Map<String, Value> = sizes
                .iter()
                .map(|size| (format!("hugepages-{size}"), json!("2Gi")))
                .collect();
            json!([{"name": "c", "resources": {"requests": list}}])
        };
        let pages = |size: i64| Ok(Medium::HugePages(Bytes(size)));
        let any = || json!({"medium": "HugePages"});
        let sized = || json!({"medium": "HugePages-1Gi"});
        assert_eq!(medium_for(any(), request(&["2Mi"])), pages(2 << 20));
        assert_eq!(
            medium_for(sized(), request(&["2Mi", "1Gi"])),
            pages(1 << 30)
        );
        assert_eq!(
            medium_for(any(), request(&["2Mi", "1Gi"])),
            Err(
                "medium: HugePages can't be used if container requests multiple huge page sizes"
                    .to_owned()
            )
        );
        assert_eq!(
            medium_for(sized(), request(&["2Mi"])),
            Err(
                "medium HugePages-1Gi: hugePages storage requested, but there is no resource \
                 request for huge pages"
                    .to_owned()
            )
        );
        assert_eq!(
            medium_for(json!({"medium": "Tape"}), request(&[])),
            Err("unknown storage medium \"Tape\"".to_owned())
        );
    }

    fn empty_dir(root: &Path, medium: Medium) -> EmptyDir {
        EmptyDir {
            path: root.join("volumes/kubernetes.io~empty-dir/v"),
            ready_dir: ready_dir(root, "v"),
            medium,
            ownership: None,
            quotas: ProjectQuotas::default(),
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_directory_is_open_to_all_and_not_touched_again() {
        let root = tempfile::tempdir().unwrap();
        let volume = empty_dir(root.path(), Medium::Disk);
        volume.set_up(&MountTable::default()).unwrap();
        assert_eq!(mode(&volume.path), 0o777);
        fs::set_permissions(&volume.path, fs::Permissions::from_mode(0o700)).unwrap();
        volume.set_up(&MountTable::default()).unwrap();
        assert_eq!(mode(&volume.path), 0o700, "the pod's own change stays");
        fs::remove_dir(&volume.path).unwrap();
        volume.set_up(&MountTable::default()).unwrap();
        assert_eq!(mode(&volume.path), 0o777);
    }

    #[test]
    #[ignore = "tier: root"]
    fn huge_pages_are_mounted_once() {
        let root = tempfile::tempdir().unwrap();
        let volume = empty_dir(root.path(), Medium::HugePages(Bytes(2 << 20)));
        for _ in 0..2 {
            volume.set_up(&MountTable::read().unwrap()).unwrap();
        }
        let table = MountTable::read().unwrap();
        assert_eq!(table.below(&volume.path).len(), 1);
        assert_eq!(table.at(&volume.path).unwrap().fs_type, "hugetlbfs");
        let space = rustix::fs::statvfs(&volume.path).unwrap();
        assert_eq!(space.f_bsize, 2 << 20);
        mount_point::unmount(&volume.path).unwrap();
    }

    #[test]
    #[ignore = "tier: root"]
    fn memory_volume_is_mounted_once_with_its_size_and_group() {
        let root = tempfile::tempdir().unwrap();
        let volume = EmptyDir {
            ownership: Some(Ownership {
                group: 4242,
                is_read_only: false,
            }),
            ..empty_dir(root.path(), Medium::Memory(Bytes(1 << 20)))
        };
        for _ in 0..2 {
            volume.set_up(&MountTable::read().unwrap()).unwrap();
        }
        let table = MountTable::read().unwrap();
        assert_eq!(table.below(&volume.path).len(), 1);
        assert_eq!(table.at(&volume.path).unwrap().fs_type, "tmpfs");
        let space = rustix::fs::statvfs(&volume.path).unwrap();
        assert_eq!(space.f_blocks * space.f_frsize, 1 << 20);
        assert_eq!(mode(&volume.path), 0o3777);
        let metadata = fs::metadata(&volume.path).unwrap();
        assert_eq!(std::os::unix::fs::MetadataExt::gid(&metadata), 4242);
        mount_point::unmount(&volume.path).unwrap();
    }
}
