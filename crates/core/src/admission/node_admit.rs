//! Whether a node under pressure takes on one more pod.
//!
//! Matches v1.36 pkg/kubelet/eviction/eviction_manager.go, `Admit`.

use std::collections::BTreeSet;

use crate::config::{MemoryPressureBlocks, Profile};
use crate::object::node::NodeCondition;
use crate::object::pod::{PodView, QosClass};
use crate::object::taint::{
    ComparisonOperators, Effect, NODE_MEMORY_PRESSURE, Taint, is_tolerated,
};

/// The reason in the status of pods that pressure keeps out or drives away.
pub const REASON: &str = "Evicted";

/// Which rule decides under memory pressure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PressureRule {
    /// Kubernetes 1.36: if memory is the only thing that is short, pods other than BestEffort are
    /// admitted, and BestEffort ones that tolerate the memory-pressure taint.
    #[default]
    V1_36,
    /// Kubernetes 1.9: pods other than BestEffort are admitted even if more than memory is short;
    /// tolerations do not count. Critical pods are admitted here too, for which 1.9 needed an
    /// alpha feature.
    V1_9,
}

impl PressureRule {
    /// The rule of the release that the node imitates.
    pub const fn of(profile: Profile) -> PressureRule {
        match profile.memory_pressure_blocks() {
            MemoryPressureBlocks::AllWithoutToleration => PressureRule::V1_36,
            MemoryPressureBlocks::BestEffort => PressureRule::V1_9,
        }
    }
}

/// Why the node does not take the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Goes to `status.reason`.
    pub reason: &'static str,
    /// Goes to `status.message`, after the text of a rejection.
    pub message: String,
}

/// Admits the pod, or returns why not.
///
/// `conditions` are the pressure conditions the node reports at the moment. The message lists
/// them in the order of [`NodeCondition`]; upstream's order is that of a Go map.
pub fn admit(
    pod: &PodView,
    conditions: &BTreeSet<NodeCondition>,
    rule: PressureRule,
    comparison: ComparisonOperators,
) -> Result<(), Rejection> {
    if conditions.is_empty() || pod.is_critical() {
        return Ok(());
    }
    let is_memory_short = conditions.contains(&NodeCondition::MemoryPressure);
    let is_best_effort = pod.qos_class() == QosClass::BestEffort;
    let is_admitted = match rule {
        PressureRule::V1_36 => {
            let is_only_memory_short = is_memory_short && conditions.len() == 1;
            is_only_memory_short && (!is_best_effort || tolerates_memory_pressure(pod, comparison))
        }
        PressureRule::V1_9 => is_memory_short && !is_best_effort,
    };
    if is_admitted {
        return Ok(());
    }
    let names: Vec<&str> = conditions.iter().map(|c| c.as_str()).collect();
    Err(Rejection {
        reason: REASON,
        message: format!("The node had condition: [{}]. ", names.join(" ")),
    })
}

fn tolerates_memory_pressure(pod: &PodView, comparison: ComparisonOperators) -> bool {
    let taint = Taint {
        key: NODE_MEMORY_PRESSURE.to_owned(),
        value: String::new(),
        effect: Effect::NoSchedule,
    };
    is_tolerated(&taint, &pod.tolerations, comparison)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(qos: QosClass, conditions: &[NodeCondition], rule: PressureRule) -> Option<String> {
        let pod = PodView {
            stored_qos_class: Some(qos),
            ..PodView::default()
        };
        let conditions = conditions.iter().copied().collect();
        let verdict = admit(&pod, &conditions, rule, ComparisonOperators::Disabled);
        verdict.err().map(|rejection| rejection.message)
    }

    #[test]
    fn memory_pressure_refuses_only_best_effort_pods() {
        let memory = [NodeCondition::MemoryPressure];
        for rule in [PressureRule::V1_36, PressureRule::V1_9] {
            assert_eq!(verdict(QosClass::Burstable, &memory, rule), None);
            assert_eq!(
                verdict(QosClass::BestEffort, &memory, rule).as_deref(),
                Some("The node had condition: [MemoryPressure]. ")
            );
        }
    }

    #[test]
    fn under_disk_pressure_only_the_older_rule_admits_pods() {
        let both = [NodeCondition::DiskPressure, NodeCondition::MemoryPressure];
        assert_eq!(
            verdict(QosClass::Guaranteed, &both, PressureRule::V1_9),
            None
        );
        assert_eq!(
            verdict(QosClass::Guaranteed, &both, PressureRule::V1_36).as_deref(),
            Some("The node had condition: [MemoryPressure DiskPressure]. ")
        );
    }
}
