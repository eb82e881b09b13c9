//! Mounts and unmounts file systems.

use std::ffi::CString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::resources::Bytes;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_remount};

/// Creates a directory and those above it; succeeds if it exists.
pub fn make_dirs(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(path)
}

/// Mounts memory of at most that size, which is never swapped out where the kernel can promise so.
pub fn tmpfs(at: &Path, size: Option<Bytes>) -> io::Result<()> {
    let size = size.filter(|size| *size > Bytes::ZERO);
    let size = size.map(|size| format!("size={}", size.0));
    never_swapped(&KNOWS_NOSWAP, |option| {
        let options: Vec<&str> = [size.as_deref(), option].into_iter().flatten().collect();
        mount_fs("tmpfs", "tmpfs", at, &options.join(","))
    })?;
    Ok(())
}

/// Whether the kernel takes `noswap`, as far as has been seen. One that does not complains of it in
/// its log, and need not be tried for every secret.
static KNOWS_NOSWAP: AtomicBool = AtomicBool::new(true);

/// Mounts with `noswap`, or without where the kernel does not know it.
fn never_swapped(
    is_known: &AtomicBool,
    mount: impl Fn(Option<&str>) -> Result<(), Errno>,
) -> Result<(), Errno> {
    if !is_known.load(Ordering::Relaxed) {
        return mount(None);
    }
    match mount(Some("noswap")) {
        // Kernels before 6.4 and user namespaces do not know the option.
        Err(Errno::INVAL | Errno::PERM) => {
            mount(None)?;
            is_known.store(false, Ordering::Relaxed);
            Ok(())
        }
        result => result,
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

/// Unmounts what was mounted last at the path; succeeds if nothing is.
pub fn unmount(at: &Path) -> io::Result<()> {
    match rustix::mount::unmount(at, UnmountFlags::NOFOLLOW) {
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// The options passed for three mounts in a row, if the kernel answers this to `noswap`.
    fn options_tried(answer: Result<(), Errno>, plain: Result<(), Errno>) -> Vec<Option<String>> {
        let (is_known, options_tried) = (AtomicBool::new(true), RefCell::new(Vec::new()));
        for _ in 0..3 {
            let _ = never_swapped(&is_known, |option| {
                options_tried.borrow_mut().push(option.map(str::to_owned));
                if option.is_some() { answer } else { plain }
            });
        }
        options_tried.into_inner()
    }

    #[test]
    fn noswap_is_not_tried_again_after_the_kernel_refuses_it() {
        let noswap = || Some("noswap".to_owned());
        assert_eq!(
            options_tried(Err(Errno::INVAL), Ok(())),
            [noswap(), None, None, None]
        );
        assert_eq!(
            options_tried(Ok(()), Ok(())),
            [noswap(), noswap(), noswap()]
        );
        // Another error, which may be temporary.
        assert_eq!(options_tried(Err(Errno::INVAL), Err(Errno::INVAL)).len(), 6);
    }
}
