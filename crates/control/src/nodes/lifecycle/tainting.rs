//! Taints and labels of nodes.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use plimsoll_core::lifecycle::node_health::Heartbeats;
use plimsoll_core::lifecycle::node_labels::missing_labels;
use plimsoll_core::lifecycle::node_taints::{TaintChange, no_execute_change, no_schedule_change};
use plimsoll_core::object::identity::NodeName;
use plimsoll_core::object::node::ConditionStatus;
use serde_json::json;

use plimsoll_client::informer::Key;

use super::{Controller, name_of};

/// How long a node that sends no heartbeat waits in the queue.
const DEFAULT_PAUSE: Duration = Duration::from_millis(50);
/// How often a taint is tried to be written when others write the node, too.
const CONFLICTS: usize = 10;

impl Controller {
    /// Has the `NoSchedule` taints of a node follow its conditions, and its old labels the new.
    pub(super) async fn follow_conditions(&self, key: &Key) -> Result<(), kube::Error> {
        let Some(node) = self.nodes.get(key) else {
            return Ok(());
        };
        self.write_taints(&node, &no_schedule_change(&node)).await?;
        let labels = node.metadata.labels.as_ref();
        let missing = labels.map(missing_labels).unwrap_or_default();
        if !missing.is_empty() {
            let api: Api<Node> = Api::all(self.client.clone());
            let patch = Patch::Merge(json!({"metadata": {"labels": missing}}));
            ignore_missing(
                api.patch(name_of(&node), &PatchParams::default(), &patch)
                    .await,
            )?;
        }
        Ok(())
    }

    /// Takes both `NoExecute` taints off a node, and it off the queue.
    pub(super) async fn mark_reachable(&self, node: &Node) {
        let change = no_execute_change(ConditionStatus::True);
        if self.change_taints(node, &change).await {
            self.record().unqueue(node);
        }
    }

    /// Taints nodes that queue for it, as many as the rates allow.
    pub(super) async fn taint_queued(&self) {
        loop {
            let now = self.options.clock.steady();
            let Some((zone, name)) = self.record().take(now) else {
                return;
            };
            if let Some(pause) = self.taint(&name).await {
                let mut record = self.record();
                if let Some(queue) = record.queue_of(&zone) {
                    queue.put_back(name, pause, now);
                }
            }
        }
    }

    /// Puts the `NoExecute` taint on a node that is still not ready; answers after which pause to
    /// try again.
    async fn taint(&self, name: &NodeName) -> Option<Duration> {
        let node = self.nodes.get(&Key::new("", name.as_str()))?;
        let Some(ready) = Heartbeats::from_api(&node, None).ready else {
            return Some(DEFAULT_PAUSE);
        };
        if ready.status == ConditionStatus::True {
            return None;
        }
        let change = no_execute_change(ready.status);
        let is_written = self.change_taints(&node, &change).await;
        (!is_written).then_some(Duration::ZERO)
    }

    /// Changes taints; returns whether that worked.
    pub(super) async fn change_taints(&self, node: &Node, change: &TaintChange) -> bool {
        let written = self.write_taints(node, change).await;
        if let Err(error) = &written {
            tracing::warn!(node = name_of(node), %error, "failed to update node taints");
        }
        written.is_ok()
    }

    async fn write_taints(&self, node: &Node, change: &TaintChange) -> Result<(), kube::Error> {
        let api: Api<Node> = Api::all(self.client.clone());
        let mut fresh: Option<Node> = None;
        let mut conflicts = 0;
        loop {
            let node = fresh.as_ref().unwrap_or(node);
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
            let now = self.options.clock.now();
            let Some(taints) = change.applied_to(taints.unwrap_or_default(), now) else {
                return Ok(());
            };
            let patch = Patch::Merge(json!({
                "metadata": {"resourceVersion": node.metadata.resource_version},
                "spec": {"taints": taints},
            }));
            let params = PatchParams::default();
            match api.patch(name_of(node), &params, &patch).await {
                Err(kube::Error::Api(status)) if status.code == 409 && conflicts < CONFLICTS => {
                    conflicts += 1;
                    let name = name_of(node).to_owned();
                    fresh = api.get_opt(&name).await?;
                    if fresh.is_none() {
                        return Ok(());
                    }
                }
                result => return ignore_missing(result),
            }
        }
    }
}

/// A node that is gone needs nothing.
fn ignore_missing(result: Result<Node, kube::Error>) -> Result<(), kube::Error> {
    match result {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Ok(()),
    }
}
