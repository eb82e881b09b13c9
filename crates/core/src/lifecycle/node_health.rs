//! Node heartbeats: whether a node has renewed its Lease or status lately.
//!
//! A node renews its Lease and posts its status. The times in them are compared only with each
//! other: when one changes, the heartbeat counts as received *now*, by the controller's own clock,
//! so clocks that differ do no harm. A node without a heartbeat for longer than the grace period
//! has its conditions set to Unknown. Matches v1.36
//! pkg/controller/nodelifecycle/node_lifecycle_controller.go.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition as ApiNodeCondition, NodeStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::object::node::{ConditionStatus, NodeCondition};
use crate::object::timestamp::Timestamp;

/// The conditions of a node without heartbeats that become Unknown. `NetworkUnavailable` is not
/// reported by the node itself and stays.
const MARKED_UNKNOWN: [NodeCondition; 4] = [
    NodeCondition::Ready,
    NodeCondition::MemoryPressure,
    NodeCondition::DiskPressure,
    NodeCondition::PidPressure,
];

/// How long a node may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GracePeriods {
    /// After its creation, until it posts a status.
    pub startup: Duration,
    /// Afterwards.
    pub monitor: Duration,
}

impl Default for GracePeriods {
    fn default() -> Self {
        GracePeriods {
            startup: Duration::from_secs(60),
            monitor: Duration::from_secs(50),
        }
    }
}

/// The heartbeats of a node in the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeats {
    /// When the object was created.
    pub created: Timestamp,
    /// The Ready condition, if the object has one.
    pub ready: Option<Ready>,
    /// The Lease, if there is one.
    pub lease: Option<Renewal>,
}

/// A Ready condition. Its times are only compared with those of the same node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Whether the node is ready.
    pub status: ConditionStatus,
    /// When the node last said so.
    pub heartbeat: Option<Timestamp>,
    /// When the status changed.
    pub transition: Option<Timestamp>,
}

/// The renewal of a Lease, which may never have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Renewal(pub Option<Timestamp>);

impl Heartbeats {
    /// Reads a node and its Lease.
    pub fn from_api(node: &Node, lease: Option<&Lease>) -> Heartbeats {
        let created = node.metadata.creation_timestamp.as_ref();
        let status = node.status.as_ref();
        Heartbeats {
            created: created.map(Timestamp::from_api).unwrap_or_default(),
            ready: status.and_then(ready_of),
            lease: lease.map(Heartbeats::renewal_of),
        }
    }

    /// The renewal of a Lease.
    pub fn renewal_of(lease: &Lease) -> Renewal {
        let renewed = lease.spec.as_ref().and_then(|s| s.renew_time.as_ref());
        Renewal(renewed.map(|time| Timestamp::from_api(&Time(time.0))))
    }
}

fn ready_of(status: &NodeStatus) -> Option<Ready> {
    let mut conditions = status.conditions.iter().flatten();
    let ready = conditions.find(|c| c.type_ == NodeCondition::Ready.as_str())?;
    Some(Ready {
        status: status_of(ready),
        heartbeat: ready.last_heartbeat_time.as_ref().map(Timestamp::from_api),
        transition: ready.last_transition_time.as_ref().map(Timestamp::from_api),
    })
}

/// A text that validation would refuse counts as `Unknown`.
pub(super) fn status_of(condition: &ApiNodeCondition) -> ConditionStatus {
    match condition.status.as_str() {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    }
}

/// The state of a node that is kept from pass to pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// When the last heartbeat was received.
    pub heard: Timestamp,
    ready: Option<Ready>,
    lease: Option<Renewal>,
}

/// The result of looking at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// To be remembered for the next pass.
    pub health: Health,
    /// The status of the Ready condition; Unknown if there is none.
    pub observed: ConditionStatus,
    /// Whether the node is ready as the controller sees it; nothing for a new node that still has
    /// time to say.
    pub current: Option<ConditionStatus>,
    /// Whether the node has been silent for too long: [`mark_unknown`] its conditions.
    pub is_silent: bool,
}

