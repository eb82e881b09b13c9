//! The volumes of all pods on the node.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, PodSpec, Volume};
use plimsoll_core::object::pod::PodView;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::resources::ResourceList;

use crate::pods::spec::{containers, identity};

use super::empty_dir::{EmptyDir, Medium, ready_dir};
use super::ownership::Ownership;
use super::prepare::{Claim, Context, Files, Prepared};
use super::removal::{is_directory, remove_tree};
use super::token::Tokens;
use super::{
    MountTable, MountedVolume, MountedVolumes, SetUpError, Sources, VolumeError, VolumeFailure,
    atomic_writer, claim, host_path, mount_point, nested,
};

/// Sets up and takes away what pods mount.
#[derive(Debug)]
pub struct Volumes {
    root_dir: PathBuf,
    allocatable: ResourceList,
    sources: Arc<dyn Sources>,
    tokens: Tokens,
    pods: Mutex<BTreeMap<String, Arc<PodVolumes>>>,
}

/// One pod's. The lock is held while they change.
type PodVolumes = tokio::sync::Mutex<MountedVolumes>;

impl Volumes {
    /// For a node with that root directory and that much to give to pods.
    pub fn new(
        root_dir: impl Into<PathBuf>,
        allocatable: ResourceList,
        sources: Arc<dyn Sources>,
    ) -> Volumes {
        Volumes {
            root_dir: root_dir.into(),
            allocatable,
            sources,
            tokens: Tokens::default(),
            pods: Mutex::default(),
        }
    }

    /// Sets up the volumes that containers of the pod mount. What is there already stays, with its
    /// files brought up to date.
    pub async fn mount(&self, pod: &Pod) -> Result<MountedVolumes, VolumeError> {
        let (_, _, uid) = identity(pod);
        let pod_dir = self.pod_dir(uid)?;
        let held = self.pod(uid);
        let mut mounted = held.lock().await;
        let (prepared, mut failures) = self.prepare(pod).await;
        let pod = pod.clone();
        let done = tokio::task::spawn_blocking(move || set_up_all(&pod_dir, &pod, prepared)).await;
        let (volumes, failed) = done.map_err(|_| VolumeError::Stopped)??;
        *mounted = volumes;
        failures.extend(failed);
        match failures.is_empty() {
            true => Ok(mounted.clone()),
            false => Err(VolumeError::SetUp(failures)),
        }
    }

    /// Brings the files of the pod's volumes up to date: to be called about every minute.
    pub async fn refresh(&self, pod: &Pod) -> Result<(), VolumeError> {
        self.mount(pod).await.map(drop)
    }

    /// Takes the pod's volumes away; fine if there are none. Containers must have ended.
    pub async fn unmount(&self, uid: &str) -> Result<(), VolumeError> {
        let pod_dir = self.pod_dir(uid)?;
        let held = self.pod(uid);
        let mut mounted = held.lock().await;
        let done = tokio::task::spawn_blocking(move || take_away(&pod_dir)).await;
        done.map_err(|_| VolumeError::Stopped)??;
        *mounted = MountedVolumes::default();
        self.tokens.forget(uid);
        self.all().remove(uid);
        Ok(())
    }

    /// Removes the directory of a pod that is gone, with whatever volumes were left in it.
    pub async fn remove_pod_dir(&self, uid: &str) -> Result<(), VolumeError> {
        self.unmount(uid).await?;
        let path = self.pod_dir(uid)?;
        let done = tokio::task::spawn_blocking(move || {
            remove_tree(&path).map_err(|source| VolumeError::Remove { path, source })
        });
        done.await.map_err(|_| VolumeError::Stopped)?
    }

    /// Removes the directories of pods that nobody knows. Returns what went wrong, by pod.
    pub async fn clean_up(&self, is_known: impl Fn(&str) -> bool) -> Vec<(String, VolumeError)> {
        let mut failures = Vec::new();
        for uid in self.pods_on_disk().into_iter().filter(|uid| !is_known(uid)) {
            if let Err(error) = self.remove_pod_dir(&uid).await {
                failures.push((uid, error));
            }
        }
        failures
    }

