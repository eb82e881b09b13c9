//! Signs of life: a Lease that is renewed, and the node's status.
//!
//! Matches v1.36 pkg/kubelet/kubelet_node_status.go and
//! staging/src/k8s.io/component-helpers/apimachinery/lease/controller.go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{Node, NodeStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference};
use k8s_openapi::jiff;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use plimsoll_client::clock::Clock;
use plimsoll_client::events::{Note, Recorder};
use plimsoll_core::lifecycle::node_health::Heartbeats;
use plimsoll_core::object::timestamp::Timestamp;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::node_object::{NodeIdentity, NodeReadings, is_news, status_patch};
use super::priority_lane::PriorityLane;

/// The namespace of node leases.
const LEASE_NAMESPACE: &str = "kube-node-lease";
/// The least by which times in leases differ.
const TICK: Duration = Duration::from_micros(1);
/// How often a renewal is tried before the next one is due.
const RENEWAL_TRIES: usize = 5;
/// How long a registration waits at first, and at most, before it is tried again.
const REGISTRATION_WAITS: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(7));

/// What keeps a node alive in the API.
pub(super) struct Heartbeat {
    /// Sends at once; all other clients wait while an urgent status is pending.
    pub(super) client: Client,
    pub(super) priority_lane: PriorityLane,
    pub(super) clock: Clock,
    pub(super) identity: NodeIdentity,
    pub(super) recorder: Recorder,
    /// The node as the API has it.
    pub(super) node: watch::Sender<Option<Arc<Node>>>,
    pub(super) lease_duration: Duration,
    /// How often the status is computed.
    pub(super) update_every: Duration,
    /// How often an unchanged one is reported.
    pub(super) report_every: Duration,
    /// Asks for a status at once.
    pub(super) at_once: Arc<Notify>,
    /// Whether that one is to be reported in any case.
    pub(super) is_rehearsal: AtomicBool,
}

impl std::fmt::Debug for Heartbeat {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Heartbeat")
            .field("node", &self.identity.name)
            .finish_non_exhaustive()
    }
}

impl Heartbeat {
    /// Makes the node known. Tries until it works or the agent stops.
    pub(super) async fn register(&self, facts: &NodeReadings) {
        let mut wait = REGISTRATION_WAITS.0;
        loop {
            match self.try_register(facts).await {
                Ok(node) => {
                    self.node.send_replace(Some(Arc::new(node)));
                    return;
                }
                Err(error) => {
                    tracing::warn!(node = %self.identity.name, %error, "unable to register node with API server; retrying");
                }
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(REGISTRATION_WAITS.1);
        }
    }

    async fn try_register(&self, facts: &NodeReadings) -> kube::Result<Node> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let wanted = self.identity.initial(facts, self.clock.now());
        match nodes.create(&PostParams::default(), &wanted).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            created => return created,
        }
        let existing = nodes.get(&self.identity.name).await?;
        let stale = self.identity.stale_labels(&existing);
        if stale.is_empty() {
            return Ok(existing);
        }
        let patch = Patch::Merge(serde_json::json!({ "metadata": { "labels": stale } }));
        let parameters = PatchParams::default();
        nodes.patch(&self.identity.name, &parameters, &patch).await
    }

    /// Renews the lease until `stop` is cancelled.
    pub(super) async fn renew_lease(&self, stop: CancellationToken) {
        let every = self.lease_duration / 4;
        let mut clock = None;
        loop {
            for _ in 0..RENEWAL_TRIES {
                match self.renew_once(&mut clock).await {
                    Ok(()) => break,
                    Err(error) => {
                        tracing::warn!(node = %self.identity.name, %error, "failed to renew node lease");
                        tokio::time::sleep(every / 50).await;
                    }
                }
            }
            // Nodes that were started together should not renew together for ever.
            let jitter = every.mul_f64(fastrand::f64() * 0.04);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(every + jitter) => {}
            }
        }
    }

    /// A renewal counts only if it is later than the last one, so they are when the clock is set back,
    /// and also those of an agent that is started after that.
    async fn renew_once(&self, clock: &mut Option<Clock>) -> kube::Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), LEASE_NAMESPACE);
        let name = &self.identity.name;
        let clock = match clock {
            Some(clock) => clock,
            None => {
                let known = leases.get_opt(name).await?;
                let last = known
                    .as_ref()
                    .and_then(|lease| Heartbeats::renewal_of(lease).0);
                let later = last.unwrap_or_default().saturating_add(TICK);
                clock.insert(self.clock.advancing_from(later))
            }
        };
        let now = micro_time(clock.now());
        let spec = serde_json::json!({ "spec": { "renewTime": now, "holderIdentity": name } });
        let patch = Patch::Merge(spec);
        match leases.patch(name, &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            patched => return patched.map(drop),
        }
        let owner = self.node.borrow().as_ref().and_then(|node| owner_of(node));
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(LEASE_NAMESPACE.to_owned()),
                owner_references: owner.map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(name.clone()),
                lease_duration_seconds: i32::try_from(self.lease_duration.as_secs()).ok(),
                renew_time: Some(now),
                ..LeaseSpec::default()
            }),
        };
        leases
            .create(&PostParams::default(), &lease)
            .await
            .map(drop)
    }

    /// Keeps the status in the API current until `stop` is cancelled. `facts` is called each time.
    pub(super) async fn report_status(
        &self,
        facts: impl Fn() -> NodeReadings,
        stop: CancellationToken,
    ) {
        let mut reported_at: Option<Timestamp> = None;
        loop {
            let (now, steady) = (self.clock.now(), self.clock.steady());
            let is_old =
                reported_at.is_none_or(|at| steady.saturating_since(at) >= self.report_every);
            let is_due = self.is_rehearsal.swap(false, Ordering::Relaxed) || is_old;
            let report = self.priority_lane.begin();
            match self.report_once(&facts(), is_due, now).await {
                Ok(true) => reported_at = Some(steady),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(node = %self.identity.name, %error, "failed to update node status");
                    // The next status is reported even if it is unchanged.
                    reported_at = None;
                }
            }
            self.priority_lane.end(report);
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.at_once.notified() => {}
                () = tokio::time::sleep(self.update_every) => {}
            }
        }
    }

    async fn report_once(
        &self,
        facts: &NodeReadings,
        is_due: bool,
        now: Timestamp,
    ) -> kube::Result<bool> {
        let current = self.node.borrow().clone();
        let Some(current) = current else {
            return Ok(false);
        };
        let previous = current.status.clone().unwrap_or_default();
        let next = self.identity.status(&previous, facts, now);
        if !is_due && !is_news(&previous, &next.status) {
            return Ok(false);
        }
        let begun = std::time::Instant::now();
        let patched = self.patch_status(&previous, &next.status).await?;
        tracing::debug!(took = ?begun.elapsed(), changed = ?next.events, "updated node status");
        self.node.send_replace(Some(Arc::new(patched)));
        for reason in next.events {
            let message = format!("Node {} status is now: {reason}", self.identity.name);
            self.record_event(Note::normal(reason, message));
        }
        Ok(true)
    }

    async fn patch_status(&self, previous: &NodeStatus, next: &NodeStatus) -> kube::Result<Node> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let patch = Patch::Strategic(status_patch(previous, next));
        let parameters = PatchParams::default();
        nodes
            .patch_status(&self.identity.name, &parameters, &patch)
            .await
    }

    /// Requests a status report that is sent before all other requests.
    pub(super) fn report_first(&self) {
        self.priority_lane.claim();
        self.at_once.notify_one();
    }

    /// Requests a status report although nothing has changed. It runs all code that is needed when the
    /// node is short of memory, in the agent, the API server and the clients that watch nodes, so that
    /// this code is in memory when there is none left to read it into.
    pub(super) fn rehearse(&self) {
        self.is_rehearsal.store(true, Ordering::Relaxed);
        self.at_once.notify_one();
    }

    /// Records an event about the node.
    pub(super) fn record_event(&self, note: Note) {
        let regarding = node_reference(&self.identity.name);
        self.recorder.record_note(regarding, note);
    }
}

