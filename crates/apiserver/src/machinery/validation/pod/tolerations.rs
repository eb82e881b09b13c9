//! Tolerations, and the effects they share with taints.

use k8s_openapi::api::core::v1::Toleration;
use plimsoll_core::object::syntax::check_label_value;

use super::super::path::Path;
use super::super::problems::{Problems, json};
use super::super::selector::check_key;
use super::super::text;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub(in super::super) fn check_effect(effect: &str, path: &Path<'_>, problems: &mut Problems) {
    problems.one_of(path, effect, &EFFECTS);
}

pub(in super::super) fn check(
    tolerations: &[Toleration],
    path: &Path<'_>,
    problems: &mut Problems,
) {
    for (index, toleration) in tolerations.iter().enumerate() {
        check_one(toleration, &path.index(index), problems);
    }
}

fn check_one(toleration: &Toleration, path: &Path<'_>, problems: &mut Problems) {
    let (key, operator) = (text(&toleration.key), text(&toleration.operator));
    let (value, effect) = (text(&toleration.value), text(&toleration.effect));
    let operator_path = path.child("operator");
    if !key.is_empty() {
        check_key(key, &path.child("key"), problems);
    } else if operator != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values \
                      and all keys\"";
        problems.invalid(&operator_path, json(&operator), detail);
    }
    if toleration.toleration_seconds.is_some() && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        problems.invalid(&path.child("effect"), json(&effect), detail);
    }
    match operator {
        "Equal" | "" => {
            let broken = check_label_value(value);
            if !broken.is_empty() {
                problems.invalid(&operator_path, value, broken.join(";"));
            }
        }
        "Exists" if !value.is_empty() => {
            let detail = "value must be empty when `operator` is 'Exists'";
            problems.invalid(&operator_path, value, detail);
        }
        "Exists" => {}
        // The comparison operators are behind a feature gate that is off, but known.
        "Lt" | "Gt" => {
            problems.not_supported(&operator_path, operator, &["Equal", "Exists", "Lt", "Gt"]);
        }
        _ => problems.not_supported(&operator_path, operator, &["Equal", "Exists"]),
    }
    if !effect.is_empty() {
        check_effect(effect, &path.child("effect"), problems);
    }
}

/// An update keeps the tolerations, except their seconds, and may add to them.
pub(super) fn check_only_added(
    new: &[Toleration],
    old: &[Toleration],
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let is_kept = |old: &Toleration| {
        new.iter().any(|new| {
            let toleration_seconds = new.toleration_seconds;
            Toleration {
                toleration_seconds,
                ..old.clone()
            } == *new
        })
    };
    if !old.iter().all(is_kept) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        return problems.forbidden(path, detail);
    }
    check(new, path, problems);
}
