//! Where ConfigMaps, Secrets, Services and tokens come from.

mod kube;
mod memory;
mod watched;

pub use kube::KubeSources;
pub use memory::MemorySources;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolume, PersistentVolumeClaim, Secret, Service,
};
use k8s_openapi::api::node::v1::RuntimeClass;
use plimsoll_core::object::timestamp::Timestamp;

use super::named::Named;

/// Why an object cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SourceError {
    /// It does not exist.
    #[error("{kind} {name:?} not found")]
    NotFound {
        /// As upstream calls it: `configmap` from a cache, `persistentvolumeclaims` from the API.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// The API server did not answer in time.
    #[error("failed to sync {kind} cache: timed out waiting for the condition")]
    TimedOut {
        /// Lower case: `configmap`.
        kind: &'static str,
    },
    /// Services have never been read.
    #[error("services have not yet been read at least once, cannot construct envvars")]
    ServicesUnknown,
    /// The API server refused.
    #[error("{0}")]
    Refused(String),
}

impl SourceError {
    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, SourceError::NotFound { .. })
    }
}

/// A token that a pod needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenRequest {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's service account.
    pub service_account: String,
    /// The audience of the token; the API server where empty.
    pub audience: String,
    /// The requested validity.
    pub expiration_secs: Option<i64>,
    /// The pod that it dies with.
    pub pod_name: String,
    /// Its unique id.
    pub pod_uid: String,
}

/// A token.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// The token itself.
    pub value: String,
    /// Its validity when issued; `None` if unknown.
    pub lifetime_secs: Option<i64>,
    /// When it expires.
    pub expires_at: Timestamp,
}

impl Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fields = (self.lifetime_secs, self.expires_at);
        f.debug_tuple("Token").field(&fields).finish()
    }
}

/// What pods on the node need from the cluster. A node may read only what its pods name.
#[async_trait]
pub trait Sources: Debug + Send + Sync {
    /// A ConfigMap.
    async fn config_map(&self, namespace: &str, name: &str) -> Result<Arc<ConfigMap>, SourceError>;
    /// A Secret.
    async fn secret(&self, namespace: &str, name: &str) -> Result<Arc<Secret>, SourceError>;
    /// The Services of the namespace, and that of the API server.
    async fn services(&self, namespace: &str) -> Result<Vec<Arc<Service>>, SourceError>;
    /// A new token.
    async fn token(&self, request: &TokenRequest) -> Result<Token, SourceError>;
    /// A claim for storage.
    async fn claim(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<PersistentVolumeClaim, SourceError>;
    /// The storage that a claim is bound to.
    async fn persistent_volume(&self, name: &str) -> Result<PersistentVolume, SourceError>;
    /// A RuntimeClass; `None` without an API server, where the default handler runs every pod.
    async fn runtime_class(&self, name: &str) -> Result<Option<RuntimeClass>, SourceError>;
    /// Takes which objects are still used; the others need not be followed.
    fn retain(&self, used: &Named);
}

/// ConfigMaps and Secrets of one namespace, each read once.
#[derive(Debug)]
pub struct Objects<'a> {
    sources: &'a dyn Sources,
    namespace: &'a str,
    config_maps: BTreeMap<String, Arc<ConfigMap>>,
    secrets: BTreeMap<String, Arc<Secret>>,
}

impl<'a> Objects<'a> {
    /// Nothing read yet.
    pub fn new(sources: &'a dyn Sources, namespace: &'a str) -> Objects<'a> {
        Objects {
            sources,
            namespace,
            config_maps: BTreeMap::new(),
            secrets: BTreeMap::new(),
        }
    }

    /// A ConfigMap; `None` if it does not exist and need not.
    pub async fn config_map(
        &mut self,
        name: &str,
        is_optional: bool,
    ) -> Result<Option<Arc<ConfigMap>>, SourceError> {
        if let Some(known) = self.config_maps.get(name) {
            return Ok(Some(known.clone()));
        }
        let found = optional(
            self.sources.config_map(self.namespace, name).await,
            is_optional,
        )?;
        let found = found.inspect(|object| {
            self.config_maps.insert(name.to_owned(), object.clone());
        });
        Ok(found)
    }

    /// A Secret; `None` if it does not exist and need not.
    pub async fn secret(
        &mut self,
        name: &str,
        is_optional: bool,
    ) -> Result<Option<Arc<Secret>>, SourceError> {
        if let Some(known) = self.secrets.get(name) {
            return Ok(Some(known.clone()));
        }
        let found = optional(self.sources.secret(self.namespace, name).await, is_optional)?;
        let found = found.inspect(|object| {
            self.secrets.insert(name.to_owned(), object.clone());
        });
        Ok(found)
    }
}

fn optional<T>(
    result: Result<T, SourceError>,
    is_optional: bool,
) -> Result<Option<T>, SourceError> {
    match result {
        Err(error) if is_optional && error.is_not_found() => Ok(None),
        result => result.map(Some),
    }
}
