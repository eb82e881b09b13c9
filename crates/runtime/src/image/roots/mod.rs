//! Root file systems of containers: the layers of an image below, a writable layer on top.
//!
//! Each root is a directory with its facts (`root.json`), which name the layers it lies on, so
//! that these outlive their image. With overlayfs the writable layer is `upper` and the whole is
//! mounted at `merged`; where overlayfs cannot be mounted, `merged` is a copy of all layers.

mod copy;
mod measurement;
mod overlay;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fs::CWD;
use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::file::{self, Doing};
use super::layers::Layers;
use super::store::Store;
use super::tree;
use super::unpack::copy_attributes;
use crate::walk::{Scope, Usage, Walker, measure};
pub use measurement::Measurement;
use measurement::Measurements;
use overlay::Overlay;

const FACTS: &str = "root.json";
const MERGED: &str = "merged";

/// Why a root could not be made or removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the store.
    #[error(transparent)]
    File(#[from] file::Error),
    /// There is no such image.
    #[error("there is no image {id}")]
    NoImage {
        /// As requested.
        id: String,
    },
    /// There is no such root.
    #[error("there is no root file system {name:?}")]
    NoRoot {
        /// As requested.
        name: String,
    },
    /// Names are parts of paths.
    #[error("invalid root file system name {name:?}")]
    Name {
        /// As requested.
        name: String,
    },
}

/// What is kept about a root.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Facts {
    image: Digest,
    /// Lowest first.
    layers: Vec<Digest>,
    kind: Kind,
    /// The id on the machine that id 0 of the image has, if it is not root.
    #[serde(default, skip_serializing_if = "is_zero")]
    first_id: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(id: &u32) -> bool {
    *id == 0
}

/// The owner of a root: the users of a namespace in which root has this id on the node.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// The id of root.
    pub first: u32,
    /// The namespace.
    pub user_namespace: BorrowedFd<'a>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Overlay,
    /// With what the copy took before anything was written.
    Copy {
        bytes: u64,
        inodes: u64,
    },
}

/// All roots of a store.
#[derive(Clone, Debug)]
pub struct Roots {
    directory: PathBuf,
    /// How overlayfs works here, if it does, once that was tried.
    overlay: Arc<OnceLock<Option<Overlay>>>,
    /// Whether its layers can belong to other users than on disk, once that was tried.
    maps_layers: Arc<OnceLock<bool>>,
    measurements: Arc<Measurements>,
    walker: Walker,
}

impl Roots {
    pub(super) fn new(directory: PathBuf) -> Roots {
        Roots {
            directory,
            overlay: Arc::default(),
            maps_layers: Arc::default(),
            measurements: Arc::default(),
            walker: Walker::here(),
        }
    }

    /// Has the walker walk over what was written into roots.
    pub(super) fn walk_with(&mut self, walker: Walker) {
        self.walker = walker;
    }

    /// The names of all roots.
    pub fn names(&self) -> Result<Vec<String>, file::Error> {
        file::names(&self.directory)
    }

    /// The layers that roots lie on.
    pub fn layers_in_use(&self) -> Result<BTreeSet<Digest>, file::Error> {
        let mut layers = BTreeSet::new();
        for name in self.names()? {
            layers.extend(self.facts(&name).into_iter().flat_map(|facts| facts.layers));
        }
        Ok(layers)
    }

    /// The names of roots made of an image.
    pub fn of_image(&self, image: &Digest) -> Result<Vec<String>, file::Error> {
        let mut found = Vec::new();
        for name in self.names()? {
            let facts = self.facts(&name);
            if facts.is_some_and(|facts| facts.image == *image) {
                found.push(name);
            }
        }
        Ok(found)
    }

    /// What was written into a root, as far as is known: measuring one in which there are many files
    /// takes several calls, of which each takes a bounded time. The last measurement is given until
    /// there is another, none before the first, and expensive ones serve for a while.
    pub fn usage(&self, name: &str) -> Result<Option<Measurement>, Error> {
        check(name)?;
        let directory = self.directory.join(name);
        let facts = self.facts(name).ok_or_else(|| Error::NoRoot {
            name: name.to_owned(),
        })?;
        let (part, copied) = match facts.kind {
            Kind::Overlay => (overlay::UPPER, Usage::default()),
            Kind::Copy { bytes, inodes } => (MERGED, Usage { bytes, inodes }),
        };
        let path = directory.join(part);
        let begin = || self.walker.begin(&path, Scope::Tree);
        let measured = self.measurements.get_or_walk(name, begin);
        let measured = measured.doing("measure", &path)?;
        Ok(measured.map(|measured| Measurement {
            usage: measured.usage.minus(copied),
            ..measured
        }))
    }

    /// None if there is no such root, or if a power failure took what was known about it: then
    /// no container uses it, and it cannot be used again.
    fn facts(&self, name: &str) -> Option<Facts> {
        let path = self.directory.join(name).join(FACTS);
        file::read_json(&path).unwrap_or_else(|error| {
            tracing::warn!(root = name, error = %error, "failed to read record of root file system");
            None
        })
    }

    /// Pretends that overlayfs does not work, so that tests need not be root.
    #[cfg(test)]
    pub(super) fn only_copies(&self) {
        let known = self.overlay.set(None);
        assert_eq!(known, Ok(()), "decided before");
    }

