//! Objects held in memory, for tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use k8s_openapi::Metadata;
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolume, PersistentVolumeClaim, Secret, Service,
};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plimsoll_core::object::timestamp::Timestamp;

use super::{SourceError, Sources, Token, TokenRequest};
use crate::volumes::named::Named;

/// Objects that a test put there.
#[derive(Debug, Default)]
pub struct MemorySources(Mutex<Held>);

type Key = (String, String);

#[derive(Debug, Default)]
struct Held {
    config_maps: BTreeMap<Key, Arc<ConfigMap>>,
    secrets: BTreeMap<Key, Arc<Secret>>,
    services: Vec<Arc<Service>>,
    claims: BTreeMap<Key, PersistentVolumeClaim>,
    volumes: BTreeMap<Key, PersistentVolume>,
    tokens: Vec<TokenRequest>,
}

fn key(object: &impl Metadata<Ty = ObjectMeta>) -> Key {
    let meta = object.metadata();
    (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    )
}

impl MemorySources {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a ConfigMap there, in place of one of that name.
    pub fn put_config_map(&self, object: ConfigMap) {
        self.held()
            .config_maps
            .insert(key(&object), Arc::new(object));
    }

    /// Puts a Secret there, in place of one of that name.
    pub fn put_secret(&self, object: Secret) {
        self.held().secrets.insert(key(&object), Arc::new(object));
    }

    /// Adds a Service.
    pub fn put_service(&self, object: Service) {
        self.held().services.push(Arc::new(object));
    }

    /// Puts a claim there.
    pub fn put_claim(&self, object: PersistentVolumeClaim) {
        self.held().claims.insert(key(&object), object);
    }

    /// Puts storage there.
    pub fn put_persistent_volume(&self, object: PersistentVolume) {
        self.held().volumes.insert(key(&object), object);
    }

    /// The tokens requested, in order.
    pub fn requested_tokens(&self) -> Vec<TokenRequest> {
        self.held().tokens.clone()
    }
}

fn found<T: Clone>(
    kind: &'static str,
    held: &BTreeMap<Key, T>,
    namespace: &str,
    name: &str,
) -> Result<T, SourceError> {
    let found = held.get(&(namespace.to_owned(), name.to_owned()));
    found.cloned().ok_or_else(|| SourceError::NotFound {
        kind,
        name: name.to_owned(),
    })
}

#[async_trait]
impl Sources for MemorySources {
    fn retain(&self, _: &Named) {}

    async fn config_map(&self, namespace: &str, name: &str) -> Result<Arc<ConfigMap>, SourceError> {
        found("configmap", &self.held().config_maps, namespace, name)
    }

    async fn secret(&self, namespace: &str, name: &str) -> Result<Arc<Secret>, SourceError> {
        found("secret", &self.held().secrets, namespace, name)
    }

    async fn services(&self, _namespace: &str) -> Result<Vec<Arc<Service>>, SourceError> {
        Ok(self.held().services.clone())
    }

    /// Good for an hour from 1970, and numbered.
    async fn runtime_class(&self, _: &str) -> Result<Option<RuntimeClass>, SourceError> {
        Ok(None)
    }

    async fn token(&self, request: &TokenRequest) -> Result<Token, SourceError> {
        let mut held = self.held();
        held.tokens.push(request.clone());
        Ok(Token {
            value: format!("token-{}", held.tokens.len()),
            lifetime_secs: Some(3600),
            expires_at: Timestamp::from_secs(3600),
        })
    }

    async fn claim(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<PersistentVolumeClaim, SourceError> {
        found(
            "persistentvolumeclaims",
            &self.held().claims,
            namespace,
            name,
        )
    }

    async fn persistent_volume(&self, name: &str) -> Result<PersistentVolume, SourceError> {
        found("persistentvolumes", &self.held().volumes, "", name)
    }
}
