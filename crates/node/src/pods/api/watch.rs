//! The pods that the API server has for this node.

use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use plimsoll_client::informer::{Store, follow};
use tokio_util::sync::CancellationToken;

use crate::pods::Pods;
use crate::pods::set::Source;

/// Passes the node's pods from the API server to `pods` until `stop` is cancelled.
pub async fn watch_pods(client: Client, node_name: &str, pods: &Pods, stop: CancellationToken) {
    let api: Api<Pod> = Api::all(client);
    let config = Config::default().fields(&format!("spec.nodeName={node_name}"));
    stop.run_until_cancelled(follow(api, config, &FromApi(pods)))
        .await;
}

/// The pods of the node, as the API server reports them.
struct FromApi<'a>(&'a Pods);

impl Store<Pod> for FromApi<'_> {
    type Kept = Pod;

    fn reduce(&self, pod: Pod) -> Pod {
        pod
    }

    async fn replace(&self, pods: Vec<Pod>) {
        self.0.replace(Source::Api, pods);
    }

    async fn apply(&self, pod: Pod) {
        self.0.apply(Source::Api, pod);
    }

    async fn delete(&self, pod: Pod) {
        self.0.removed(pod);
    }
}