    fn overlay(&self, store: &Store) -> Option<Overlay> {
        *self.overlay.get_or_init(|| {
            let detected = store
                .workspace(&BTreeSet::new())
                .map_err(io::Error::other)
                .and_then(|workspace| Overlay::detect(&workspace.path("trial")));
            if let Err(error) = &detected {
                tracing::warn!(%error, "cannot mount overlayfs; copying image layers instead");
            }
            detected.ok()
        })
    }
}

impl Roots {
    /// How overlayfs works for an owner, if it does.
    fn overlay_for(&self, store: &Store, owner: Option<Owner<'_>>) -> Option<Overlay> {
        let overlay = self.overlay(store)?;
        let Some(owner) = owner else {
            return Some(overlay);
        };
        let maps = self.maps_layers.get_or_init(|| {
            let tried = store
                .workspace(&BTreeSet::new())
                .map_err(io::Error::other)
                .and_then(|workspace| overlay.try_mapped(&workspace.path("trial"), owner));
            if let Err(error) = &tried {
                tracing::warn!(%error, "idmapped layers are not supported; copying image layers for pods with user namespaces");
            }
            tried.is_ok()
        });
        maps.then_some(overlay)
    }
}

impl Store {
    /// Lays out a root of an image under a name and mounts it, or mounts again what is there
    /// under that name. Returns the path of the root. Without an owner its files are those of the
    /// machine's users.
    pub fn prepare_root(
        &self,
        image: &Digest,
        name: &str,
        owner: Option<Owner<'_>>,
    ) -> Result<PathBuf, Error> {
        check(name)?;
        let directory = self.roots.directory.join(name);
        let facts = match self.roots.facts(name) {
            Some(facts) => facts,
            None => {
                if directory.exists() {
                    self.remove_root(name)?;
                }
                self.make_root(image, &directory, owner)?
            }
        };
        let merged = directory.join(MERGED);
        if matches!(facts.kind, Kind::Overlay) {
            let layers = layer_paths(&self.layers, &facts.layers);
            let overlay = self.roots.overlay(self).unwrap_or_default();
            let mounted = match owner {
                None => overlay.mount(&directory, &merged, &layers),
                Some(owner) => overlay.mount_mapped(&directory, &merged, &layers, owner),
            };
            mounted.doing("mount overlayfs at", &merged)?;
        }
        Ok(merged)
    }

    fn make_root(
        &self,
        image: &Digest,
        directory: &Path,
        owner: Option<Owner<'_>>,
    ) -> Result<Facts, Error> {
        let layers = {
            let catalogue = self.catalogue()?;
            let record = catalogue.images().iter().find(|record| record.id == *image);
            record.map(|record| record.layers.clone())
        };
        let no_image = || Error::NoImage {
            id: image.to_string(),
        };
        let layers = layers.ok_or_else(no_image)?;
        let workspace = self.workspace(&layers.iter().copied().collect())?;
        // Now they cannot go; they may have, with the image, a moment ago.
        if !layers.iter().all(|layer| self.layers.has(layer)) {
            return Err(no_image());
        }
        let unfinished = workspace.path("root");
        file::make_directory(&unfinished)?;
        let merged = unfinished.join(MERGED);
        file::make_directory(&merged)?;
        let paths = layer_paths(&self.layers, &layers);
        let first_id = owner.map_or(0, |owner| owner.first);
        let kind = if self.roots.overlay_for(self, owner).is_some() {
            overlay::lay_out(&unfinished, paths.first().map(PathBuf::as_path), first_id)
                .doing("create", &unfinished)?;
            Kind::Overlay
        } else {
            copy::copy_layers(&paths, &merged, first_id).doing("copy layers to", &merged)?;
            let Usage { bytes, inodes } = measure(&merged).doing("measure", &merged)?;
            Kind::Copy { bytes, inodes }
        };
        let facts = Facts {
            image: *image,
            layers,
            kind,
            first_id,
        };
        file::write_json(&unfinished.join(FACTS), &facts)?;
        // The lock keeps a collection from looking between the root's coming and the
        // workspace's going.
        let _lock = self.lock()?;
        std::fs::rename(&unfinished, directory).doing("create", directory)?;
        Ok(facts)
    }

    /// Unmounts and deletes a root. Succeeds if it does not exist.
    pub fn remove_root(&self, name: &str) -> Result<(), Error> {
        check(name)?;
        let directory = self.roots.directory.join(name);
        self.roots.measurements.forget(name);
        let merged = directory.join(MERGED);
        overlay::unmount(&merged).doing("unmount", &merged)?;
        let trash = self.workspace(&BTreeSet::new())?;
        match std::fs::rename(&directory, trash.path("root")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => Ok(other.doing("remove", &directory)?),
        }
    }
}

/// Uppermost first, as overlayfs expects them.
fn layer_paths(layers: &Layers, chains: &[Digest]) -> Vec<PathBuf> {
    chains
        .iter()
        .rev()
        .map(|chain| layers.files(chain))
        .collect()
}

/// Container ids are made of these; nothing that could be a path is.
fn check(name: &str) -> Result<(), Error> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > 128 || !name.bytes().all(is_plain) {
        let name = name.to_owned();
        return Err(Error::Name { name });
    }
    Ok(())
}

/// The uppermost directory of a writable layer is what a container sees as `/`.
fn look_like(model: &Path, directory: &Path, first_id: u32) -> io::Result<()> {
    let model = tree::open_directory(CWD, model)?;
    let directory = tree::open_directory(CWD, directory)?;
    copy_attributes(model.as_fd(), directory.as_fd(), first_id)
}
