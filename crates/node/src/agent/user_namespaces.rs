//! The user namespaces of pods: which ids each has, noted in its directory so that they outlive the
//! agent, in upstream's format and place.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::config::NodeConfig;
use plimsoll_core::object::identity::PodUid;
use plimsoll_core::user_namespaces::{DEFAULT_IDS_PER_POD, IdRange, IdRangeError, IdRanges};
use plimsoll_runtime::wire::{IdMapping, NamespaceMode, UserNamespace};
use plimsoll_runtime::{Runtime, UserNamespaceSupport};
use serde::{Deserialize, Serialize};

use crate::pods::spec::pod_dir;

/// The file in a pod's directory.
const FILE: &str = "userns";

/// Why a pod does not get a user namespace.
#[derive(Debug, thiserror::Error)]
pub enum UserNamespaceError {
    /// The runtime or the kernel has none.
    #[error("can't set `spec.hostUsers: false`, runtime does not support user namespaces{0}")]
    Unsupported(String),
    /// No range can be given.
    #[error("create user namespace")]
    Create(#[from] IdRangeError),
    /// What was noted of the pod makes no sense.
    #[error("user namespace: {0}")]
    Noted(String),
    /// The agent ends.
    #[error("the agent is stopping")]
    Stopped,
    /// A pod's file.
    #[error("cannot use {path}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// What the file says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Noted {
    uid_mappings: Vec<NotedMapping>,
    gid_mappings: Vec<NotedMapping>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NotedMapping {
    host_id: u32,
    container_id: u32,
    length: u32,
}

/// The ids of all pods that have their own.
#[derive(Debug)]
pub(super) struct UserNamespaces {
    root_dir: PathBuf,
    ranges: Mutex<IdRanges>,
}

impl UserNamespaces {
    /// Takes up what an earlier agent gave. Fails if that cannot be known: a range given twice would
    /// give one pod power over the files of another.
    pub(super) fn load(
        root_dir: &Path,
        config: &NodeConfig,
    ) -> Result<UserNamespaces, UserNamespaceError> {
        let set = u32::try_from(*config.user_namespace_ids_per_pod);
        let mut ranges = IdRanges::new(set.unwrap_or(DEFAULT_IDS_PER_POD));
        let pods = root_dir.join("pods");
        let unreadable = |source| UserNamespaceError::File {
            path: pods.clone(),
            source,
        };
        let entries = match std::fs::read_dir(&pods) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            entries => Some(entries.map_err(unreadable)?),
        };
        for entry in entries.into_iter().flatten() {
            let name = entry.map_err(unreadable)?.file_name();
            let uid = name.to_string_lossy();
            if let Some(range) = read(&pods.join(&name).join(FILE))? {
                let recorded = ranges.record(&PodUid::from(&*uid), range);
                recorded.map_err(|error| {
                    UserNamespaceError::Noted(format!(
                        "record pod mappings for existing pod {uid:?}: {error}"
                    ))
                })?;
            }
        }
        Ok(UserNamespaces {
            root_dir: root_dir.to_owned(),
            ranges: Mutex::new(ranges),
        })
    }

    /// The user namespace of a pod, for the runtime. A pod that has no ids of its own yet gets some; its
    /// directory must be there.
    pub(super) async fn of(
        self: &Arc<Self>,
        pod: &Pod,
        runtime: &dyn Runtime,
    ) -> Result<UserNamespace, UserNamespaceError> {
        let spec = pod.spec.as_ref();
        if spec.and_then(|spec| spec.host_users) != Some(false) {
            return Ok(UserNamespace {
                mode: NamespaceMode::Node.into(),
                ..UserNamespace::default()
            });
        }
        let lacking = match runtime.user_namespaces().await {
            Ok(UserNamespaceSupport::Full) => None,
            Ok(UserNamespaceSupport::Lacking(why)) if why.is_empty() => Some(String::new()),
            Ok(UserNamespaceSupport::Lacking(why)) => Some(format!(": {why}")),
            Err(error) => Some(format!(": {}", error.chain())),
        };
        if let Some(why) = lacking {
            return Err(UserNamespaceError::Unsupported(why));
        }
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let own = Arc::clone(self);
        let range = tokio::task::spawn_blocking(move || own.get_or_allocate(&uid)).await;
        let range = range.map_err(|_| UserNamespaceError::Stopped)??;
        let mapping = IdMapping {
            host_id: range.first,
            container_id: 0,
            length: range.length,
        };
        Ok(UserNamespace {
            mode: NamespaceMode::Pod.into(),
            uids: vec![mapping],
            gids: vec![mapping],
        })
    }

    fn get_or_allocate(&self, uid: &str) -> Result<IdRange, UserNamespaceError> {
        let (path, pod) = (self.file(uid), PodUid::from(uid));
        let mut ranges = self.ranges();
        if let Some(range) = read(&path)? {
            let recorded = ranges.record(&pod, range);
            recorded.map_err(|error| UserNamespaceError::Noted(error.to_string()))?;
            return Ok(range);
        }
        let range = ranges.allocate(&pod)?;
        match write(&path, range) {
            Ok(()) => Ok(range),
            Err(source) => {
                ranges.release(&pod);
                Err(UserNamespaceError::File { path, source })
            }
        }
    }

    /// Gives a pod's ids back. To be called when nothing of it runs and its files are gone.
    pub(super) fn release(&self, uid: &str) {
        let mut ranges = self.ranges();
        // Usually gone with the directory.
        let _ = std::fs::remove_file(self.file(uid));
        ranges.release(&PodUid::from(uid));
    }

    fn file(&self, uid: &str) -> PathBuf {
        pod_dir(&self.root_dir, uid).join(FILE)
    }

    fn ranges(&self) -> MutexGuard<'_, IdRanges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The range that a file notes; `None` if there is no file.
fn read(path: &Path) -> Result<Option<IdRange>, UserNamespaceError> {
    let unusable = |source| UserNamespaceError::File {
        path: path.to_owned(),
        source,
    };
    let content = match std::fs::read(path) {
        Ok(content) => content,
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR)) => {
            return Ok(None);
        }
        Err(error) => return Err(unusable(error)),
    };
    let wrong = |rule: &str| UserNamespaceError::Noted(rule.to_owned());
    let noted: Noted = serde_json::from_slice(&content)
        .map_err(|error| wrong(&format!("invalid user namespace mappings file: {error}")))?;
    let ([uids], [gids]) = (&noted.uid_mappings[..], &noted.gid_mappings[..]) else {
        return Err(wrong(
            "invalid user namespace configuration: no more than one mapping allowed.",
        ));
    };
    if uids != gids {
        return Err(wrong(
            "invalid user namespace configuration: GID and UID mapping should be identical",
        ));
    }
    if uids.container_id != 0 {
        return Err(wrong(
            "invalid user namespace configuration: UID 0 must be mapped",
        ));
    }
    Ok(Some(IdRange {
        first: uids.host_id,
        length: uids.length,
    }))
}

