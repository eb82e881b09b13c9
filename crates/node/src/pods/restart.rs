//! Whether a container that has ended is started again.
//!
//! The first rule of the container that matches the exit code decides, then the container's policy,
//! then the pod's. Matches v1.36 pkg/api/v1/pod/util.go and pkg/kubelet/container/helpers.go.

use k8s_openapi::api::core::v1::{Container, Pod, PodStatus};

use super::observed::{Observed, State};
use crate::pod_fields;

const RESTART: &str = "Restart";
const RESTART_ALL: &str = "RestartAllContainers";

/// The policy of the pod; `Always` unless it says otherwise.
fn pod_policy(pod: &Pod) -> &str {
    let policy = pod_fields::spec(pod).and_then(|spec| spec.restart_policy.as_deref());
    policy.unwrap_or("Always")
}

/// Whether the pod's policy lets failed containers start again.
pub fn pod_restarts_failed(pod: &Pod) -> bool {
    pod_policy(pod) != "Never"
}

/// Whether a container killed for a failed probe is started again: rules need an exit code, which
/// there is not yet.
pub fn restarts_when_killed(pod: &Pod, container: &Container) -> bool {
    match container.restart_policy.as_deref() {
        Some(policy) => policy != "Never",
        None => pod_restarts_failed(pod),
    }
}

/// Whether the container runs until it has succeeded once.
pub fn runs_until_success(pod: &Pod, container: &Container) -> bool {
    let policy = container.restart_policy.as_deref();
    policy.unwrap_or_else(|| pod_policy(pod)) == "OnFailure"
}

/// Whether policy and rules want the container to start again after that exit code.
pub fn restarts_after(pod: &Pod, container: &Container, exit_code: i32) -> bool {
    let own = container.restart_policy.as_deref();
    if own.is_some()
        && matches!(
            matching_action(container, exit_code),
            Some(RESTART | RESTART_ALL)
        )
    {
        return true;
    }
    let known = own.filter(|policy| matches!(*policy, "Always" | "OnFailure" | "Never"));
    match known.unwrap_or_else(|| pod_policy(pod)) {
        "OnFailure" => exit_code != 0,
        "Never" => false,
        _ => true,
    }
}

/// The action of the first rule that the exit code matches.
fn matching_action(container: &Container, exit_code: i32) -> Option<&str> {
    let rules = container.restart_policy_rules.iter().flatten();
    let matches = |operator: &str, is_listed: bool| match operator {
        "In" => is_listed,
        "NotIn" => !is_listed,
        _ => false,
    };
    rules
        .filter(|rule| {
            rule.exit_codes.as_ref().is_some_and(|codes| {
                let is_listed = codes.values.iter().flatten().any(|code| *code == exit_code);
                matches(&codes.operator, is_listed)
            })
        })
        .map(|rule| rule.action.as_str())
        .next()
}

/// Whether that exit makes all containers of the pod start over.
pub fn restarts_all(container: &Container, exit_code: i32) -> bool {
    matching_action(container, exit_code) == Some(RESTART_ALL)
}

/// Whether some rule of the pod could make all containers start over.
pub fn could_restart_all(pod: &Pod) -> bool {
    let init = pod_fields::init_containers(pod).iter();
    init.chain(pod_fields::app_containers(pod))
        .any(|container| {
            let mut rules = container.restart_policy_rules.iter().flatten();
            rules.any(|rule| rule.action == RESTART_ALL)
        })
}

/// Whether all containers are to start over: some container has ended in a way that requires it,
/// or the last status says that it is under way.
pub fn is_restarting_all(pod: &Pod, observed: &Observed, status: &PodStatus) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    if conditions.any(|c| c.type_ == "AllContainersRestarting" && c.status == "True") {
        return true;
    }
    let reported = |name: &str| {
        let init = status.init_container_statuses.iter().flatten();
        let app = status.container_statuses.iter().flatten();
        let own = init.chain(app).find(|own| own.name == name)?;
        let ended = own.state.as_ref()?.terminated.as_ref()?;
        Some(ended.exit_code)
    };
    let init = pod_fields::init_containers(pod).iter();
    init.chain(pod_fields::app_containers(pod))
        .any(|container| {
            let Some(seen) = observed.latest(&container.name) else {
                return false;
            };
            if seen.state != State::Exited {
                return false;
            }
            restarts_all(container, seen.exit_code)
                || reported(&container.name).is_some_and(|code| restarts_all(container, code))
        })
}

/// Whether the container, as it is now, is to be started (again).
pub fn is_to_start(pod: &Pod, container: &Container, observed: &Observed) -> bool {
    if pod_fields::is_deleted(pod) {
        return false;
    }
    let Some(seen) = observed.latest(&container.name) else {
        return true;
    };
    match seen.state {
        State::Running => false,
        State::Created | State::Unknown => true,
        State::Exited => restarts_after(pod, container, seen.exit_code),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(pod_policy: &str, container: serde_json::Value, exit_code: i32) -> bool {
        let pod: Pod = serde_json::from_value(json!({
            "spec": {"restartPolicy": pod_policy, "containers": [container]},
        }))
        .unwrap();
        restarts_after(&pod, &pod_fields::app_containers(&pod)[0], exit_code)
    }

    #[test]
    fn the_pods_policy_decides_where_the_container_has_none() {
        for (policy, exit_code, expected) in [
            ("Always", 0, true),
            ("Always", 1, true),
            ("OnFailure", 0, false),
            ("OnFailure", 1, true),
            ("Never", 0, false),
            ("Never", 1, false),
        ] {
            assert_eq!(
                check(policy, json!({"name": "a"}), exit_code),
                expected,
                "{policy} {exit_code}"
            );
        }
    }

    #[test]
    fn restart_rules_override_container_and_pod_policies() {
        let ruled = |operator: &str, policy: &str| {
            json!({"name": "a", "restartPolicy": policy, "restartPolicyRules": [
                {"action": "Restart", "exitCodes": {"operator": operator, "values": [42]}},
            ]})
        };
        for (container, exit_code, expected) in [
            (ruled("In", "Never"), 42, true),
            (ruled("In", "Never"), 1, false),
            (ruled("NotIn", "Never"), 42, false),
            (ruled("NotIn", "Never"), 0, true),
            (ruled("In", "OnFailure"), 1, true),
            (ruled("In", "OnFailure"), 0, false),
            (json!({"name": "a", "restartPolicy": "Never"}), 1, false),
        ] {
            let case = format!("{container} {exit_code}");
            assert_eq!(check("Always", container, exit_code), expected, "{case}");
        }
    }
}
