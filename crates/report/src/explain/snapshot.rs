//! The state of the cluster that the scheduler uses.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ReplicationController, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use plimsoll_core::object::node::NodeView;
use plimsoll_core::scheduling::cluster::{Cluster, DisruptionBudget};
use plimsoll_core::scheduling::pod::SchedulingPod;

/// The objects that determine where pods are placed.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub nodes: Vec<Node>,
    pub pods: Vec<Pod>,
    pub namespaces: Vec<Namespace>,
    pub budgets: Vec<PodDisruptionBudget>,
    pub services: Vec<Service>,
    pub replication_controllers: Vec<ReplicationController>,
    pub replica_sets: Vec<ReplicaSet>,
    pub stateful_sets: Vec<StatefulSet>,
}

impl Snapshot {
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
            let metadata = &namespace.metadata;
            let name = metadata.name.as_deref().unwrap_or_default();
            cluster.set_namespace(name, metadata.labels.clone().unwrap_or_default());
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