/// The reference by which events name a node: its name stands for its uid, as upstream.
pub(super) fn node_reference(name: &str) -> k8s_openapi::api::core::v1::ObjectReference {
    k8s_openapi::api::core::v1::ObjectReference {
        kind: Some("Node".to_owned()),
        name: Some(name.to_owned()),
        uid: Some(name.to_owned()),
        ..Default::default()
    }
}

fn owner_of(node: &Node) -> Option<OwnerReference> {
    Some(OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: node.metadata.name.clone()?,
        uid: node.metadata.uid.clone()?,
        ..OwnerReference::default()
    })
}

fn micro_time(now: Timestamp) -> MicroTime {
    let micros = now.as_nanos().div_euclid(1000);
    MicroTime(jiff::Timestamp::from_microsecond(micros).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use plimsoll_client::informer::Key;
    use plimsoll_client::testing::{Cluster, VIRTUAL_START, clock_that_is_set};

    use super::*;

    fn heartbeat(client: Client, clock: Clock) -> Heartbeat {
        Heartbeat {
            recorder: Recorder::counted(client.clone(), "kubelet", CancellationToken::new()),
            client,
            priority_lane: PriorityLane::new(),
            clock,
            identity: NodeIdentity {
                name: "n1".to_owned(),
                hostname: "n1".to_owned(),
                addresses: Vec::new(),
                port: 10250,
                labels: Default::default(),
                provider_id: String::new(),
                max_images: Some(50),
                taints: Vec::new(),
                system: Default::default(),
            },
            node: watch::channel(None).0,
            lease_duration: Duration::from_secs(40),
            update_every: Duration::from_secs(10),
            report_every: Duration::from_secs(300),
            at_once: Arc::default(),
            is_rehearsal: AtomicBool::default(),
        }
    }

    /// Controllers take only later ones for signs of life.
    #[tokio::test(start_paused = true)]
    async fn each_renewal_is_later_than_the_last_when_the_clock_is_set() {
        let cluster = Cluster::new();
        let (ahead, time) = clock_that_is_set();
        let renewed = || {
            let lease = cluster.get("leases", &Key::new(LEASE_NAMESPACE, "n1"));
            let renewed = lease.unwrap_or_default()["spec"]["renewTime"].clone();
            Timestamp::from_rfc3339(renewed.as_str().unwrap_or_default())
        };
        let mut last = None;
        for jump in [0, 365 * 24 * 3600, -3600, -VIRTUAL_START, 0] {
            ahead.store(jump, Ordering::Relaxed);
            // An agent that keeps running, and one that is started then.
            let heartbeat = heartbeat(cluster.client(), time.clone());
            let mut clock = None;
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(10)).await;
                heartbeat.renew_once(&mut clock).await.unwrap();
                assert!(renewed() > last, "ahead by {jump}");
                last = renewed();
            }
            ahead.store(-3600, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(10)).await;
            heartbeat.renew_once(&mut clock).await.unwrap();
            assert!(renewed() > last, "ahead by {jump}");
            last = renewed();
        }
    }
}
