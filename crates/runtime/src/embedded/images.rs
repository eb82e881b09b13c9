//! The interface of the embedded runtime to an image store.

use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use crate::Error;
use crate::wire::{
    AuthConfig, FilesystemUsage, Image, ImageFsInfoResponse, ImageSpec, PodSandboxConfig,
};

/// What an image says about the containers made of it: the part of its OCI configuration that
/// decides how a process starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageConfig {
    /// The image's id, `sha256:` and the digest of its configuration.
    pub id: String,
    /// What `ContainerStatus.image_ref` shows: the name with its digest, or else the id.
    pub reference: String,
    /// The first arguments of the command line.
    pub entrypoint: Vec<String>,
    /// Further arguments, replaced by a container's own.
    pub cmd: Vec<String>,
    /// `NAME=value` pairs.
    pub env: Vec<String>,
    /// `user`, `user:group`, either by name or number; empty for root.
    pub user: String,
    /// Where the process starts; empty for `/`.
    pub working_dir: String,
    /// A signal's name (`SIGTERM`, `TERM`) or number; empty for SIGTERM.
    pub stop_signal: String,
    /// Directories that hold data of their own.
    pub volumes: Vec<String>,
}

/// The owner of a root file system of a pod with its own users.
#[derive(Clone, Debug)]
pub struct RootOwner {
    /// The id of its root on the machine.
    pub first: u32,
    /// The namespace that maps ids.
    pub user_namespace: Arc<OwnedFd>,
}

/// A store of images that can also lay out the root file systems of containers.
///
/// Roots are named by the runtime (container ids, `[a-z0-9-]+`) and outlive the agent: after a
/// restart they are found under the same names. Layers of an image that a root still uses must
/// not vanish, even when the image is removed.
#[async_trait]
pub trait Images: Debug + Send + Sync {
    /// Looks an image up by name, digest or id; [`Error::NotFound`] if it is not here.
    async fn resolve(&self, image: &ImageSpec) -> Result<ImageConfig, Error>;

    /// Lays out a writable root file system of an image and returns its path, mounted and ready
    /// to be used as a container's root. Called again with the same name, it returns the same root.
    /// With an owner, files of id 0 in the image are root's of the owner's namespace, and so on.
    async fn prepare_root(
        &self,
        image_id: &str,
        root: &str,
        owner: Option<&RootOwner>,
    ) -> Result<PathBuf, Error>;
    /// Unmounts and deletes a root. Succeeds if it does not exist.
    async fn remove_root(&self, root: &str) -> Result<(), Error>;
    /// The names of all roots, so that those no container knows can be removed.
    async fn list_roots(&self) -> Result<Vec<String>, Error>;
    /// What was written into a root: bytes and inodes, and the mount point they lie on.
    async fn root_usage(&self, root: &str) -> Result<FilesystemUsage, Error>;

    /// All images.
    async fn list(&self) -> Result<Vec<Image>, Error>;
    /// One image by name, digest or id.
    async fn status(&self, image: &ImageSpec) -> Result<Option<Image>, Error>;
    /// Fetches an image; returns its reference.
    async fn pull(
        &self,
        image: &ImageSpec,
        auth: Option<&AuthConfig>,
        sandbox_config: &PodSandboxConfig,
    ) -> Result<String, Error>;
    /// Removes an image. One that is not here is no error.
    async fn remove(&self, image: &ImageSpec) -> Result<(), Error>;
    /// Where images and roots lie, and how much they take.
    async fn fs_info(&self) -> Result<ImageFsInfoResponse, Error>;
}
