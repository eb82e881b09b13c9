//! Label selectors in objects.
//!
//! Matches v1.36 apimachinery/pkg/apis/meta/v1/validation.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use plimsoll_core::object::syntax::{check_label_key, check_label_value};

use super::metadata::check_labels;
use super::path::Path;
use super::problems::{Problems, json};

pub(super) const NO_OPERATOR: &str = "not a valid selector operator";
pub(super) const IN_WITHOUT_VALUES: &str = "must be specified when `operator` is 'In' or 'NotIn'";
pub(super) const EXISTS_WITH_VALUES: &str =
    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";

pub(super) fn check(selector: Option<&LabelSelector>, path: &Path<'_>, problems: &mut Problems) {
    let Some(selector) = selector else { return };
    check_labels(
        selector.match_labels.as_ref(),
        &path.child("matchLabels"),
        problems,
    );
    let path = path.child("matchExpressions");
    for (index, requirement) in selector.match_expressions.iter().flatten().enumerate() {
        check_requirement(requirement, &path.index(index), problems);
    }
}

fn check_requirement(
    requirement: &LabelSelectorRequirement,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let values = requirement.values.as_deref().unwrap_or_default();
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => {
            problems.required(&path.child("values"), IN_WITHOUT_VALUES);
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            problems.forbidden(&path.child("values"), EXISTS_WITH_VALUES);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => problems.invalid(&path.child("operator"), json(&other), NO_OPERATOR),
    }
    check_key(&requirement.key, &path.child("key"), problems);
    check_values(values, &path.child("values"), problems);
}

pub(super) fn check_key(key: &str, path: &Path<'_>, problems: &mut Problems) {
    problems.invalid_each(path, key, check_label_key(key));
}

pub(super) fn check_values(values: &[String], path: &Path<'_>, problems: &mut Problems) {
    for (index, value) in values.iter().enumerate() {
        problems.invalid_each(&path.index(index), value, check_label_value(value));
    }
}

/// Whether the selector is empty.
pub(super) fn is_empty(selector: &LabelSelector) -> bool {
    selector
        .match_labels
        .as_ref()
        .is_none_or(|labels| labels.is_empty())
        && selector
            .match_expressions
            .as_ref()
            .is_none_or(Vec::is_empty)
}
