//! Which pods the API server wants on this node.

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;

use crate::pods::Pods;
use crate::pods::set::Source;

/// Has `pods` know what the API server has for the node, until told to stop.
pub async fn watch_pods(client: Client, node_name: &str, pods: &Pods, stop: CancellationToken) {
    let api: Api<Pod> = Api::all(client);
    let config = watcher::Config::default().fields(&format!("spec.nodeName={node_name}"));
    let mut events = watcher(api, config).default_backoff().boxed();
    let mut listed = Vec::new();
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => return,
            event = events.next() => event,
        };
        match event {
            Some(Ok(Event::Init)) => listed.clear(),
            Some(Ok(Event::InitApply(pod))) => listed.push(pod),
            Some(Ok(Event::InitDone)) => {
                pods.replace(Source::Api, std::mem::take(&mut listed));
            }
            Some(Ok(Event::Apply(pod))) => pods.apply(Source::Api, pod),
            Some(Ok(Event::Delete(pod))) => pods.removed(pod),
            Some(Err(error)) => tracing::warn!(%error, "cannot watch pods"),
            None => return,
        }
    }
}
