//! A small file system in a file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use plimsoll_testkit::disk::mount_ext4;
use rustix::fs::statvfs;

pub(super) const MIB: u64 = 1 << 20;

/// A file system that a test can fill. It is unmounted with the cluster's directory.
pub(super) struct Disk {
    mounted: PathBuf,
    files: u64,
}

impl Disk {
    /// Makes one and mounts it.
    pub(super) fn mount(folder: &Path, at: &Path, mebibytes: u64, inodes: u64) -> Disk {
        Disk::mount_with(folder, at, mebibytes, inodes, &["-O", "^has_journal"])
    }

    /// With further options of `mkfs.ext4`.
    pub(super) fn mount_with(
        folder: &Path,
        at: &Path,
        mebibytes: u64,
        inodes: u64,
        further: &[&str],
    ) -> Disk {
        let name = at.file_name().expect("a folder has a name");
        let image = folder.join(name).with_extension("ext4");
        let inodes = inodes.to_string();
        let options = [&["-m", "0", "-N", &inodes], further].concat();
        mount_ext4(&image, at, mebibytes, &options).expect("it can be mounted");
        Disk {
            mounted: at.to_owned(),
            files: 0,
        }
    }

    /// Fills or frees the disk until this many bytes are free.
    pub(super) fn leave_bytes(&self, wanted: u64) {
        let ballast = self.mounted.join("ballast");
        let held = fs::metadata(&ballast).map_or(0, |found| found.len());
        let free = || {
            let stat = statvfs(&self.mounted).expect("it is mounted");
            stat.f_bavail * stat.f_frsize
        };
        // Freed first, to measure the free space without the filling.
        if free() < wanted {
            let less = held.saturating_sub(wanted - free());
            let file = File::options().write(true).open(&ballast);
            file.and_then(|file| file.set_len(less))
                .expect("it is ours");
            return;
        }
        let more = free() - wanted;
        let text = vec![1; usize::try_from(more).expect("a small number")];
        use std::io::Write;
        let file = File::options().create(true).append(true).open(&ballast);
        let written = file.and_then(|mut file| file.write_all(&text));
        written.expect("there is room");
    }

    /// Creates files until this many inodes are free.
    pub(super) fn leave_inodes(&mut self, wanted: u64) {
        let folder = self.mounted.join("many");
        fs::create_dir_all(&folder).expect("the disk is ours");
        let free = statvfs(&self.mounted).expect("it is mounted").f_ffree;
        for _ in wanted..free {
            self.files += 1;
            File::create(folder.join(self.files.to_string())).expect("there is an inode");
        }
    }
}
