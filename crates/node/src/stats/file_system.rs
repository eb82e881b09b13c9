//! File systems as a whole.

use std::io;
use std::path::Path;

use plimsoll_core::eviction::summary::FsStats;
use plimsoll_core::object::timestamp::Timestamp;
use rustix::fs::{StatVfs, statvfs};

/// How much a file system holds and has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileSystem {
    pub(super) capacity: u64,
    /// For processes without root privileges.
    pub(super) available: u64,
    pub(super) used: u64,
    pub(super) inodes: u64,
    pub(super) inodes_free: u64,
    /// Which one it is; two paths with the same are on one file system.
    pub(super) device: u64,
}

impl FileSystem {
    /// Measures the file system that the path is on.
    pub(super) fn read(path: &Path) -> io::Result<FileSystem> {
        use std::os::unix::fs::MetadataExt;
        let device = std::fs::metadata(path)?.dev();
        Ok(FileSystem {
            device,
            ..FileSystem::of(&statvfs(path)?)
        })
    }

    fn of(stat: &StatVfs) -> FileSystem {
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        FileSystem {
            capacity: bytes(stat.f_blocks),
            available: bytes(stat.f_bavail),
            used: bytes(stat.f_blocks.saturating_sub(stat.f_bfree)),
            inodes: stat.f_files,
            inodes_free: stat.f_ffree,
            device: 0,
        }
    }

    /// The file system around something of which it is not said how much it takes.
    pub(super) fn around(&self, time: Option<Timestamp>) -> FsStats {
        FsStats {
            time,
            available_bytes: Some(self.available),
            capacity_bytes: Some(self.capacity),
            inodes_free: Some(self.inodes_free),
            inodes: Some(self.inodes),
            ..FsStats::default()
        }
    }

    /// All of the file system.
    pub(super) fn whole(&self, time: Option<Timestamp>) -> FsStats {
        FsStats {
            used_bytes: Some(self.used),
            inodes_used: Some(self.inodes.saturating_sub(self.inodes_free)),
            ..self.around(time)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_of_a_folder_is_measured() {
        let dir = tempfile::tempdir().unwrap();
        let fs = FileSystem::read(dir.path()).unwrap();
        assert!(fs.capacity > 0 && fs.available <= fs.capacity);
        assert!(fs.used <= fs.capacity);
        let stats = fs.whole(None);
        assert_eq!(stats.capacity_bytes, Some(fs.capacity));
        assert!(FileSystem::read(&dir.path().join("none")).is_err());
    }
}
