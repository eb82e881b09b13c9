//! A disk whose writes a test can suspend.

use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_testkit::disk::mount_ext4;
use plimsoll_testkit::mount::unmount_below;

/// A file system of its own. While it is frozen, processes that write or flush wait.
pub(crate) struct SlowDisk {
    folder: PathBuf,
}

impl SlowDisk {
    pub(crate) fn make(folder: &Path, mebibytes: u64) -> SlowDisk {
        let mounted = mount_ext4(&folder.with_extension("img"), folder, mebibytes, &[]);
        assert_eq!(mounted, Ok(()));
        SlowDisk {
            folder: folder.to_owned(),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Thawing what is not frozen does nothing.
    pub(crate) fn freeze(&self, is_frozen: bool) {
        let action = if is_frozen { "--freeze" } else { "--unfreeze" };
        let mut command = Command::new("fsfreeze");
        let output = command.arg(action).arg(&self.folder).output();
        let output = output.expect("fsfreeze is installed");
        assert!(!is_frozen || output.status.success(), "{output:?}");
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        self.freeze(false);
        unmount_below(&self.folder);
    }
}
