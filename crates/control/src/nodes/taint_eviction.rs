//! The taint eviction loop: pods that do not tolerate the `NoExecute` taints of their node are
//! deleted.
//!
//! Matches v1.36 pkg/controller/tainteviction, except that a deletion that fails is tried until it
//! works or is not wanted any more.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod};
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Client};
use plimsoll_core::lifecycle::taint_eviction::{TaintEvictions, TimerChange};
use plimsoll_core::object::identity::PodRef;
use plimsoll_core::object::taint::{
    ComparisonOperators, Taint, TaintFilter, Toleration, min_toleration_time,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::disruption::{Disruption, disruption_patch, patch_status};
use crate::work_queue::WorkQueue;
use plimsoll_client::clock::Clock;
use plimsoll_client::events::{EventType, Occurrence, Recorder};
use plimsoll_client::informer::{Change, Informer, Informers, Key};

/// How many pods are deleted at the same time.
const DELETERS: usize = 8;
/// The component in events.
const COMPONENT: &str = "taint-eviction-controller";
const DISRUPTION: Disruption = Disruption {
    reason: "DeletionByTaintManager",
    message: "Taint manager: deleting due to NoExecute taint",
};

/// The settings of the loop.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The clock.
    pub clock: Clock,
}

struct Controller {
    options: Options,
    client: Client,
    nodes: Arc<Informer<Node>>,
    pods: Arc<Informer<Pod>>,
    recorder: Recorder,
    state: Mutex<State>,
    /// Notified when a timer was started that may end before all others.
    started: Notify,
}

#[derive(Default)]
struct State {
    /// The `NoExecute` taints of the nodes that have some.
    tainted: BTreeMap<String, Vec<Taint>>,
    evictions: TaintEvictions,
}

/// The object that changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Subject {
    Node(String),
    Pod(Key),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Node(name) => write!(f, "node {name}"),
            Subject::Pod(key) => write!(f, "pod {key}"),
        }
    }
}

/// Runs the loop until `stop`.
pub async fn run(informers: Arc<Informers>, options: Options, stop: CancellationToken) {
    let client = informers.client().clone();
    let controller = Arc::new(Controller {
        recorder: Recorder::counted(client.clone(), COMPONENT, stop.clone()),
        client,
        nodes: informers.of(),
        pods: informers.of(),
        options,
        state: Mutex::default(),
        started: Notify::new(),
    });
    stop.run_until_cancelled(controller.run()).await;
}

impl Controller {
    async fn run(self: Arc<Self>) {
        self.nodes.synced().await;
        self.pods.synced().await;
        let changes = WorkQueue::new("noexec_taint_pod");
        let queue = Arc::clone(&changes);
        let _node_changes = self.nodes.on_change(move |change| {
            if concerns_node(change) {
                queue.add(Subject::Node(change.key().name));
            }
        });
        let queue = Arc::clone(&changes);
        let _pod_changes = self.pods.on_change(move |change| {
            if concerns_pod(change) {
                queue.add(Subject::Pod(change.key()));
            }
        });
        let due = WorkQueue::new("noexec_taint_due");
        let (observer, deleter) = (Arc::clone(&self), Arc::clone(&self));
        tokio::join!(
            // One worker: decisions are quick, and a node's taints are known before its pods are
            // looked at.
            changes.work(1, move |subject: Subject| {
                let controller = Arc::clone(&observer);
                async move {
                    controller.observe(&subject);
                    Ok::<_, kube::Error>(None)
                }
            }),
            Arc::clone(&due).work(DELETERS, move |key: Key| {
                let controller = Arc::clone(&deleter);
                async move { controller.delete(&key).await.map(|()| None) }
            }),
            self.wait_for_timers(due),
        );
    }

