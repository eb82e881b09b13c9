//! The store as the embedded runtime uses it.

#[cfg(test)]
mod tests;

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;

use super::builtin::is_builtin;
use super::catalogue::Record;
use super::digest::Digest;
use super::pull::{Registries, credentials};
use super::reference::Reference;
use super::roots::{self, Measurement};
use super::store::Store;
use crate::Error;
use crate::embedded::{ImageConfig, Images, RootOwner};
use crate::walk::Usage;
use crate::wire::{
    AuthConfig, FilesystemIdentifier, FilesystemUsage, Image, ImageFsInfoResponse, ImageSpec,
    Int64Value, PodSandboxConfig, UInt64Value,
};

/// A store, and how to fill it.
#[derive(Clone, Debug)]
pub struct ImageService {
    store: Store,
    registries: Registries,
}

impl ImageService {
    /// Of a store.
    pub fn new(store: Store, registries: Registries) -> ImageService {
        ImageService { store, registries }
    }

    /// Runs work on files where it may take its time.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let store = self.store.clone();
        tokio::task::spawn_blocking(move || work(&store))
            .await
            .map_err(|error| Error::failed("use the image store", error))?
    }
}

#[async_trait]
impl Images for ImageService {
    async fn resolve(&self, image: &ImageSpec) -> Result<ImageConfig, Error> {
        let name = image.image.clone();
        self.blocking(move |store| {
            let record = find(store, &name)?.ok_or_else(|| Error::NotFound {
                what: "image",
                id: name.clone(),
            })?;
            image_config(store, &record)
        })
        .await
    }

    async fn prepare_root(
        &self,
        image_id: &str,
        root: &str,
        owner: Option<&RootOwner>,
    ) -> Result<PathBuf, Error> {
        let id: Digest = image_id.parse().map_err(|_| Error::NotFound {
            what: "image",
            id: image_id.to_owned(),
        })?;
        let (root, owner) = (root.to_owned(), owner.cloned());
        self.blocking(move |store| {
            let owner = owner.as_ref().map(|owner| roots::Owner {
                first: owner.first,
                user_namespace: owner.user_namespace.as_fd(),
            });
            store
                .prepare_root(&id, &root, owner)
                .map_err(|error| match error {
                    roots::Error::NoImage { id } => Error::NotFound { what: "image", id },
                    roots::Error::Name { .. } => Error::Invalid(error.to_string()),
                    error => Error::failed(format!("prepare root file system {root:?}"), error),
                })
        })
        .await
    }

    async fn remove_root(&self, root: &str) -> Result<(), Error> {
        let root = root.to_owned();
        self.blocking(move |store| {
            store
                .remove_root(&root)
                .map_err(|error| Error::failed(format!("remove root file system {root:?}"), error))
        })
        .await
    }

    async fn list_roots(&self) -> Result<Vec<String>, Error> {
        self.blocking(|store| {
            store
                .roots()
                .names()
                .map_err(|error| Error::failed("list root file systems", error))
        })
        .await
    }

    async fn root_usage(&self, root: &str) -> Result<FilesystemUsage, Error> {
        let root = root.to_owned();
        self.blocking(move |store| {
            let measured = store.roots().usage(&root).map_err(|error| match error {
                roots::Error::NoRoot { name } => Error::NotFound {
                    what: "root file system",
                    id: name,
                },
                error => Error::failed(format!("measure root file system {root:?}"), error),
            })?;
            Ok(root_usage(store, measured))
        })
        .await
    }

    async fn list(&self) -> Result<Vec<Image>, Error> {
        self.blocking(|store| {
            let catalogue = store
                .catalogue()
                .map_err(|error| Error::failed("list images", error))?;
            let images = catalogue.images().iter();
            images.map(|record| to_image(store, record)).collect()
        })
        .await
    }

    async fn status(&self, image: &ImageSpec) -> Result<Option<Image>, Error> {
        let name = image.image.clone();
        self.blocking(move |store| {
            let record = find(store, &name)?;
            record.map(|record| to_image(store, &record)).transpose()
        })
        .await
    }

