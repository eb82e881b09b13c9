//! Pods on nodes that are not ready.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::object::node::ConditionStatus;
use serde_json::json;

use crate::disruption::{conditions_patch, patch_status};
use plimsoll_client::events::{EventType, Occurrence, reference};
use plimsoll_client::informer::{Change, Key};

use super::Controller;

/// Whether the change bound the pod to a node.
pub(super) fn is_newly_bound(change: &Change<Pod>) -> bool {
    let node_of = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    match change {
        Change::Added(pod) => node_of(pod).is_some(),
        Change::Updated { before, after } => {
            let node = node_of(after);
            node.is_some() && node != node_of(before)
        }
        Change::Deleted(_) => false,
    }
}

fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod
        .status
        .iter()
        .flat_map(|s| s.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status != "False")
}

impl Controller {
    /// A pod that was bound to a node after the pass which found the node unready.
    pub(super) async fn check_bound_pod(&self, key: &Key) -> Result<(), kube::Error> {
        let Some(pod) = self.pods.get(key) else {
            return Ok(());
        };
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        let node = node.unwrap_or_default();
        let ready = self.record().health(node).and_then(|health| health.ready());
        match ready {
            None | Some(ConditionStatus::True) => Ok(()),
            Some(_) => self.mark_not_ready(&pod).await,
        }
    }

    /// Returns whether all of them could be marked.
    pub(super) async fn mark_pods_not_ready(&self, pods: &[Arc<Pod>]) -> bool {
        let mut are_all_marked = true;
        for pod in pods {
            if let Err(error) = self.mark_not_ready(pod).await {
                tracing::warn!(
                    pod = %Key::of(&pod.metadata), %error, "failed to mark pod not ready"
                );
                are_all_marked = false;
            }
        }
        are_all_marked
    }

    async fn mark_not_ready(&self, pod: &Pod) -> Result<(), kube::Error> {
        if !is_ready(pod) {
            return Ok(());
        }
        let since = self.options.clock.now().to_api_seconds();
        let condition = json!({"type": "Ready", "status": "False", "lastTransitionTime": since});
        let status = conditions_patch(pod, condition);
        match patch_status(&self.client, pod, status).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            result => result?,
        }
        self.recorder.record(Occurrence {
            regarding: reference(pod),
            related: None,
            event_type: EventType::Warning,
            reason: "NodeNotReady".into(),
            action: "".into(),
            note: "Node is not ready".to_owned(),
        });
        Ok(())
    }
}
