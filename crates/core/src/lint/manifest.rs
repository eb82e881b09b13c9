//! The rules about manifests.

use crate::admission::limit_range::Breach;
use crate::admission::pipeline::{Outcome, Review};
use crate::object::pod::{PodView, QosClass, SYSTEM_CLUSTER_CRITICAL, SYSTEM_NODE_CRITICAL};

use super::{Finding, Level, Rule};

/// What eviction may do to the pods of a DaemonSet. `path` is where their spec stands.
pub fn lint_daemon_set(pod: &PodView, path: &str) -> Option<Finding> {
    let class = pod.priority_class_name.as_str();
    let is_critical =
        pod.is_critical() || [SYSTEM_NODE_CRITICAL, SYSTEM_CLUSTER_CRITICAL].contains(&class);
    if is_critical {
        return None;
    }
    let (level, message) = match pod.qos_class() {
        QosClass::BestEffort => (
            Level::Warning,
            "a BestEffort DaemonSet: its pods are the first to be evicted",
        ),
        QosClass::Burstable => (
            Level::Warning,
            "a DaemonSet without critical priority: its pods are evicted once above their requests",
        ),
        QosClass::Guaranteed => (
            Level::Info,
            "a DaemonSet without critical priority: its pods are evicted last, but not exempt",
        ),
    };
    Some(Finding {
        rule: Rule::UnprotectedDaemonSet,
        level,
        path: path.to_owned(),
        position: None,
        message: message.to_owned(),
        fix: format!(
            "set requests equal to limits, or priorityClassName: {SYSTEM_NODE_CRITICAL} to be exempt"
        ),
    })
}

/// An override that pushes a pod below the namespace's minimum: refused with it, fine without.
pub fn lint_override(with: &Review, without: &Review, path: &str) -> Option<Finding> {
    let refusal = with.refusal.as_ref()?;
    if without.outcome() != Outcome::Created || with.overridden.is_none() {
        return None;
    }
    let below = refusal
        .violations
        .iter()
        .find(|violation| matches!(violation.breach, Breach::BelowMin(..)))?;
    Some(Finding {
        rule: Rule::OverrideBelowMinimum,
        level: Level::Error,
        path: path.to_owned(),
        position: None,
        message: below.to_string(),
        fix: format!(
            "lower the minimum of {} in LimitRange {}, raise the percentage, or set floor: limitRangeMin",
            below.resource, refusal.limit_range
        ),
    })
}

/// A host path, whose disk the node does not watch.
pub fn lint_host_path(volume: &str, host_path: &str, path: &str) -> Finding {
    Finding {
        rule: Rule::DiskNotWatched,
        level: Level::Info,
        path: path.to_owned(),
        position: None,
        message: format!("volume {volume} writes to {host_path} of the host"),
        fix: "use an emptyDir with a sizeLimit, which is measured, or watch that disk yourself"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pod;

    #[test]
    fn l11_daemons_are_guaranteed_or_critical() {
        let level = |pod: &PodView| lint_daemon_set(pod, "").map(|finding| finding.level);
        assert_eq!(level(&pod("d").view()), Some(Level::Warning));
        assert_eq!(level(&pod("d").cpu("1").view()), Some(Level::Warning));
        let full = pod("d")
            .cpu("1")
            .limit("cpu", "1")
            .memory("1Gi")
            .limit("memory", "1Gi");
        assert_eq!(level(&full.view()), Some(Level::Info));
        let mut critical = pod("d").view();
        critical.priority_class_name = SYSTEM_NODE_CRITICAL.to_owned();
        assert_eq!(level(&critical), None);
    }
}
