//! Updates all files of a volume atomically.
//!
//! ```text
//! name           -> ..data/name
//! dir            -> ..data/dir
//! ..data         -> ..2026_02_03_04_05_06.0000000001
//! ..2026_02_03_04_05_06.0000000001/{name,dir/other}
//! ```
//!
//! A new version is written into a directory of its own; then `..data` is renamed over, so that a
//! reader sees all of the old files or all of the new. Watchers of `..data` see one event. Matches
//! v1.36 pkg/volume/util/atomic_writer.go.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};

use plimsoll_core::object::timestamp::Timestamp;

use super::SetUpError;
use super::payload::{FileContent, Payload};
use super::removal::remove_tree;

const DATA: &str = "..data";
const NEW_DATA: &str = "..data_tmp";
const LONGEST_NAME: usize = 255;
const LONGEST_PATH: usize = 4096;

/// Makes the directory contain just these files. Returns whether anything had to change.
///
/// `set_ownership` is called with the whole directory before new files can be seen.
pub fn write(
    dir: &Path,
    payload: &Payload,
    now: Timestamp,
    set_ownership: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<bool, SetUpError> {
    let payload = cleaned(payload)?;
    let failed = |path: &Path| SetUpError::write(path.to_owned());
    let old = current(dir).map_err(failed(dir))?;
    let (gone, is_new) = match &old {
        None => (BTreeSet::new(), true),
        Some(old) => {
            let gone = paths_gone(&payload, old).map_err(failed(old))?;
            let differs = differs(&payload, old).map_err(failed(old))?;
            let is_new = differs || !gone.is_empty();
            (gone, is_new)
        }
    };
    if is_new {
        let version = new_version_dir(dir, now).map_err(failed(dir))?;
        let published = write_files(&payload, &version)
            .and_then(|()| set_ownership(dir))
            .and_then(|()| publish(dir, &version));
        if let Err(error) = published {
            // The error of writing matters more than that of tidying up after it.
            drop(remove_tree(&version));
            return Err(failed(&version)(error));
        }
    }
    link_visible(dir, &payload).map_err(failed(dir))?;
    for path in gone.iter().filter(|path| !path.contains('/')) {
        let path = dir.join(path);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(&path)(error)),
            _ => {}
        }
    }
    if let Some(old) = old.filter(|_| is_new) {
        remove_tree(&old).map_err(failed(&old))?;
    }
    Ok(is_new)
}

/// Whether something was written to the directory before.
pub fn is_written(dir: &Path) -> bool {
    fs::symlink_metadata(dir.join(DATA)).is_ok()
}

/// The payload with paths in their shortest form.
fn cleaned(payload: &Payload) -> Result<Payload, SetUpError> {
    let files = payload.iter();
    files
        .map(|(path, content)| Ok((clean_path(path)?, content.clone())))
        .collect()
}

/// A path below the volume, in its shortest form.
fn clean_path(path: &str) -> Result<String, SetUpError> {
    let refuse = |rule: String| Err(SetUpError::Path(rule));
    if path.is_empty() {
        return refuse("must not be empty: \"\"".to_owned());
    }
    if path.starts_with('/') {
        return refuse(format!("must be relative path: {path}"));
    }
    if path.len() > LONGEST_PATH {
        return refuse(format!(
            "must be less than or equal to {LONGEST_PATH} characters"
        ));
    }
    for part in path.split('/') {
        if part == ".." {
            return refuse(format!("must not contain '..': {path}"));
        }
        if part.len() > LONGEST_NAME {
            let rule = format!("filenames must be less than or equal to {LONGEST_NAME} characters");
            return refuse(rule);
        }
    }
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    // Names with two dots in front are the writer's own.
    match parts.first() {
        None => refuse(format!("must name a file: {path}")),
        Some(first) if first.starts_with("..") => {
            refuse(format!("must not start with '..': {path}"))
        }
        Some(_) => Ok(parts.join("/")),
    }
}

/// The directory of the version that is seen; `None` if there is none yet.
fn current(dir: &Path) -> io::Result<Option<PathBuf>> {
    match fs::read_link(dir.join(DATA)) {
        Ok(version) => Ok(Some(dir.join(version))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Paths of the old version, directories too, that the new one does not have.
fn paths_gone(payload: &Payload, old: &Path) -> io::Result<BTreeSet<String>> {
    let mut kept = BTreeSet::new();
    for path in payload.keys() {
        let ends = path.match_indices('/').map(|(at, _)| at);
        kept.extend(ends.map(|at| &path[..at]));
        kept.insert(path.as_str());
    }
    let mut gone = BTreeSet::new();
    let mut unread = vec![String::new()];
    while let Some(within) = unread.pop() {
        let entries = match fs::read_dir(old.join(&within)) {
            // The version was removed: everything is written again.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = match within.as_str() {
                "" => name,
                within => format!("{within}/{name}"),
            };
            if entry.file_type()?.is_dir() {
                unread.push(path.clone());
            }
            if !kept.contains(path.as_str()) {
                gone.insert(path);
            }
        }
    }
    Ok(gone)
}

/// Whether a file is missing from the version or says something else. Modes do not count.
fn differs(payload: &Payload, version: &Path) -> io::Result<bool> {
    for (path, content) in payload {
        match fs::read(version.join(path)) {
            Ok(data) if data == content.data => {}
            Ok(_) => return Ok(true),
            Err(error) if is_missing(&error) => return Ok(true),
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Also when a file became a directory or the other way round.
fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory
    )
}

fn new_version_dir(dir: &Path, now: Timestamp) -> io::Result<PathBuf> {
    let stamp = now.to_api().0.strftime("..%Y_%m_%d_%H_%M_%S").to_string();
    loop {
        let path = dir.join(format!("{stamp}.{:010}", fastrand::u32(..)));
        match DirBuilder::new().mode(0o755).create(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => {
                made?;
                // Readable by all users whatever the umask is.
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
                return Ok(path);
            }
        }
    }
}

fn write_files(payload: &Payload, version: &Path) -> io::Result<()> {
    for (path, content) in payload {
        let full = version.join(path);
        if let Some(parent) = full.parent() {
            fs::create_dir_all(parent)?;
        }
        write_file(&full, content)?;
    }
    Ok(())
}

fn write_file(path: &Path, content: &FileContent) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    // Before the content, so that a private file is never anything else.
    file.set_permissions(fs::Permissions::from_mode(content.mode))?;
    file.write_all(&content.data)?;
    if let Some(owner) = content.owner {
        lchown(path, Some(owner), None)?;
    }
    Ok(())
}

/// Shows the version in place of the one before.
fn publish(dir: &Path, version: &Path) -> io::Result<()> {
    let new = dir.join(NEW_DATA);
    // Left over if the agent was killed just here.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(version.file_name().unwrap_or_default(), &new)?;
    fs::rename(&new, dir.join(DATA))
}

/// Links the first part of every path into the version that is seen.
fn link_visible(dir: &Path, payload: &Payload) -> io::Result<()> {
    for (path, content) in payload {
        let name = path.split('/').next().unwrap_or(path);
        let link = dir.join(name);
        if fs::symlink_metadata(&link).is_ok() {
            continue;
        }
        symlink(Path::new(DATA).join(name), &link)?;
        if let Some(owner) = content.owner {
            lchown(&link, Some(owner), None)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
