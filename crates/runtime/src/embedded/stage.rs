//! The root directory that a container in a user namespace is created from.
//!
//! Its first process makes the container's mounts, as root of a user namespace, and so as an ordinary
//! user of the node, which cannot read the agent's directories. So the monitor puts all that it
//! needs on a *stage*: a root directory of its own, with the mounts already mapped to the
//! container's users. This is the plan of one; the helper's `stage` carries it out.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::spec::{HostDevice, SpecError};
use super::users::Users;
use crate::wire::{IdMapping, Mount};

/// Where sources of mounts are on a stage, by number.
const MOUNTS: &str = "/staged/mounts";
/// Where namespaces are, by name.
const NAMESPACES: &str = "/staged/namespaces";

/// All that is prepared for a container, and the users it runs as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stage {
    /// The namespace of the sandbox's users.
    pub(super) user_namespace: PathBuf,
    /// The machine's id of root in the container.
    pub(super) root: u32,
    /// Of the container's first process, on the machine too.
    pub(super) user: u32,
    pub(super) group: u32,
    /// The root file system, which is staged under its own path.
    pub(super) rootfs: PathBuf,
    pub(super) sources: Vec<Source>,
    /// Namespaces and where they are staged.
    pub(super) namespaces: Vec<(PathBuf, PathBuf)>,
    /// Devices of the machine that the container is given, and where they are staged.
    pub(super) devices: Vec<(PathBuf, PathBuf)>,
}

/// What is mounted in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Source {
    /// Where it is on the machine.
    pub(super) path: PathBuf,
    pub(super) staged: PathBuf,
    /// Where the container sees it.
    pub(super) target: PathBuf,
    /// Whether its files belong to the container's users by the numbers on disk.
    pub(super) is_mapped: bool,
    /// Whether mounts of the machine still come in.
    pub(super) follows: bool,
}

/// Plans the stage of a container, and makes its specification name what is on it.
pub(super) fn plan(
    spec: &mut Value,
    users: Users,
    pause: i32,
    mounts: &[Mount],
    devices: &[HostDevice],
) -> Result<Stage, SpecError> {
    let rootfs = spec["root"]["path"].as_str().unwrap_or_default().into();
    let id = |spec: &Value, field: &str| {
        let id = spec["process"]["user"][field].as_u64().unwrap_or_default();
        let inside = u32::try_from(id).ok();
        let found = inside.and_then(|id| users.on_machine(id));
        found.ok_or(SpecError::IdNotMapped(id))
    };
    let (user, group) = (id(spec, "uid")?, id(spec, "gid")?);
    for group in spec["process"]["user"]["additionalGids"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let id = group.as_u64().unwrap_or_default();
        let inside = u32::try_from(id).ok();
        let found = inside.and_then(|id| users.on_machine(id));
        found.ok_or(SpecError::IdNotMapped(id))?;
    }
    // Nothing that a container mounts reaches the machine, so nothing has to be shared.
    if spec["linux"]["rootfsPropagation"] == "shared" {
        spec["linux"]["rootfsPropagation"] = json!("slave");
    }
    let mut stage = Stage {
        user_namespace: format!("/proc/{pause}/ns/user").into(),
        root: users.first,
        user,
        group,
        rootfs,
        sources: Vec::new(),
        namespaces: Vec::new(),
        devices: Vec::new(),
    };
    for mount in spec["mounts"].as_array_mut().into_iter().flatten() {
        if mount["type"] == "bind" {
            stage.add_source(mount, users, mounts)?;
        }
    }
    for namespace in spec["linux"]["namespaces"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        let Some(path) = namespace["path"].as_str().map(PathBuf::from) else {
            continue;
        };
        let kind = namespace["type"].as_str().unwrap_or_default();
        let staged = Path::new(NAMESPACES).join(kind);
        namespace["path"] = json!(staged);
        stage.namespaces.push((path, staged));
    }
    let own = devices.iter();
    let own = own.map(|device| (device.host_path.clone(), device.container_path.clone()));
    stage.devices.extend(own);
    Ok(stage)
}

impl Stage {
    fn add_source(
        &mut self,
        mount: &mut Value,
        users: Users,
        mounts: &[Mount],
    ) -> Result<(), SpecError> {
        let text =
            |mount: &Value, field: &str| PathBuf::from(mount[field].as_str().unwrap_or_default());
        let (path, target) = (text(mount, "source"), text(mount, "destination"));
        let requested = mounts
            .iter()
            .find(|own| own.image.is_none() && Path::new(&own.container_path) == target);
        let is_mapped = match requested {
            None => false,
            Some(own) if own.uid_mappings.is_empty() && own.gid_mappings.is_empty() => false,
            Some(own) => {
                let all = [IdMapping {
                    host_id: users.first,
                    container_id: 0,
                    length: users.count,
                }];
                if own.uid_mappings != all || own.gid_mappings != all {
                    return Err(SpecError::MountMappings(own.container_path.clone()));
                }
                true
            }
        };
        let options = mount["options"].as_array();
        let follows = options
            .into_iter()
            .flatten()
            .any(|option| matches!(option.as_str(), Some("rslave" | "rshared")));
        let staged = Path::new(MOUNTS).join(self.sources.len().to_string());
        mount["source"] = json!(staged);
        self.sources.push(Source {
            path,
            staged,
            target,
            is_mapped,
            follows,
        });
        Ok(())
    }
}
