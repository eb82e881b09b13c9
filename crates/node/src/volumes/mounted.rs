//! Mounted volumes.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// A volume of a pod that can be mounted into its containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountedVolume {
    /// Where it is on the node.
    pub path: PathBuf,
    /// The plugin's name with `/` as `~`: `kubernetes.io~empty-dir`.
    pub plugin: &'static str,
    /// What it is called below `volumes` and `volume-subpaths`: the name of the persistent volume
    /// where it is one.
    pub inner_name: String,
    /// Whether no container may write to it.
    pub is_read_only: bool,
    /// Whether it is the pod's own, so that the runtime may label it.
    pub is_managed: bool,
    /// Whether its bytes are memory of the pod and none of the disk's.
    pub is_in_memory: bool,
    /// The claim through which it was mounted.
    pub claim: Option<String>,
}

/// The volumes of a pod by the names that its containers use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountedVolumes {
    volumes: BTreeMap<String, MountedVolume>,
    /// Texts of events, reason `FailedMount`: volumes that are there but could not be brought up to
    /// date. The pod runs on with what they had.
    pub warnings: Vec<String>,
}

impl MountedVolumes {
    /// The volume of that name.
    pub fn get(&self, name: &str) -> Option<&MountedVolume> {
        self.volumes.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &MountedVolume)> {
        self.volumes
            .iter()
            .map(|(name, volume)| (name.as_str(), volume))
    }

    /// Whether the pod has none.
    pub fn is_empty(&self) -> bool {
        self.volumes.is_empty()
    }
}

impl FromIterator<(String, MountedVolume)> for MountedVolumes {
    fn from_iter<I: IntoIterator<Item = (String, MountedVolume)>>(volumes: I) -> MountedVolumes {
        MountedVolumes {
            volumes: volumes.into_iter().collect(),
            warnings: Vec::new(),
        }
    }
}
