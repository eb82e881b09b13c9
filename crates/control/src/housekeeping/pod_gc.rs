//! The pod garbage collector: deletes pods that no other controller deletes.
//!
//! Matches v1.36 pkg/controller/podgc.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Client};
use plimsoll_core::lifecycle::pod_gc::{
    CollectedPod, Nodes, Quarantine, Reason, Settings, is_out_of_service, plan,
};
use plimsoll_core::object::identity::NodeName;
use plimsoll_core::object::pod::is_terminal;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::disruption::{Disruption, disruption_patch, patch_status};
use plimsoll_client::clock::Clock;
use plimsoll_client::informer::{Informer, Informers, Key};

/// How many pods are removed at the same time.
const WORKERS: usize = 16;
const NODE_GONE: Disruption = Disruption {
    reason: "DeletionByPodGC",
    message: "PodGC: node no longer exists",
};

/// The settings of the loop.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// When pods are removed.
    pub settings: Settings,
    /// The clock.
    pub clock: Clock,
}

struct Collector {
    options: Options,
    client: Client,
    pods: Arc<Informer<Pod>>,
    nodes: Arc<Informer<Node>>,
}

/// Runs the loop until `stop`.
pub async fn run(informers: Arc<Informers>, options: Options, stop: CancellationToken) {
    let collector = Collector {
        client: informers.client().clone(),
        pods: informers.of(),
        nodes: informers.of(),
        options,
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = collector.run() => {}
    }
}

impl Collector {
    async fn run(&self) {
        self.pods.synced().await;
        self.nodes.synced().await;
        let mut quarantine = Quarantine::default();
        loop {
            self.collect(&mut quarantine).await;
            tokio::time::sleep(self.options.settings.period).await;
        }
    }

    async fn collect(&self, quarantine: &mut Quarantine) {
        let pods = self.pods.list();
        let pods: Vec<CollectedPod> = pods.iter().map(|p| CollectedPod::from_api(p)).collect();
        let mut nodes = Nodes::default();
        for node in self.nodes.list() {
            let name = NodeName::new(node.metadata.name.clone().unwrap_or_default());
            nodes.out_of_service.insert(name, is_out_of_service(&node));
        }
        let bound = pods.iter().filter_map(|pod| pod.node.as_ref());
        let missing = bound.filter(|node| !nodes.out_of_service.contains_key(*node));
        let missing: BTreeSet<NodeName> = missing.cloned().collect();
        let now = self.options.clock.now();
        for node in quarantine.observe(&missing, self.options.settings.quarantine, now) {
            let api: Api<Node> = Api::all(self.client.clone());
            match api.get_opt(node.as_str()).await {
                Ok(None) => {
                    nodes.gone.insert(node);
                }
                Ok(Some(_)) => {}
                Err(error) => tracing::warn!(%node, %error, "could not check whether node exists"),
            }
        }
        let plan = plan(self.options.settings, &pods, &nodes);
        let removals = plan.into_iter().map(|(pod, reason)| async move {
            if let Err(error) = self.remove(&pod, reason).await {
                tracing::warn!(
                    pod = %pod.pod, reason = reason.as_str(), %error, "failed to delete pod"
                );
            }
        });
        stream::iter(removals.map(Box::pin).collect::<Vec<_>>())
            .buffer_unordered(WORKERS)
            .collect::<()>()
            .await;
    }

    /// Marks the pod as failed, as no node agent will, and deletes it without grace.
    async fn remove(&self, pod: &CollectedPod, reason: Reason) -> Result<(), kube::Error> {
        let key = Key::new(&pod.pod.namespace, &pod.pod.name);
        let Some(object) = self.pods.get(&key) else {
            return Ok(());
        };
        tracing::info!(
            pod = %key, reason = reason.as_str(), "pod garbage collector is force deleting pod"
        );
        if !is_terminal(&object) {
            let now = self.options.clock.now();
            let patch = match reason {
                Reason::Orphaned => disruption_patch(&object, NODE_GONE, now),
                _ => None,
            };
            let mut status = patch.unwrap_or_else(|| json!({}));
            status["phase"] = "Failed".into();
            status["observedGeneration"] = json!(object.metadata.generation);
            ignore_missing(patch_status(&self.client, &object, status).await)?;
        }
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        let params = DeleteParams::default()
            .grace_period(0)
            .preconditions(Preconditions {
                uid: object.metadata.uid.clone(),
                resource_version: None,
            });
        ignore_missing(api.delete(&key.name, &params).await.map(drop))
    }
}

fn ignore_missing(result: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match result {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Value;

    use super::*;
    use plimsoll_client::testing::{Cluster, virtual_clock};

    fn pod(name: &str, node: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"namespace": "default", "name": name, "finalizers": ["kept"]},
            "spec": {"containers": [], "nodeName": node},
            "status": {"phase": "Running"},
        })
    }

    #[tokio::test(start_paused = true)]
    async fn pods_of_a_deleted_node_fail_and_are_deleted_later() {
        let cluster = Cluster::new();
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "there"}});
        cluster.put(node);
        cluster.put(pod("orphan", "gone"));
        cluster.put(pod("fine", "there"));
        let stop = CancellationToken::new();
        let options = Options {
            clock: virtual_clock(),
            ..Options::default()
        };
        tokio::spawn(run(Informers::new(cluster.client()), options, stop.clone()));
        let phase = |name: &str| {
            let pod = cluster.get("pods", &Key::new("default", name)).unwrap();
            pod["status"]["phase"].clone()
        };
        tokio::time::sleep(Duration::from_secs(39)).await;
        assert_eq!(phase("orphan"), "Running");
        tokio::time::sleep(Duration::from_secs(22)).await;
        let key = Key::new("default", "orphan");
        let orphan = cluster.get("pods", &key).unwrap();
        assert_eq!(orphan["status"]["phase"], "Failed");
        let condition = &orphan["status"]["conditions"][0];
        assert_eq!(condition["reason"], "DeletionByPodGC");
        assert_eq!(condition["message"], "PodGC: node no longer exists");
        assert_eq!(orphan["metadata"]["deletionGracePeriodSeconds"], 0);
        assert_eq!(phase("fine"), "Running");
        stop.cancel();
    }
}