/// Evaluates the health of a node at the time `now`, given what is remembered of it.
pub fn evaluate(
    grace: GracePeriods,
    known: Option<&Health>,
    heartbeats: &Heartbeats,
    now: Timestamp,
) -> Verdict {
    let mut health = observe_status(known, heartbeats, now);
    let is_renewed = match (known.and_then(|known| known.lease), heartbeats.lease) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(Renewal(before)), Some(Renewal(renewed))) => before.is_some() && before < renewed,
    };
    if is_renewed {
        health.lease = heartbeats.lease;
        health.heard = now;
    }
    let grace = match heartbeats.ready {
        Some(_) => grace.monitor,
        None => grace.startup,
    };
    let is_silent = now > health.heard.saturating_add(grace);
    let stated = heartbeats.ready.map(|ready| ready.status);
    Verdict {
        health,
        observed: stated.unwrap_or(ConditionStatus::Unknown),
        current: match is_silent {
            true => Some(ConditionStatus::Unknown),
            false => stated,
        },
        is_silent,
    }
}

/// Takes the status into account. A changed status drops what is known of the Lease, which thus
/// counts as renewed again in the next pass, as it does upstream.
fn observe_status(known: Option<&Health>, heartbeats: &Heartbeats, now: Timestamp) -> Health {
    let heard_now = Health {
        heard: now,
        ready: heartbeats.ready,
        lease: None,
    };
    match (known, heartbeats.ready) {
        // A node that never posted a status is counted from its creation.
        (None, None) => Health {
            heard: heartbeats.created,
            ..heard_now
        },
        (None, Some(_)) => heard_now,
        (Some(known), ready) => {
            let is_heard = match (known.ready, ready) {
                (Some(before), Some(ready)) => before.heartbeat != ready.heartbeat,
                (None, Some(_)) => true,
                // The condition was removed. The record follows the object, so that this is no
                // news in the next pass.
                (_, None) => false,
            };
            match is_heard {
                true => heard_now,
                false => Health {
                    ready,
                    ..known.clone()
                },
            }
        }
    }
}

impl Health {
    /// Records that the conditions of the node have been set to Unknown at `now`.
    pub fn record_marked_unknown(&mut self, heartbeats: &Heartbeats, now: Timestamp) {
        let heartbeat = heartbeats
            .ready
            .map_or(Some(heartbeats.created), |r| r.heartbeat);
        self.ready = Some(Ready {
            status: ConditionStatus::Unknown,
            heartbeat,
            transition: Some(now),
        });
        self.lease = heartbeats.lease;
    }

    /// Gives the node the whole grace period again.
    pub fn reset(&mut self, now: Timestamp) {
        self.heard = now;
    }

    /// Whether the node is ready, as far as is remembered.
    pub fn ready(&self) -> Option<ConditionStatus> {
        self.ready.map(|ready| ready.status)
    }
}

