//! The node lifecycle loop: nodes that fall silent are marked, so that pods leave them.
//!
//! Every five seconds all nodes are looked at: those silent for too long have their conditions set
//! to Unknown and queue up for a `NoExecute` taint, at a rate that depends on how much of their
//! zone is gone. Whenever a node changes, its `NoSchedule` taints follow its conditions. Matches
//! v1.36 pkg/controller/nodelifecycle.
//!
//! Reading order: `pass_state` (what is remembered), `monitor` (the pass over all nodes), `tainting`
//! (taints and labels), `pods` (pods that are not ready any more).

mod monitor;
mod pass_state;
mod pods;
mod tainting;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod};
use kube::Client;
use plimsoll_core::lifecycle::node_health::GracePeriods;
use plimsoll_core::lifecycle::zone::Rates;
use tokio_util::sync::CancellationToken;

use crate::work_queue::WorkQueue;
use plimsoll_client::clock::Clock;
use plimsoll_client::events::{EventType, Occurrence, Recorder};
use plimsoll_client::informer::{Change, Informer, Informers, Key};

use pass_state::Record;

/// How many nodes are written at the same time.
const NODE_WORKERS: usize = 8;
/// How many pods are written at the same time, apart from the pass over all nodes.
const POD_WORKERS: usize = 4;
/// How often the queues of nodes to be tainted are looked at.
const TAINTING_PERIOD: Duration = Duration::from_millis(100);
/// The component in events.
const COMPONENT: &str = "node-controller";

/// The settings of the loop.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long nodes may be silent.
    pub grace: GracePeriods,
    /// How fast nodes are given up.
    pub rates: Rates,
    /// How often all nodes are looked at.
    pub monitor_period: Duration,
    /// The clock.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            grace: GracePeriods::default(),
            rates: Rates::default(),
            monitor_period: Duration::from_secs(5),
            clock: Clock::system(),
        }
    }
}

struct Controller {
    options: Options,
    client: Client,
    nodes: Arc<Informer<Node>>,
    leases: Arc<Informer<Lease>>,
    pods: Arc<Informer<Pod>>,
    recorder: Recorder,
    record: Mutex<Record>,
}

/// Runs the loop until `stop`.
pub async fn run(informers: Arc<Informers>, options: Options, stop: CancellationToken) {
    let client = informers.client().clone();
    let controller = Arc::new(Controller {
        recorder: Recorder::counted(client.clone(), COMPONENT, stop.clone()),
        client,
        nodes: informers.of(),
        leases: informers.of(),
        pods: informers.of(),
        record: Mutex::new(Record::new(options.rates)),
        options,
    });
    stop.run_until_cancelled(controller.run()).await;
}

impl Controller {
    async fn run(self: Arc<Self>) {
        self.nodes.synced().await;
        self.leases.synced().await;
        self.pods.synced().await;

        let changed_nodes = WorkQueue::new("node_lifecycle_controller");
        let queue = Arc::clone(&changed_nodes);
        let _node_changes = self.nodes.on_change(move |change| {
            if !matches!(change, Change::Deleted(_)) {
                queue.add(change.key());
            }
        });
        let bound_pods = WorkQueue::new("node_lifecycle_controller_pods");
        let queue = Arc::clone(&bound_pods);
        let _pod_changes = self.pods.on_change(move |change| {
            if pods::is_newly_bound(change) {
                queue.add(change.key());
            }
        });

        let (node_worker, pod_worker) = (Arc::clone(&self), Arc::clone(&self));
        tokio::join!(
            changed_nodes.work(NODE_WORKERS, move |key: Key| {
                let controller = Arc::clone(&node_worker);
                async move { controller.follow_conditions(&key).await.map(|()| None) }
            }),
            bound_pods.work(POD_WORKERS, move |key: Key| {
                let controller = Arc::clone(&pod_worker);
                async move { controller.check_bound_pod(&key).await.map(|()| None) }
            }),
            self.run_monitor(),
            self.run_tainting(),
        );
    }

    async fn run_monitor(&self) {
        loop {
            self.monitor().await;
            tokio::time::sleep(self.options.monitor_period).await;
        }
    }

    async fn run_tainting(&self) {
        loop {
            self.taint_queued().await;
            tokio::time::sleep(TAINTING_PERIOD).await;
        }
    }

    /// Held only between awaits, and what it protects is whole after each of its methods.
    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_event(&self, name: &str, uid: Option<String>, reason: &'static str, note: String) {
        self.recorder.record(Occurrence {
            regarding: ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Node".to_owned()),
                name: Some(name.to_owned()),
                uid,
                ..ObjectReference::default()
            },
            related: None,
            event_type: EventType::Normal,
            reason: reason.into(),
            action: "".into(),
            note,
        });
    }
}

fn name_of(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

fn zone_of(node: &Node) -> String {
    let labels = node.metadata.labels.as_ref();
    labels
        .map(plimsoll_core::object::node::zone_key)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
