//! The volumes of all pods on the node.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, PodSpec, Volume};
use plimsoll_core::object::pod::PodView;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::resources::ResourceList;
use plimsoll_runtime::mount_table::MountTable;

use crate::pods::spec::{containers, identity};
use crate::project_quota::ProjectQuotas;

use super::named::Named;
use super::prepare::{Context, Prepared};
use super::removal::{is_directory, remove_tree};
use super::set_up::SetUp;
use super::token::Tokens;
use super::{MountedVolumes, SetUpError, Sources, VolumeError, VolumeFailure, mount_point};

/// Sets up and tears down the volumes of pods.
#[derive(Debug)]
pub struct Volumes {
    root_dir: PathBuf,
    allocatable: ResourceList,
    sources: Arc<dyn Sources>,
    tokens: Tokens,
    quotas: ProjectQuotas,
    pods: Mutex<BTreeMap<String, Arc<PodVolumes>>>,
}

/// One pod's.
#[derive(Debug, Default)]
struct PodVolumes {
    /// Held while they change, which may take long.
    change: tokio::sync::Mutex<()>,
    /// Those that are there.
    mounted: Mutex<MountedVolumes>,
    /// What they are made from.
    named: Mutex<Named>,
}

impl PodVolumes {
    fn mounted(&self) -> MutexGuard<'_, MountedVolumes> {
        self.mounted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn named(&self) -> MutexGuard<'_, Named> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
            quotas: ProjectQuotas::default(),
            pods: Mutex::default(),
        }
    }

    /// With the kernel keeping count of what new emptyDir volumes hold, where it does.
    #[must_use]
    pub fn with_quotas(self, quotas: ProjectQuotas) -> Volumes {
        Volumes { quotas, ..self }
    }

    /// How the content of volumes is read.
    pub fn quotas(&self) -> &ProjectQuotas {
        &self.quotas
    }

    /// Sets up the volumes that containers of the pod mount. What is there already stays, with its
    /// files brought up to date: call it about every minute. Only volumes that were never set up
    /// fail; others warn ([`MountedVolumes::warnings`]).
    pub async fn mount(&self, pod: &Pod) -> Result<MountedVolumes, VolumeError> {
        let (_, _, uid) = identity(pod);
        let pod_dir = self.pod_dir(uid)?;
        let held = self.pod(uid);
        *held.named() = Named::by_volumes_of(pod);
        let _change = held.change.lock().await;
        let prepared = self.prepare(pod).await?;
        let pod = pod.clone();
        let quotas = self.quotas.clone();
        let done =
            tokio::task::spawn_blocking(move || set_up_all(&pod_dir, &pod, quotas, prepared));
        let done = done.await;
        let (volumes, failures) = done.map_err(|_| VolumeError::Stopped)??;
        held.mounted().clone_from(&volumes);
        match failures.is_empty() {
            true => Ok(volumes),
            false => Err(VolumeError::SetUp(failures)),
        }
    }

    /// Brings the files of the pod's volumes up to date.
    pub async fn refresh(&self, pod: &Pod) -> Result<(), VolumeError> {
        self.mount(pod).await.map(drop)
    }

    /// Tears the pod's volumes down; succeeds if there are none. Containers must have ended.
    pub async fn unmount(&self, uid: &str) -> Result<(), VolumeError> {
        let pod_dir = self.pod_dir(uid)?;
        let held = self.pod(uid);
        let _change = held.change.lock().await;
        let done = tokio::task::spawn_blocking(move || tear_down(&pod_dir)).await;
        done.map_err(|_| VolumeError::Stopped)??;
        self.tokens.forget(uid);
        let mut used = Named::default();
        let mut all = self.all();
        all.remove(uid);
        for other in all.values() {
            used.add(&other.named());
        }
        drop(all);
        self.sources.retain(&used);
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
    pub fn mounted(&self, uid: &str) -> MountedVolumes {
        let held = self.all().get(uid).cloned();
        held.map(|held| held.mounted().clone()).unwrap_or_default()
    }

    /// Whether anything of the pod's volumes is left on the node.
    pub fn has_volumes(&self, uid: &str) -> bool {
        let Ok(pod_dir) = self.pod_dir(uid) else {
            return false;
        };
        VOLUME_DIRS
            .iter()
            .any(|part| is_directory(&pod_dir.join(part)))
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<PodVolumes>>> {
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
    async fn prepare(&self, pod: &Pod) -> Result<Vec<Gathered>, VolumeError> {
        let view = PodView::from_api(pod).map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            VolumeError::Quantity(problems.join(", "))
        })?;
        let context = Context {
            pod,
            view: &view,
            sources: &*self.sources,
            tokens: &self.tokens,
            allocatable: &self.allocatable,
            now: now(),
        };
        let volumes = pod.spec.iter().flat_map(used_volumes);
        let gathered = volumes.map(async |volume| (volume.clone(), context.prepare(volume).await));
        Ok(join_all(gathered).await)
    }
}

/// A volume, and what it is made from or why that is not known.
type Gathered = (Volume, Result<Prepared, SetUpError>);

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
        SetUpError::NoLocalPath(_) => VolumeFailure::NewMounter { volume, source },
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

/// Sets up what can be. What cannot does not keep the others from it.
fn set_up_all(
    pod_dir: &Path,
    pod: &Pod,
    quotas: ProjectQuotas,
    gathered: Vec<Gathered>,
) -> Result<(MountedVolumes, Vec<VolumeFailure>), VolumeError> {
    mount_point::make_dirs(pod_dir, 0o750).map_err(|source| VolumeError::MakePodDir {
        path: pod_dir.to_owned(),
        source,
    })?;
    let mounts = MountTable::read().map_err(VolumeError::MountTable)?;
    let set_up = SetUp {
        pod_dir,
        pod,
        mounts: &mounts,
        quotas,
        now: now(),
    };
    let mut mounted = Vec::new();
    let (mut failures, mut warnings) = (Vec::new(), Vec::new());
    for (volume, prepared) in gathered {
        let made = match prepared {
            Ok(prepared) => {
                let name = prepared.message_name(&volume.name).to_owned();
                let made = set_up.set_up(&volume.name, prepared);
                made.map_err(|source| failure(&name, source))
            }
            Err(source) => Err(failure(&volume.name, source)),
        };
        match made {
            Ok(made) => mounted.push((volume.name, made)),
            Err(failed) => match set_up.existing(&volume) {
                Some(existing) => {
                    warnings.push(failed.to_string());
                    mounted.push((volume.name, existing));
                }
                None => failures.push(failed),
            },
        }
    }
    let mut mounted: MountedVolumes = mounted.into_iter().collect();
    mounted.warnings = warnings;
    Ok((mounted, failures))
}

/// The parts of a pod's directory that hold its volumes.
const VOLUME_DIRS: [&str; 3] = [
    "volumes",
    "volume-subpaths",
    "plugins/kubernetes.io~empty-dir",
];

/// Unmounts all below the pod's directory, then removes the directories of its volumes.
fn tear_down(pod_dir: &Path) -> Result<(), VolumeError> {
    let mounts = MountTable::read().map_err(VolumeError::MountTable)?;
    for entry in mounts.below(pod_dir) {
        mount_point::unmount(&entry.path).map_err(|source| VolumeError::Unmount {
            path: entry.path.clone(),
            source,
        })?;
    }
    for part in VOLUME_DIRS {
        let path = pod_dir.join(part);
        remove_tree(&path).map_err(|source| VolumeError::Remove { path, source })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
