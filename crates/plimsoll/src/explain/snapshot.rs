//! Reads the objects that determine where pods are placed.

use anyhow::Result;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use plimsoll_client::watching;
use plimsoll_report::explain::Snapshot;

pub(super) async fn snapshot(client: &Client) -> Result<Snapshot> {
    Ok(Snapshot {
        nodes: list(client).await?,
        pods: list(client).await?,
        namespaces: list(client).await?,
        budgets: list(client).await?,
        services: list(client).await?,
        replication_controllers: list(client).await?,
        replica_sets: list(client).await?,
        stateful_sets: list(client).await?,
    })
}

async fn list<K>(client: &Client) -> Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::all(client.clone());
    Ok(watching::list(api, &ListParams::default()).await?)
}
