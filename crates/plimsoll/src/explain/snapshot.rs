//! The state of the cluster that the scheduler uses, read once.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ReplicationController, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt};
use plimsoll_client::watching;
use plimsoll_core::object::node::NodeView;
use plimsoll_core::scheduling::cluster::{Cluster, DisruptionBudget};
use plimsoll_core::scheduling::pod::SchedulingPod;

/// The objects that determine where pods are placed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) nodes: Vec<Node>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) budgets: Vec<PodDisruptionBudget>,
    pub(crate) services: Vec<Service>,
    pub(crate) replication_controllers: Vec<ReplicationController>,
    pub(crate) replica_sets: Vec<ReplicaSet>,
    pub(crate) stateful_sets: Vec<StatefulSet>,
}

impl Snapshot {
    pub(crate) async fn read(client: &Client) -> Result<Snapshot> {
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

    /// The cluster without one of its pods. Unparsable objects are skipped, as the scheduler does.
    pub(crate) fn cluster_without(&self, uid: &str) -> Cluster {
        let mut cluster = Cluster::new();
        for node in &self.nodes {
            if let Ok(view) = NodeView::from_api(node) {
                cluster.set_node(view);
            }
        }
        let others = self.pods.iter();
        for pod in others.filter(|pod| pod.metadata.uid.as_deref() != Some(uid)) {
            if let Ok(pod) = SchedulingPod::from_api(pod) {
                cluster.set_pod(Arc::new(pod));
            }
        }
        for namespace in &self.namespaces {
            let labels: BTreeMap<String, String> = namespace.labels().clone();
            cluster.set_namespace(&namespace.name_any(), labels);
        }
        for budget in &self.budgets {
            cluster.set_budget(DisruptionBudget::from_api(budget));
        }
        let owners = &mut cluster.owners;
        self.services.iter().for_each(|one| owners.set_service(one));
        for controller in &self.replication_controllers {
            owners.set_replication_controller(controller);
        }
        for set in &self.replica_sets {
            owners.set_replica_set(set);
        }
        for set in &self.stateful_sets {
            owners.set_stateful_set(set);
        }
        cluster
    }
}

async fn list<K>(client: &Client) -> Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::all(client.clone());
    Ok(watching::list(api, &ListParams::default()).await?)
}
