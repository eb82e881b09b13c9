//! Pod failure policies and success policies of jobs.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{
    JobSpec, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule, SuccessPolicyRule,
};
use plimsoll_core::object::syntax::check_label_key;
use plimsoll_core::problem::{Problem, quoted};

use super::super::path::Path;
use super::super::problems::{Problems, json};
use super::super::text;
use super::{NEEDS_INDEXES, invalid_without_value, is_indexed};

pub(super) const MAX_RULES: usize = 20;

const MAX_EXIT_CODES: usize = 255;

const MAX_INDEXES_BYTES: usize = 64 << 10;

pub(super) fn check_failure_rule(
    spec: &JobSpec,
    rule: &PodFailurePolicyRule,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let actions = ["Count", "FailIndex", "FailJob", "Ignore"];
    let action_path = path.child("action");
    match rule.action.as_str() {
        "" => {
            let values: Vec<String> = actions.iter().map(|action| quoted(action)).collect();
            problems.required(
                &action_path,
                format!("valid values: [{}]", values.join(" ")),
            );
        }
        "FailIndex" => {
            if spec.backoff_limit_per_index.is_none() {
                let detail = "requires the backoffLimitPerIndex to be set";
                problems.invalid(&action_path, json(&rule.action), detail);
            }
        }
        action => problems.one_of(&action_path, action, &actions),
    }
    if let Some(codes) = &rule.on_exit_codes {
        check_exit_codes(spec, codes, &path.child("onExitCodes"), problems);
    }
    let conditions = rule.on_pod_conditions.as_deref().unwrap_or_default();
    let list = path.child("onPodConditions");
    problems.too_many(&list, conditions.len(), MAX_RULES);
    for (index, pattern) in conditions.iter().enumerate() {
        let path = list.index(index);
        problems.invalid_each(
            &path.child("type"),
            &pattern.type_,
            check_label_key(&pattern.type_),
        );
        let statuses = ["False", "True", "Unknown"];
        match text(&pattern.status) {
            "" => {
                let detail = "valid values: [\"False\" \"True\" \"Unknown\"]";
                problems.required(&path.child("status"), detail);
            }
            status => problems.one_of(&path.child("status"), status, &statuses),
        }
    }
    let detail = match (rule.on_exit_codes.is_some(), conditions.is_empty()) {
        (true, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, true) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    invalid_without_value(path, detail, problems);
}

fn check_exit_codes(
    spec: &JobSpec,
    codes: &PodFailurePolicyOnExitCodesRequirement,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    match codes.operator.as_str() {
        "" => problems.required(&path.child("operator"), "valid values: [\"In\" \"NotIn\"]"),
        operator => problems.one_of(&path.child("operator"), operator, &["In", "NotIn"]),
    }
    if let Some(name) = &codes.container_name {
        let pod = spec.template.spec.clone().unwrap_or_default();
        let init = pod.init_containers.unwrap_or_default();
        if !pod
            .containers
            .iter()
            .chain(&init)
            .any(|container| container.name == *name)
        {
            let detail = "must be one of the container or initContainer names in the pod template";
            problems.invalid(&path.child("containerName"), name, detail);
        }
    }
    let list = path.child("values");
    if codes.values.is_empty() {
        problems.invalid(&list, json(&codes.values), "at least one value is required");
    }
    problems.too_many(&list, codes.values.len(), MAX_EXIT_CODES);
    let mut seen = BTreeSet::new();
    for (index, code) in codes.values.iter().enumerate() {
        let path = list.index(index);
        if codes.operator == "In" && *code == 0 {
            problems.invalid(&path, *code, "must not be 0 for the In operator");
        }
        if !seen.insert(code) {
            let problem = Problem::duplicate(path.to_string(), "");
            problems.push(problem.with_value(code.to_string()));
        }
    }
    if !codes.values.is_sorted() {
        problems.invalid(&list, json(&codes.values), "must be ordered");
    }
}

pub(super) fn check_success_policy(spec: &JobSpec, path: &Path<'_>, problems: &mut Problems) {
    let Some(policy) = &spec.success_policy else {
        return;
    };
    if !is_indexed(spec) {
        #[derive(serde::Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Shown<'a> {
            rules: Vec<ShownRule<'a>>,
        }
        #[derive(serde::Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct ShownRule<'a> {
            succeeded_indexes: Option<&'a str>,
            succeeded_count: Option<i32>,
        }
        let rules = policy.rules.iter().map(|rule| ShownRule {
            succeeded_indexes: rule.succeeded_indexes.as_deref(),
            succeeded_count: rule.succeeded_count,
        });
        return problems.invalid(
            path,
            json(&Shown {
                rules: rules.collect(),
            }),
            NEEDS_INDEXES,
        );
    }
    let list = path.child("rules");
    if policy.rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        problems.required(&list, detail);
    }
    problems.too_many(&list, policy.rules.len(), MAX_RULES);
    for (index, rule) in policy.rules.iter().enumerate() {
        check_success_rule(
            rule,
            spec.completions.unwrap_or_default(),
            &list.index(index),
            problems,
        );
    }
}

