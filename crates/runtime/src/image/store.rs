//! The image store: its layout on disk, and the lock that keeps it consistent.
//!
//! ```text
//! catalogue.json   which images there are
//! blobs/HEX        their configurations and manifests
//! layers/HEX/      unpacked layers: files/ and layer.json
//! roots/NAME/      root file systems of containers
//! work/            unfinished work of all kinds
//! lock             held while any of the above is changed, never for long
//! ```

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::catalogue::{Catalogue, Record};
use super::configuration::Configuration;
use super::digest::Digest;
use super::file::{self, Doing, Error};
use super::layers::Layers;
use super::lock::Lock;
use super::reference::Reference;
use super::room::{Disk, MaxImageSize, Room};
use super::roots::Roots;
use super::workspace::{self, Workspace};
use crate::walk::{Usage, Walker, measure};

/// Images and root file systems under one directory. Cheap to clone; several may be open on one
/// directory, in several processes.
#[derive(Clone, Debug)]
pub struct Store {
    directory: Arc<Path>,
    max_image_size: MaxImageSize,
    pub(super) layers: Layers,
    pub(super) roots: Roots,
}

impl Store {
    /// Opens the store in a directory, making it if need be, and removes what crashes left.
    pub fn open(directory: &Path) -> Result<Store, Error> {
        Store::open_with(directory, MaxImageSize::default())
    }

    /// As [`Self::open`], with another bound on what an image unpacks to.
    pub fn open_with(directory: &Path, max_image_size: MaxImageSize) -> Result<Store, Error> {
        std::fs::create_dir_all(directory).doing("make the directory", directory)?;
        // Mounts are remembered by path, so it has to be one that stays true.
        let directory = directory
            .canonicalize()
            .doing("resolve the path of", directory)?;
        let store = Store {
            max_image_size,
            layers: Layers::new(directory.join("layers")),
            roots: Roots::new(directory.join("roots")),
            directory: directory.into(),
        };
        for part in ["blobs", "layers", "roots", "work"] {
            file::make_directory(&store.directory.join(part))?;
        }
        store.collect_garbage()?;
        Ok(store)
    }

    /// Has the walker walk over what containers have written.
    #[must_use]
    pub fn with_walker(mut self, walker: Walker) -> Store {
        self.roots.walk_with(walker);
        self
    }

    /// Where it lies.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What is left for an image that has taken so many bytes already.
    pub(super) fn room(&self, taken: u64) -> Result<Room, Error> {
        let disk = Disk::of(&self.directory).doing("measure the disk of", &self.directory)?;
        Ok(Room::left(self.max_image_size, disk, taken))
    }

    /// Root file systems of containers.
    pub fn roots(&self) -> &Roots {
        &self.roots
    }

    /// What all images take.
    pub fn images_usage(&self) -> Result<Usage, Error> {
        let mut usage = measure(&self.directory.join("blobs"))
            .doing("measure", &self.directory.join("blobs"))?;
        for (chain, _) in self.layers.all()? {
            // One that was collected meanwhile takes nothing.
            let layer = self.layers.usage(&chain).unwrap_or_default();
            usage.bytes += layer.bytes;
            usage.inodes += layer.inodes;
        }
        Ok(usage)
    }

    /// All images.
    pub fn catalogue(&self) -> Result<Catalogue, Error> {
        Ok(file::read_json(&self.catalogue_path())?.unwrap_or_default())
    }

    /// The configuration of an image.
    pub fn configuration(&self, id: &Digest) -> Result<Configuration, Error> {
        let path = self.blob_path(id);
        let bytes = file::read(&path)?;
        Configuration::parse(&bytes)
            .map_err(std::io::Error::from)
            .doing("decode", &path)
    }

    /// Adds an image once its content is in place.
    pub(super) fn add(&self, record: Record) -> Result<(), Error> {
        self.change(|catalogue| catalogue.add(record))
    }

    /// Removes an image with all its names; returns whether it was there. Content that nothing
    /// else needs goes with it.
    pub fn remove(&self, id: &Digest) -> Result<bool, Error> {
        let was_there = self.change(|catalogue| catalogue.remove(id))?;
        self.collect_garbage()?;
        Ok(was_there)
    }

    /// Takes a name from an image, and with the last name the image.
    pub fn remove_name(&self, name: &Reference) -> Result<bool, Error> {
        let was_there = self.change(|catalogue| catalogue.remove_name(name))?;
        self.collect_garbage()?;
        Ok(was_there)
    }

    /// Starts a piece of work that counts on some content.
    pub(super) fn workspace(&self, spared: &BTreeSet<Digest>) -> Result<Workspace, Error> {
        let _lock = self.lock()?;
        let workspace = Workspace::new(&self.work_path())?;
        workspace.spare(spared)?;
        Ok(workspace)
    }

    pub(super) fn lock(&self) -> Result<Lock, Error> {
        Lock::acquire(&self.directory.join("lock"))
    }

    pub(super) fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.directory.join("blobs").join(digest.hex())
    }

    fn change<T>(&self, change: impl FnOnce(&mut Catalogue) -> T) -> Result<T, Error> {
        let _lock = self.lock()?;
        let mut catalogue = self.catalogue()?;
        let before = catalogue.clone();
        let result = change(&mut catalogue);
        if catalogue != before {
            file::replace_json(&self.catalogue_path(), &catalogue)?;
        }
        Ok(result)
    }

    /// Removes content that no image, root or workspace needs, and abandoned workspaces.
    pub fn collect_garbage(&self) -> Result<(), Error> {
        // Moving is quick, so others wait only for that; deleting happens after the lock.
        let _trash = {
            let _lock = self.lock()?;
            let needed = self.needed()?;
            let mut garbage = workspace::abandoned(&self.work_path())?;
            let layers = self.layers.all()?.into_iter();
            garbage.extend(layers.filter_map(|(d, path)| (!needed.contains(&d)).then_some(path)));
            garbage.extend(self.unneeded_blobs(&needed)?);
            if garbage.is_empty() {
                return Ok(());
            }
            let trash = Workspace::new(&self.work_path())?;
            for (number, path) in garbage.iter().enumerate() {
                let place = trash.path(&format!("garbage-{number}"));
                match std::fs::rename(path, place) {
                    // Work that ended meanwhile took its workspace along, lock file first.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    other => other.doing("remove", path)?,
                }
            }
            trash
        };
        Ok(())
    }

    fn needed(&self) -> Result<BTreeSet<Digest>, Error> {
        let mut needed = workspace::spared_content(&self.work_path())?;
        for image in self.catalogue()?.images() {
            needed.insert(image.id);
            needed.extend(image.manifest);
            needed.extend(&image.layers);
        }
        needed.extend(self.roots.layers_in_use()?);
        Ok(needed)
    }

    fn unneeded_blobs(&self, needed: &BTreeSet<Digest>) -> Result<Vec<PathBuf>, Error> {
        let directory = self.directory.join("blobs");
        let names = file::names(&directory)?.into_iter();
        let is_needed = |hex: &str| Digest::from_hex(hex).is_some_and(|d| needed.contains(&d));
        Ok(names
            .filter(|hex| !is_needed(hex))
            .map(|hex| directory.join(hex))
            .collect())
    }

    fn catalogue_path(&self) -> PathBuf {
        self.directory.join("catalogue.json")
    }

    fn work_path(&self) -> PathBuf {
        self.directory.join("work")
    }
}
