//! The data directory: whether it is one, and removing what is in it.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::footprint;
use crate::volumes::removal::{is_directory, remove_tree};

/// What is in a data directory: a path, and what is there if Plimsoll has made it.
const CONTENTS: [(&str, &str); 17] = [
    ("kubelet", "kubelet/pods"),
    ("log/pods", "log/pods"),
    ("log/containers", "log/containers"),
    ("runtime", "runtime/sandboxes"),
    ("images", "images/layers"),
    ("pki", "pki/ca.crt"),
    ("admin.kubeconfig", "admin.kubeconfig"),
    ("node.kubeconfig", "node.kubeconfig"),
    ("node.kubeconfig.next", "node.kubeconfig.next"),
    ("store.redb", "store.redb"),
    ("store.redb.reserve", "store.redb.reserve"),
    ("store.redb.restoring", "store.redb.restoring"),
    ("agent.json.next", "agent.json.next"),
    ("agent.json", "agent.json"),
    ("agent.lock", "agent.lock"),
    ("server.lock", "server.lock"),
    ("node.lock", "node.lock"),
];

/// A data directory has one of these at least, beside the notes of an agent and a store.
const MARKERS: [&str; 3] = ["runtime/sandboxes", "images/layers", "node.kubeconfig"];

/// How a redb database begins.
const STORE_BEGINS: &[u8] = b"redb";

/// Whether Plimsoll keeps data in the directory.
pub(super) fn is_data_dir(dir: &Path) -> bool {
    let is_noted = footprint::read(dir).is_ok_and(|noted| !noted.is_empty());
    let is_store = || {
        let mut begin = [0; STORE_BEGINS.len()];
        let store = fs::File::open(dir.join("store.redb"));
        store
            .and_then(|mut store| store.read_exact(&mut begin))
            .is_ok_and(|()| begin == STORE_BEGINS)
    };
    is_noted || is_store() || MARKERS.iter().any(|marker| dir.join(marker).exists())
}

/// What of a data directory is Plimsoll's.
pub(super) fn contents(dir: &Path) -> Vec<PathBuf> {
    let ours = CONTENTS.iter().filter(|(_, made)| {
        let path = dir.join(made);
        path.symlink_metadata().is_ok()
    });
    ours.map(|(path, _)| dir.join(path)).collect()
}

/// Removes what is Plimsoll's, and the directory if that was all. Returns what else is there.
///
/// A directory that is reached by a link, or that something is mounted on, was not put there by the
/// agent: it stays, empty.
pub(super) fn remove(dir: &Path, failed: &mut Vec<String>) -> Vec<String> {
    let real = match fs::canonicalize(dir) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            failed.push(format!("cannot find {}: {error}", dir.display()));
            return Vec::new();
        }
    };
    for path in contents(&real) {
        if let Err(error) = remove_tree(&path) {
            failed.push(describe(&path, &error));
        }
    }
    // An agent of another runtime has made these too, and has nothing in them.
    for path in ["log", "runtime", "images"] {
        // Fails while there is something else in it.
        let _ = fs::remove_dir(real.join(path));
    }
    let others = names(&real);
    if others.is_empty() && is_directory(dir) {
        let removed = fs::remove_dir(&real);
        match removed {
            Err(error) if error.kind() != io::ErrorKind::ResourceBusy => {
                failed.push(describe(&real, &error));
            }
            _ => {}
        }
    }
    others
}

/// Says why something was not removed.
pub(super) fn describe(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::CrossesDevices => format!(
            "cannot remove {path}: a file system is mounted below it that is not the node's; unmount it first"
        ),
        _ => format!("cannot remove {path}: {error}"),
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn data_dir() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for inside in [
            "kubelet/pods",
            "runtime/sandboxes",
            "images/layers",
            "log/pods",
        ] {
            fs::create_dir_all(dir.path().join(inside)).unwrap();
        }
        dir
    }

    #[test]
    fn removes_own_files_and_then_the_directory() {
        let dir = data_dir();
        let mut failed = Vec::new();
        assert!(is_data_dir(dir.path()));
        assert!(remove(dir.path(), &mut failed).is_empty());
        assert!(failed.is_empty(), "{failed:?}");
        assert!(!dir.path().exists());
        assert!(remove(dir.path(), &mut failed).is_empty());
    }

    #[test]
    fn removes_directories_unused_by_agents_of_other_runtimes() {
        let dir = data_dir();
        for unused in ["runtime/sandboxes", "images/layers"] {
            fs::remove_dir(dir.path().join(unused)).unwrap();
        }
        let mut failed = Vec::new();
        assert!(remove(dir.path(), &mut failed).is_empty());
        assert!(!dir.path().exists());
    }

    #[test]
    fn keeps_files_of_others_and_targets_of_links() {
        let (dir, elsewhere) = (data_dir(), tempfile::tempdir().unwrap());
        fs::write(dir.path().join("notes.txt"), "mine").unwrap();
        // A directory of that name, but not one that an agent made.
        fs::create_dir(dir.path().join("pki")).unwrap();
        fs::create_dir(elsewhere.path().join("layers")).unwrap();
        fs::remove_dir_all(dir.path().join("images")).unwrap();
        symlink(elsewhere.path(), dir.path().join("images")).unwrap();
        let mut failed = Vec::new();
        let kept = remove(dir.path(), &mut failed);
        assert_eq!(kept, ["notes.txt", "pki"]);
        assert!(failed.is_empty(), "{failed:?}");
        assert!(elsewhere.path().join("layers").is_dir());
    }

    #[test]
    fn recognises_data_directories() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("images")).unwrap();
        fs::write(dir.path().join("agent.json"), "{\"an\": \"other\"}").unwrap();
        fs::write(dir.path().join("store.redb"), "text").unwrap();
        assert!(!is_data_dir(dir.path()));
        fs::write(dir.path().join("store.redb"), "redb\x1a and so on").unwrap();
        assert!(is_data_dir(dir.path()));
    }

    #[test]
    fn empties_directory_behind_link_and_keeps_it() {
        let (dir, links) = (data_dir(), tempfile::tempdir().unwrap());
        let link = links.path().join("data");
        symlink(dir.path(), &link).unwrap();
        let mut failed = Vec::new();
        assert!(remove(&link, &mut failed).is_empty());
        assert!(failed.is_empty(), "{failed:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
