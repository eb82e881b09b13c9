//! Corrections to the mounts of a container that libcontainer does not make, between create and
//! start.
//!
//! It gives all mounts the propagation of the container's root: those that request less are cut
//! off. On cgroup v1 it mounts each controller for writing, whatever the specification says, which
//! would let root in a container lift its own limits: what has to be read-only is made so here.

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use libcontainer::syscall::SyscallError;
use libcontainer::syscall::linux::{AT_RECURSIVE, MOUNT_ATTR_RDONLY, MountAttr};
use libcontainer::syscall::syscall::SyscallType;
use rustix::fs::CWD;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::super::job::Narrowed;
use super::fork::in_child;

/// Finishes the mounts of a container that was made but not started: narrows the propagation of
/// some, and makes others read-only with all that is mounted below them.
pub(super) fn finish(pid: i32, narrowed: &[Narrowed], read_only: &[PathBuf]) -> Result<(), String> {
    if narrowed.is_empty() && read_only.is_empty() {
        return Ok(());
    }
    // It enters the container's mounts.
    in_child(|| change(pid, narrowed, read_only))
        .map_err(|error| format!("finish the mounts: {error}"))
}

fn change(pid: i32, narrowed: &[Narrowed], read_only: &[PathBuf]) -> io::Result<()> {
    let namespace = File::open(format!("/proc/{pid}/ns/mnt"))?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))?;
    for mount in narrowed {
        let kind = if mount.follows {
            MountPropagationFlags::DOWNSTREAM
        } else {
            MountPropagationFlags::PRIVATE
        };
        mount_change(&mount.path, kind | MountPropagationFlags::REC)?;
    }
    read_only.iter().try_for_each(|path| make_read_only(path))
}

/// Makes the mount at a path read-only, and all below it.
fn make_read_only(path: &Path) -> io::Result<()> {
    let attributes = MountAttr {
        attr_set: MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let size = size_of::<MountAttr>();
    let kernel = SyscallType::Linux.create_syscall();
    kernel
        .mount_setattr(CWD, path, AT_RECURSIVE, &attributes, size)
        .map_err(|error| match error {
            SyscallError::Nix(errno) => io::Error::from(errno),
            error => io::Error::other(error),
        })
}