/// Replaces the file so that it is there, in full, after a power failure too.
fn write(path: &Path, range: IdRange) -> io::Result<()> {
    let mapping = NotedMapping {
        host_id: range.first,
        container_id: 0,
        length: range.length,
    };
    let noted = Noted {
        uid_mappings: vec![mapping],
        gid_mappings: vec![mapping],
    };
    let next = path.with_extension("next");
    let mut file = File::create(&next)?;
    file.write_all(&serde_json::to_vec(&noted)?)?;
    file.sync_all()?;
    std::fs::rename(&next, path)?;
    let directory = path.parent().unwrap_or(path);
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use plimsoll_core::config::{Profile, read_kubelet_configuration};

    use super::*;

    fn config(ids_per_pod: Option<u64>) -> NodeConfig {
        let lines = match ids_per_pod {
            Some(ids) => format!("userNamespaces:\n  idsPerPod: {ids}\n"),
            None => String::new(),
        };
        let head = "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n";
        let text = format!("{head}{lines}");
        read_kubelet_configuration(text.as_bytes(), Profile::default()).config
    }

    fn directory(folder: &Path, uid: &str) -> PathBuf {
        let path = folder.join("pods").join(uid);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn id_ranges_survive_a_restart_and_are_released_with_the_pod() {
        let folder = tempfile::tempdir().unwrap();
        for uid in ["one", "two", "three"] {
            directory(folder.path(), uid);
        }
        let first = |namespaces: &UserNamespaces, uid| {
            let range = namespaces.get_or_allocate(uid).unwrap();
            (range.first, range.length)
        };
        let namespaces = UserNamespaces::load(folder.path(), &config(None)).unwrap();
        assert_eq!(first(&namespaces, "one"), (65_536, 65_536));
        assert_eq!(first(&namespaces, "two"), (131_072, 65_536));
        let noted = std::fs::read_to_string(folder.path().join("pods/one/userns")).unwrap();
        let mapping = r#"[{"hostId":65536,"containerId":0,"length":65536}]"#;
        assert_eq!(
            noted,
            format!(r#"{{"uidMappings":{mapping},"gidMappings":{mapping}}}"#)
        );
        drop(namespaces);

        let namespaces = UserNamespaces::load(folder.path(), &config(None)).unwrap();
        assert_eq!(first(&namespaces, "three"), (196_608, 65_536));
        assert_eq!(first(&namespaces, "two"), (131_072, 65_536));
        namespaces.release("one");
        directory(folder.path(), "four");
        assert_eq!(first(&namespaces, "four"), (65_536, 65_536));
    }

    #[test]
    fn pods_have_as_many_ids_as_configured() {
        let folder = tempfile::tempdir().unwrap();
        directory(folder.path(), "one");
        let namespaces = UserNamespaces::load(folder.path(), &config(Some(131_072))).unwrap();
        let range = namespaces.get_or_allocate("one").unwrap();
        assert_eq!((range.first, range.length), (131_072, 131_072));
    }

    #[test]
    fn agent_does_not_start_with_unreadable_id_ranges() {
        let mapping = |host: u32, container: u32| {
            format!(r#"[{{"hostId":{host},"containerId":{container},"length":65536}}]"#)
        };
        let both =
            |uids: &str, gids: &str| format!(r#"{{"uidMappings":{uids},"gidMappings":{gids}}}"#);
        let own = mapping(65_536, 0);
        for (content, problem) in [
            ("{".to_owned(), "invalid user namespace mappings file"),
            (both("[]", "[]"), "no more than one mapping allowed."),
            (
                both(&own, &mapping(131_072, 0)),
                "mapping should be identical",
            ),
            (
                both(&mapping(65_536, 1), &mapping(65_536, 1)),
                "UID 0 must be mapped",
            ),
            (both(&mapping(0, 0), &mapping(0, 0)), "id 0 is out of range"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(directory(folder.path(), "one").join(FILE), content).unwrap();
            let refused = UserNamespaces::load(folder.path(), &config(None)).unwrap_err();
            assert!(refused.to_string().contains(problem), "{refused}");
        }
    }
}
