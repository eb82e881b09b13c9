//! Which pods the API server wants on this node.

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use plimsoll_client::watching::watch;
use tokio_util::sync::CancellationToken;

use crate::pods::Pods;
use crate::pods::set::Source;

/// Passes the node's pods from the API server to `pods` until `stop` is cancelled.
pub async fn watch_pods(client: Client, node_name: &str, pods: &Pods, stop: CancellationToken) {
    let api: Api<Pod> = Api::all(client);
    let config = watcher::Config::default().fields(&format!("spec.nodeName={node_name}"));
    let mut events = watch(api, config).boxed();
    let mut listed = Vec::new();
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => return,
            event = events.next() => event,
        };
        match event {
            Some(Event::Init) => listed.clear(),
            Some(Event::InitApply(pod)) => listed.push(pod),
            Some(Event::InitDone) => {
                pods.replace(Source::Api, std::mem::take(&mut listed));
            }
            Some(Event::Apply(pod)) => pods.apply(Source::Api, pod),
            Some(Event::Delete(pod)) => pods.removed(pod),
            None => return,
        }
    }
}
