//! Completion indexes of pods.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;

use crate::workloads::deletion_order::sort_by_progress;
use crate::workloads::pod_state;

use super::back_off::finish_time;
use super::context::Context;
use super::failure_policy::{Verdict, match_policy};
use super::rules::Rules;

/// Annotation and label with the pod's index.
pub(super) const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How many pods of this index have failed before.
pub(super) const FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-failure-count";
/// How many more have, that did not count.
pub(super) const IGNORED_FAILURE_COUNT: &str =
    "batch.kubernetes.io/job-index-ignored-failure-count";

/// The pod's index, if it has one.
pub(super) fn completion_index(pod: &Pod) -> Option<i64> {
    let text = pod_state::annotation(pod, COMPLETION_INDEX)?;
    text.parse().ok().filter(|index| *index >= 0)
}

/// The pod's index, if it is one of the job's.
pub(super) fn valid_index(rules: &Rules<'_>, pod: &Pod) -> Option<i64> {
    completion_index(pod).filter(|index| *index < rules.index_count())
}

pub(super) fn indexes<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> BTreeSet<i64> {
    pods.into_iter().filter_map(completion_index).collect()
}

fn count(pod: &Pod, key: &str) -> u32 {
    let number = pod_state::annotation(pod, key).and_then(|text| text.parse::<i32>().ok());
    number
        .and_then(|number| u32::try_from(number).ok())
        .unwrap_or(0)
}

/// How many pods of the pod's index have failed before it, counted or not.
pub(super) fn failures_before(pod: &Pod) -> u32 {
    count(pod, FAILURE_COUNT).saturating_add(count(pod, IGNORED_FAILURE_COUNT))
}

/// Counted and ignored failures of an index after this pod of it failed.
pub(super) fn failures_with(rules: &Rules<'_>, pod: &Pod) -> (u32, u32) {
    let (counted, ignored) = (count(pod, FAILURE_COUNT), count(pod, IGNORED_FAILURE_COUNT));
    match match_policy(rules.failure_policy, pod) {
        Verdict::Ignore => (counted, ignored.saturating_add(1)),
        _ => (counted.saturating_add(1), ignored),
    }
}

/// Whether the failure of this pod is the end of its index.
pub(super) fn ends_index(rules: &Rules<'_>, pod: &Pod) -> bool {
    let limit = rules.backoff_limit_per_index.unwrap_or(0);
    let limit = u32::try_from(limit).unwrap_or(0);
    rules.is_failed(pod)
        && match match_policy(rules.failure_policy, pod) {
            Verdict::FailIndex => true,
            Verdict::Ignore => false,
            Verdict::Count | Verdict::FailJob(_) => count(pod, FAILURE_COUNT) >= limit,
        }
}

/// The last failed pod of each index that is to be tried again. It is kept until its replacement is
/// there, because it holds the count of failures before.
pub(super) fn awaiting_replacement<'a>(context: &Context<'a>) -> BTreeMap<i64, &'a Pod> {
    let active = indexes(context.active.iter().copied());
    let mut last: BTreeMap<i64, &'a Pod> = BTreeMap::new();
    for pod in context.countable(&BTreeSet::new()) {
        let Some(index) = valid_index(&context.rules, pod) else {
            continue;
        };
        let has_failed = |failed: &super::indexes::Indexes| failed.contains(index);
        let is_over = context.succeeded_indexes.contains(index)
            || context.failed_indexes.as_ref().is_some_and(has_failed)
            || active.contains(&index);
        if is_over || !context.rules.is_failed(pod) {
            continue;
        }
        let is_later = |known: &&Pod| {
            failures_before(known) <= failures_before(pod) && finish_time(pod) >= finish_time(known)
        };
        if last.get(&index).is_none_or(is_later) {
            last.insert(index, pod);
        }
    }
    last
}

/// Splits active pods into those to be removed in any case (no index, an index out of range, or
/// one that another pod has too) and the others.
pub(super) fn split_duplicates<'a>(
    rules: &Rules<'_>,
    pods: &[&'a Pod],
) -> (Vec<&'a Pod>, Vec<&'a Pod>) {
    let mut by_index: BTreeMap<i64, Vec<&'a Pod>> = BTreeMap::new();
    let mut surplus = Vec::new();
    for pod in pods {
        match valid_index(rules, pod) {
            Some(index) => by_index.entry(index).or_default().push(pod),
            None => surplus.push(*pod),
        }
    }
    let mut kept = Vec::new();
    for mut pods in by_index.into_values() {
        sort_by_progress(&mut pods);
        kept.extend(pods.pop());
        surplus.extend(pods);
    }
    (surplus, kept)
}
