//! A ReplicationController as a ReplicaSet: the same work under an older name.

use k8s_openapi::api::apps::v1::{
    ReplicaSet, ReplicaSetCondition, ReplicaSetSpec, ReplicaSetStatus,
};
use k8s_openapi::api::core::v1::{
    ReplicationController, ReplicationControllerCondition, ReplicationControllerStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// The ReplicaSet with the same desired state.
pub fn from_replication_controller(controller: &ReplicationController) -> ReplicaSet {
    let spec = controller.spec.clone().unwrap_or_default();
    let status = controller.status.clone().unwrap_or_default();
    let condition = |c: ReplicationControllerCondition| ReplicaSetCondition {
        last_transition_time: c.last_transition_time,
        message: c.message,
        reason: c.reason,
        status: c.status,
        type_: c.type_,
    };
    ReplicaSet {
        metadata: controller.metadata.clone(),
        spec: Some(ReplicaSetSpec {
            min_ready_seconds: spec.min_ready_seconds,
            replicas: spec.replicas,
            selector: LabelSelector {
                match_labels: spec.selector,
                match_expressions: None,
            },
            template: spec.template,
        }),
        status: Some(ReplicaSetStatus {
            available_replicas: status.available_replicas,
            conditions: status
                .conditions
                .map(|list| list.into_iter().map(condition).collect()),
            fully_labeled_replicas: status.fully_labeled_replicas,
            observed_generation: status.observed_generation,
            ready_replicas: status.ready_replicas,
            replicas: status.replicas,
            terminating_replicas: None,
        }),
    }
}

/// The same status in the fields of the older kind.
pub fn to_replication_controller_status(status: ReplicaSetStatus) -> ReplicationControllerStatus {
    let condition = |c: ReplicaSetCondition| ReplicationControllerCondition {
        last_transition_time: c.last_transition_time,
        message: c.message,
        reason: c.reason,
        status: c.status,
        type_: c.type_,
    };
    ReplicationControllerStatus {
        available_replicas: status.available_replicas,
        conditions: status
            .conditions
            .map(|list| list.into_iter().map(condition).collect()),
        fully_labeled_replicas: status.fully_labeled_replicas,
        observed_generation: status.observed_generation,
        ready_replicas: status.ready_replicas,
        replicas: status.replicas,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn status_round_trips() {
        let controller: ReplicationController = serde_json::from_value(json!({
            "metadata": {"name": "a"},
            "spec": {"replicas": 3, "selector": {"app": "x"}},
            "status": {"replicas": 2, "readyReplicas": 1, "observedGeneration": 5, "conditions": [
                {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "m"},
            ]},
        }))
        .unwrap();
        let set = from_replication_controller(&controller);
        let spec = set.spec.unwrap();
        assert_eq!(spec.replicas, Some(3));
        assert_eq!(spec.selector.match_labels.unwrap()["app"], "x");
        let status = to_replication_controller_status(set.status.unwrap());
        assert_eq!(Some(status), controller.status);
    }
}
