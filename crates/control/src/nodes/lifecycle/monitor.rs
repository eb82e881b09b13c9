//! The pass over all nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use plimsoll_core::lifecycle::node_health::{Heartbeats, Verdict, evaluate, mark_unknown};
use plimsoll_core::lifecycle::node_taints::no_execute_change;
use plimsoll_core::lifecycle::zone::ZoneHealth;
use plimsoll_core::object::node::ConditionStatus;
use serde_json::json;

use plimsoll_client::informer::Key;

use super::{Controller, NODE_WORKERS, name_of, zone_of};

/// Nodes with this label do not count when a zone's state is computed.
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";
/// The namespace of the nodes' Leases.
const LEASES: &str = "kube-node-lease";
/// How often the write of a status is tried, and how long it waits in between.
const WRITE_ATTEMPTS: usize = 5;
const WRITE_PAUSE: Duration = Duration::from_millis(20);

impl Controller {
    /// Looks at every node once, and then at the zones.
    pub(super) async fn monitor(&self) {
        let nodes = self.nodes.list();
        let node_changes = self.record().compare_nodes(&nodes);
        for node in &node_changes.added {
            let name = name_of(node);
            let note = format!("Node {name} event: Registered Node {name} in Controller");
            self.record_event(name, node.metadata.uid.clone(), "RegisteredNode", note);
            self.mark_reachable(node).await;
        }
        for (name, uid) in node_changes.deleted {
            let note = format!("Node {name} event: Removing Node {name} from Controller");
            self.record_event(&name, uid, "RemovingNode", note);
        }
        let checks = nodes.iter().map(|node| self.check(node).boxed());
        let checks: Vec<BoxFuture<'_, Option<(String, bool)>>> = checks.collect();
        let checked = stream::iter(checks).buffer_unordered(NODE_WORKERS);
        let mut zones: BTreeMap<String, ZoneHealth> = BTreeMap::new();
        let counted: Vec<Option<(String, bool)>> = checked.collect().await;
        for (zone, is_ready) in counted.into_iter().flatten() {
            zones.entry(zone).or_default().count(is_ready);
        }
        let now = self.options.clock.steady();
        let are_all_gone = self.record().step_zones(&zones, now);
        if are_all_gone {
            tracing::warn!("all nodes are not ready, suspending evictions");
            for node in &nodes {
                self.mark_reachable(node).await;
            }
        }
    }

    /// Looks at a node; answers its zone and whether it is ready, if it counts.
    async fn check(&self, node: &Arc<Node>) -> Option<(String, bool)> {
        let (node, verdict) = match self.evaluate(node).await {
            Ok(judged) => judged,
            Err(error) => {
                tracing::warn!(node = name_of(node), %error, "failed to update node health");
                return None;
            }
        };
        if let Some(current) = verdict.current {
            self.update_no_execute_taint(&node, current).await;
            self.follow_readiness(&node, &verdict, current).await;
        }
        let labels = node.metadata.labels.as_ref();
        let is_excluded = labels.is_some_and(|labels| labels.contains_key(EXCLUDED));
        let is_ready = verdict.current == Some(ConditionStatus::True);
        (!is_excluded).then(|| (zone_of(&node), is_ready))
    }

    /// Evaluates the health of a node and writes its status if that changed.
    async fn evaluate(&self, node: &Arc<Node>) -> Result<(Arc<Node>, Verdict), kube::Error> {
        let mut node = Arc::clone(node);
        let mut attempt = 1;
        loop {
            let lease = self.leases.get(&Key::new(LEASES, name_of(&node)));
            let heartbeats = Heartbeats::from_api(&node, lease.as_deref());
            // How long a node is silent does not depend on what the clock is set to.
            let clock = &self.options.clock;
            let now = clock.steady();
            let measured = Heartbeats {
                created: clock.steady_of(heartbeats.created),
                ..heartbeats.clone()
            };
            let known = self.record().health(name_of(&node)).cloned();
            let mut verdict = evaluate(self.options.grace, known.as_ref(), &measured, now);
            let written = match verdict.is_silent {
                true => self.write_silence(&node).await,
                false => Ok(false),
            };
            match written {
                Ok(is_changed) => {
                    if is_changed {
                        verdict.health.record_marked_unknown(&heartbeats, now);
                    }
                    let health = verdict.health.clone();
                    self.record().set_health(name_of(&node), health);
                    return Ok((node, verdict));
                }
                Err(error) if attempt == WRITE_ATTEMPTS => return Err(error),
                Err(_) => {
                    let api: Api<Node> = Api::all(self.client.clone());
                    node = Arc::new(api.get(name_of(&node)).await?);
                }
            }
            attempt += 1;
            tokio::time::sleep(WRITE_PAUSE).await;
        }
    }

    /// Sets the conditions of a silent node to Unknown; returns whether anything was written.
    async fn write_silence(&self, node: &Node) -> Result<bool, kube::Error> {
        let mut status = node.status.clone().unwrap_or_default();
        let created = node.metadata.creation_timestamp.as_ref();
        if !mark_unknown(&mut status, created, self.options.clock.now()) {
            return Ok(false);
        }
        let api: Api<Node> = Api::all(self.client.clone());
        let patch = Patch::Strategic(json!({
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "status": {"conditions": status.conditions},
        }));
        let params = PatchParams::default();
        let patched = api.patch_status(name_of(node), &params, &patch).await;
        patched.map(|_| true)
    }

    /// Queues the node for its `NoExecute` taint, or removes the taint from a node that is ready.
    /// Replacing one such taint by the other is not rate limited.
    async fn update_no_execute_taint(&self, node: &Node, current: ConditionStatus) {
        if current == ConditionStatus::True {
            self.mark_reachable(node).await;
            return;
        }
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
        let taints = taints.unwrap_or_default();
        let change = no_execute_change(current);
        if change.removes_any_of(taints) {
            self.change_taints(node, &change).await;
        } else {
            let now = self.options.clock.steady();
            let is_tainted = change.adds_nothing_new_to(taints);
            self.record().queue(node, is_tainted, now);
        }
    }

    /// Pods on a node that has just become unready are not ready either.
    async fn follow_readiness(&self, node: &Node, verdict: &Verdict, current: ConditionStatus) {
        let name = name_of(node);
        let was_ready = verdict.observed == ConditionStatus::True;
        let has_left = current != ConditionStatus::True && was_ready;
        let is_unmarked = self.record().unmarked.contains(name);
        if has_left {
            let note = format!("Node {name} status is now: NodeNotReady");
            self.record_event(name, node.metadata.uid.clone(), "NodeNotReady", note);
        }
        let mut is_marked = true;
        if has_left || (is_unmarked && !was_ready) {
            is_marked = self.mark_pods_not_ready(&self.pods.on_node(name)).await;
        }
        let mut record = self.record();
        match is_marked {
            true => record.unmarked.remove(name),
            false => record.unmarked.insert(name.to_owned()),
        };
    }
}
