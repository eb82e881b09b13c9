//! What a pod's spec means to a container runtime.
//!
//! [`sandbox_config`] and [`container_config`] turn a pod into the messages of CRI, with upstream's
//! rules and words. What they cannot see themselves comes in as plain data: the node as
//! [`NodeContext`], mounted volumes, addresses, the image's user; ConfigMaps, Secrets and Services
//! through [`Sources`](crate::volumes::Sources). Containers whose config cannot be made wait with
//! reason `CreateContainerConfigError` and the text of [`SpecError`].
//!
//! Reading order: [`NodeContext`], [`sandbox_config`] with [`dns`] and [`hostname`],
//! [`container_config`] with [`mod@env`], [`mounts`], [`security`], [`resources`], [`labels`].

mod container;
pub mod dns;
pub mod env;
mod error;
pub mod hostname;
pub mod hosts_file;
pub mod labels;
pub mod mounts;
mod node;
pub mod resources;
mod sandbox;
pub mod security;
pub mod sub_path;
#[cfg(test)]
pub(crate) mod testing;

pub use container::{ContainerInput, container_config};
pub use error::SpecError;
pub use node::NodeContext;
pub(crate) use node::pod_dir;
pub use sandbox::{Sandbox, Warning, sandbox_config};

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Pod;

use crate::pod_fields::identity;

/// The directory of a pod's logs.
pub fn pod_log_directory(pod_logs_dir: &Path, pod: &Pod) -> PathBuf {
    let (namespace, name, uid) = identity(pod);
    pod_logs_dir.join(format!("{namespace}_{name}_{uid}"))
}
