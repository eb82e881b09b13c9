//! Mirror pods: the images of static pods in the API, so that clients can see them.
//!
//! An image carries the hash of its pod. One that does not match, or that a client deletes, is
//! removed and created anew; one whose pod is gone is removed for good. Matches v1.36 pkg/kubelet/pod and
//! pkg/kubelet/kubelet.go, `tryReconcileMirrorPods`.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;

use crate::pod_fields::{self, CONFIG_HASH, CONFIG_MIRROR};
use crate::pods::Pods;
use crate::pods::set::{MirrorWork, Source};

/// How long to wait before what failed is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// Keeps mirror pods of static pods until `stop` is cancelled.
pub async fn keep_mirrors(client: Client, node_name: &str, pods: &Pods, stop: CancellationToken) {
    loop {
        let mut has_failed = false;
        for work in pods.mirror_work() {
            let done = match &work {
                MirrorWork::Create(pod) => create(&client, node_name, pods, pod).await,
                MirrorWork::Delete(image) => delete(&client, image).await,
            };
            if let Err(error) = done {
                tracing::warn!(%error, "failed to sync mirror pod");
                has_failed = true;
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = pods.mirrors_changed() => {}
            () = tokio::time::sleep(RETRY), if has_failed => {}
        }
    }
}

async fn create(
    client: &Client,
    node_name: &str,
    pods: &Pods,
    pod: &Arc<Pod>,
) -> Result<(), kube::Error> {
    let node = Api::<Node>::all(client.clone()).get(node_name).await?;
    if node.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let image = image_of(
        pod,
        node_name,
        node.metadata.uid.as_deref().unwrap_or_default(),
    );
    let api: Api<Pod> = Api::namespaced(client.clone(), pod_fields::namespace(pod));
    match api.create(&PostParams::default(), &image).await {
        Ok(created) => {
            pods.apply(Source::Api, created);
            Ok(())
        }
        // The watch will bring it, if it is ours.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error),
    }
}

async fn delete(client: &Client, image: &Pod) -> Result<(), kube::Error> {
    let api: Api<Pod> = Api::namespaced(client.clone(), pod_fields::namespace(image));
    let params = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions {
            uid: image.metadata.uid.clone(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match api.delete(pod_fields::name(image), &params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The pod as the API is to have it: owned by the node, with its hash.
fn image_of(pod: &Pod, node_name: &str, node_uid: &str) -> Pod {
    let mut image = pod.clone();
    let annotations = image.metadata.annotations.get_or_insert_default();
    let hash = annotations.get(CONFIG_HASH).cloned().unwrap_or_default();
    annotations.insert(CONFIG_MIRROR.to_owned(), hash);
    image.metadata.uid = None;
    image.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: node_name.to_owned(),
        uid: node_uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: None,
    }]);
    image.status = None;
    image
}
