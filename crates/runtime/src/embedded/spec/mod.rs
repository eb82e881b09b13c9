//! Converts the CRI configuration of a container to an OCI runtime spec, which libcontainer runs.
//!
//! Pure but for three reads from the node: the image's `/etc/passwd` and `/etc/group`
//! ([`Accounts`]), the numbers of devices, and seccomp profiles. Follows what containerd 1.7 and 2 make of the same
//! messages (internal/cri/server/container_create.go, internal/cri/opts).

mod accounts;
mod capabilities;
mod device;
mod mounts;
mod namespaces;
mod process;
mod seccomp;

use std::path::{Path, PathBuf};

use libcontainer::oci_spec::runtime::Spec;
use serde_json::{Value, json};

use super::images::ImageConfig;
use super::layout::SandboxDir;
use super::rights::Rights;
use super::seccomp::Confinement;
use super::stage::{self, Stage};
use super::users::Users;
use crate::wire::{ContainerConfig, LinuxContainerSecurityContext, PodSandboxConfig};

pub(super) use accounts::Accounts;
pub(super) use device::{HostDevice, all_devices, host_devices};
pub(super) use mounts::{ImageVolume, narrowed, read_only};
pub(super) use namespaces::{is_host_network, sandbox_options};

/// All that a specification is made of.
#[derive(Debug)]
pub(super) struct Input<'a> {
    pub(super) config: &'a ContainerConfig,
    pub(super) sandbox_config: &'a PodSandboxConfig,
    pub(super) image: &'a ImageConfig,
    pub(super) accounts: &'a Accounts,
    pub(super) rights: &'a Rights,
    pub(super) rootfs: &'a Path,
    pub(super) sandbox: &'a SandboxDir,
    /// The process that holds the sandbox's namespaces.
    pub(super) pause: i32,
    /// The first process of the target container of the PID namespace, if one is named.
    pub(super) target: Option<i32>,
    pub(super) cgroup_path: &'a str,
    pub(super) is_cgroup_v2: bool,
    /// The machine's name, for sandboxes that share its network.
    pub(super) node_name: &'a str,
    /// Devices it is given: those it names, or all of the machine's.
    pub(super) devices: &'a [HostDevice],
    /// Images that are mounted, in the order of the mounts that name them.
    pub(super) image_volumes: &'a [ImageVolume],
}

/// Why a specification cannot be made.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SpecError {
    #[error("no command specified")]
    NoCommand,
    #[error("unable to find user {0}: no matching entries in passwd file")]
    NoUser(String),
    #[error("unable to find group {0}: no matching entries in group file")]
    NoGroup(String),
    #[error("user group \"{0}\" is specified without user")]
    GroupWithoutUser(i64),
    #[error("user or group id {0} is out of range")]
    IdOutOfRange(i64),
    #[error("unknown capability {0:?}")]
    UnknownCapability(String),
    #[error("unsupported user namespace mode, must be POD or NODE")]
    UserNamespaceMode,
    #[error(
        "a pod with its own user namespace cannot share the network, IPC or PID namespace of the node"
    )]
    UsersBesideTheMachine,
    #[error(
        "a user namespace needs one range of at least 65536 ids, the same for users and groups, \
         which begins with 0 in the container and not on the node"
    )]
    IdMappings,
    #[error("the container's user namespace is not that of its sandbox")]
    OtherUsers,
    #[error("user or group id {0} is not mapped in the pod's user namespace")]
    IdNotMapped(u64),
    #[error("the ids of mount {0:?} are not those of the pod's user namespace")]
    MountMappings(String),
    #[error("working directory {0:?} is not an absolute path")]
    RelativeDirectory(String),
    #[error("container path of mount {0:?} is not an absolute path")]
    RelativeMount(String),
    #[error("no target container given for PID namespace mode TARGET")]
    NoTarget,
    #[error("{0}")]
    Seccomp(String),
    #[error("seccomp is not supported, cannot specify seccomp profile")]
    NoSeccomp,
}

/// A specification, and what the runtime needs to know of it.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) json: Value,
    /// What is done to the process besides.
    pub(super) confinement: Option<Confinement>,
    /// What it is made from, if it has users of its own.
    pub(super) stage: Option<Stage>,
    /// Whether the end of the first process ends all others.
    pub(super) has_pid_namespace: bool,
    /// Directories that must be there in the root file system.
    pub(super) directories: Vec<PathBuf>,
}

/// Makes the specification of a container.
pub(super) fn make(input: &Input<'_>) -> Result<Made, SpecError> {
    let security = security_context(input.config);
    let users = Users::of(&sandbox_options(input.sandbox_config))?;
    let own = security.namespace_options.clone().unwrap_or_default();
    if Users::of(&own)? != users {
        return Err(SpecError::OtherUsers);
    }
    let namespaces = namespaces::namespaces(input, &security, users.is_some())?;
    let mut process = process::process(input, &security, users.is_some())?;
    let confinement = seccomp::confinement(&security, &mut process.json)?;
    let mounts = mounts::mounts(input, &security)?;
    let propagation = mounts::root_propagation(input.config);
    let (masked, readonly) = if security.privileged {
        (Vec::new(), Vec::new())
    } else {
        (
            security.masked_paths.clone(),
            security.readonly_paths.clone(),
        )
    };
    let mut directories: Vec<PathBuf> = input.image.volumes.iter().map(PathBuf::from).collect();
    directories.push(process.cwd.clone());
    let mut json = json!({
        "ociVersion": "1.0.2",
        "process": process.json,
        "root": { "path": input.rootfs, "readonly": security.readonly_rootfs },
        "mounts": mounts,
        "linux": {
            "cgroupsPath": input.cgroup_path,
            "namespaces": namespaces.json,
            "devices": input.devices.iter().map(HostDevice::json).collect::<Vec<_>>(),
            "rootfsPropagation": propagation,
            "maskedPaths": masked,
            "readonlyPaths": readonly,
        },
    });
    let stage = |users| {
        let mounts = &input.config.mounts;
        stage::plan(&mut json, users, input.pause, mounts, input.devices)
    };
    let stage = users.map(stage).transpose()?;
    Ok(Made {
        json,
        confinement,
        stage,
        has_pid_namespace: namespaces.has_own_pid,
        directories,
    })
}

/// Reads a specification back as libcontainer will, so that what it cannot read is found early.
pub(super) fn check(json: &Value) -> Result<(), serde_json::Error> {
    serde_json::from_value::<Spec>(json.clone()).map(drop)
}

/// The security context of a container; the default if it has none.
pub(super) fn security_context(config: &ContainerConfig) -> LinuxContainerSecurityContext {
    let linux = config.linux.as_ref();
    linux
        .and_then(|linux| linux.security_context.clone())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
