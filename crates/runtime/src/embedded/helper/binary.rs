//! Protects the agent's binary from containers.
//!
//! A container's first process runs this binary until it becomes the container's program, and a
//! container can open it as `/proc/<pid>/exe`: as root, it could overwrite the binary on the
//! machine. So the helper runs from a view of the binary that cannot be written through: a mount of
//! this one file, read-only, that is part of no directory tree and so cannot be changed either.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use libcontainer::syscall::linux::{AT_EMPTY_PATH, MOUNT_ATTR_RDONLY, MountAttr};
use libcontainer::syscall::syscall::create_syscall;
use rustix::fs::CWD;
use rustix::mount::{OpenTreeFlags, open_tree};

/// Set once the process runs from the view.
const MARK: &str = "PLIMSOLL_HELPER_PROTECTED";

/// Runs the helper again from a read-only view of its binary. Kernels before 5.12 have no such
/// views; the helper then continues without one.
pub(super) fn protect() {
    if std::env::var_os(MARK).is_some() {
        return;
    }
    if let Ok(view) = read_only_view() {
        let args: Vec<OsString> = std::env::args_os().collect();
        let (name, rest) = match args.split_first() {
            Some((name, rest)) => (name.clone(), rest),
            None => (OsString::new(), args.as_slice()),
        };
        // Comes back only if it fails.
        let _ = Command::new(format!("/proc/self/fd/{}", view.as_raw_fd()))
            .arg0(name)
            .args(rest)
            .env(MARK, "1")
            .exec();
    }
}

fn read_only_view() -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let view = open_tree(CWD, "/proc/self/exe", flags)?;
    let read_only = MountAttr {
        attr_set: MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    create_syscall()
        .mount_setattr(
            view.as_fd(),
            Path::new(""),
            AT_EMPTY_PATH,
            &read_only,
            size_of::<MountAttr>(),
        )
        .map_err(io::Error::other)?;
    Ok(view)
}
