//! The watches that feed the loop. Objects are reduced to what decisions read before they are
//! handed over, in the task of their watch.

use std::sync::Arc;

use futures::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ReplicationController, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource};
use plimsoll_core::object::identity::{NodeName, PodRef};
use plimsoll_core::problem::Problem;
use plimsoll_core::scheduling::cluster::DisruptionBudget;
use plimsoll_core::scheduling::queue::NodeFacts;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use plimsoll_client::supervision::survive_panics;
use plimsoll_client::watching::watch;

use super::input::{Input, Name, WatchEvent};
use super::known_pod::KnownPod;

/// Finished pods do not exist for the scheduler.
const UNFINISHED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// Starts all watches. They end with `stop`, or when the receiver is dropped.
pub(super) fn start(client: &Client, inputs: &mpsc::Sender<Input>, stop: &CancellationToken) {
    let feed = Feed {
        client,
        inputs,
        stop,
    };
    let all = watcher::Config::default;
    feed.start(all().fields(UNFINISHED), pod_of, pod_ref_of, Input::Pod);
    feed.start(all(), node_of, node_name_of, Input::Node);
    feed.start(all(), namespace_of, text_name_of, Input::Namespace);
    feed.start(all(), budget_of, name_of, Input::Budget);
    feed.start(all(), boxed::<Service>, name_of, Input::Service);
    feed.start(
        all(),
        boxed::<ReplicationController>,
        name_of,
        Input::ReplicationController,
    );
    feed.start(all(), boxed::<ReplicaSet>, name_of, Input::ReplicaSet);
    feed.start(all(), boxed::<StatefulSet>, name_of, Input::StatefulSet);
}

struct Feed<'a> {
    client: &'a Client,
    inputs: &'a mpsc::Sender<Input>,
    stop: &'a CancellationToken,
}

impl Feed<'_> {
    /// Watches a kind in a task of its own. An object that cannot be read is as good as none.
    fn start<K, T, N>(
        &self,
        config: watcher::Config,
        read: fn(K) -> Result<T, Vec<Problem>>,
        name: fn(&K) -> N,
        input: fn(WatchEvent<T, N>) -> Input,
    ) where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + 'static,
        T: Send + 'static,
        N: Send + 'static,
    {
        let (client, inputs) = (self.client.clone(), self.inputs.clone());
        let stop = self.stop.clone();
        let feed = move || {
            let events = watch(Api::<K>::all(client.clone()), config.clone());
            follow(events, inputs.clone(), stop.clone(), read, name, input)
        };
        // Started again, it lists again.
        tokio::spawn(survive_panics("informer", feed));
    }
}

async fn follow<K, T, N>(
    events: impl Stream<Item = Event<K>>,
    inputs: mpsc::Sender<Input>,
    stop: CancellationToken,
    read: fn(K) -> Result<T, Vec<Problem>>,
    name: fn(&K) -> N,
    input: fn(WatchEvent<T, N>) -> Input,
) where
    K: Resource<DynamicType = ()>,
{
    let mut events = std::pin::pin!(events);
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => return,
            event = events.next() => event,
        };
        let Some(event) = event else {
            return;
        };
        let seen = match event {
            Event::Init => WatchEvent::ListBegins,
            Event::InitDone => WatchEvent::ListEnds,
            Event::Delete(object) => WatchEvent::Deleted(name(&object)),
            Event::Apply(object) | Event::InitApply(object) => {
                let own_name = name(&object);
                match read(object) {
                    Ok(object) => WatchEvent::Is(object),
                    Err(problems) => {
                        tracing::warn!(
                            kind = %K::kind(&()), ?problems,
                            "failed to parse object, skipping"
                        );
                        WatchEvent::Deleted(own_name)
                    }
                }
            }
        };
        if inputs.send(input(seen)).await.is_err() {
            return;
        }
    }
}

fn pod_of(pod: Pod) -> Result<KnownPod, Vec<Problem>> {
    KnownPod::from_api(&pod)
}

fn pod_ref_of(pod: &Pod) -> PodRef {
    let (namespace, name) = name_of(pod);
    PodRef { namespace, name }
}

fn node_of(node: Node) -> Result<Arc<NodeFacts>, Vec<Problem>> {
    NodeFacts::from_api(&node).map(Arc::new)
}

fn node_name_of(node: &Node) -> NodeName {
    NodeName::new(text_name_of(node))
}

type Labels = std::collections::BTreeMap<String, String>;

fn namespace_of(namespace: Namespace) -> Result<(String, Labels), Vec<Problem>> {
    let name = text_name_of(&namespace);
    Ok((name, namespace.metadata.labels.unwrap_or_default()))
}

fn budget_of(budget: PodDisruptionBudget) -> Result<DisruptionBudget, Vec<Problem>> {
    Ok(DisruptionBudget::from_api(&budget))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "other kinds of objects may be malformed"
)]
fn boxed<K>(object: K) -> Result<Box<K>, Vec<Problem>> {
    Ok(Box::new(object))
}

fn text_name_of<K: Resource>(object: &K) -> String {
    object.meta().name.clone().unwrap_or_default()
}

fn name_of<K: Resource>(object: &K) -> Name {
    let namespace = object.meta().namespace.clone();
    (namespace.unwrap_or_default(), text_name_of(object))
}
