//! The store's own files: read with bounds, written so that a crash leaves the old or the new.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Larger than any manifest, configuration or catalogue; registries refuse manifests above 4 MiB.
pub const LARGEST: u64 = 32 << 20;

/// A file or directory that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}", path.display())]
pub struct Error {
    doing: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Adds to a failure what was being done, to which file.
pub trait Doing<T> {
    /// As in "cannot `what` `path`".
    fn doing(self, what: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|error| Error {
            doing: what,
            path: path.to_owned(),
            source: error.into(),
        })
    }
}

/// Makes a directory that only its owner may enter, unless it is there.
pub fn make_directory(path: &Path) -> Result<(), Error> {
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Err(rustix::io::Errno::EXIST) => Ok(()),
        other => other.doing("make the directory", path),
    }
}

/// The whole content, if it is not absurdly large.
pub fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let file = File::open(path).doing("open", path)?;
    read_bounded(file).doing("read", path)
}

/// All that a reader has, if it is not absurdly large.
pub fn read_bounded(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// A value kept as JSON; none if there is no such file.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).doing("open", path),
    };
    let bytes = read_bounded(file).doing("read", path)?;
    serde_json::from_slice(&bytes)
        .map_err(io::Error::from)
        .doing("decode", path)
}

/// Makes a file of a value as JSON. It may not outlast a power failure, but is quick.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    std::fs::write(path, json(path, value)?).doing("write", path)
}

/// Replaces a file by a value as JSON, for good once this returns.
pub fn replace_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    replace(path, &json(path, value)?)
}

fn json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value)
        .map_err(io::Error::from)
        .doing("write", path)
}

/// Replaces a file, for good once this returns. Two writers of one path must take turns.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = Path::new(&unfinished);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    let private = Mode::RUSR | Mode::WUSR;
    let file = rustix::fs::open(unfinished, flags, private).doing("create", unfinished)?;
    let mut file = File::from(file);
    file.write_all(bytes).doing("write", unfinished)?;
    file.sync_all().doing("write", unfinished)?;
    rename(unfinished, path)
}

/// Moves a finished file to its place, for good once this returns.
pub fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    std::fs::rename(from, to).doing("create", to)?;
    sync_directory_of(to)
}

/// Makes a name in a directory outlast a power failure.
pub fn sync_directory_of(path: &Path) -> Result<(), Error> {
    let Some(directory) = path.parent() else {
        return Ok(());
    };
    File::open(directory)
        .and_then(|file| file.sync_all())
        .doing("write", directory)
}

/// The names in a directory.
pub fn names(directory: &Path) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).doing("list", directory)? {
        let name = entry.doing("list", directory)?.file_name();
        // The store gives plain names only.
        names.extend(name.into_string());
    }
    names.sort();
    Ok(names)
}
