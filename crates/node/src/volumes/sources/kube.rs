//! Objects from an API server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use k8s_openapi::api::authentication::v1::{
    BoundObjectReference, TokenRequest as ApiTokenRequest, TokenRequestSpec,
};
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolume, PersistentVolumeClaim, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::api::PostParams;
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use plimsoll_client::watching::watch_with_errors;
use plimsoll_core::object::timestamp::Timestamp;
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;

use super::watched::Watched;
use super::{SourceError, Sources, Token, TokenRequest};
use crate::volumes::named::Named;

/// How long the first list of Services may take.
const SERVICES_TIMEOUT: Duration = Duration::from_secs(3);

/// Objects from an API server, each watched while pods on this node use it.
pub struct KubeSources {
    client: Client,
    config_maps: Watched<ConfigMap>,
    secrets: Watched<Secret>,
    services: OnceCell<Services>,
}

#[derive(Debug)]
struct Services {
    store: Store<Service>,
    task: AbortHandle,
}

impl Drop for Services {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for KubeSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeSources").finish_non_exhaustive()
    }
}

impl KubeSources {
    /// Watches nothing until the first read.
    pub fn new(client: Client) -> KubeSources {
        KubeSources {
            config_maps: Watched::new(client.clone(), "configmap", |object: &ConfigMap| {
                object.immutable.unwrap_or_default()
            }),
            secrets: Watched::new(client.clone(), "secret", |object: &Secret| {
                object.immutable.unwrap_or_default()
            }),
            services: OnceCell::new(),
            client,
        }
    }

    /// The Services of the cluster; watched from the first question on.
    async fn all_services(&self) -> &Store<Service> {
        let services = self.services.get_or_init(async || {
            let (store, writer) = reflector::store();
            let api: Api<Service> = Api::all(self.client.clone());
            let events = watch_with_errors(api, watcher::Config::default()).modify(
                |service: &mut Service| {
                    // Only names, addresses and ports are ever read.
                    service.metadata.annotations = None;
                    service.metadata.labels = None;
                    service.status = None;
                },
            );
            let events = reflector::reflector(writer, events);
            let task = tokio::spawn(events.for_each(|_| std::future::ready(())));
            Services {
                store,
                task: task.abort_handle(),
            }
        });
        &services.await.store
    }
}

fn refused(kind: &'static str, name: &str, error: kube::Error) -> SourceError {
    match error {
        kube::Error::Api(status) if status.is_not_found() => SourceError::NotFound {
            kind,
            name: name.to_owned(),
        },
        kube::Error::Api(status) => SourceError::Refused(status.message.clone()),
        error => SourceError::Refused(error.to_string()),
    }
}

#[async_trait]
impl Sources for KubeSources {
    fn retain(&self, used: &Named) {
        self.config_maps.retain(&used.config_maps);
        self.secrets.retain(&used.secrets);
    }

    async fn config_map(&self, namespace: &str, name: &str) -> Result<Arc<ConfigMap>, SourceError> {
        self.config_maps.get(namespace, name).await
    }

    async fn secret(&self, namespace: &str, name: &str) -> Result<Arc<Secret>, SourceError> {
        self.secrets.get(namespace, name).await
    }

    async fn services(&self, namespace: &str) -> Result<Vec<Arc<Service>>, SourceError> {
        let store = self.all_services().await;
        let ready = tokio::time::timeout(SERVICES_TIMEOUT, store.wait_until_ready()).await;
        if !matches!(ready, Ok(Ok(()))) {
            return Err(SourceError::ServicesUnknown);
        }
        let mut services = store.state();
        services.retain(|service| {
            let of = service.metadata.namespace.as_deref();
            of == Some(namespace) || of == Some("default")
        });
        Ok(services)
    }

    async fn runtime_class(&self, name: &str) -> Result<Option<RuntimeClass>, SourceError> {
        let api: Api<RuntimeClass> = Api::all(self.client.clone());
        let found = api.get(name).await;
        found
            .map(Some)
            .map_err(|error| refused("runtimeclass", name, error))
    }

    async fn token(&self, request: &TokenRequest) -> Result<Token, SourceError> {
        let audiences = Some(&request.audience).filter(|audience| !audience.is_empty());
        let body = ApiTokenRequest {
            spec: Some(TokenRequestSpec {
                audiences: audiences.map(|audience| vec![audience.clone()]),
                expiration_seconds: request.expiration_secs,
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: Some(request.pod_name.clone()),
                    uid: Some(request.pod_uid.clone()),
                }),
            }),
            ..ApiTokenRequest::default()
        };
        let accounts: Api<ServiceAccount> =
            Api::namespaced(self.client.clone(), &request.namespace);
        let name = &request.service_account;
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &body)
            .await
            .map_err(|error| refused("serviceaccounts", name, error))?;
        let status = answer.status.unwrap_or_default();
        let expires_at = status.expiration_timestamp.as_ref();
        Ok(Token {
            value: status.token.unwrap_or_default(),
            lifetime_secs: answer.spec.and_then(|spec| spec.expiration_seconds),
            expires_at: expires_at.map(Timestamp::from_api).unwrap_or_default(),
        })
    }

    async fn claim(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<PersistentVolumeClaim, SourceError> {
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), namespace);
        let claim = claims.get(name).await;
        claim.map_err(|error| refused("persistentvolumeclaims", name, error))
    }

    async fn persistent_volume(&self, name: &str) -> Result<PersistentVolume, SourceError> {
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let volume = volumes.get(name).await;
        volume.map_err(|error| refused("persistentvolumes", name, error))
    }
}

#[cfg(test)]
mod tests;
