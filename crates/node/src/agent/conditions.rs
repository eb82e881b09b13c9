//! The four conditions of a node.
//!
//! Matches v1.36 pkg/kubelet/nodestatus/setters.go.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::NodeCondition as ApiCondition;
use plimsoll_core::object::node::NodeCondition;
use plimsoll_core::object::timestamp::Timestamp;

/// What the agent says of one condition.
struct Words {
    condition: NodeCondition,
    /// Reason, message and event while it is true.
    held: [&'static str; 3],
    /// The same while it is false.
    clear: [&'static str; 3],
}

const PRESSURES: [Words; 3] = [
    Words {
        condition: NodeCondition::MemoryPressure,
        held: [
            "KubeletHasInsufficientMemory",
            "kubelet has insufficient memory available",
            "NodeHasInsufficientMemory",
        ],
        clear: [
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
            "NodeHasSufficientMemory",
        ],
    },
    Words {
        condition: NodeCondition::DiskPressure,
        held: [
            "KubeletHasDiskPressure",
            "kubelet has disk pressure",
            "NodeHasDiskPressure",
        ],
        clear: [
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure",
            "NodeHasNoDiskPressure",
        ],
    },
    Words {
        condition: NodeCondition::PidPressure,
        held: [
            "KubeletHasInsufficientPID",
            "kubelet has insufficient PID available",
            "NodeHasInsufficientPID",
        ],
        clear: [
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
            "NodeHasSufficientPID",
        ],
    },
];

/// Conditions for `status.conditions`, and the reasons of events that report their changes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Conditions {
    pub(super) list: Vec<ApiCondition>,
    pub(super) events: Vec<&'static str>,
}

/// The conditions as they are now. `previous` are those in the API, of which transition times are
/// kept; `not_ready` lists what keeps the node from being ready.
pub(super) fn compute_conditions(
    previous: &[ApiCondition],
    pressure: &BTreeSet<NodeCondition>,
    not_ready: &[String],
    now: Timestamp,
) -> Conditions {
    let mut events = Vec::new();
    let mut list = Vec::new();
    for words in &PRESSURES {
        let holds = pressure.contains(&words.condition);
        let [reason, message, event] = if holds { words.held } else { words.clear };
        let condition = updated(previous, words.condition, holds, (reason, message), now);
        if condition.is_changed {
            events.push(event);
        }
        list.push(condition.condition);
    }
    let problems = aggregate(not_ready);
    let (is_ready, reason, message) = match &problems {
        None => (true, "KubeletReady", "kubelet is posting ready status"),
        Some(problems) => (false, "KubeletNotReady", problems.as_str()),
    };
    let ready = updated(
        previous,
        NodeCondition::Ready,
        is_ready,
        (reason, message),
        now,
    );
    if ready.is_changed && ready.was_known {
        events.push(if is_ready {
            "NodeReady"
        } else {
            "NodeNotReady"
        });
    }
    list.push(ready.condition);
    Conditions { list, events }
}

struct Updated {
    condition: ApiCondition,
    is_changed: bool,
    was_known: bool,
}

fn updated(
    previous: &[ApiCondition],
    which: NodeCondition,
    holds: bool,
    (reason, message): (&str, &str),
    now: Timestamp,
) -> Updated {
    let before = previous.iter().find(|c| c.type_ == which.as_str());
    let status = if holds { "True" } else { "False" };
    let is_changed = before.is_none_or(|before| before.status != status);
    let since = before.filter(|_| !is_changed);
    let since = since.and_then(|before| before.last_transition_time.clone());
    Updated {
        condition: ApiCondition {
            type_: which.as_str().to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(now.to_api_seconds()),
            last_transition_time: Some(since.unwrap_or_else(|| now.to_api_seconds())),
        },
        is_changed,
        was_known: before.is_some(),
    }
}

/// Several errors as Go's aggregates print them: one as it is, more in brackets.
fn aggregate(errors: &[String]) -> Option<String> {
    match errors {
        [] => None,
        [only] => Some(only.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn status_of<'a>(conditions: &'a Conditions, name: &str) -> &'a ApiCondition {
        let found = conditions.list.iter().find(|c| c.type_ == name);
        found.expect("the condition is listed")
    }

    #[test]
    fn a_new_node_is_ready_and_under_no_pressure() {
        let now = compute_conditions(&[], &BTreeSet::new(), &[], at(7));
        let summary: Vec<_> = now.list.iter().map(|c| (&*c.type_, &*c.status)).collect();
        assert_eq!(
            summary,
            [
                ("MemoryPressure", "False"),
                ("DiskPressure", "False"),
                ("PIDPressure", "False"),
                ("Ready", "True")
            ]
        );
        assert_eq!(
            now.events,
            [
                "NodeHasSufficientMemory",
                "NodeHasNoDiskPressure",
                "NodeHasSufficientPID"
            ]
        );
    }

    #[test]
    fn transition_times_change_with_the_status_only() {
        let before = compute_conditions(&[], &BTreeSet::new(), &[], at(7));
        let pressure = BTreeSet::from([NodeCondition::MemoryPressure]);
        let now = compute_conditions(&before.list, &pressure, &[], at(9));
        let memory = status_of(&now, "MemoryPressure");
        assert_eq!(memory.last_transition_time, Some(at(9).to_api()));
        assert_eq!(
            memory.reason.as_deref(),
            Some("KubeletHasInsufficientMemory")
        );
        let disk = status_of(&now, "DiskPressure");
        assert_eq!(disk.last_transition_time, Some(at(7).to_api()));
        assert_eq!(disk.last_heartbeat_time, Some(at(9).to_api()));
        assert_eq!(now.events, ["NodeHasInsufficientMemory"]);
    }

    #[test]
    fn ready_condition_lists_all_problems() {
        let before = compute_conditions(&[], &BTreeSet::new(), &[], at(7));
        let problems = ["container runtime is down".to_owned()];
        let now = compute_conditions(&before.list, &BTreeSet::new(), &problems, at(8));
        let ready = status_of(&now, "Ready");
        assert_eq!(ready.status, "False");
        assert_eq!(ready.message.as_deref(), Some("container runtime is down"));
        assert_eq!(now.events, ["NodeNotReady"]);
        let two = ["a".to_owned(), "b".to_owned()];
        let now = compute_conditions(&now.list, &BTreeSet::new(), &two, at(8));
        assert_eq!(status_of(&now, "Ready").message.as_deref(), Some("[a, b]"));
    }
}
