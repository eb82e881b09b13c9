//! Fetches images from registries.
//!
//! `oci-client` speaks the protocol. Layers are streamed to disk, a few at a time, and unpacked in
//! order while further ones arrive. Whatever a registry sends is checked against the digest by
//! which it was requested.

mod auth;
mod download;
mod error;
mod registries;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference as OciReference, RegistryOperation};
use tokio_util::task::AbortOnDropHandle;

use super::catalogue::Record;
use super::digest::Digest;
use super::installation::{Installation, Names};
use super::manifest::{Document, INDEXES, MANIFESTS, Manifest};
use super::reference::{Reference, Version};
use super::store::Store;

pub use auth::credentials;
use download::Downloads;
pub use error::Error;
pub use registries::Registries;

/// Indexes that lead to indexes are followed so far.
const DEEPEST_INDEX: usize = 3;

/// Registries refuse to store longer manifests.
const LONGEST_MANIFEST: usize = 8 << 20;

impl Store {
    /// Fetches an image for this machine; returns its record. What is here already is not fetched
    /// again, but the registry resolves the name again.
    pub async fn pull(
        &self,
        name: &Reference,
        auth: RegistryAuth,
        registries: &Registries,
        pinned: bool,
    ) -> Result<Record, Error> {
        let pull = Pull {
            store: self.clone(),
            name: name.clone(),
            auth,
            registries: registries.clone(),
        };
        // A task of its own, because the client panics at some answers.
        let task = AbortOnDropHandle::new(tokio::spawn(pull.run(pinned)));
        task.await.map_err(|source| Error::Client {
            image: name.to_string(),
            source: source.into(),
        })?
    }
}

/// One image being pulled.
struct Pull {
    store: Store,
    name: Reference,
    auth: RegistryAuth,
    registries: Registries,
}

impl Pull {
    async fn run(self, pinned: bool) -> Result<Record, Error> {
        let client = self.registries.client(&self.name)?;
        let registry = registry_reference(&self.name);
        client
            .auth(&registry, &self.auth, RegistryOperation::Pull)
            .await
            .map_err(|source| Error::from_registry(&self.name, source))?;
        let (top, bytes, manifest) = self.manifest(&client).await?;
        let names = self.names(top, pinned);
        if let Some(known) = self.known(manifest.config.digest)? {
            // Only the names are news.
            let record = Record {
                tags: names.tags,
                digests: names.digests,
                pinned,
                ..known
            };
            return self
                .blocking(move |store| Ok(store.add(record.clone()).map(|()| record)?))
                .await;
        }
        let downloads = Downloads::new(client, self.name.clone());
        let configuration = downloads.small_blob(&manifest.config).await?;
        let layer_count = manifest.layers.len();
        let name = self.name.clone();
        let installation = self
            .blocking(move |store| {
                Installation::begin(store, configuration, Some(bytes), layer_count)
                    .map_err(|source| Error::install(&name, source))
            })
            .await?;
        let installation = self.layers(installation, &manifest, &downloads).await?;
        let name = self.name.clone();
        self.blocking(move |_| {
            installation
                .finish(names)
                .map_err(|source| Error::install(&name, source))
        })
        .await
    }

    /// The digest that the name stands for, and the manifest for this machine.
    async fn manifest(&self, client: &Client) -> Result<(Digest, Vec<u8>, Box<Manifest>), Error> {
        let refused = |source| Error::Manifest {
            image: self.name.to_string(),
            source,
        };
        let mut name = self.name.clone();
        let mut top = None;
        for _ in 0..DEEPEST_INDEX {
            let (digest, bytes) = self.document(client, &name).await?;
            let top = *top.get_or_insert(digest);
            match Document::parse(&bytes).map_err(refused)? {
                Document::Manifest(manifest) => return Ok((top, bytes, manifest)),
                Document::Index(index) => {
                    let chosen = index.for_this_machine().map_err(refused)?;
                    name = self.name.with_digest(chosen.digest);
                }
            }
        }
        Err(refused(super::manifest::Error::NoImage {
            media_type: INDEXES[0].to_owned(),
        }))
    }

    async fn document(
        &self,
        client: &Client,
        name: &Reference,
    ) -> Result<(Digest, Vec<u8>), Error> {
        let accepted: Vec<&str> = MANIFESTS.into_iter().chain(INDEXES).collect();
        let (bytes, _) = client
            .pull_manifest_raw(&registry_reference(name), &self.auth, &accepted)
            .await
            .map_err(|source| Error::from_registry(&self.name, source))?;
        let digest = Digest::of(&bytes);
        let is_other = matches!(name.version, Version::Digest(asked) if asked != digest);
        if is_other || bytes.len() > LONGEST_MANIFEST {
            return Err(Error::Content {
                image: self.name.to_string(),
                asked: name.to_string(),
                found: digest,
            });
        }
        Ok((digest, bytes.into()))
    }

    fn names(&self, top: Digest, pinned: bool) -> Names {
        let tag = match self.name.version {
            Version::Tag(_) => Some(self.name.to_string()),
            Version::Digest(_) => None,
        };
        Names {
            tags: tag.into_iter().collect(),
            digests: [self.name.with_digest(top).to_string()].into(),
            pinned,
        }
    }

    fn known(&self, id: Digest) -> Result<Option<Record>, Error> {
        let catalogue = self.store.catalogue()?;
        let mut images = catalogue.images().iter();
        Ok(images.find(|image| image.id == id).cloned())
    }

    /// Downloads the missing layers and unpacks each as soon as those below it are.
    async fn layers(
        &self,
        mut installation: Installation,
        manifest: &Manifest,
        downloads: &Arc<Downloads>,
    ) -> Result<Installation, Error> {
        let missing = installation.missing_layers();
        let sizes = missing.iter().map(|at| manifest.layers[*at].size);
        let expected = sizes.fold(0, u64::saturating_add);
        installation
            .expect(expected)
            .map_err(|source| Error::install(&self.name, source))?;
        let mut arriving = Vec::new();
        for at in missing {
            let path = installation.path(&format!("download-{at}"));
            let layer = manifest.layers[at].clone();
            arriving.push((at, downloads.start(layer, path)));
        }
        for (at, download) in arriving {
            let file = download.wait().await?;
            let name = self.name.clone();
            installation = self
                .blocking(move |_| {
                    installation
                        .unpack_layer(at, file)
                        .map_err(|source| Error::install(&name, source))?;
                    Ok(installation)
                })
                .await?;
        }
        Ok(installation)
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let store = self.store.clone();
        let image = self.name.to_string();
        tokio::task::spawn_blocking(move || work(&store))
            .await
            .map_err(|source| Error::Client {
                image,
                source: source.into(),
            })?
    }
}

/// The name in the client's type.
fn registry_reference(name: &Reference) -> OciReference {
    let (registry, repository) = (name.registry.clone(), name.repository.clone());
    match &name.version {
        Version::Tag(tag) => OciReference::with_tag(registry, repository, tag.clone()),
        Version::Digest(digest) => {
            OciReference::with_digest(registry, repository, digest.to_string())
        }
    }
}
