//! The API follows: one mirror for each static pod.
//!
//! Matches v1.36 pkg/kubelet/pod/mirror_client.go.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::agent::api_pods::ApiPods;
use crate::pods::{Pods, anatomy};

/// How often mirrors are looked at without being told of a change.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const MIRROR: &str = "kubernetes.io/config.mirror";
const HASH: &str = "kubernetes.io/config.hash";

/// Makes mirrors that are missing, replaces those of other pods, deletes those of pods that are
/// gone, until told to stop.
pub(in crate::agent) async fn keep_mirrors(
    client: Client,
    node: watch::Receiver<Option<Arc<Node>>>,
    pods: Pods,
    api_pods: Arc<ApiPods>,
    stop: CancellationToken,
) {
    loop {
        let owner = node.borrow().clone();
        if let Some(owner) = owner {
            let statics = static_pods(&pods);
            for pod in &statics {
                if let Err(error) = keep(&client, &owner, &api_pods, pod).await {
                    tracing::warn!(pod = %anatomy::described(pod), %error, "no mirror");
                }
            }
            for mirror in api_pods.mirrors() {
                let is_wanted = statics.iter().any(|pod| is_mirror_of(&mirror, pod));
                if !is_wanted {
                    delete(&client, &mirror).await;
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

fn static_pods(pods: &Pods) -> Vec<Arc<Pod>> {
    let reports = pods.reports().all().into_iter().map(|report| report.pod);
    reports.filter(|pod| anatomy::is_static(pod)).collect()
}

fn is_mirror_of(mirror: &Pod, pod: &Pod) -> bool {
    anatomy::name(mirror) == anatomy::name(pod)
        && anatomy::namespace(mirror) == anatomy::namespace(pod)
}

async fn keep(client: &Client, owner: &Node, api_pods: &ApiPods, pod: &Pod) -> kube::Result<()> {
    let annotations = pod.metadata.annotations.as_ref();
    let hash = annotations
        .and_then(|all| all.get(HASH))
        .cloned()
        .unwrap_or_default();
    if let Some(mirror) = api_pods.mirror(pod) {
        let is_current = anatomy::mirror_hash(&mirror) == Some(hash.as_str());
        if is_current && !anatomy::is_deleted(&mirror) {
            return Ok(());
        }
        delete(client, &mirror).await;
        return Ok(());
    }
    let mut mirror = pod.clone();
    mirror.metadata.uid = None;
    mirror.metadata.resource_version = None;
    mirror.status = None;
    mirror
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(MIRROR.to_owned(), hash);
    mirror.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: owner.metadata.name.clone().unwrap_or_default(),
        uid: owner.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        ..OwnerReference::default()
    }]);
    let api: Api<Pod> = Api::namespaced(client.clone(), anatomy::namespace(pod));
    match api.create(&PostParams::default(), &mirror).await {
        Ok(created) => api_pods.put(created),
        // The watch will bring the one that is there.
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

async fn delete(client: &Client, mirror: &Pod) {
    let api: Api<Pod> = Api::namespaced(client.clone(), anatomy::namespace(mirror));
    let parameters = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions {
            uid: mirror.metadata.uid.clone(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    if let Err(error) = api.delete(anatomy::name(mirror), &parameters).await {
        tracing::debug!(pod = %anatomy::described(mirror), %error, "mirror not deleted");
    }
}
