//! The path where plugins look for the registration socket.
//!
//! Plugins mount the kubelet's usual directory, whatever the agent's own root directory is.

use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// The directory of the registration socket of a kubelet with default settings.
pub const STANDARD: &str = "/var/lib/kubelet/device-plugins";

/// Makes the usual path a link to the directory, unless something else is there.
pub(crate) fn link(usual: &Path, directory: &Path) -> io::Result<()> {
    if usual == directory {
        return Ok(());
    }
    if let Some(parent) = usual.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match std::fs::read_link(usual) {
        Ok(target) if target == directory => Ok(()),
        // A link to nothing was left by an agent with another root directory.
        Ok(_) if !usual.exists() => {
            std::fs::remove_file(usual)?;
            symlink(directory, usual)
        }
        _ if usual.symlink_metadata().is_ok() => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "something else is there, such as the directory of a kubelet",
        )),
        _ => symlink(directory, usual),
    }
}

/// Removes the link if it leads to the directory.
pub(crate) fn unlink(usual: &Path, directory: &Path) -> io::Result<()> {
    match std::fs::read_link(usual) {
        Ok(target) if target == directory => std::fs::remove_file(usual),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_path_leads_to_the_directory_and_is_removed_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("own");
        let usual = folder.path().join("kubelet/device-plugins");
        std::fs::create_dir(&directory).unwrap();
        symlink("/no/such/directory", folder.path().join("dangling")).unwrap();
        for path in [usual.clone(), usual.clone(), folder.path().join("dangling")] {
            link(&path, &directory).unwrap();
            assert_eq!(std::fs::read_link(&path).unwrap(), directory);
        }
        unlink(&usual, Path::new("/other")).unwrap();
        assert!(usual.exists());
        unlink(&usual, &directory).unwrap();
        assert!(!usual.exists());
    }

    #[test]
    fn the_directory_of_a_kubelet_stays() {
        let folder = tempfile::tempdir().unwrap();
        let usual = folder.path().join("device-plugins");
        std::fs::create_dir(&usual).unwrap();
        link(&usual, Path::new("/own")).unwrap_err();
        unlink(&usual, Path::new("/own")).unwrap();
        assert!(usual.is_dir());
    }
}