    async fn pull(
        &self,
        image: &ImageSpec,
        auth: Option<&AuthConfig>,
        _sandbox_config: &PodSandboxConfig,
    ) -> Result<String, Error> {
        let name: Reference = image
            .image
            .parse()
            .map_err(|error| Error::Invalid(format!("{error}")))?;
        if is_builtin(&name)
            && let Some(here) = self.status(image).await?
        {
            return Ok(here.id);
        }
        let pulled = async {
            let auth = credentials(&name, auth)?;
            self.store.pull(&name, auth, &self.registries, false).await
        };
        match pulled.await {
            Ok(record) => Ok(record.id.to_string()),
            Err(error) if error.is_unavailable() => Err(Error::RegistryUnavailable {
                source: error.into(),
            }),
            Err(error) => Err(Error::failed(
                format!("pull image {:?}", image.image),
                error,
            )),
        }
    }

    async fn remove(&self, image: &ImageSpec) -> Result<(), Error> {
        let name = image.image.clone();
        self.blocking(move |store| {
            let Some(record) = find(store, &name)? else {
                return Ok(());
            };
            let removed = store.remove(&record.id);
            removed.map_err(|error| Error::failed(format!("remove image {name:?}"), error))?;
            Ok(())
        })
        .await
    }

    async fn fs_info(&self) -> Result<ImageFsInfoResponse, Error> {
        self.blocking(|store| {
            let failed = |error| Error::failed("measure the image store", error);
            let images = store.images_usage().map_err(failed)?;
            let mut containers = Some(Usage::default());
            for name in store.roots().names().map_err(failed)? {
                // One that is being removed takes nothing; of one that was not measured yet it is not
                // known what all of them take.
                let Ok(measured) = store.roots().usage(&name) else {
                    continue;
                };
                let both = containers.zip(measured);
                containers = both.map(|(sum, one)| sum.plus(one.usage));
            }
            let now = SystemTime::now();
            Ok(ImageFsInfoResponse {
                image_filesystems: vec![filesystem_usage(store, Some(images), now)],
                container_filesystems: vec![filesystem_usage(store, containers, now)],
            })
        })
        .await
    }
}

fn find(store: &Store, name: &str) -> Result<Option<Record>, Error> {
    let catalogue = store
        .catalogue()
        .map_err(|error| Error::failed(format!("look up image {name:?}"), error))?;
    Ok(catalogue.find(name).cloned())
}

fn to_image(store: &Store, record: &Record) -> Result<Image, Error> {
    let configuration = store
        .configuration(&record.id)
        .map_err(|error| Error::failed(format!("read image {}", record.id), error))?;
    let (uid, username) = configuration.user();
    let id = record.id.to_string();
    Ok(Image {
        repo_tags: record.tags.iter().cloned().collect(),
        repo_digests: record.digests.iter().cloned().collect(),
        size: record.size,
        uid: uid.map(|value| Int64Value { value }),
        username,
        spec: Some(ImageSpec {
            image: id.clone(),
            ..ImageSpec::default()
        }),
        pinned: record.pinned,
        id,
    })
}

fn image_config(store: &Store, record: &Record) -> Result<ImageConfig, Error> {
    let configuration = store
        .configuration(&record.id)
        .map_err(|error| Error::failed(format!("read image {}", record.id), error))?;
    let start = configuration.config.unwrap_or_default();
    Ok(ImageConfig {
        id: record.id.to_string(),
        reference: record.reference(),
        entrypoint: start.entrypoint.unwrap_or_default(),
        cmd: start.cmd.unwrap_or_default(),
        env: start.env.unwrap_or_default(),
        user: start.user.unwrap_or_default(),
        working_dir: start.working_dir.unwrap_or_default(),
        stop_signal: start.stop_signal.unwrap_or_default(),
        volumes: start.volumes.unwrap_or_default().into_keys().collect(),
    })
}

/// What was written into a root; not reported before it was measured.
fn root_usage(store: &Store, measured: Option<Measurement>) -> FilesystemUsage {
    let at = measured.map_or_else(SystemTime::now, |measured| measured.at);
    filesystem_usage(store, measured.map(|measured| measured.usage), at)
}

fn filesystem_usage(store: &Store, usage: Option<Usage>, at: SystemTime) -> FilesystemUsage {
    let since_epoch = at.duration_since(UNIX_EPOCH);
    let nanos = since_epoch.map_or(0, |time| time.as_nanos());
    FilesystemUsage {
        timestamp: i64::try_from(nanos).unwrap_or(i64::MAX),
        fs_id: Some(FilesystemIdentifier {
            mountpoint: store.directory().display().to_string(),
        }),
        used_bytes: usage.map(|usage| UInt64Value { value: usage.bytes }),
        inodes_used: usage.map(|usage| UInt64Value {
            value: usage.inodes,
        }),
    }
}
