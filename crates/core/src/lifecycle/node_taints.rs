//! The taints that follow from the conditions of a node.
//!
//! Conditions become `NoSchedule` taints at once. A node that is not ready or unreachable also gets
//! a `NoExecute` taint, which evicts its pods; that one is rationed by
//! [`taint_queue`](super::taint_queue). Matches v1.36 pkg/controller/nodelifecycle and
//! pkg/util/taints/taints.go.

use k8s_openapi::api::core::v1::{Node, Taint as ApiTaint};

use crate::object::node::{ConditionStatus, NodeCondition};
use crate::object::taint::{
    Effect, NODE_DISK_PRESSURE, NODE_MEMORY_PRESSURE, NODE_NETWORK_UNAVAILABLE, NODE_NOT_READY,
    NODE_PID_PRESSURE, NODE_UNREACHABLE, NODE_UNSCHEDULABLE, Taint,
};
use crate::object::timestamp::Timestamp;

use super::node_health::status_of;

/// The keys of all taints that stand for a condition of the node or its being cordoned.
const KEYS: [&str; 7] = [
    NODE_NOT_READY,
    NODE_UNREACHABLE,
    NODE_NETWORK_UNAVAILABLE,
    NODE_MEMORY_PRESSURE,
    NODE_DISK_PRESSURE,
    NODE_PID_PRESSURE,
    NODE_UNSCHEDULABLE,
];

/// Taints to be put on a node and to be taken off it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaintChange {
    /// To be put on.
    pub add: Vec<Taint>,
    /// To be taken off.
    pub remove: Vec<Taint>,
}

/// The taint key that a condition in this status stands for.
pub fn taint_key(condition: NodeCondition, status: ConditionStatus) -> Option<&'static str> {
    match (condition, status) {
        (NodeCondition::Ready, ConditionStatus::False) => Some(NODE_NOT_READY),
        (NodeCondition::Ready, ConditionStatus::Unknown) => Some(NODE_UNREACHABLE),
        (NodeCondition::MemoryPressure, ConditionStatus::True) => Some(NODE_MEMORY_PRESSURE),
        (NodeCondition::DiskPressure, ConditionStatus::True) => Some(NODE_DISK_PRESSURE),
        (NodeCondition::PidPressure, ConditionStatus::True) => Some(NODE_PID_PRESSURE),
        (NodeCondition::NetworkUnavailable, ConditionStatus::True) => {
            Some(NODE_NETWORK_UNAVAILABLE)
        }
        _ => None,
    }
}

/// The `NoSchedule` taints to add and remove so that they match the node's conditions and whether
/// it is cordoned. Other taints are left alone.
pub fn no_schedule_change(node: &Node) -> TaintChange {
    let taint = |key: &str| Taint {
        key: key.to_owned(),
        value: String::new(),
        effect: Effect::NoSchedule,
    };
    let conditions = node.status.as_ref().and_then(|s| s.conditions.as_ref());
    let keys = conditions.into_iter().flatten().filter_map(|condition| {
        let known = NodeCondition::from_name(&condition.type_)?;
        taint_key(known, status_of(condition))
    });
    let spec = node.spec.as_ref();
    let is_cordoned = spec.and_then(|s| s.unschedulable).unwrap_or(false);
    let keys = keys.chain(is_cordoned.then_some(NODE_UNSCHEDULABLE));
    let wanted: Vec<Taint> = keys.map(taint).collect();
    let own = spec.and_then(|s| s.taints.as_deref()).unwrap_or_default();
    let own = own.iter().map(Taint::from_api);
    let ours: Vec<Taint> = own
        .filter(|t| t.effect == Effect::NoSchedule && KEYS.contains(&t.key.as_str()))
        .collect();
    let missing_in = |list: &[Taint], taint: &Taint| !list.iter().any(|t| is_same(t, taint));
    TaintChange {
        add: filtered(&wanted, |taint| missing_in(&ours, taint)),
        remove: filtered(&ours, |taint| missing_in(&wanted, taint)),
    }
}

fn filtered(taints: &[Taint], is_wanted: impl Fn(&Taint) -> bool) -> Vec<Taint> {
    let wanted = taints.iter().filter(|taint| is_wanted(taint));
    wanted.cloned().collect()
}

/// Taints are the same if key and effect are; the value is no part of their identity.
fn is_same(a: &Taint, b: &Taint) -> bool {
    a.key == b.key && a.effect == b.effect
}

/// The `NoExecute` taint of a node that is not ready or unreachable; the two exclude each other.
pub fn no_execute_change(status: ConditionStatus) -> TaintChange {
    let taint = |key: &str| Taint {
        key: key.to_owned(),
        value: String::new(),
        effect: Effect::NoExecute,
    };
    let (not_ready, unreachable) = (taint(NODE_NOT_READY), taint(NODE_UNREACHABLE));
    match status {
        ConditionStatus::False => TaintChange {
            add: vec![not_ready],
            remove: vec![unreachable],
        },
        ConditionStatus::Unknown => TaintChange {
            add: vec![unreachable],
            remove: vec![not_ready],
        },
        ConditionStatus::True => TaintChange {
            add: Vec::new(),
            remove: vec![unreachable, not_ready],
        },
    }
}

