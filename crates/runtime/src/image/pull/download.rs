//! Blobs on their way from a registry to disk.

use std::fs::File;
use std::io::Seek;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::TryStreamExt;
use oci_client::Client;
use oci_client::client::SizedStream;
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

use super::super::file::Doing;
use super::super::manifest::Descriptor;
use super::super::reference::Reference;
use super::{Error, registry_reference};

/// As containerd does.
const AT_ONCE: usize = 3;

/// Larger than any configuration.
const LARGEST_SMALL_BLOB: u64 = 8 << 20;

/// Downloads of one image.
pub(super) struct Downloads {
    client: Client,
    name: Reference,
    places: Semaphore,
}

impl Downloads {
    pub(super) fn new(client: Client, name: Reference) -> Arc<Downloads> {
        Arc::new(Downloads {
            client,
            name,
            places: Semaphore::new(AT_ONCE),
        })
    }

    /// The whole of a blob that should be small.
    pub(super) async fn small_blob(&self, blob: &Descriptor) -> Result<Vec<u8>, Error> {
        let mut stream = self.stream(blob).await?;
        let mut bytes = Vec::new();
        while let Some(chunk) = self.next(&mut stream).await? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() as u64 > blob.size.min(LARGEST_SMALL_BLOB) {
                return Err(self.too_long(blob));
            }
        }
        Ok(bytes)
    }

    /// Starts to fetch a blob to a file of which only the handle stays. It waits for its turn,
    /// and ends when the result is no longer waited for.
    pub(super) fn start(self: &Arc<Self>, blob: Descriptor, path: PathBuf) -> Download {
        let own = Arc::clone(self);
        let task = tokio::spawn(async move { own.fetch(&blob, &path).await });
        Download {
            task: AbortOnDropHandle::new(task),
            image: self.name.to_string(),
        }
    }

    async fn fetch(&self, blob: &Descriptor, path: &Path) -> Result<File, Error> {
        // Never closed, so never an error.
        let _place = self.places.acquire().await;
        let mut stream = self.stream(blob).await?;
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .doing("create", path)?;
        std::fs::remove_file(path).doing("remove", path)?;
        let mut file = tokio::fs::File::from_std(file);
        let mut left = blob.size;
        while let Some(chunk) = self.next(&mut stream).await? {
            left = left
                .checked_sub(chunk.len() as u64)
                .ok_or_else(|| self.too_long(blob))?;
            file.write_all(&chunk).await.doing("write", path)?;
        }
        file.flush().await.doing("write", path)?;
        let mut file = file.into_std().await;
        file.rewind().doing("read", path)?;
        Ok(file)
    }

    async fn stream(&self, blob: &Descriptor) -> Result<SizedStream, Error> {
        let digest = blob.digest.to_string();
        self.client
            .pull_blob_stream(&registry_reference(&self.name), digest.as_str())
            .await
            .map_err(|source| Error::from_registry(&self.name, source))
    }

    /// The end comes only after the whole was checked against its digest.
    async fn next(&self, stream: &mut SizedStream) -> Result<Option<bytes::Bytes>, Error> {
        stream
            .try_next()
            .await
            .map_err(|source| Error::interrupted(&self.name, source))
    }

    fn too_long(&self, blob: &Descriptor) -> Error {
        Error::Size {
            image: self.name.to_string(),
            digest: blob.digest,
            size: blob.size,
        }
    }
}

/// A blob that is being fetched.
pub(super) struct Download {
    task: AbortOnDropHandle<Result<File, Error>>,
    image: String,
}

impl Download {
    /// Its content, from the beginning.
    pub(super) async fn wait(self) -> Result<File, Error> {
        let image = self.image;
        self.task.await.map_err(|source| Error::Client {
            image,
            source: source.into(),
        })?
    }
}
