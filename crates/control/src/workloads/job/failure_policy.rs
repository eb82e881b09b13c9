//! The pod failure policy of a job.

use k8s_openapi::api::batch::v1::{
    PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule,
};
use k8s_openapi::api::core::v1::Pod;

use crate::workloads::pod_state;

/// The action of the first matching rule for a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It counts towards the limits: no rule matched, or its action is Count.
    Count,
    /// It does not count.
    Ignore,
    /// The index has failed for good.
    FailIndex,
    /// The job has failed, for this reason.
    FailJob(String),
}

/// Looks for the first rule that matches the failed pod.
pub(super) fn match_policy(policy: Option<&PodFailurePolicy>, pod: &Pod) -> Verdict {
    let rules = policy.map(|policy| policy.rules.as_slice());
    for (index, rule) in rules.unwrap_or_default().iter().enumerate() {
        let Some(message) = matched(rule, index, pod) else {
            continue;
        };
        match rule.action.as_str() {
            "Ignore" => return Verdict::Ignore,
            "FailIndex" => return Verdict::FailIndex,
            "FailJob" => return Verdict::FailJob(message),
            "Count" => return Verdict::Count,
            _ => {}
        }
    }
    Verdict::Count
}

/// The message of a matching rule if it failed the job.
fn matched(rule: &PodFailurePolicyRule, index: usize, pod: &Pod) -> Option<String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let name = pod_state::name(pod);
    let action = &rule.action;
    if let Some(requirement) = &rule.on_exit_codes {
        let statuses = pod_state::container_statuses(pod).iter();
        let mut statuses = statuses.chain(pod_state::init_container_statuses(pod));
        return statuses.find_map(|status| {
            let code = status.state.as_ref()?.terminated.as_ref()?.exit_code;
            let wanted = requirement.container_name.as_ref();
            let is_meant = wanted.is_none_or(|wanted| *wanted == status.name);
            (is_meant && code != 0 && is_matching(code, requirement)).then(|| {
                format!(
                    "Container {} for pod {namespace}/{name} failed with exit code {code} matching {action} rule at index {index}",
                    status.name
                )
            })
        });
    }
    let patterns = rule.on_pod_conditions.as_deref()?;
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let condition = conditions.find(|condition| {
        let mut patterns = patterns.iter();
        patterns.any(|pattern| {
            // The server fills in `True`.
            let status = pattern.status.as_deref().unwrap_or("True");
            condition.type_ == pattern.type_ && condition.status == status
        })
    })?;
    let type_ = &condition.type_;
    Some(format!(
        "Pod {namespace}/{name} has condition {type_} matching {action} rule at index {index}"
    ))
}

fn is_matching(code: i32, requirement: &PodFailurePolicyOnExitCodesRequirement) -> bool {
    let is_listed = requirement.values.contains(&code);
    match requirement.operator.as_str() {
        "In" => is_listed,
        "NotIn" => !is_listed,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn policy(rules: Value) -> PodFailurePolicy {
        serde_json::from_value(json!({ "rules": rules })).unwrap()
    }

    fn exited(code: i32) -> Pod {
        let state = json!({"terminated": {"exitCode": code}});
        let container = json!({"name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        serde_json::from_value(json!({
            "metadata": {"namespace": "n", "name": "p"},
            "status": {"containerStatuses": [container]},
        }))
        .unwrap()
    }

    fn disrupted() -> Pod {
        let condition = json!({"type": "DisruptionTarget", "status": "True"});
        serde_json::from_value(json!({
            "metadata": {"namespace": "n", "name": "p"}, "status": {"conditions": [condition]},
        }))
        .unwrap()
    }

    #[test]
    fn the_first_matching_rule_decides() {
        let policy = policy(json!([
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}},
            {"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [1, 2]}},
            {"action": "Count", "onExitCodes": {"operator": "In", "values": [2]}},
        ]));
        let match_policy = |pod: &Pod| match_policy(Some(&policy), pod);
        assert_eq!(match_policy(&disrupted()), Verdict::Ignore);
        assert_eq!(
            match_policy(&exited(42)),
            Verdict::FailJob("Container main for pod n/p failed with exit code 42 matching FailJob rule at index 1".into())
        );
        assert_eq!(match_policy(&exited(9)), Verdict::FailIndex);
        assert_eq!(match_policy(&exited(2)), Verdict::Count);
        assert_eq!(match_policy(&exited(1)), Verdict::Count);
        // Success is no failure to be matched.
        assert_eq!(match_policy(&exited(0)), Verdict::Count);
    }

    #[test]
    fn a_condition_can_fail_the_job() {
        let policy = policy(
            json!([{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}]),
        );
        assert_eq!(
            match_policy(Some(&policy), &disrupted()),
            Verdict::FailJob(
                "Pod n/p has condition DisruptionTarget matching FailJob rule at index 0".into()
            )
        );
        assert_eq!(match_policy(None, &disrupted()), Verdict::Count);
    }
}
