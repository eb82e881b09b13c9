//! Making and unmaking mounts.

use std::ffi::CString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use plimsoll_core::resources::Bytes;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_remount};

/// Makes a directory and those above it; fine if it is there.
pub fn make_dirs(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(path)
}

/// Mounts memory of at most that size, which is never swapped out where the kernel can promise so.
pub fn tmpfs(at: &Path, size: Option<Bytes>) -> io::Result<()> {
    let size = size.filter(|size| *size > Bytes::ZERO);
    let size = size.map(|size| format!("size={}", size.0));
    let with_noswap = [size.as_deref(), Some("noswap")];
    let with_noswap: Vec<&str> = with_noswap.into_iter().flatten().collect();
    match mount_fs("tmpfs", "tmpfs", at, &with_noswap.join(",")) {
        // Kernels before 6.4 and user namespaces do not know the option.
        Err(Errno::INVAL | Errno::PERM) => Ok(mount_fs(
            "tmpfs",
            "tmpfs",
            at,
            size.as_deref().unwrap_or_default(),
        )?),
        result => Ok(result?),
    }
}

/// Mounts huge pages of that size.
pub fn huge_pages(at: &Path, page_size: Bytes) -> io::Result<()> {
    let option = format!("pagesize={}", page_size.0);
    Ok(mount_fs("nodev", "hugetlbfs", at, &option)?)
}

fn mount_fs(source: &str, fs_type: &str, at: &Path, options: &str) -> Result<(), Errno> {
    let options = CString::new(options).map_err(|_| Errno::INVAL)?;
    mount(
        source,
        at,
        fs_type,
        MountFlags::empty(),
        Some(options.as_c_str()),
    )
}

/// Shows a file or directory at another place too.
pub fn bind(source: &Path, at: &Path) -> io::Result<()> {
    Ok(mount_bind(source, at)?)
}

/// Forbids writing through a bind mount.
pub fn make_read_only(at: &Path) -> io::Result<()> {
    Ok(mount_remount(
        at,
        MountFlags::BIND | MountFlags::RDONLY,
        "",
    )?)
}

/// Takes away what was mounted last at the path; fine if nothing is.
pub fn unmount(at: &Path) -> io::Result<()> {
    match rustix::mount::unmount(at, UnmountFlags::NOFOLLOW) {
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
