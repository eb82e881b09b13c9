//! The conditions that show the progress of deleting a namespace.
//!
//! Matches v1.36 pkg/controller/namespace/deletion/status_condition_utils.go.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NamespaceCondition, NamespaceStatus};
use plimsoll_core::object::timestamp::Timestamp;

/// The remaining content of a namespace, and the errors while deleting it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Why not all kinds are known.
    pub(super) discovery_failure: Option<String>,
    /// Errors of deletions.
    pub(super) failures: Vec<String>,
    /// How many objects are left, by `plural.group`; `None` as long as that is not reported.
    pub(super) remaining: Option<BTreeMap<String, usize>>,
    /// How many objects are held back by a finalizer.
    pub(super) finalizers: BTreeMap<String, usize>,
}

/// A condition apart from its time.
struct DesiredCondition {
    kind: &'static str,
    is_true: bool,
    reason: &'static str,
    message: String,
}

impl Progress {
    fn conditions(&self) -> [DesiredCondition; 5] {
        let mut failures = self.failures.clone();
        failures.sort();
        let failed = (!failures.is_empty()).then(|| {
            format!(
                "Failed to delete all resource types, {} remaining: {}",
                failures.len(),
                failures.join(", ")
            )
        });
        let remaining = self.remaining.as_ref().filter(|left| !left.is_empty());
        let remaining = remaining.map(|left| {
            let left = left
                .iter()
                .map(|(resource, count)| format!("{resource} has {count} resource instances"));
            format!("Some resources are remaining: {}", sorted(left))
        });
        let has_finalizers = self.remaining.is_some() && !self.finalizers.is_empty();
        let finalizers = has_finalizers.then(|| {
            let held = self
                .finalizers
                .iter()
                .map(|(name, count)| format!("{name} in {count} resource instances"));
            let held = sorted(held);
            format!("Some content in the namespace has finalizers remaining: {held}")
        });
        [
            desired_condition(
                "NamespaceDeletionDiscoveryFailure",
                self.discovery_failure.clone(),
                "DiscoveryFailed",
                (
                    "ResourcesDiscovered",
                    "All resources successfully discovered",
                ),
            ),
            desired_condition(
                "NamespaceDeletionGroupVersionParsingFailure",
                None,
                "GroupVersionParsingFailed",
                (
                    "ParsedGroupVersions",
                    "All legacy kube types successfully parsed",
                ),
            ),
            desired_condition(
                "NamespaceDeletionContentFailure",
                failed,
                "ContentDeletionFailed",
                (
                    "ContentDeleted",
                    "All content successfully deleted, may be waiting on finalization",
                ),
            ),
            desired_condition(
                "NamespaceContentRemaining",
                remaining,
                "SomeResourcesRemain",
                ("ContentRemoved", "All content successfully removed"),
            ),
            desired_condition(
                "NamespaceFinalizersRemaining",
                finalizers,
                "SomeFinalizersRemain",
                (
                    "ContentHasNoFinalizers",
                    "All content-preserving finalizers finished",
                ),
            ),
        ]
    }

    /// Brings the conditions up to date; returns whether any changed.
    pub(super) fn write_conditions(&self, status: &mut NamespaceStatus, now: Timestamp) -> bool {
        let mut is_changed = false;
        let known = status.conditions.get_or_insert_default();
        for desired_condition in self.conditions() {
            let condition = NamespaceCondition {
                type_: desired_condition.kind.to_owned(),
                status: if desired_condition.is_true {
                    "True"
                } else {
                    "False"
                }
                .to_owned(),
                reason: Some(desired_condition.reason.to_owned()),
                message: Some(desired_condition.message),
                last_transition_time: Some(now.to_api_seconds()),
            };
            let Some(old) = known.iter_mut().find(|c| c.type_ == condition.type_) else {
                known.push(condition);
                is_changed = true;
                continue;
            };
            let since = match old.status == condition.status {
                true => old.last_transition_time.clone(),
                false => condition.last_transition_time.clone(),
            };
            let condition = NamespaceCondition {
                last_transition_time: since,
                ..condition
            };
            if *old != condition {
                *old = condition;
                is_changed = true;
            }
        }
        is_changed
    }
}

fn desired_condition(
    kind: &'static str,
    failure: Option<String>,
    failed: &'static str,
    (fine, all_is_well): (&'static str, &'static str),
) -> DesiredCondition {
    match failure {
        Some(message) => DesiredCondition {
            kind,
            is_true: true,
            reason: failed,
            message,
        },
        None => DesiredCondition {
            kind,
            is_true: false,
            reason: fine,
            message: all_is_well.to_owned(),
        },
    }
}

fn sorted(texts: impl Iterator<Item = String>) -> String {
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(progress: &Progress, status: &mut NamespaceStatus) -> Vec<(String, String, String)> {
        progress.write_conditions(status, Timestamp::from_secs(0));
        let conditions = status.conditions.iter().flatten();
        let rows = conditions.map(|c| {
            let text = |field: &Option<String>| field.clone().unwrap_or_default();
            (c.status.clone(), text(&c.reason), text(&c.message))
        });
        rows.collect()
    }

    #[test]
    fn progress_is_reported_with_upstreams_messages() {
        let progress = Progress {
            discovery_failure: None,
            failures: vec!["b".to_owned(), "a".to_owned()],
            remaining: Some(
                [("pods.", 2), ("jobs.batch", 1)]
                    .map(|(r, n)| (r.to_owned(), n))
                    .into(),
            ),
            finalizers: [("kept".to_owned(), 3)].into(),
        };
        let mut status = NamespaceStatus::default();
        let conditions = written(&progress, &mut status);
        let messages: Vec<&str> = conditions.iter().map(|(_, _, m)| m.as_str()).collect();
        assert_eq!(
            messages,
            [
                "All resources successfully discovered",
                "All legacy kube types successfully parsed",
                "Failed to delete all resource types, 2 remaining: a, b",
                "Some resources are remaining: jobs.batch has 1 resource instances, \
                 pods. has 2 resource instances",
                "Some content in the namespace has finalizers remaining: kept in 3 resource instances",
            ]
        );
        let reasons: Vec<&str> = conditions.iter().map(|(_, r, _)| r.as_str()).collect();
        assert_eq!(
            reasons,
            [
                "ResourcesDiscovered",
                "ParsedGroupVersions",
                "ContentDeletionFailed",
                "SomeResourcesRemain",
                "SomeFinalizersRemain",
            ]
        );
    }

    #[test]
    fn only_changed_conditions_are_written_and_keep_their_times() {
        let mut status = NamespaceStatus::default();
        let fine = Progress::default();
        assert!(fine.write_conditions(&mut status, Timestamp::from_secs(0)));
        assert!(!fine.write_conditions(&mut status, Timestamp::from_secs(1)));
        let failing = |text: &str| Progress {
            failures: vec![text.to_owned()],
            ..Progress::default()
        };
        assert!(failing("x").write_conditions(&mut status, Timestamp::from_secs(2)));
        assert!(failing("y").write_conditions(&mut status, Timestamp::from_secs(3)));
        let condition = &status.conditions.unwrap()[2];
        let since = condition
            .last_transition_time
            .as_ref()
            .map(Timestamp::from_api);
        assert_eq!(since, Some(Timestamp::from_secs(2)));
    }
}
