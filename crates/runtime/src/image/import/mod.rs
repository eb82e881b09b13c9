//! Images out of files: what `docker save` writes, archives of OCI layouts, and tars of root file
//! systems.
//!
//! An archive is read twice, first for where its parts lie, then part by part; nothing of it is
//! kept in memory but names and small documents. So it has to be a plain tar on disk: what is
//! compressed or comes through a pipe is written to a workspace first.

mod docker;
mod oci;
mod parts;
mod root_file_system;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use super::catalogue::Record;
use super::compression::decompressed;
use super::configuration::Start;
use super::file::{self, Doing};
use super::installation::{self, Installation, Names};
use super::manifest;
use super::reference::{InvalidName, Reference};
use super::store::Store;
use super::tarball;
use parts::Parts;

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the store, or the archive.
    #[error(transparent)]
    File(#[from] file::Error),
    /// The archive is no tar.
    #[error("cannot read the archive")]
    Tar(#[from] tarball::Error),
    /// A part cannot be read.
    #[error("cannot read {path:?} of the archive")]
    Part {
        /// Its path in the archive.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Something names a part that is not there.
    #[error("the archive has no {path:?}")]
    NoPart {
        /// Its path in the archive.
        path: String,
    },
    /// The content of a part does not match the digest in its name.
    #[error("content of {path:?} in the archive does not match its digest")]
    OtherContent {
        /// Its path in the archive.
        path: String,
    },
    /// A part makes no sense.
    #[error("cannot decode {path:?} of the archive")]
    Json {
        /// Its path in the archive.
        path: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// An image's manifest is not used.
    #[error("cannot import image {image}")]
    Manifest {
        /// Its digest or name.
        image: String,
        /// Why.
        #[source]
        source: manifest::Error,
    },
    /// An image cannot be installed.
    #[error("cannot import image {image}")]
    Install {
        /// Its digest or name.
        image: String,
        /// Why.
        #[source]
        source: installation::Error,
    },
    /// A name in the archive is none.
    #[error("the archive has an image with an invalid name")]
    Name(#[from] InvalidName),
    /// Names were given for an archive of several images.
    #[error("the archive has {count} images, cannot name all of them {name}")]
    SeveralImages {
        /// How many.
        count: usize,
        /// The name given.
        name: String,
    },
    /// No archive of images, and no name for a root file system.
    #[error(
        "{source_name} is not an image archive; give a name to import it as a root file system"
    )]
    NoName {
        /// What was read.
        source_name: String,
    },
    /// Images define how their containers start.
    #[error("{source_name} is an image archive; its images already define how containers start")]
    StartGiven {
        /// What was read.
        source_name: String,
    },
    /// Nothing in it.
    #[error("the archive has no image for this machine")]
    Empty,
}

/// Where an archive comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Standard input.
    StandardInput,
    /// A file, or the directory of a root file system.
    Path(PathBuf),
}

/// How an archive is imported.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Instead of the names in the archive; needed for root file systems, which have none.
    pub name: Option<Reference>,
    /// How containers of a root file system start. Image archives define it themselves.
    pub start: Start,
    /// Keep the images even if they are unused and the disk is full: they cannot be pulled again.
    pub pinned: bool,
}

impl Store {
    /// Imports all images of an archive; returns their records.
    pub fn import(&self, source: &Source, options: &Options) -> Result<Vec<Record>, Error> {
        let workspace = self.workspace(&BTreeSet::new())?;
        let tar = open_plain(source, &workspace.path("archive"))?;
        let parts = Parts::find(tar)?;
        let images = if parts.has(docker::MANIFEST) {
            docker::images(&parts)?
        } else if parts.has(oci::LAYOUT) && parts.has(oci::INDEX) {
            oci::images(&parts)?
        } else {
            let name = options.name.as_ref().ok_or_else(|| Error::NoName {
                source_name: source.to_string(),
            })?;
            return root_file_system::import(self, parts.into_tar(), name, options)
                .map(|record| vec![record]);
        };
        if options.start != Start::default() {
            let source_name = source.to_string();
            return Err(Error::StartGiven { source_name });
        }
        let count = images.len();
        if let Some(name) = &options.name
            && count > 1
        {
            let name = name.to_string();
            return Err(Error::SeveralImages { count, name });
        }
        if images.is_empty() {
            return Err(Error::Empty);
        }
        let install = |image: Found| install(self, &parts, image, options);
        images.into_iter().map(install).collect()
    }
}

/// An image found in an archive.
#[derive(Debug)]
struct Found {
    /// What it is called in errors.
    label: String,
    names: Vec<Reference>,
    configuration: Vec<u8>,
    manifest: Option<Vec<u8>>,
    /// Paths of its layers in the archive, lowest first.
    layers: Vec<String>,
}

fn install(store: &Store, parts: &Parts, image: Found, options: &Options) -> Result<Record, Error> {
    let failed = |source| Error::Install {
        image: image.label.clone(),
        source,
    };
    let mut installation = Installation::begin(
        store,
        image.configuration,
        image.manifest,
        image.layers.len(),
    )
    .map_err(failed)?;
    for at in installation.missing_layers() {
        let content = parts.open(&image.layers[at])?;
        installation.unpack_layer(at, content).map_err(failed)?;
    }
    let names = match &options.name {
        Some(name) => vec![name.clone()],
        None => image.names,
    };
    let names = Names {
        tags: names.iter().map(ToString::to_string).collect(),
        digests: BTreeSet::new(),
        pinned: options.pinned,
    };
    installation.finish(names).map_err(failed)
}

/// The source as a plain tar that can be read anywhere in.
fn open_plain(source: &Source, spool: &Path) -> Result<File, Error> {
    let mut input: Box<dyn Read> = match source {
        Source::StandardInput => Box::new(io::stdin().lock()),
        Source::Path(path) if path.is_dir() => {
            return Ok(root_file_system::pack(path, spool)?);
        }
        Source::Path(path) => {
            let mut file = File::open(path).doing("open", path)?;
            let is_regular = file.metadata().doing("open", path)?.is_file();
            if is_regular && is_plain(&mut file).doing("read", path)? {
                return Ok(file);
            }
            Box::new(file)
        }
    };
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(spool)
        .doing("create", spool)?;
    decompressed(BufReader::new(&mut input))
        .and_then(|mut tar| io::copy(&mut tar, &mut file))
        .and_then(|_| file.rewind())
        .map_err(|source_error| Error::Part {
            path: source.to_string(),
            source: source_error,
        })?;
    Ok(file)
}

/// Whether a file is a tar as it is.
fn is_plain(file: &mut File) -> io::Result<bool> {
    let mut start = [0; 512];
    let count = file.read(&mut start)?;
    file.rewind()?;
    Ok(start[..count].get(257..262) == Some(b"ustar"))
}

impl std::fmt::Display for Source {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::StandardInput => out.write_str("standard input"),
            Source::Path(path) => path.display().fmt(out),
        }
    }
}
