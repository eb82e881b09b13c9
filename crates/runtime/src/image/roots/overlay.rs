//! Overlayfs: layers below, a writable directory on top.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Gid, Mode, Uid};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::super::tree;
use super::Owner;
use crate::mapped_mount;

/// The writable layer.
pub(super) const UPPER: &str = "upper";
/// Overlayfs' own.
const WORK: &str = "work";

/// Overlayfs' note in its own directory that a volatile mount was not ended cleanly. It refuses to
/// mount again while the note is there, also after clean ends.
const VOLATILE_NOTE: &str = "work/incompat/volatile";

/// The kernel takes options of up to one page.
const LONGEST_OPTIONS: usize = 4000;

/// Makes the directories that a mount needs, the writable one looking like the layer below it.
pub(super) fn lay_out(directory: &Path, uppermost: Option<&Path>, first_id: u32) -> io::Result<()> {
    let upper = directory.join(UPPER);
    rustix::fs::mkdir(&upper, Mode::from(0o755))?;
    rustix::fs::mkdir(directory.join(WORK), Mode::RWXU)?;
    match uppermost {
        Some(layer) => super::look_like(layer, &upper, first_id),
        None => {
            let (uid, gid) = (Uid::from_raw(first_id), Gid::from_raw(first_id));
            Ok(rustix::fs::chown(&upper, Some(uid), Some(gid))?)
        }
    }
}

/// How overlayfs is mounted here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Overlay {
    /// Nothing is forced to disk, least of all everything of the file system below at each
    /// unmount. What a power failure takes was ephemeral: no container outlives one. Linux can do
    /// so since 5.10.
    is_volatile: bool,
}

impl Overlay {
    /// Finds out by mounting one in a new directory.
    pub(super) fn detect(directory: &Path) -> io::Result<Overlay> {
        rustix::fs::mkdir(directory, Mode::RWXU)?;
        let volatile = Overlay { is_volatile: true };
        let lasting = Overlay { is_volatile: false };
        let tried = volatile.try_out(&directory.join("volatile"));
        tried.map(|()| volatile).or_else(|_| {
            let tried = lasting.try_out(&directory.join("lasting"));
            tried.map(|()| lasting)
        })
    }

    /// Finds out whether layers can be mapped to an owner, which overlayfs can take since Linux 5.19,
    /// if the file system that they are on can.
    pub(super) fn try_mapped(self, directory: &Path, owner: Owner<'_>) -> io::Result<()> {
        let (layer, merged) = (directory.join("layer"), directory.join("merged"));
        for path in [directory, &layer, &merged] {
            rustix::fs::mkdir(path, Mode::RWXU)?;
        }
        lay_out(directory, None, owner.first)?;
        self.mount_mapped(directory, &merged, &[layer], owner)?;
        unmount(&merged)
    }

    /// As [`Overlay::mount`], with the layers' files mapped to the owner. What is written belongs
    /// to the owner's users on the disk too.
    pub(super) fn mount_mapped(
        self,
        directory: &Path,
        merged: &Path,
        layers: &[PathBuf],
        owner: Owner<'_>,
    ) -> io::Result<()> {
        if is_mounted(merged)? {
            return Ok(());
        }
        tree::remove(&directory.join(WORK).join(VOLATILE_NOTE))?;
        // Mapped layers are mounts, which nothing else on the machine should see, nor find after a
        // crash. They are made among the mounts of a thread that ends, and only the whole is brought
        // back.
        let worker = || {
            let home = File::open("/proc/thread-self/ns/mnt")?;
            mapped_mount::leave_mounts()?;
            let whole = self.mount_aside(directory, merged, layers, owner)?;
            move_into_link_name_space(home.as_fd(), Some(LinkNameSpaceType::Mount))?;
            mapped_mount::attach(&whole, merged)
        };
        std::thread::scope(|scope| {
            let done = std::thread::Builder::new()
                .name("mount".to_owned())
                .spawn_scoped(scope, worker)?;
            let failed = |_| Err(io::Error::other("the thread that mounts has panicked"));
            done.join().unwrap_or_else(failed)
        })
    }

