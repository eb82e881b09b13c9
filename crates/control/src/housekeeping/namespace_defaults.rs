//! Creates in every namespace its default service account, and the certificate by which its pods
//! trust the API server.
//!
//! Matches v1.36 pkg/controller/serviceaccount (serviceaccounts_controller) and
//! pkg/controller/certificates/rootcacertpublisher. Plimsoll's own API server creates these objects
//! together with a namespace, before it answers the request; with it this loop finds nothing to do.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client, Resource};
use plimsoll_core::lifecycle::namespace_defaults::{
    DEFAULT_SERVICE_ACCOUNT, DESCRIPTION_ANNOTATION, ROOT_CA_CONFIG_MAP, ROOT_CA_DESCRIPTION,
    ROOT_CA_KEY,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::work_queue::WorkQueue;
use plimsoll_client::informer::{Change, Informer, Informers, Key};

/// Namespaces processed concurrently.
const WORKERS: usize = 5;

/// The settings of the loop.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The certificate to trust, in PEM; without it no namespace is given one.
    pub root_ca: Option<String>,
}

/// Runs the loop until `stop`.
pub async fn run(informers: Arc<Informers>, options: Options, stop: CancellationToken) {
    let namespaces: Arc<Informer<Namespace>> = informers.of();
    let accounts: Arc<Informer<ServiceAccount>> = informers.of();
    let queue = WorkQueue::new("serviceaccount");
    let changes = Arc::clone(&queue);
    let _namespaces = namespaces.on_change(move |change| {
        if !matches!(change, Change::Deleted(_)) {
            changes.add(change.key().name);
        }
    });
    let changes = Arc::clone(&queue);
    let _accounts = accounts.on_change(move |change| {
        if matches!(change, Change::Deleted(_)) && change.key().name == DEFAULT_SERVICE_ACCOUNT {
            changes.add(change.key().namespace);
        }
    });
    // Config maps may be many and large: they are watched only if needed.
    let trusted = options.root_ca.is_some().then(|| informers.of());
    let _trusted = trusted.as_ref().map(|maps: &Arc<Informer<ConfigMap>>| {
        let changes = Arc::clone(&queue);
        maps.on_change(move |change| {
            if change.key().name == ROOT_CA_CONFIG_MAP {
                changes.add(change.key().namespace);
            }
        })
    });
    accounts.synced().await;
    if let Some(trusted) = &trusted {
        trusted.synced().await;
    }
    let defaults = Arc::new(NamespaceDefaults {
        client: informers.client().clone(),
        namespaces,
        accounts,
        trusted: options.root_ca.zip(trusted),
    });
    let work = queue.work(WORKERS, move |namespace: String| {
        let defaults = Arc::clone(&defaults);
        async move { defaults.sync(&namespace).await.map(|()| None) }
    });
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

struct NamespaceDefaults {
    client: Client,
    namespaces: Arc<Informer<Namespace>>,
    accounts: Arc<Informer<ServiceAccount>>,
    trusted: Option<(String, Arc<Informer<ConfigMap>>)>,
}

impl NamespaceDefaults {
    async fn sync(&self, namespace: &str) -> Result<(), kube::Error> {
        let known = self.namespaces.get(&Key::new("", namespace));
        let is_leaving = |known: &Namespace| known.metadata.deletion_timestamp.is_some();
        if known.is_none_or(|known| is_leaving(&known)) {
            return Ok(());
        }
        let account = Key::new(namespace, DEFAULT_SERVICE_ACCOUNT);
        if self.accounts.get(&account).is_none() {
            let account = ServiceAccount {
                metadata: named(DEFAULT_SERVICE_ACCOUNT),
                ..ServiceAccount::default()
            };
            self.create(namespace, &account).await?;
        }
        let Some((certificate, trusted)) = &self.trusted else {
            return Ok(());
        };
        let wanted = root_ca_config_map(certificate);
        match trusted.get(&Key::new(namespace, ROOT_CA_CONFIG_MAP)) {
            None => self.create(namespace, &wanted).await,
            Some(found) if found.data == wanted.data => Ok(()),
            Some(found) => {
                let changed = ConfigMap {
                    data: wanted.data,
                    ..ConfigMap::clone(&found)
                };
                let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
                let params = PostParams::default();
                api.replace(ROOT_CA_CONFIG_MAP, &params, &changed)
                    .await
                    .map(drop)
            }
        }
    }

    /// Another client may be quicker, and the namespace may go meanwhile: both are fine.
    async fn create<K>(&self, namespace: &str, object: &K) -> Result<(), kube::Error>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        match api.create(&PostParams::default(), object).await {
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(()),
            Err(kube::Error::Api(status)) if is_because_of_leaving(&status) => Ok(()),
            made => made.map(drop),
        }
    }
}

fn is_because_of_leaving(status: &kube::core::Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 403 && { causes }.any(|cause| cause.reason == "NamespaceTerminating")
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

fn root_ca_config_map(certificate: &str) -> ConfigMap {
    let description = (
        DESCRIPTION_ANNOTATION.to_owned(),
        ROOT_CA_DESCRIPTION.to_owned(),
    );
    ConfigMap {
        metadata: ObjectMeta {
            annotations: Some(BTreeMap::from([description])),
            ..named(ROOT_CA_CONFIG_MAP)
        },
        data: Some(BTreeMap::from([(
            ROOT_CA_KEY.to_owned(),
            certificate.to_owned(),
        )])),
        ..ConfigMap::default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use plimsoll_client::testing::Cluster;

    #[tokio::test(start_paused = true)]
    async fn default_account_and_root_certificate_are_restored() {
        let cluster = Cluster::new();
        let stop = CancellationToken::new();
        let options = Options {
            root_ca: Some("PEM".to_owned()),
        };
        tokio::spawn(run(Informers::new(cluster.client()), options, stop.clone()));
        let settle = || tokio::time::sleep(Duration::from_secs(5));
        cluster.put(json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"},
            "status": {"phase": "Active"},
        }));
        settle().await;
        let account = Key::new("a", "default");
        let trusted = Key::new("a", "kube-root-ca.crt");
        let has_account = || cluster.get("serviceaccounts", &account).is_some();
        let data = || {
            cluster
                .get("configmaps", &trusted)
                .map(|map| map["data"].clone())
        };
        assert!(has_account());
        assert_eq!(data(), Some(json!({"ca.crt": "PEM"})));
        cluster.change("configmaps", &trusted, |map| {
            map["data"] = json!({"ca.crt": "forged"});
        });
        cluster.remove("serviceaccounts", &account);
        settle().await;
        assert!(has_account());
        assert_eq!(data(), Some(json!({"ca.crt": "PEM"})));
        cluster.remove("configmaps", &trusted);
        settle().await;
        assert_eq!(data(), Some(json!({"ca.crt": "PEM"})));
        stop.cancel();
    }
}
