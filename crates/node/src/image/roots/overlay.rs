//! Overlayfs: layers below, a writable directory on top.

use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

use super::super::tree;

/// The writable layer.
pub(super) const UPPER: &str = "upper";
/// Overlayfs' own.
const WORK: &str = "work";

/// The kernel takes options of up to one page.
const LONGEST_OPTIONS: usize = 4000;

/// Makes the directories that a mount needs, the writable one looking like the layer below it.
pub(super) fn lay_out(directory: &Path, uppermost: Option<&Path>) -> io::Result<()> {
    let upper = directory.join(UPPER);
    rustix::fs::mkdir(&upper, Mode::from(0o755))?;
    rustix::fs::mkdir(directory.join(WORK), Mode::RWXU)?;
    match uppermost {
        Some(layer) => super::look_like(layer, &upper),
        None => Ok(()),
    }
}

/// Mounts layers, uppermost first, below the writable layer. What is mounted stays.
pub(super) fn mount(directory: &Path, merged: &Path, layers: &[PathBuf]) -> io::Result<()> {
    if is_mounted(merged)? {
        return Ok(());
    }
    // Overlayfs wants at least one directory below.
    let nothing = directory.join("nothing");
    let mut lower = layers.to_vec();
    if lower.is_empty() {
        match rustix::fs::mkdir(&nothing, Mode::from(0o755)) {
            Ok(()) | Err(Errno::EXIST) => lower.push(nothing),
            Err(error) => return Err(error.into()),
        }
    }
    let mut data = options(directory, &lower);
    // Many layers under a long path do not fit; open files have short names.
    let mut held_open = Vec::new();
    if data.len() > LONGEST_OPTIONS {
        for layer in &mut lower {
            let file = tree::open_directory(CWD, layer.as_path())?;
            *layer = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
            held_open.push(file);
        }
        data = options(directory, &lower);
    }
    let data = CString::new(data)?;
    let flags = MountFlags::empty();
    Ok(rustix::mount::mount(
        "overlay",
        merged,
        "overlay",
        flags,
        Some(data.as_c_str()),
    )?)
}

fn options(directory: &Path, lower: &[PathBuf]) -> Vec<u8> {
    let mut options = b"lowerdir=".to_vec();
    for (number, layer) in lower.iter().enumerate() {
        if number > 0 {
            options.push(b':');
        }
        escape(layer, &mut options);
    }
    options.extend(b",upperdir=");
    escape(&directory.join(UPPER), &mut options);
    options.extend(b",workdir=");
    escape(&directory.join(WORK), &mut options);
    options
}

fn escape(path: &Path, options: &mut Vec<u8>) {
    for byte in path.as_os_str().as_bytes() {
        if matches!(byte, b':' | b',' | b'\\') {
            options.push(b'\\');
        }
        options.push(*byte);
    }
}

/// Whether something is mounted at a path: it then is on another device than its parent.
fn is_mounted(merged: &Path) -> io::Result<bool> {
    let parent = merged.parent().unwrap_or(merged);
    Ok(merged.metadata()?.dev() != parent.metadata()?.dev())
}

/// Undoes all mounts at a path; processes that still use one keep it.
pub(super) fn unmount(merged: &Path) -> io::Result<()> {
    loop {
        match rustix::mount::unmount(merged, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            Ok(()) => {}
            // Not mounted; gone; not allowed to mount, so nothing is.
            Err(Errno::INVAL | Errno::NOENT | Errno::PERM) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Mounts and unmounts an overlay in a new directory.
pub(super) fn try_out(directory: &Path) -> io::Result<()> {
    let (layer, merged) = (directory.join("layer"), directory.join("merged"));
    for path in [directory, &layer, &merged] {
        rustix::fs::mkdir(path, Mode::RWXU)?;
    }
    lay_out(directory, None)?;
    mount(directory, &merged, &[layer])?;
    unmount(&merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_special_characters_are_escaped() {
        let options = options(Path::new("/a,b"), &["/x:y".into(), "/z".into()]);
        assert_eq!(
            String::from_utf8(options).unwrap(),
            r"lowerdir=/x\:y:/z,upperdir=/a\,b/upper,workdir=/a\,b/work"
        );
    }
}
