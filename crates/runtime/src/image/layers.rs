//! Unpacked layers, each stored once under the name of its chain.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::compression::decompressed;
use super::digest::{Digest, Hashing};
use super::file::{self, Doing};
use super::unpack::{self, Limits, unpack};
use crate::walk::{Usage, measure};

/// Layers are long and read once.
const BUFFER: usize = 128 << 10;

const FILES: &str = "files";
const FACTS: &str = "layer.json";

/// Why a layer is not there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the store.
    #[error(transparent)]
    File(#[from] file::Error),
    /// Its bytes cannot be decompressed.
    #[error("cannot decompress layer {diff_id}")]
    Decompress {
        /// What it should be.
        diff_id: Digest,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It cannot be unpacked.
    #[error("cannot unpack layer {diff_id}")]
    Unpack {
        /// What it should be.
        diff_id: Digest,
        /// Why.
        #[source]
        source: unpack::Error,
    },
    /// Its content does not match the diff ID in the image's configuration.
    #[error("layer does not match its diff ID: expected {diff_id}, got {found}")]
    OtherContent {
        /// What it should be.
        diff_id: Digest,
        /// What it is.
        found: Digest,
    },
}

/// What is kept about a layer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Facts {
    bytes: u64,
    inodes: u64,
}

/// All unpacked layers of a store.
#[derive(Clone, Debug)]
pub struct Layers {
    directory: PathBuf,
}

/// A layer that was unpacked in a workspace and waits for its place in the store.
#[derive(Debug)]
pub struct Unpacked {
    directory: PathBuf,
    /// How long its tar was.
    pub tar_bytes: u64,
}

impl Unpacked {
    /// The layer's files.
    pub fn files(&self) -> PathBuf {
        self.directory.join(FILES)
    }
}

impl Layers {
    /// In a directory of their own.
    pub fn new(directory: PathBuf) -> Layers {
        Layers { directory }
    }

    /// Whether a layer is there.
    pub fn has(&self, chain: &Digest) -> bool {
        self.files(chain).is_dir()
    }

    /// A layer's files.
    pub fn files(&self, chain: &Digest) -> PathBuf {
        self.directory.join(chain.hex()).join(FILES)
    }

    /// What a layer takes.
    pub fn usage(&self, chain: &Digest) -> Result<Usage, file::Error> {
        let path = self.directory.join(chain.hex()).join(FACTS);
        let facts: Option<Facts> = file::read_json(&path)?;
        let facts = facts
            .ok_or(std::io::ErrorKind::NotFound)
            .doing("read", &path)?;
        Ok(Usage {
            bytes: facts.bytes,
            inodes: facts.inodes,
        })
    }

    /// All layers with the directories they lie in.
    pub fn all(&self) -> Result<Vec<(Digest, PathBuf)>, file::Error> {
        let found = file::names(&self.directory)?.into_iter();
        let found = found.filter_map(|hex| Some((Digest::from_hex(&hex)?, hex)));
        Ok(found
            .map(|(chain, hex)| (chain, self.directory.join(hex)))
            .collect())
    }

    /// Gives an unpacked layer its place, unless another was quicker. Its content must have
    /// reached the disk.
    pub fn keep(&self, chain: &Digest, layer: &Unpacked) -> Result<(), file::Error> {
        let place = self.directory.join(chain.hex());
        match std::fs::rename(&layer.directory, &place) {
            Err(_) if self.has(chain) => Ok(()),
            other => other.doing("create", &place),
        }?;
        file::sync_directory_of(&place)
    }
}

/// Unpacks a layer, compressed or not, in a new directory. `below` are the files of the layers it
/// lies on, the uppermost first.
pub fn unpack_into(
    directory: PathBuf,
    content: impl Read,
    diff_id: Digest,
    below: &[PathBuf],
    limits: Limits,
) -> Result<Unpacked, Error> {
    let files = directory.join(FILES);
    file::make_directory(&directory)?;
    file::make_directory(&files)?;
    let decompress = |source| Error::Decompress { diff_id, source };
    let tar = decompressed(BufReader::with_capacity(BUFFER, content)).map_err(decompress)?;
    let mut tar = Hashing::new(tar);
    let tar_bytes = unpack(
        BufReader::with_capacity(BUFFER, &mut tar),
        &files,
        below,
        limits,
    )
    .map_err(|source| Error::Unpack { diff_id, source })?;
    let (found, _) = tar.finish();
    if found != diff_id {
        return Err(Error::OtherContent { diff_id, found });
    }
    let usage = measure(&files).doing("measure", &files)?;
    let facts = Facts {
        bytes: usage.bytes,
        inodes: usage.inodes,
    };
    file::write_json(&directory.join(FACTS), &facts)?;
    Ok(Unpacked {
        directory,
        tar_bytes,
    })
}

/// Waits until all that was written to the file system of a path has reached the disk.
pub fn sync(path: &Path) -> Result<(), file::Error> {
    let file = File::open(path).doing("open", path)?;
    rustix::fs::syncfs(&file).doing("write", path)
}
