//! Features that a node has to declare to run a pod.
//!
//! Matches v1.36 component-helpers/nodedeclaredfeatures, `InferForPodScheduling`. Its registry has
//! other features too; those matter to updates of running pods only.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, PodSpec};

const RESTART_ALL_CONTAINERS: &str = "RestartAllContainersOnContainerExits";
const USER_NAMESPACES_HOST_NETWORK: &str = "UserNamespacesHostNetworkSupport";

/// The features that the pod needs.
pub(super) fn required_features(spec: &PodSpec) -> BTreeSet<&'static str> {
    let mut containers = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    let is_host_network = spec.host_network == Some(true);
    let has_user_namespace = spec.host_users == Some(false);
    let needs = [
        (
            containers.any(may_restart_all_containers),
            RESTART_ALL_CONTAINERS,
        ),
        (
            is_host_network && has_user_namespace,
            USER_NAMESPACES_HOST_NETWORK,
        ),
    ];
    let needed = needs.into_iter().filter(|(is_needed, _)| *is_needed);
    needed.map(|(_, feature)| feature).collect()
}

fn may_restart_all_containers(container: &Container) -> bool {
    let mut rules = container.restart_policy_rules.iter().flatten();
    rules.any(|rule| rule.action == "RestartAllContainers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn features(spec: Value) -> Vec<&'static str> {
        let spec = serde_json::from_value(spec).unwrap();
        required_features(&spec).into_iter().collect()
    }

    #[test]
    fn rules_that_restart_all_containers_need_a_feature() {
        let container = |action: &str| {
            json!({"name": "c", "restartPolicyRules": [
                {"action": action, "exitCodes": {"operator": "In", "values": [1]}},
            ]})
        };
        let all = container("RestartAllContainers");
        assert_eq!(
            features(json!({"containers": [all]})),
            [RESTART_ALL_CONTAINERS]
        );
        assert_eq!(
            features(json!({"initContainers": [all], "containers": []})),
            [RESTART_ALL_CONTAINERS]
        );
        assert!(features(json!({"containers": [container("Restart")]})).is_empty());
    }

    #[test]
    fn user_namespaces_on_the_host_network_need_a_feature() {
        let spec = |network: bool, users: Value| {
            features(json!({"containers": [], "hostNetwork": network, "hostUsers": users}))
        };
        assert_eq!(spec(true, json!(false)), [USER_NAMESPACES_HOST_NETWORK]);
        assert!(spec(true, json!(null)).is_empty());
        assert!(spec(false, json!(false)).is_empty());
    }
}