    /// Held only between awaits, and what it protects is whole after each of its methods.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait_for_timers(&self, due: Arc<WorkQueue<Key>>) {
        loop {
            let now = self.options.clock.steady();
            let next = {
                let mut state = self.state();
                for pod in state.evictions.take_due(now) {
                    due.add(Key::new(pod.namespace, pod.name));
                }
                state.evictions.next_due()
            };
            match next {
                None => self.started.notified().await,
                Some(next) => tokio::select! {
                    () = self.started.notified() => {}
                    () = tokio::time::sleep(next.saturating_since(now)) => {}
                },
            }
        }
    }

    fn observe(&self, subject: &Subject) {
        match subject {
            Subject::Node(name) => self.observe_node(name),
            Subject::Pod(key) => self.observe_pod(key),
        }
        self.started.notify_one();
    }

    fn observe_node(&self, name: &str) {
        let Some(node) = self.nodes.get(&Key::new("", name)) else {
            self.state().tainted.remove(name);
            return;
        };
        let taints = no_execute_taints(&node);
        let mut state = self.state();
        let pods = self.pods.on_node(name);
        if taints.is_empty() {
            state.tainted.remove(name);
            for pod in pods {
                let change = state.evictions.cancel(&pod_ref(&pod));
                self.record_cancelled(&pod_ref(&pod), change);
            }
            return;
        }
        for pod in &pods {
            self.observe_on(&mut state, pod, &taints);
        }
        state.tainted.insert(name.to_owned(), taints);
    }

    fn observe_pod(&self, key: &Key) {
        let mut state = self.state();
        let Some(pod) = self.pods.get(key) else {
            let gone = PodRef {
                namespace: key.namespace.clone(),
                name: key.name.clone(),
            };
            let change = state.evictions.cancel(&gone);
            self.record_cancelled(&gone, change);
            return;
        };
        let taints = state.tainted.get(node_of(&pod)).cloned();
        if let Some(taints) = taints {
            self.observe_on(&mut state, &pod, &taints);
        }
    }

    fn observe_on(&self, state: &mut State, pod: &Pod, taints: &[Taint]) {
        let tolerations = tolerations(pod);
        let stay = min_toleration_time(taints, &tolerations, ComparisonOperators::Disabled);
        let now = self.options.clock.steady();
        let change = state.evictions.observe(&pod_ref(pod), stay, now);
        self.record_cancelled(&pod_ref(pod), change);
    }

    async fn delete(&self, key: &Key) -> Result<(), kube::Error> {
        let pod = PodRef {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        };
        if !self.state().evictions.is_leaving(&pod) {
            return Ok(());
        }
        self.record_event(&pod, format!("Marking for deletion Pod {pod}"));
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        if let Some(object) = api.get_opt(&key.name).await? {
            let now = self.options.clock.now();
            if let Some(status) = disruption_patch(&object, DISRUPTION, now) {
                patch_status(&self.client, &object, status).await?;
            }
            let params = DeleteParams::default().preconditions(Preconditions {
                uid: object.metadata.uid,
                resource_version: None,
            });
            match api.delete(&key.name, &params).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                result => drop(result?),
            }
        }
        self.state().evictions.left(&pod);
        Ok(())
    }

    fn record_cancelled(&self, pod: &PodRef, change: TimerChange) {
        if change == TimerChange::Cancelled {
            self.record_event(pod, format!("Cancelling deletion of Pod {pod}"));
        }
    }

    fn record_event(&self, pod: &PodRef, note: String) {
        self.recorder.record(Occurrence {
            regarding: ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: Some(pod.name.clone()),
                namespace: Some(pod.namespace.clone()),
                ..ObjectReference::default()
            },
            related: None,
            event_type: EventType::Normal,
            reason: "TaintManagerEviction".into(),
            action: "".into(),
            note,
        });
    }
}

fn node_of(pod: &Pod) -> &str {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    node.unwrap_or_default()
}

fn tolerations(pod: &Pod) -> Vec<Toleration> {
    let tolerations = pod.spec.as_ref().and_then(|s| s.tolerations.as_ref());
    let tolerations = tolerations.into_iter().flatten();
    tolerations.map(Toleration::from_api).collect()
}

fn no_execute_taints(node: &Node) -> Vec<Taint> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let taints = taints.into_iter().flatten().map(Taint::from_api);
    taints
        .filter(|t| TaintFilter::NoExecute.includes(t))
        .collect()
}

fn concerns_node(change: &Change<Node>) -> bool {
    match change {
        Change::Updated { before, after } => no_execute_taints(before) != no_execute_taints(after),
        _ => true,
    }
}

fn concerns_pod(change: &Change<Pod>) -> bool {
    match change {
        Change::Updated { before, after } => {
            node_of(before) != node_of(after) || tolerations(before) != tolerations(after)
        }
        _ => true,
    }
}

fn pod_ref(pod: &Pod) -> PodRef {
    let Key { namespace, name } = Key::of(&pod.metadata);
    PodRef { namespace, name }
}

#[cfg(test)]
mod tests;
