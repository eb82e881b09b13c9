//! An image being installed into the store, wherever its parts come from.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::PathBuf;

use super::catalogue::Record;
use super::configuration::Configuration;
use super::digest::Digest;
use super::file;
use super::layers::{self, Unpacked};
use super::room::{Room, Rule};
use super::store::Store;
use super::unpack::{self, Limits};
use super::workspace::Workspace;

/// Why an image did not get into the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the store.
    #[error(transparent)]
    File(#[from] file::Error),
    /// A layer.
    #[error(transparent)]
    Layer(#[from] layers::Error),
    /// It takes more than an image may.
    #[error("its layers take more than {limit} bytes, {rule}")]
    TooLarge {
        /// What it may take.
        limit: u64,
        /// The rule that sets the limit.
        rule: Rule,
    },
    /// Its configuration is none.
    #[error("cannot decode image configuration")]
    Configuration(#[source] serde_json::Error),
    /// Its parts do not fit together.
    #[error("the configuration names {named} layers, the manifest has {found}")]
    LayerCount {
        /// By the configuration.
        named: usize,
        /// In the manifest or archive.
        found: usize,
    },
}

/// The names an image gets.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Whole names with tags.
    pub tags: BTreeSet<String>,
    /// Whole names with digests.
    pub digests: BTreeSet<String>,
    /// Never collected as unused.
    pub pinned: bool,
}

/// An image being installed. Its layers are unpacked one by one in a workspace; only
/// [`Self::finish`] makes them part of the store. Dropped before that, nothing is left.
#[derive(Debug)]
pub struct Installation {
    store: Store,
    workspace: Workspace,
    configuration: Configuration,
    /// Configuration and manifest, to be stored.
    blobs: Vec<(Digest, Vec<u8>)>,
    id: Digest,
    manifest: Option<Digest>,
    chains: Vec<Digest>,
    /// Layers unpacked here, by their position.
    unpacked: Vec<Option<Unpacked>>,
    /// Bytes of those layers.
    taken: u64,
}

impl Installation {
    /// Of an image with this configuration and so many layers.
    pub fn begin(
        store: &Store,
        configuration: Vec<u8>,
        manifest: Option<Vec<u8>>,
        layer_count: usize,
    ) -> Result<Installation, Error> {
        let parsed = Configuration::parse(&configuration).map_err(Error::Configuration)?;
        let named = parsed.rootfs.diff_ids.len();
        if named != layer_count {
            return Err(Error::LayerCount {
                named,
                found: layer_count,
            });
        }
        let chains = parsed.chains();
        let id = Digest::of(&configuration);
        let mut blobs = vec![(id, configuration)];
        let manifest = manifest.map(|bytes| {
            let digest = Digest::of(&bytes);
            blobs.push((digest, bytes));
            digest
        });
        let mut spared: BTreeSet<Digest> = chains.iter().copied().collect();
        spared.extend(blobs.iter().map(|(digest, _)| digest));
        Ok(Installation {
            workspace: store.workspace(&spared)?,
            store: store.clone(),
            unpacked: chains.iter().map(|_| None).collect(),
            configuration: parsed,
            blobs,
            id,
            manifest,
            chains,
            taken: 0,
        })
    }

    /// Positions of the layers to fetch; the others are in the store already.
    pub fn missing_layers(&self) -> Vec<usize> {
        let is_missing = |at: &usize| !self.store.layers.has(&self.chains[*at]);
        (0..self.chains.len()).filter(is_missing).collect()
    }

    /// A path for content that is not installed yet.
    pub fn path(&self, name: &str) -> PathBuf {
        self.workspace.path(name)
    }

    /// Whether there is room for content of this length, before it is unpacked.
    pub fn expect(&self, bytes: u64) -> Result<(), Error> {
        let room = self.store.room(self.taken)?;
        match bytes <= room.bytes {
            true => Ok(()),
            false => Err(self.too_large(room)),
        }
    }

    /// Unpacks the layer at a position; all missing ones below it must have been.
    pub fn unpack_layer(&mut self, at: usize, content: impl Read) -> Result<(), Error> {
        let below: Vec<PathBuf> = (0..at).rev().map(|below| self.files(below)).collect();
        let room = self.store.room(self.taken)?;
        let limits = Limits {
            bytes: room.bytes,
            ..Limits::default()
        };
        let layer = layers::unpack_into(
            self.workspace.path(&format!("layer-{at}")),
            content,
            self.configuration.rootfs.diff_ids[at],
            &below,
            limits,
        );
        let layer = layer.map_err(|error| match error {
            layers::Error::Unpack {
                source: unpack::Error::TooLarge { .. },
                ..
            } => self.too_large(room),
            error => error.into(),
        })?;
        self.taken = self.taken.saturating_add(layer.tar_bytes);
        self.unpacked[at] = Some(layer);
        Ok(())
    }

    fn too_large(&self, room: Room) -> Error {
        Error::TooLarge {
            limit: self.taken.saturating_add(room.bytes),
            rule: room.rule,
        }
    }

    /// Makes the image part of the store, under its names. Returns its record.
    pub fn finish(self, names: Names) -> Result<Record, Error> {
        for (digest, bytes) in &self.blobs {
            let path = self.store.blob_path(digest);
            if !path.exists() {
                let unfinished = self.workspace.path(&digest.hex());
                file::replace(&unfinished, bytes)?;
                file::rename(&unfinished, &path)?;
            }
        }
        if self.unpacked.iter().any(Option::is_some) {
            layers::sync(self.store.directory())?;
        }
        for (chain, layer) in self.chains.iter().zip(&self.unpacked) {
            if let Some(layer) = layer {
                self.store.layers.keep(chain, layer)?;
            }
        }
        let mut size: u64 = self.blobs.iter().map(|(_, b)| b.len() as u64).sum();
        for chain in self.chains.iter().collect::<BTreeSet<_>>() {
            size += self.store.layers.usage(chain)?.bytes;
        }
        let record = Record {
            id: self.id,
            manifest: self.manifest,
            layers: self.chains.clone(),
            size,
            tags: names.tags,
            digests: names.digests,
            pinned: names.pinned,
        };
        self.store.add(record.clone())?;
        Ok(record)
    }

    fn files(&self, at: usize) -> PathBuf {
        match &self.unpacked[at] {
            Some(layer) => layer.files(),
            None => self.store.layers.files(&self.chains[at]),
        }
    }
}