    /// Mounts in the calling thread's own mounts; returns what was mounted.
    fn mount_aside(
        self,
        directory: &Path,
        merged: &Path,
        layers: &[PathBuf],
        owner: Owner<'_>,
    ) -> io::Result<OwnedFd> {
        let mut mapped = Vec::new();
        for layer in layers {
            let mount = mapped_mount::detach(layer, false)?;
            mapped_mount::map(&mount, owner.user_namespace)?;
            mapped.push(mount);
        }
        // A place for them, which hides nothing that is needed.
        rustix::mount::mount("layers", merged, "tmpfs", MountFlags::empty(), c"mode=700")?;
        rustix::process::chdir(merged)?;
        let names: Vec<PathBuf> = (0..mapped.len().max(1))
            .map(|number| PathBuf::from(number.to_string()))
            .collect();
        for name in &names {
            rustix::fs::mkdir(name, Mode::from(0o755))?;
        }
        for (mount, name) in mapped.iter().zip(&names) {
            mapped_mount::attach(mount, name)?;
        }
        rustix::fs::mkdir("whole", Mode::RWXU)?;
        let data = CString::new(self.options(directory, &names))?;
        let flags = MountFlags::empty();
        rustix::mount::mount("overlay", "whole", "overlay", flags, data.as_c_str())?;
        mapped_mount::detach(Path::new("whole"), false)
    }

    fn try_out(self, directory: &Path) -> io::Result<()> {
        let (layer, merged) = (directory.join("layer"), directory.join("merged"));
        for path in [directory, &layer, &merged] {
            rustix::fs::mkdir(path, Mode::RWXU)?;
        }
        lay_out(directory, None, 0)?;
        self.mount(directory, &merged, &[layer])?;
        unmount(&merged)
    }

    /// Mounts layers, uppermost first, below the writable layer. What is mounted stays.
    pub(super) fn mount(
        self,
        directory: &Path,
        merged: &Path,
        layers: &[PathBuf],
    ) -> io::Result<()> {
        if is_mounted(merged)? {
            return Ok(());
        }
        tree::remove(&directory.join(WORK).join(VOLATILE_NOTE))?;
        // Overlayfs needs at least one lower directory.
        let nothing = directory.join("nothing");
        let mut lower = layers.to_vec();
        if lower.is_empty() {
            match rustix::fs::mkdir(&nothing, Mode::from(0o755)) {
                Ok(()) | Err(Errno::EXIST) => lower.push(nothing),
                Err(error) => return Err(error.into()),
            }
        }
        let mut data = self.options(directory, &lower);
        // Many layers under a long path do not fit; open files have short names.
        let mut held_open = Vec::new();
        if data.len() > LONGEST_OPTIONS {
            for layer in &mut lower {
                let file = tree::open_directory(CWD, layer.as_path())?;
                *layer = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
                held_open.push(file);
            }
            data = self.options(directory, &lower);
        }
        let data = CString::new(data)?;
        let flags = MountFlags::empty();
        let data = Some(data.as_c_str());
        Ok(rustix::mount::mount(
            "overlay", merged, "overlay", flags, data,
        )?)
    }

    fn options(self, directory: &Path, lower: &[PathBuf]) -> Vec<u8> {
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
        if self.is_volatile {
            options.extend(b",volatile");
        }
        options
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_special_characters_are_escaped() {
        let layers = ["/x:y".into(), "/z".into()];
        let options = Overlay::default().options(Path::new("/a,b"), &layers);
        assert_eq!(
            String::from_utf8(options).unwrap(),
            r"lowerdir=/x\:y:/z,upperdir=/a\,b/upper,workdir=/a\,b/work"
        );
    }
}
