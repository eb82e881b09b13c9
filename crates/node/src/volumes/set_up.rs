//! Sets up prepared volumes.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Pod, Volume};
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_runtime::mount_table::MountTable;

use crate::project_quota::ProjectQuotas;

use super::empty_dir::{EmptyDir, Medium, ready_dir};
use super::ownership::Ownership;
use super::prepare::{CONFIG_MAP, Claim, Files, Prepared, files_plugin};
use super::{MountedVolume, SetUpError, atomic_writer, claim, host_path, mount_point, nested};

/// Setting up the volumes of one pod.
pub(super) struct SetUp<'a> {
    pub(super) pod_dir: &'a Path,
    pub(super) pod: &'a Pod,
    pub(super) mounts: &'a MountTable,
    pub(super) quotas: ProjectQuotas,
    pub(super) now: Timestamp,
}

impl SetUp<'_> {
    /// Makes a volume, or brings it up to date.
    pub(super) fn set_up(
        &self,
        name: &str,
        prepared: Prepared,
    ) -> Result<MountedVolume, SetUpError> {
        match prepared {
            Prepared::EmptyDir(medium) => self.empty_dir(name, medium),
            Prepared::Files(files) => self.files(name, &files),
            Prepared::HostPath { path, kind, claim } => {
                host_path::check(&path, &kind)?;
                Ok(MountedVolume {
                    path: path.into(),
                    plugin: "kubernetes.io~host-path",
                    inner_name: claim
                        .as_ref()
                        .map_or(name, |claim| claim.volume.as_str())
                        .to_owned(),
                    is_read_only: claim.as_ref().is_some_and(|claim| claim.is_read_only),
                    is_managed: false,
                    is_in_memory: false,
                    claim: claim.map(|claim| claim.name),
                })
            }
            Prepared::Local { path, claim } => self.local(&path, claim),
        }
    }

    /// A volume that was set up before, as it was left.
    pub(super) fn existing(&self, volume: &Volume) -> Option<MountedVolume> {
        let plugin = files_plugin(volume)?;
        let path = self.volume_dir(plugin, &volume.name);
        let is_there = atomic_writer::is_written(&path);
        is_there.then(|| written(path, plugin, &volume.name, plugin != CONFIG_MAP))
    }

    fn volume_dir(&self, plugin: &str, name: &str) -> PathBuf {
        self.pod_dir.join("volumes").join(plugin).join(name)
    }

    fn empty_dir(&self, name: &str, medium: Medium) -> Result<MountedVolume, SetUpError> {
        let plugin = "kubernetes.io~empty-dir";
        let volume = EmptyDir {
            path: self.volume_dir(plugin, name),
            ready_dir: ready_dir(self.pod_dir, name),
            medium,
            ownership: Ownership::of(self.pod, false),
            quotas: self.quotas.clone(),
        };
        volume.set_up(self.mounts)?;
        Ok(MountedVolume {
            path: volume.path,
            plugin,
            inner_name: name.to_owned(),
            is_read_only: false,
            is_managed: true,
            is_in_memory: medium != Medium::Disk,
            claim: None,
        })
    }

    fn files(&self, name: &str, files: &Files) -> Result<MountedVolume, SetUpError> {
        let ownership = Ownership::of(self.pod, true);
        let volume = EmptyDir {
            path: self.volume_dir(files.plugin, name),
            ready_dir: ready_dir(self.pod_dir, &format!("wrapped_{name}")),
            medium: files.medium,
            ownership,
            quotas: ProjectQuotas::default(),
        };
        volume.set_up(self.mounts)?;
        for point in nested::mount_points(self.pod, name)? {
            let path = volume.path.join(point);
            mount_point::make_dirs(&path, 0o755).map_err(SetUpError::write(&path))?;
        }
        let give = |dir: &Path| ownership.map_or(Ok(()), |ownership| ownership.apply(dir));
        atomic_writer::write(&volume.path, &files.payload, self.now, give)?;
        let is_in_memory = files.medium != Medium::Disk;
        Ok(written(volume.path, files.plugin, name, is_in_memory))
    }

    fn local(&self, source: &Path, claim: Claim) -> Result<MountedVolume, SetUpError> {
        let plugin = "kubernetes.io~local-volume";
        let path = self.volume_dir(plugin, &claim.volume);
        let context = self
            .pod
            .spec
            .as_ref()
            .and_then(|spec| spec.security_context.as_ref());
        let policy = context.and_then(|context| context.fs_group_change_policy.as_deref());
        claim::set_up_local(
            source,
            &path,
            claim.is_read_only,
            Ownership::of(self.pod, false),
            policy == Some("OnRootMismatch"),
            self.mounts,
        )?;
        Ok(MountedVolume {
            path,
            plugin,
            inner_name: claim.volume,
            is_read_only: claim.is_read_only,
            is_managed: !claim.is_read_only,
            is_in_memory: false,
            claim: Some(claim.name),
        })
    }
}

/// A volume of files that the agent writes and containers do not.
fn written(path: PathBuf, plugin: &'static str, name: &str, is_in_memory: bool) -> MountedVolume {
    MountedVolume {
        path,
        plugin,
        inner_name: name.to_owned(),
        is_read_only: true,
        is_managed: true,
        is_in_memory,
        claim: None,
    }
}