    /// The ids of pods that have a directory.
    pub fn pods_on_disk(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root_dir.join("pods"));
        let entries = entries.into_iter().flatten().flatten();
        entries
            .filter(|entry| is_directory(&entry.path()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect()
    }

    /// The volumes of a pod as they were last set up; for their use of the disk too.
    pub async fn mounted(&self, uid: &str) -> MountedVolumes {
        let held = self.all().get(uid).cloned();
        match held {
            Some(held) => held.lock().await.clone(),
            None => MountedVolumes::default(),
        }
    }

    /// Whether anything of the pod's volumes is left on the node.
    pub fn has_volumes(&self, uid: &str) -> bool {
        let Ok(pod_dir) = self.pod_dir(uid) else {
            return false;
        };
        TAKEN_AWAY
            .iter()
            .any(|part| is_directory(&pod_dir.join(part)))
    }

    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<PodVolumes>>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pod(&self, uid: &str) -> Arc<PodVolumes> {
        self.all().entry(uid.to_owned()).or_default().clone()
    }

    /// The pod's directory. An id that would lead elsewhere is refused.
    fn pod_dir(&self, uid: &str) -> Result<PathBuf, VolumeError> {
        if uid.is_empty() || uid == "." || uid == ".." || uid.contains('/') {
            return Err(VolumeError::Uid(uid.to_owned()));
        }
        Ok(self.root_dir.join("pods").join(uid))
    }

    /// All that the pod's volumes are made from.
    async fn prepare(&self, pod: &Pod) -> (Vec<(String, Prepared)>, Vec<VolumeFailure>) {
        let view = PodView::from_api(pod).unwrap_or_default();
        let context = Context {
            pod,
            view: &view,
            sources: &*self.sources,
            tokens: &self.tokens,
            allocatable: &self.allocatable,
            now: now(),
        };
        let volumes = pod.spec.iter().flat_map(used_volumes);
        let gathered = volumes.map(async |volume| (&volume.name, context.prepare(volume).await));
        let mut prepared = Vec::new();
        let mut failures = Vec::new();
        for (name, result) in join_all(gathered).await {
            match result {
                Ok(found) => prepared.push((name.clone(), found)),
                Err(source) => failures.push(failure(name, source)),
            }
        }
        (prepared, failures)
    }
}

fn now() -> Timestamp {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    Timestamp::default().saturating_add(since)
}

fn failure(volume: &str, source: SetUpError) -> VolumeFailure {
    let volume = volume.to_owned();
    match source {
        SetUpError::Claim(_) | SetUpError::Unsupported { .. } => {
            VolumeFailure::Process { volume, source }
        }
        _ => VolumeFailure::SetUp { volume, source },
    }
}

/// The volumes that some container names; the others are never set up.
fn used_volumes(spec: &PodSpec) -> impl Iterator<Item = &Volume> {
    let ephemeral = spec.ephemeral_containers.iter().flatten();
    let ephemeral = ephemeral.map(|container| (&container.volume_mounts, &container.env));
    let regular = containers(spec).map(|container| (&container.volume_mounts, &container.env));
    let mut names = std::collections::BTreeSet::new();
    for (mounts, variables) in regular.chain(ephemeral) {
        names.extend(mounts.iter().flatten().map(|mount| mount.name.as_str()));
        let files = variables.iter().flatten().filter_map(|variable| {
            let from = variable.value_from.as_ref()?.file_key_ref.as_ref()?;
            Some(from.volume_name.as_str())
        });
        names.extend(files);
    }
    let volumes = spec.volumes.iter().flatten();
    volumes.filter(move |volume| names.contains(volume.name.as_str()))
}

type SetUpAll = (MountedVolumes, Vec<VolumeFailure>);

fn set_up_all(
    pod_dir: &Path,
    pod: &Pod,
    prepared: Vec<(String, Prepared)>,
) -> Result<SetUpAll, VolumeError> {
    let mounts = MountTable::read().map_err(VolumeError::MountTable)?;
    let set_up = SetUp {
        pod_dir,
        pod,
        mounts: &mounts,
    };
    let mut mounted = Vec::new();
    let mut failures = Vec::new();
    for (name, prepared) in prepared {
        match set_up.set_up(&name, prepared) {
            Ok(volume) => mounted.push((name, volume)),
            Err(source) => failures.push(failure(&name, source)),
        }
    }
    Ok((mounted.into_iter().collect(), failures))
}

/// Setting up the volumes of one pod.
struct SetUp<'a> {
    pod_dir: &'a Path,
    pod: &'a Pod,
    mounts: &'a MountTable,
}

impl SetUp<'_> {
    fn set_up(&self, name: &str, prepared: Prepared) -> Result<MountedVolume, SetUpError> {
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
        };
        volume.set_up(self.mounts)?;
        for point in nested::mount_points(self.pod, name)? {
            let path = volume.path.join(point);
            mount_point::make_dirs(&path, 0o755).map_err(SetUpError::write(&path))?;
        }
        let give = |dir: &Path| ownership.map_or(Ok(()), |ownership| ownership.apply(dir));
        atomic_writer::write(&volume.path, &files.payload, now(), give)?;
        Ok(MountedVolume {
            path: volume.path,
            plugin: files.plugin,
            inner_name: name.to_owned(),
            is_read_only: true,
            is_managed: true,
            is_in_memory: files.medium != Medium::Disk,
            claim: None,
        })
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

/// What of a pod's directory is its volumes.
const TAKEN_AWAY: [&str; 3] = [
    "volumes",
    "volume-subpaths",
    "plugins/kubernetes.io~empty-dir",
];

/// Unmounts all below the pod's directory, then removes what its volumes were.
fn take_away(pod_dir: &Path) -> Result<(), VolumeError> {
    let mounts = MountTable::read().map_err(VolumeError::MountTable)?;
    for entry in mounts.below(pod_dir) {
        mount_point::unmount(&entry.path).map_err(|source| VolumeError::Unmount {
            path: entry.path.clone(),
            source,
        })?;
    }
    for part in TAKEN_AWAY {
        let path = pod_dir.join(part);
        remove_tree(&path).map_err(|source| VolumeError::Remove { path, source })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
