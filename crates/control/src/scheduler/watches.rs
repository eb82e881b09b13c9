//! The watches that feed the loop. Objects are reduced to what decisions read before they are
//! handed over, in the task of their watch.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ReplicationController, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use plimsoll_core::object::identity::{NodeName, PodRef};
use plimsoll_core::problem::Problem;
use plimsoll_core::scheduling::cluster::DisruptionBudget;
use plimsoll_core::scheduling::queue::NodeFacts;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use plimsoll_client::informer::{Store, follow};
use plimsoll_client::supervision::survive_panics;

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
    /// Follows a kind in a task of its own. An object that cannot be parsed is as good as none.
    fn start<K, T, N>(
        &self,
        config: watcher::Config,
        parse: fn(K) -> Result<T, Vec<Problem>>,
        name: fn(&K) -> N,
        input: fn(WatchEvent<T, N>) -> Input,
    ) where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + 'static,
        T: Send + 'static,
        N: Send + 'static,
    {
        let (client, stop) = (self.client.clone(), self.stop.clone());
        let store = Arc::new(ToLoop {
            inputs: self.inputs.clone(),
            parse,
            name,
            input,
        });
        let feed = move || {
            let (api, config) = (Api::<K>::all(client.clone()), config.clone());
            let (store, stop) = (Arc::clone(&store), stop.clone());
            async move {
                stop.run_until_cancelled(follow(api, config, &*store)).await;
            }
        };
        // Started again, it lists again.
        tokio::spawn(survive_panics("informer", feed));
    }
}

/// Passes on what a watch reports; the loop keeps the objects.
struct ToLoop<K, T, N> {
    inputs: mpsc::Sender<Input>,
    parse: fn(K) -> Result<T, Vec<Problem>>,
    name: fn(&K) -> N,
    input: fn(WatchEvent<T, N>) -> Input,
}

impl<K, T, N> ToLoop<K, T, N> {
    async fn send(&self, event: WatchEvent<T, N>) {
        // Without a receiver the scheduler is stopping.
        let _ = self.inputs.send((self.input)(event)).await;
    }
}

impl<K, T, N> Store<K> for ToLoop<K, T, N>
where
    K: Resource<DynamicType = ()> + Send,
    T: Send,
    N: Send,
{
    type Kept = WatchEvent<T, N>;

    fn reduce(&self, object: K) -> WatchEvent<T, N> {
        let name = (self.name)(&object);
        match (self.parse)(object) {
            Ok(object) => WatchEvent::Is(object),
            Err(problems) => {
                tracing::warn!(
                    kind = %K::kind(&()), ?problems,
                    "failed to parse object, skipping"
                );
                WatchEvent::Deleted(name)
            }
        }
    }

    async fn replace(&self, objects: Vec<WatchEvent<T, N>>) {
        self.send(WatchEvent::ListBegins).await;
        for object in objects {
            self.send(object).await;
        }
        self.send(WatchEvent::ListEnds).await;
    }

    async fn apply(&self, object: WatchEvent<T, N>) {
        self.send(object).await;
    }

    async fn delete(&self, object: K) {
        self.send(WatchEvent::Deleted((self.name)(&object))).await;
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

#[cfg(test)]
mod tests {
    use plimsoll_client::testing::{Cluster, Known, check_follows_pods};
    use plimsoll_core::scheduling::configuration::Configuration;
    use plimsoll_core::scheduling::queue::Time;
    use serde_json::json;

    use super::*;
    use crate::scheduler::Loop;

    #[tokio::test(start_paused = true)]
    async fn scheduler_follows_pods() {
        let cluster = Cluster::new();
        let (inputs, mut receiver) = mpsc::channel(64);
        let stop = CancellationToken::new();
        start(&cluster.client(), &inputs, &stop);
        let now = Time::from_secs(1);
        let mut state = Loop::new(&Configuration::default(), 1, 1, now);
        let pod = |name: &str| {
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"namespace": "default", "name": name},
                "spec": {"containers": [], "nodeName": "n"},
            })
        };
        check_follows_pods(&cluster, pod, async || {
            while let Ok(input) = receiver.try_recv() {
                state.observe(input, now);
            }
            let name_and_uid =
                |record: &KnownPod| (record.pod_ref().name.clone(), record.uid().to_string());
            state.pods.values().map(name_and_uid).collect::<Known>()
        })
        .await;
        stop.cancel();
    }
}
