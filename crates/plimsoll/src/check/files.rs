//! The files to check: those that are named, and those in directories that are named.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use plimsoll_report::check::File;

use crate::input::read_bytes;

/// Names of manifests in directories end so, as for kubectl.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];

/// The maximum number of files of one check, and of directories inside of each other.
const MAX_FILES: usize = 20_000;
const MAX_DEPTH: usize = 64;

/// Whether directories inside of directories are read, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recursion {
    Off,
    On,
}

/// Reads the files. A file that cannot be read is a finding and ends nothing.
pub(super) fn read(names: &[String], recursion: Recursion) -> Result<Vec<File>> {
    let mut files = Vec::new();
    for name in names {
        let path = Path::new(name);
        if name == "-" || !path.is_dir() {
            files.push(read_one(name));
            continue;
        }
        let mut found = Vec::new();
        list(path, recursion, 0, &mut found)?;
        if found.is_empty() {
            let hint = match recursion {
                Recursion::Off => "; --recursive reads the directories in it, too",
                Recursion::On => "",
            };
            bail!("directory {name} has no files that end in .json, .yaml or .yml{hint}");
        }
        files.extend(found.iter().map(|name| read_one(name).found()));
    }
    Ok(files)
}

fn read_one(name: &str) -> File {
    match read_bytes(name) {
        Ok(bytes) => File::parse(name, &bytes),
        Err(error) => File::unreadable(name, &format!("{error:#}")),
    }
}

/// The manifests in a directory, sorted by name. Links to directories are not followed.
fn list(
    directory: &Path,
    recursion: Recursion,
    depth: usize,
    found: &mut Vec<String>,
) -> Result<()> {
    let failed = |error| anyhow!("cannot read directory {}: {error}", directory.display());
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        entries.push(entry.map_err(failed)?);
    }
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let is_directory = entry.file_type().map_err(failed)?.is_dir();
        if is_directory && recursion == Recursion::On {
            if depth >= MAX_DEPTH {
                bail!(
                    "{} is more than {MAX_DEPTH} directories deep",
                    path.display()
                );
            }
            list(&path, recursion, depth + 1, found)?;
        }
        let extension = path.extension().and_then(|extension| extension.to_str());
        let is_manifest = extension.is_some_and(|extension| EXTENSIONS.contains(&extension));
        if !is_manifest || path.is_dir() {
            continue;
        }
        if found.len() >= MAX_FILES {
            bail!(
                "directory {} has more than {MAX_FILES} files",
                directory.display()
            );
        }
        found.push(path.to_string_lossy().into_owned());
    }
    Ok(())
}
