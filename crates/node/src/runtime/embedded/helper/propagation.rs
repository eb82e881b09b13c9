//! How the mounts of a container are joined to the machine's.
//!
//! libcontainer gives all mounts the propagation of the container's root. Before the container is
//! started, those that asked for less are cut off.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::super::job::Narrowed;
use super::fork::fork;

/// Narrows mounts of a container that was made but not started.
pub(super) fn narrow(pid: i32, mounts: &[Narrowed]) -> Result<(), String> {
    if mounts.is_empty() {
        return Ok(());
    }
    // A process of its own enters the container's mounts: there is no way back.
    let child = fork(|| match change(pid, mounts) {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(1),
    });
    let wait = || {
        let child = Pid::from_raw(child?).ok_or(io::ErrorKind::NotFound)?;
        let status = waitpid(Some(child), WaitOptions::empty())?;
        match status.and_then(|(_, status)| status.exit_status()) {
            Some(0) => Ok(()),
            Some(number) => Err(io::Error::from_raw_os_error(number)),
            None => Err(io::Error::other("it was killed")),
        }
    };
    wait().map_err(|error: io::Error| format!("set the propagation of mounts: {error}"))
}

fn change(pid: i32, mounts: &[Narrowed]) -> io::Result<()> {
    let namespace = File::open(format!("/proc/{pid}/ns/mnt"))?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))?;
    for mount in mounts {
        let kind = if mount.follows {
            MountPropagationFlags::DOWNSTREAM
        } else {
            MountPropagationFlags::PRIVATE
        };
        mount_change(&mount.path, kind | MountPropagationFlags::REC)?;
    }
    Ok(())
}
