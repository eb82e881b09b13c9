//! Small files, written atomically.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Whether a file must be on the disk before the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// It survives the end of all processes.
    Process,
    /// It survives the end of the machine.
    Machine,
}

/// Replaces the file at once: readers see the old content or the new.
pub(super) fn write(path: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    let next = path.with_extension("next");
    let mut file = File::create(&next)?;
    file.write_all(content)?;
    if durability == Durability::Machine {
        file.sync_data()?;
    }
    fs::rename(&next, path)
}

/// Replaces the file with the value as JSON.
pub(super) fn write_json<T: Serialize>(
    path: &Path,
    value: &T,
    durability: Durability,
) -> io::Result<()> {
    write(path, &serde_json::to_vec(value)?, durability)
}

/// Reads a file; `None` if there is none.
pub(super) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a JSON file; `None` if there is none.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match read(path)? {
        Some(content) => Ok(Some(serde_json::from_slice(&content)?)),
        None => Ok(None),
    }
}

/// Removes a directory and all in it; succeeds if it does not exist.
pub(super) fn remove_dir(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_files_round_trip_without_leftovers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.json");
        assert_eq!(read_json::<Vec<u8>>(&path).unwrap(), None);
        for value in [vec![1], vec![2, 3]] {
            write_json(&path, &value, Durability::Machine).unwrap();
            assert_eq!(read_json(&path).unwrap(), Some(value));
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        remove_dir(dir.path()).unwrap();
        remove_dir(dir.path()).unwrap();
    }
}
