//! The kernel's side: project ids of directories, and what a project holds.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use rustix::ioctl::{Getter, Setter, ioctl, opcode};

/// What is created in the directory belongs to its project.
const PROJECT_INHERIT: u32 = 0x0000_0200;
/// `QCMD(Q_GETQUOTA, PRJQUOTA)`.
const GET_PROJECT_QUOTA: libc::c_int = (0x80_0007 << 8) | 2;

/// `struct fsxattr` of `linux/fs.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    flags: u32,
    extent_size: u32,
    extents: u32,
    project: u32,
    cow_extent_size: u32,
    padding: [u8; 8],
}

const GET_ATTRIBUTES: rustix::ioctl::Opcode = opcode::read::<Attributes>(b'X', 31);
const SET_ATTRIBUTES: rustix::ioctl::Opcode = opcode::write::<Attributes>(b'X', 32);

/// `struct if_dqblk` of `linux/quota.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Quota {
    hard_blocks: u64,
    soft_blocks: u64,
    bytes: u64,
    hard_inodes: u64,
    soft_inodes: u64,
    inodes: u64,
    block_time: u64,
    inode_time: u64,
    valid: u32,
}

/// A project on some file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Project {
    pub(super) bytes: u64,
    pub(super) inodes: u64,
    /// Whether it may hold only so much.
    pub(super) is_limited: bool,
}

impl Project {
    /// Whether the project is unused, as far as the kernel knows.
    pub(super) fn is_free(self) -> bool {
        self == Project::default()
    }
}

/// The project that a directory belongs to, if what is made in it does too; zero for none.
pub(super) fn project_of(directory: impl AsFd) -> Result<u32, Errno> {
    let attributes = attributes(directory)?;
    let is_inherited = attributes.flags & PROJECT_INHERIT != 0;
    Ok(if is_inherited { attributes.project } else { 0 })
}

/// Whether a directory belongs to a project at all.
pub(super) fn has_project(directory: impl AsFd) -> Result<bool, Errno> {
    let attributes = attributes(directory)?;
    Ok(attributes.project != 0 || attributes.flags & PROJECT_INHERIT != 0)
}

/// Puts a directory and all that will be made in it into a project; zero takes it out.
pub(super) fn set_project(directory: impl AsFd, project: u32) -> Result<(), Errno> {
    let known = attributes(&directory)?;
    let flags = match project {
        0 => known.flags & !PROJECT_INHERIT,
        _ => known.flags | PROJECT_INHERIT,
    };
    let wanted = Attributes {
        flags,
        project,
        ..known
    };
    write_attributes(directory, wanted)
}

#[expect(unsafe_code, reason = "no safe crate wraps FS_IOC_FSGETXATTR")]
fn attributes(directory: impl AsFd) -> Result<Attributes, Errno> {
    // SAFETY: the request writes one `struct fsxattr`, which `Attributes` is, bit for bit, and of
    // which all values are valid.
    unsafe { ioctl(directory, Getter::<GET_ATTRIBUTES, Attributes>::new()) }
}

#[expect(unsafe_code, reason = "no safe crate wraps FS_IOC_FSSETXATTR")]
fn write_attributes(directory: impl AsFd, wanted: Attributes) -> Result<(), Errno> {
    // SAFETY: the request reads one `struct fsxattr`, which `Attributes` is.
    unsafe { ioctl(directory, Setter::<SET_ATTRIBUTES, Attributes>::new(wanted)) }
}

/// What a project holds on the file system of a file. An error where projects are not counted, or
/// before Linux 5.14, which has this call.
#[expect(unsafe_code, reason = "no safe crate wraps quotactl_fd")]
pub(super) fn usage(file: impl AsFd, project: u32) -> Result<Project, Errno> {
    let mut quota = Quota::default();
    // SAFETY: the command writes one `struct if_dqblk`, which `Quota` is, into memory that is ours
    // for as long as the call takes.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_quotactl_fd,
            file.as_fd().as_raw_fd(),
            GET_PROJECT_QUOTA,
            project,
            &raw mut quota,
        )
    };
    if answer != 0 {
        let error = std::io::Error::last_os_error();
        return match Errno::from_io_error(&error) {
            // XFS knows nothing of a project that was never used.
            Some(Errno::NOENT) => Ok(Project::default()),
            other => Err(other.unwrap_or(Errno::IO)),
        };
    }
    let limits = [
        quota.hard_blocks,
        quota.soft_blocks,
        quota.hard_inodes,
        quota.soft_inodes,
    ];
    Ok(Project {
        bytes: quota.bytes,
        inodes: quota.inodes,
        is_limited: limits.iter().any(|limit| *limit > 0),
    })
}
