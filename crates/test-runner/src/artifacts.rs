//! Keeps the output of tests in files below `target/artifacts`.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Where; commands run from the workspace's root.
const FOLDER: &str = "target/artifacts";

/// The size of the end of a log that is read; the cause of a failure comes last.
const MOST: u64 = 4 << 20;

fn folder() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    here.join(FOLDER)
}

/// A test's folder: `node.lib.cgroup.tests.x`.
pub(crate) fn folder_of(id: &str) -> PathBuf {
    let plain = id.replace("::", ".").replace(['/', ' ', '\\'], ".");
    folder().join(plain)
}

/// The output of a run of a test.
pub(crate) fn log_of(id: &str, round: u32) -> PathBuf {
    folder_of(id).join(format!("{round}.log"))
}

/// The output of a process with many tests.
pub(crate) fn log_of_process(executable: &str, serial: usize) -> PathBuf {
    let name = format!("{}.{serial}.log", executable.replace('/', "."));
    folder().join("processes").join(name)
}

/// Removes the files that earlier runs have kept of a test.
pub(crate) fn forget(id: &str) {
    let _ = fs::remove_dir_all(folder_of(id));
}

/// Removes the files that earlier runs have kept of processes with many tests.
pub(crate) fn forget_processes() {
    let _ = fs::remove_dir_all(folder().join("processes"));
}

/// Writes a file.
pub(crate) fn write(file: &Path, text: &str) {
    if let Some(folder) = file.parent() {
        let _ = fs::create_dir_all(folder);
    }
    // A log that cannot be written must not change the result of a test.
    let _ = fs::write(file, text);
}

/// Adds to a file.
pub(crate) fn append(file: &Path, text: &str) {
    if let Ok(mut file) = OpenOptions::new().append(true).open(file) {
        let _ = file.write_all(text.as_bytes());
    }
}

/// The end of a file.
pub(crate) fn read(file: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = fs::File::open(file)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MOST)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_plain_names() {
        let folder = folder_of("plimsoll/node pressure::restart::x");
        assert!(folder.ends_with("target/artifacts/plimsoll.node.pressure.restart.x"));
    }
}