fn check_success_rule(
    rule: &SuccessPolicyRule,
    completions: i32,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if rule.succeeded_count.is_none() && rule.succeeded_indexes.is_none() {
        let detail = "at least one of succeededCount or succeededIndexes must be specified";
        problems.required(path, detail);
    }
    let mut total = 0;
    if let Some(indexes) = &rule.succeeded_indexes {
        let path = path.child("succeededIndexes");
        if indexes.len() > MAX_INDEXES_BYTES {
            problems.too_long(&path, MAX_INDEXES_BYTES);
        }
        match count_indexes(indexes, completions) {
            Ok(count) => total = count,
            Err(reason) => {
                let detail = format!("error parsing succeededIndexes: {reason}");
                problems.invalid(&path, indexes, detail);
            }
        }
    }
    let Some(count) = rule.succeeded_count else {
        return;
    };
    let path = path.child("succeededCount");
    problems.nonnegative(&path, count);
    if count > completions {
        let detail = format!(
            "must be less than or equal to {completions} (the number of specified completions)"
        );
        problems.invalid(&path, count, detail);
    }
    if rule.succeeded_indexes.is_some() && i64::from(count) > total {
        let detail = format!(
            "must be less than or equal to {total} (the number of indexes in the specified \
             succeededIndexes field)"
        );
        problems.invalid(&path, count, detail);
    }
}

/// The number of indexes in a text such as `0,2-4`.
pub(super) fn count_indexes(text: &str, completions: i32) -> Result<i64, String> {
    let mut last: Option<i64> = None;
    let mut total = 0;
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        let (low, high) = parse_interval(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= low) {
            return Err(format!(
                "non-increasing order, previous: {last}, current: {low}"
            ));
        }
        total += high - low + 1;
        last = Some(high);
    }
    Ok(total)
}

fn parse_interval(interval: &str, completions: i32) -> Result<(i64, i64), String> {
    let shown = quoted(interval);
    let index = |text: &str| -> Result<i64, String> {
        let number: i64 = text.parse().map_err(|_| {
            format!(
                "cannot convert string to integer for index: {}",
                quoted(text)
            )
        })?;
        if number >= i64::from(completions) {
            return Err(format!("too large index: {}", quoted(text)));
        }
        Ok(number)
    };
    match interval.split('-').collect::<Vec<_>>().as_slice() {
        [only] => index(only).map(|number| (number, number)),
        [low, high] => {
            let (low, high) = (index(low)?, index(high)?);
            if low >= high {
                return Err(format!(
                    "non-increasing order, previous: {low}, current: {high}"
                ));
            }
            Ok((low, high))
        }
        _ => Err(format!(
            "the fragment {shown} violates the requirement that an index interval can have at most \
             two parts separated by '-'"
        )),
    }
}
