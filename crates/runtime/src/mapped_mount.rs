//! Mounts on which files belong to other ids than on their disk: a pod's user namespace then finds
//! root's files as its own root's, though its root is an ordinary user of the node.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use libcontainer::namespaces::Namespaces;
use libcontainer::oci_spec::runtime::{LinuxNamespaceBuilder, LinuxNamespaceType};
use libcontainer::syscall::SyscallError;
use libcontainer::syscall::linux::{AT_EMPTY_PATH, MountAttr};
use libcontainer::syscall::syscall::SyscallType;
use rustix::fs::CWD;
use rustix::mount::{
    MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount_change, move_mount, open_tree,
};

/// `MOUNT_ATTR_IDMAP`.
const IDMAP: u64 = 0x0010_0000;

/// Whether the kernel has such mounts at all, which Linux has since 5.12. Not every file system can
/// be mounted so.
pub(crate) fn is_supported() -> bool {
    // Changes nothing.
    set(CWD, &attributes(0, 0)).map_err(|error| error.raw_os_error()) != Err(Some(libc::ENOSYS))
}

/// Gives the calling thread a copy of all mounts, so that what it mounts is its own and goes with it.
/// Mounts of the machine still come in.
pub(crate) fn leave_mounts() -> io::Result<()> {
    let none = Vec::new();
    let enter = Namespaces::try_from(Some(&none)).map_err(io::Error::other)?;
    let namespace = LinuxNamespaceBuilder::default()
        .typ(LinuxNamespaceType::Mount)
        .build()
        .map_err(io::Error::other)?;
    enter
        .unshare_or_setns(&namespace)
        .map_err(io::Error::other)?;
    let flags = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    Ok(mount_change("/", flags)?)
}

/// A copy of what is mounted at a path, with all below it or alone, that is nowhere to be seen until
/// it is attached.
pub(crate) fn detach(path: &Path, is_recursive: bool) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    flags.set(OpenTreeFlags::AT_RECURSIVE, is_recursive);
    Ok(open_tree(CWD, path, flags)?)
}

/// Maps a detached mount, without those below it, to the ids of a user namespace.
pub(crate) fn map(mount: &OwnedFd, user_namespace: BorrowedFd<'_>) -> io::Result<()> {
    let number = user_namespace.as_raw_fd();
    let number = u64::try_from(number).map_err(io::Error::other)?;
    set(mount.as_fd(), &attributes(IDMAP, number))
}

/// Makes a detached mount be seen at a path.
pub(crate) fn attach(mount: &OwnedFd, path: &Path) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(move_mount(mount, "", CWD, path, flags)?)
}

/// Whether an error says that a file system or kernel cannot map this mount.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS))
}

fn attributes(set: u64, user_namespace: u64) -> MountAttr {
    MountAttr {
        attr_set: set,
        attr_clr: 0,
        propagation: 0,
        userns_fd: user_namespace,
    }
}

fn set(mount: BorrowedFd<'_>, attributes: &MountAttr) -> io::Result<()> {
    let size = size_of::<MountAttr>();
    let kernel = SyscallType::Linux.create_syscall();
    kernel
        .mount_setattr(mount, Path::new(""), AT_EMPTY_PATH, attributes, size)
        .map_err(|error| match error {
            SyscallError::Nix(errno) => io::Error::from(errno),
            error => io::Error::other(error),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_tests_run_on_have_mapped_mounts() {
        assert!(is_supported());
    }
}
