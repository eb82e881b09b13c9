//! Deployments, ReplicaSets, DaemonSets, StatefulSets, ReplicationControllers and PodTemplates.
//!
//! Matches v1.36 pkg/apis/apps/validation/validation.go. API types cannot tell a missing selector
//! from an empty one, so callers pass which it is.

mod daemon_set;
mod deployment;
mod pod_template;
mod replication_controller;
mod stateful_set;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as ApiLabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use plimsoll_core::object::selector::LabelSelector;

use super::names::percent;
use super::path::Path;
use super::problems::{FIELD_IS_IMMUTABLE, Problems, api, json};
use super::{selector, text};

pub(super) use daemon_set::{validate_daemon_set, validate_daemon_set_update};
pub(super) use deployment::{
    validate_deployment, validate_deployment_update, validate_replica_set,
    validate_replica_set_update,
};
pub(super) use pod_template::{validate_pod_template, validate_pod_template_update};
pub(super) use replication_controller::{
    validate_replication_controller, validate_replication_controller_update,
};
pub(super) use stateful_set::{validate_stateful_set, validate_stateful_set_update};

/// Whether the object has a selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selector {
    Given,
    Missing,
}

const NO_MATCH: &str = "`selector` does not match template `labels`";

const ABOVE_REPLICAS: &str = "cannot be greater than status.replicas";

fn check_selector(
    labels: &ApiLabelSelector,
    given: Selector,
    kind: &str,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let path = path.child("selector");
    if given == Selector::Missing {
        return problems.required(&path, "");
    }
    selector::check(Some(labels), &path, problems);
    if selector::is_empty(labels) {
        let shown = api("meta.LabelSelector", labels);
        problems.invalid(
            &path,
            shown,
            format!("empty selector is invalid for {kind}"),
        );
    }
}

fn parsed(labels: &ApiLabelSelector, given: Selector) -> Option<LabelSelector> {
    LabelSelector::from_api((given == Selector::Given).then_some(labels)).ok()
}

fn template_labels(template: &PodTemplateSpec) -> BTreeMap<String, String> {
    template
        .metadata
        .as_ref()
        .and_then(|meta| meta.labels.clone())
        .unwrap_or_default()
}

fn check_labels_match(
    parsed: &LabelSelector,
    template: &PodTemplateSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let labels = template_labels(template);
    if !parsed.is_empty() && !parsed.matches(&labels) {
        show_mismatch(template, path, problems);
    }
}

fn show_mismatch(template: &PodTemplateSpec, path: &Path<'_>, problems: &mut Problems) {
    let labels = template
        .metadata
        .as_ref()
        .and_then(|meta| meta.labels.as_ref());
    let meta = path.child("metadata");
    problems.invalid(&meta.child("labels"), json(&labels), NO_MATCH);
}

fn check_runs_always(
    template: &PodTemplateSpec,
    kind: &str,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let empty = PodSpec::default();
    let spec = template.spec.as_ref().unwrap_or(&empty);
    let path = path.child("spec");
    problems.one_of(
        &path.child("restartPolicy"),
        text(&spec.restart_policy),
        &["Always"],
    );
    if spec.active_deadline_seconds.is_some() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        problems.forbidden(&path.child("activeDeadlineSeconds"), detail);
    }
}

fn check_selector_unchanged(
    new: &ApiLabelSelector,
    old: &ApiLabelSelector,
    problems: &mut Problems,
) {
    if new != old {
        let path = Path::new("spec");
        let shown = api("meta.LabelSelector", new);
        problems.invalid(&path.child("selector"), shown, FIELD_IS_IMMUTABLE);
    }
}

fn check_counts(counts: &[(&str, Option<i32>)], path: &Path<'_>, problems: &mut Problems) {
    for (field, count) in counts {
        problems.nonnegative(&path.child(field), count.unwrap_or_default());
    }
}

fn check_collisions(new: Option<i32>, old: Option<i32>, path: &Path<'_>, problems: &mut Problems) {
    let new_count = new.unwrap_or_default();
    if old.is_some_and(|old| new.is_none_or(|new| new < old)) {
        problems.invalid(
            &path.child("collisionCount"),
            new_count,
            "cannot be decremented",
        );
    }
}

/// The last of the counts is the available ones, the one before it the ready ones.
fn check_not_above(
    fields: &[&str; 3],
    counts: &[Option<i32>; 3],
    replicas: Option<i32>,
    above_ready: &str,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let replicas = replicas.unwrap_or_default();
    let counts = counts.map(Option::unwrap_or_default);
    for (field, count) in fields.iter().zip(counts) {
        if count > replicas {
            problems.invalid(&path.child(field), count, ABOVE_REPLICAS);
        }
    }
    let [_, ready, available] = counts;
    if available > ready {
        problems.invalid(&path.child(fields[2]), available, above_ready);
    }
}

pub(super) fn check_int_or_percent(value: &IntOrString, path: &Path<'_>, problems: &mut Problems) {
    match value {
        IntOrString::String(text) => {
            for rule in percent(text) {
                problems.invalid(path, json(value), rule);
            }
        }
        IntOrString::Int(number) => problems.nonnegative(path, *number),
    }
}

pub(super) fn check_at_most_100_percent(
    value: &IntOrString,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if percentage(value).is_some_and(|percentage| percentage > 100) {
        problems.invalid(path, json(value), "must not be greater than 100%");
    }
}

fn percentage(value: &IntOrString) -> Option<i64> {
    match value {
        IntOrString::String(text) if percent(text).is_empty() => {
            // Go's conversion of digits that do not fit gives the largest number.
            Some(text.trim_end_matches('%').parse().unwrap_or(i64::MAX))
        }
        _ => None,
    }
}

/// The number, of a percentage or plain; for a text that is neither, its leading number.
fn amount(value: &IntOrString) -> i64 {
    match (percentage(value), value) {
        (Some(percentage), _) => percentage,
        (None, IntOrString::Int(number)) => i64::from(*number),
        (None, IntOrString::String(text)) => text.parse().unwrap_or_default(),
    }
}