impl TaintChange {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.add.is_empty() && self.remove.is_empty()
    }

    /// Whether any of the taints to be taken off is there.
    pub fn removes_any_of(&self, taints: &[ApiTaint]) -> bool {
        let mut own = taints.iter().map(Taint::from_api);
        own.any(|own| self.remove.iter().any(|taint| is_same(taint, &own)))
    }

    /// Whether all taints to be put on are there.
    pub fn adds_nothing_new_to(&self, taints: &[ApiTaint]) -> bool {
        let own: Vec<Taint> = taints.iter().map(Taint::from_api).collect();
        let mut added = self.add.iter();
        added.all(|taint| own.iter().any(|own| is_same(taint, own)))
    }

    /// The taints of a node after the change, those put on dated `now`; nothing if no taint
    /// changes.
    pub fn applied_to(&self, taints: &[ApiTaint], now: Timestamp) -> Option<Vec<ApiTaint>> {
        if self.add.is_empty() && !self.removes_any_of(taints) {
            return None;
        }
        let mut result: Vec<ApiTaint> = taints.to_vec();
        for taint in &self.add {
            let dated = ApiTaint {
                key: taint.key.clone(),
                value: Some(taint.value.clone()).filter(|value| !value.is_empty()),
                effect: taint.effect.as_str().to_owned(),
                time_added: Some(now.to_api_seconds()),
            };
            let mut own = result.iter_mut();
            match own.find(|own| is_same(&Taint::from_api(own), taint)) {
                Some(own) => *own = dated,
                None => result.push(dated),
            }
        }
        let is_removed = |own: &ApiTaint| {
            let own = Taint::from_api(own);
            self.remove.iter().any(|taint| is_same(taint, &own))
        };
        result.retain(|own| !is_removed(own));
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn change(node: Value) -> (Vec<String>, Vec<String>) {
        let change = no_schedule_change(&serde_json::from_value(node).unwrap());
        let texts = |taints: Vec<Taint>| taints.iter().map(ToString::to_string).collect();
        (texts(change.add), texts(change.remove))
    }

    #[test]
    fn every_condition_has_its_taint() {
        let table = [
            ("Ready", "False", NODE_NOT_READY),
            ("Ready", "Unknown", NODE_UNREACHABLE),
            ("MemoryPressure", "True", NODE_MEMORY_PRESSURE),
            ("DiskPressure", "True", NODE_DISK_PRESSURE),
            ("PIDPressure", "True", NODE_PID_PRESSURE),
            ("NetworkUnavailable", "True", NODE_NETWORK_UNAVAILABLE),
        ];
        for (condition, status, key) in table {
            let conditions = json!([{"type": condition, "status": status}]);
            let (add, remove) = change(json!({"status": {"conditions": conditions}}));
            assert_eq!(add, [format!("{key}:NoSchedule")]);
            assert!(remove.is_empty());
        }
        let healthy = json!([
            {"type": "Ready", "status": "True"},
            {"type": "MemoryPressure", "status": "Unknown"},
            {"type": "DiskPressure", "status": "False"},
        ]);
        let (add, remove) = change(json!({"status": {"conditions": healthy}}));
        assert!(add.is_empty() && remove.is_empty());
    }

    #[test]
    fn only_own_taints_are_removed() {
        let (add, remove) = change(json!({
            "spec": {"unschedulable": true, "taints": [
                {"key": NODE_MEMORY_PRESSURE, "effect": "NoSchedule"},
                {"key": NODE_NOT_READY, "effect": "NoExecute"},
                {"key": "mine", "effect": "NoSchedule"},
            ]},
            "status": {"conditions": [{"type": "MemoryPressure", "status": "False"}]},
        }));
        assert_eq!(add, [format!("{NODE_UNSCHEDULABLE}:NoSchedule")]);
        assert_eq!(remove, [format!("{NODE_MEMORY_PRESSURE}:NoSchedule")]);
    }

    #[test]
    fn the_two_no_execute_taints_exclude_each_other() {
        let taints: Vec<ApiTaint> = serde_json::from_value(json!([
            {"key": "mine", "value": "v", "effect": "NoExecute"},
            {"key": NODE_NOT_READY, "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
        ]))
        .unwrap();
        let now = Timestamp::from_rfc3339("2026-01-02T00:00:00.9Z").unwrap();
        let unreachable = no_execute_change(ConditionStatus::Unknown);
        assert!(unreachable.removes_any_of(&taints));
        assert!(!unreachable.adds_nothing_new_to(&taints));
        let swapped = unreachable.applied_to(&taints, now).unwrap();
        assert!(unreachable.adds_nothing_new_to(&swapped));
        assert_eq!(
            serde_json::to_value(&swapped).unwrap(),
            json!([
                {"key": "mine", "value": "v", "effect": "NoExecute"},
                {"key": NODE_UNREACHABLE, "effect": "NoExecute",
                 "timeAdded": "2026-01-02T00:00:00Z"},
            ])
        );
        let ready = no_execute_change(ConditionStatus::True);
        assert_eq!(ready.applied_to(&swapped, now).unwrap().len(), 1);
        assert_eq!(ready.applied_to(&taints[..1], now), None);
    }
}
