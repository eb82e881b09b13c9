//! The file systems of a container.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::job::Narrowed;
use super::{Input, SpecError};
use crate::wire::{
    ContainerConfig, LinuxContainerSecurityContext, Mount, MountPropagation, NamespaceMode,
};

/// Where a container sees its cgroup.
const CGROUPS: &str = "/sys/fs/cgroup";

/// An image that is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct ImageVolume {
    /// Its root, or a directory in it.
    pub(in super::super) path: PathBuf,
}

pub(super) fn mounts(
    input: &Input<'_>,
    security: &LinuxContainerSecurityContext,
) -> Result<Vec<Value>, SpecError> {
    let mut mounts = kernel_mounts(security.privileged);
    mounts.extend(sandbox_mounts(input, security));
    let mut volumes = input.image_volumes.iter();
    let mut own = Vec::new();
    for mount in &input.config.mounts {
        if !Path::new(&mount.container_path).is_absolute() {
            return Err(SpecError::RelativeMount(mount.container_path.clone()));
        }
        let source = match &mount.image {
            Some(_) => volumes.next().map(|volume| volume.path.clone()),
            None => Some(PathBuf::from(&mount.host_path)),
        };
        if let Some(source) = source {
            own.push((depth(&mount.container_path), bind(&source, mount)));
        }
    }
    // What lies inside another mount must come after it.
    own.sort_by_key(|(depth, _)| *depth);
    // A container may bring its own `/dev/shm` or `/sys`.
    mounts.retain(|mount| {
        let target = mount["destination"].as_str().unwrap_or_default();
        !input
            .config
            .mounts
            .iter()
            .any(|own| is_same(&own.container_path, target))
    });
    mounts.extend(own.into_iter().map(|(_, mount)| mount));
    Ok(mounts)
}

fn depth(path: &str) -> usize {
    Path::new(path).components().count()
}

fn is_same(one: &str, other: &str) -> bool {
    Path::new(one)
        .components()
        .eq(Path::new(other).components())
}

/// What every container has of the kernel.
fn kernel_mounts(is_privileged: bool) -> Vec<Value> {
    let mount = |target: &str, kind: &str, options: &[&str]| json!({ "destination": target, "type": kind, "source": kind, "options": options });
    let access = if is_privileged { "rw" } else { "ro" };
    vec![
        mount("/proc", "proc", &["nosuid", "noexec", "nodev"]),
        mount(
            "/dev",
            "tmpfs",
            &["nosuid", "strictatime", "mode=755", "size=65536k"],
        ),
        mount(
            "/dev/pts",
            "devpts",
            &[
                "nosuid",
                "noexec",
                "newinstance",
                "ptmxmode=0666",
                "mode=0620",
                "gid=5",
            ],
        ),
        mount("/dev/mqueue", "mqueue", &["nosuid", "noexec", "nodev"]),
        mount("/sys", "sysfs", &["nosuid", "noexec", "nodev", access]),
        mount(
            CGROUPS,
            "cgroup",
            &["nosuid", "noexec", "nodev", "relatime", access],
        ),
    ]
}

/// What the containers of a sandbox share.
fn sandbox_mounts(input: &Input<'_>, security: &LinuxContainerSecurityContext) -> Vec<Value> {
    let bind = |target: &str, source: PathBuf, access: &str| {
        json!({
            "destination": target,
            "type": "bind",
            "source": source,
            "options": ["rbind", "rprivate", access],
        })
    };
    let access = if security.readonly_rootfs { "ro" } else { "rw" };
    let options = security.namespace_options.clone().unwrap_or_default();
    let shm = match options.ipc() {
        NamespaceMode::Node => PathBuf::from("/dev/shm"),
        _ => input.sandbox.shm(),
    };
    vec![
        bind("/etc/hostname", input.sandbox.hostname(), access),
        bind("/etc/hosts", input.sandbox.hosts(), access),
        bind("/etc/resolv.conf", input.sandbox.resolv_conf(), access),
        bind("/dev/shm", shm, "rw"),
    ]
}

fn bind(source: &Path, mount: &Mount) -> Value {
    let propagation = match mount.propagation() {
        MountPropagation::PropagationPrivate => "rprivate",
        MountPropagation::PropagationHostToContainer => "rslave",
        MountPropagation::PropagationBidirectional => "rshared",
    };
    let mut options = vec!["rbind", propagation];
    options.push(if mount.readonly || mount.image.is_some() {
        "ro"
    } else {
        "rw"
    });
    if mount.recursive_read_only {
        options.push("rro");
    }
    json!({
        "destination": mount.container_path,
        "type": "bind",
        "source": source,
        "options": options,
    })
}

/// How the root is joined to the machine's. libcontainer takes the propagation of all mounts from
/// it, so that the widest one any mount requests decides; the monitor narrows the others down.
pub(super) fn root_propagation(config: &ContainerConfig) -> &'static str {
    let widest = config.mounts.iter().map(Mount::propagation).max();
    match widest {
        Some(MountPropagation::PropagationBidirectional) => "shared",
        Some(MountPropagation::PropagationHostToContainer) => "slave",
        _ => "private",
    }
}

/// The mounts that request less than the root has.
pub(in super::super) fn narrowed(config: &ContainerConfig) -> Vec<Narrowed> {
    let Some(widest) = config.mounts.iter().map(Mount::propagation).max() else {
        return Vec::new();
    };
    let narrower = config
        .mounts
        .iter()
        .filter(|mount| mount.propagation() < widest);
    narrower
        .map(|mount| Narrowed {
            path: PathBuf::from(&mount.container_path),
            follows: mount.propagation() == MountPropagation::PropagationHostToContainer,
        })
        .collect()
}

/// Mounts that libcontainer may have made writable although they must not be: cgroups, unless the
/// container may do anything, or has brought its own in their place.
pub(in super::super) fn read_only(config: &ContainerConfig) -> Vec<PathBuf> {
    let cgroups = Path::new(CGROUPS);
    let is_own = |mount: &Mount| cgroups.starts_with(&mount.container_path);
    let is_exempt = super::security_context(config).privileged || config.mounts.iter().any(is_own);
    match is_exempt {
        true => Vec::new(),
        false => vec![cgroups.to_owned()],
    }
}
