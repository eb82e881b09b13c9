//! Files with secrets.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Only the owner reads and writes.
const PRIVATE: u32 = 0o600;
/// Every user reads.
const PUBLIC: u32 = 0o644;
/// Only the owner enters the directory.
const PRIVATE_DIRECTORY: u32 = 0o700;

/// Certificates and keys are a few kilobytes; a longer file is something else.
const MAX_BYTES: u64 = 1 << 20;

/// A file cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}", path.display())]
pub struct FileError {
    action: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

fn failed<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> FileError + 'a {
    move |source| FileError {
        action,
        path: path.to_owned(),
        source,
    }
}

/// The text in a file. If the file is missing, it is created with the text of `create`, readable by
/// its owner only. If other users can read it, its permissions are restricted.
pub fn read_or_create_private<E: From<FileError>>(
    path: &Path,
    create: impl FnOnce() -> Result<String, E>,
) -> Result<String, E> {
    if let Some(text) = read_if_exists(path)? {
        close_to_others(path, PRIVATE)?;
        return Ok(text);
    }
    let text = create()?;
    write_private(path, &text)?;
    Ok(text)
}

/// The text in a file, if it exists.
pub(super) fn read_if_exists(path: &Path) -> Result<Option<String>, FileError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("open", path)(error)),
    };
    let mut text = String::new();
    let mut limited = file.take(MAX_BYTES);
    limited
        .read_to_string(&mut text)
        .map_err(failed("read", path))?;
    Ok(Some(text))
}

/// Creates the directory if it is missing; restricts its permissions if it is open to others.
pub(super) fn create_private_directory(path: &Path) -> Result<(), FileError> {
    DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE_DIRECTORY)
        .create(path)
        .map_err(failed("make the directory", path))?;
    close_to_others(path, PRIVATE_DIRECTORY)
}

fn close_to_others(path: &Path, mode: u32) -> Result<(), FileError> {
    let metadata = fs::metadata(path).map_err(failed("look at", path))?;
    if metadata.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed("close", path))
}

/// Writes a text that only the owner may read, such as a kubeconfig.
pub fn write_private(path: &Path, text: &str) -> Result<(), FileError> {
    write(path, text, PRIVATE)
}

/// Writes a text that is readable by every user with access to the directory.
pub(super) fn write_public(path: &Path, text: &str) -> Result<(), FileError> {
    write(path, text, PUBLIC)
}

/// Readers get the old text or the new one, also after a crash. The file never has wider
/// permissions, not even for a moment.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), FileError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temporary = path.with_file_name(name);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(failed("remove", &temporary)(error));
        }
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&temporary)
        .map_err(failed("make", &temporary))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(failed("write", &temporary))?;
    fs::rename(&temporary, path).map_err(failed("put in place", path))?;
    match path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        None => Ok(()),
        Some(directory) => File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(failed("sync", directory)),
    }
}