/// Sets the conditions that a node without heartbeats should report to Unknown; returns whether Ready is
/// another than before, which is when the change is worth writing.
pub fn mark_unknown(status: &mut NodeStatus, created: Option<&Time>, now: Timestamp) -> bool {
    let mut is_ready_changed = false;
    let conditions = status.conditions.get_or_insert_default();
    for silenced in MARKED_UNKNOWN {
        let unknown = |reason: &str, message: &str| ApiNodeCondition {
            type_: silenced.as_str().to_owned(),
            status: "Unknown".to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: None,
            last_transition_time: Some(now.to_api_seconds()),
        };
        let known = conditions.iter_mut().find(|c| c.type_ == silenced.as_str());
        match known {
            None => conditions.push(ApiNodeCondition {
                last_heartbeat_time: created.cloned(),
                ..unknown(
                    "NodeStatusNeverUpdated",
                    "Kubelet never posted node status.",
                )
            }),
            Some(known) if known.status != "Unknown" => {
                *known = ApiNodeCondition {
                    last_heartbeat_time: known.last_heartbeat_time.take(),
                    ..unknown("NodeStatusUnknown", "Kubelet stopped posting node status.")
                };
            }
            Some(_) => continue,
        }
        is_ready_changed |= silenced == NodeCondition::Ready;
    }
    is_ready_changed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const GRACE: GracePeriods = GracePeriods {
        startup: Duration::from_secs(60),
        monitor: Duration::from_secs(50),
    };

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn heartbeats(heartbeat: Option<i64>, renewed: Option<i64>) -> Heartbeats {
        Heartbeats {
            created: at(0),
            ready: heartbeat.map(|secs| Ready {
                status: ConditionStatus::True,
                heartbeat: Some(at(secs)),
                transition: Some(at(0)),
            }),
            lease: renewed.map(|secs| Renewal(Some(at(secs)))),
        }
    }

    #[test]
    fn a_node_that_never_posts_a_status_is_given_the_startup_grace() {
        let mut health = None;
        for (now, silent) in [(10, false), (60, false), (61, true)] {
            let verdict = evaluate(GRACE, health.as_ref(), &heartbeats(None, None), at(now));
            assert_eq!(verdict.is_silent, silent, "at {now}");
            assert_eq!(verdict.current, silent.then_some(ConditionStatus::Unknown));
            health = Some(verdict.health);
        }
    }

    #[test]
    fn either_the_status_or_the_lease_keeps_a_node_alive() {
        // Each row: now, heartbeat in the status, renewal of the Lease, silent.
        let table = [
            (100, 1, Some(1), false),
            (150, 1, Some(1), false),
            // A renewal of which the node's clock is far behind counts when it is seen.
            (151, 1, Some(2), false),
            (201, 1, Some(2), false),
            (202, 2, Some(2), false),
            // The news in the status dropped the Lease, which counts again.
            (203, 2, Some(2), false),
            (253, 2, Some(2), false),
            (254, 2, Some(2), true),
            // A Lease that goes back in time is no sign of life.
            (255, 2, Some(1), true),
            (256, 2, Some(3), false),
        ];
        let mut health = None;
        for (now, heartbeat, renewed, silent) in table {
            let seen = heartbeats(Some(heartbeat), renewed);
            let verdict = evaluate(GRACE, health.as_ref(), &seen, at(now));
            assert_eq!(verdict.is_silent, silent, "at {now}");
            health = Some(verdict.health);
        }
    }

    #[test]
    fn a_lease_alone_keeps_a_node_without_status_alive() {
        let mut health = None;
        for now in (0..600).step_by(10) {
            let verdict = evaluate(
                GRACE,
                health.as_ref(),
                &heartbeats(None, Some(now)),
                at(now),
            );
            assert!(!verdict.is_silent);
            health = Some(verdict.health);
        }
    }

    #[test]
    fn writing_unknown_is_not_a_heartbeat() {
        let first = evaluate(GRACE, None, &heartbeats(Some(5), None), at(5)).health;
        let seen = heartbeats(Some(5), None);
        let mut verdict = evaluate(GRACE, Some(&first), &seen, at(56));
        assert!(verdict.is_silent);
        verdict.health.record_marked_unknown(&seen, at(56));
        let mut written = seen.clone();
        written.ready = Some(Ready {
            status: ConditionStatus::Unknown,
            heartbeat: Some(at(5)),
            transition: Some(at(56)),
        });
        let again = evaluate(GRACE, Some(&verdict.health), &written, at(61));
        assert!(again.is_silent);
        assert_eq!(again.observed, ConditionStatus::Unknown);
        let mut reset = again.health;
        reset.reset(at(100));
        assert!(!evaluate(GRACE, Some(&reset), &written, at(150)).is_silent);
    }

    #[test]
    fn conditions_of_node_without_heartbeat_become_unknown_with_upstreams_messages() {
        let mut status: NodeStatus = serde_json::from_value(json!({"conditions": [
            {"type": "NetworkUnavailable", "status": "False"},
            {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory",
             "lastHeartbeatTime": "2026-01-01T00:00:00Z"},
            {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"},
            {"type": "PIDPressure", "status": "Unknown", "reason": "Other"},
        ]}))
        .unwrap();
        let created = Timestamp::from_rfc3339("2025-12-31T00:00:00Z").unwrap();
        let now = Timestamp::from_rfc3339("2026-01-01T00:01:00.5Z").unwrap();
        assert!(mark_unknown(&mut status, Some(&created.to_api()), now));
        assert_eq!(
            serde_json::to_value(&status).unwrap(),
            json!({"conditions": [
                {"type": "NetworkUnavailable", "status": "False"},
                {"type": "MemoryPressure", "status": "Unknown", "reason": "NodeStatusUnknown",
                 "message": "Kubelet stopped posting node status.",
                 "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                 "lastTransitionTime": "2026-01-01T00:01:00Z"},
                {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
                 "message": "Kubelet stopped posting node status.",
                 "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                 "lastTransitionTime": "2026-01-01T00:01:00Z"},
                {"type": "PIDPressure", "status": "Unknown", "reason": "Other"},
                {"type": "DiskPressure", "status": "Unknown", "reason": "NodeStatusNeverUpdated",
                 "message": "Kubelet never posted node status.",
                 "lastHeartbeatTime": "2025-12-31T00:00:00Z",
                 "lastTransitionTime": "2026-01-01T00:01:00Z"},
            ]})
        );
        assert!(
            !mark_unknown(&mut status, None, now),
            "nothing is left to write"
        );
    }
}
