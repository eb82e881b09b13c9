//! Pods to make and to delete while a job runs.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

use crate::workloads::deletion_order::sort_by_progress;
use crate::workloads::pod_state;

use super::back_off::{finish_time, remaining};
use super::context::{Context, as_count};
use super::indexed_pod::{failures_before, indexes, split_duplicates};
use super::template;

/// The most pods that are made or deleted in one pass.
const MOST_PER_PASS: usize = 500;

/// The pods to create and delete.
#[derive(Clone, Debug, PartialEq)]
pub enum PodWork<'a> {
    /// Nothing.
    Nothing,
    /// Make these, a few first. A failure stops the rest.
    Create(Vec<Pod>),
    /// Take their finalizers and delete these: they do not count.
    Discard(Vec<&'a Pod>),
    /// Delete these, but leave them their finalizers: they will be counted.
    Stop(Vec<&'a Pod>),
    /// Look again after this time.
    Wait(Duration),
}

/// Compares the active pods with those the job needs now. Deletions come before creations, and
/// never both in one pass.
pub(super) fn manage<'a>(context: &Context<'a>) -> PodWork<'a> {
    let active = as_count(context.active.len());
    if context.rules.is_suspended {
        return discard(removable(context, context.active.len()));
    }
    let wanted = wanted(context, active);
    let surplus = usize::try_from(active.saturating_sub(wanted)).unwrap_or(0);
    let mut removable = removable(context, surplus);
    removable.truncate(MOST_PER_PASS);
    if !removable.is_empty() {
        return discard(removable);
    }
    let leaving = match context.rules.replaces_only_failed {
        true => context.terminating,
        false => 0,
    };
    let missing = wanted.saturating_sub(leaving).saturating_sub(active);
    match usize::try_from(missing) {
        Ok(missing) if missing > 0 => create(context, missing.min(MOST_PER_PASS)),
        _ => PodWork::Nothing,
    }
}

/// Without a number of completions, nothing new is started after the first success.
fn wanted(context: &Context<'_>, active: i32) -> i32 {
    let parallelism = context.rules.parallelism;
    match context.rules.completions {
        None if context.succeeded > 0 => active,
        None => parallelism,
        Some(completions) => completions
            .saturating_sub(context.succeeded)
            .min(parallelism)
            .max(0),
    }
}

fn discard(pods: Vec<&Pod>) -> PodWork<'_> {
    match pods.is_empty() {
        true => PodWork::Nothing,
        false => PodWork::Discard(pods),
    }
}

/// At least so many active pods, the least advanced first; of an indexed job, all
/// that have no index of their own.
fn removable<'a>(context: &Context<'a>, at_least: usize) -> Vec<&'a Pod> {
    let (mut removable, mut others) = match context.rules.is_indexed {
        true => split_duplicates(&context.rules, &context.active),
        false => (Vec::new(), context.active.clone()),
    };
    let more = at_least.saturating_sub(removable.len());
    if more > 0 {
        sort_by_progress(&mut others);
        removable.extend(others.into_iter().take(more));
    }
    removable
}

fn create<'a>(context: &Context<'a>, missing: usize) -> PodWork<'a> {
    let now = context.view.now;
    let is_by_index = context.rules.backoff_limit_per_index.is_some();
    let wait = context.back_off.remaining(now);
    if !is_by_index && !wait.is_zero() {
        return PodWork::Wait(wait);
    }
    if !context.rules.is_indexed {
        let pod = template::pod(context, None);
        return PodWork::Create(vec![pod; missing]);
    }
    let mut wanted = pending_indexes(context, missing);
    if is_by_index {
        let waits = wanted.iter().map(|index| wait_for_index(context, *index));
        let waits: Vec<Duration> = waits.collect();
        let soonest = waits.iter().min().copied().unwrap_or_default();
        if !soonest.is_zero() {
            return PodWork::Wait(soonest);
        }
        let mut waits = waits.into_iter();
        wanted.retain(|_| waits.next().is_some_and(|wait| wait.is_zero()));
    }
    match wanted.is_empty() {
        true => PodWork::Nothing,
        false => PodWork::Create(
            wanted
                .into_iter()
                .map(|index| template::pod(context, Some(index)))
                .collect(),
        ),
    }
}

/// The first indexes that no pod works on and that are not done with.
fn pending_indexes(context: &Context<'_>, count: usize) -> Vec<i64> {
    let mut taken = context
        .succeeded_indexes
        .with(indexes(context.active.iter().copied()));
    if context.rules.replaces_only_failed {
        let leaving = context
            .view
            .pods
            .iter()
            .copied()
            .filter(|pod| pod_state::is_terminating(pod));
        taken = taken.with(indexes(leaving));
    }
    if let Some(failed) = &context.failed_indexes {
        taken = taken.union(failed);
    }
    taken.first_missing(count, context.rules.index_count())
}

fn wait_for_index(context: &Context<'_>, index: i64) -> Duration {
    let Some(last) = context.awaiting.get(&index) else {
        return Duration::ZERO;
    };
    let failures = failures_before(last).saturating_add(1);
    remaining(failures, finish_time(last), context.view.now)
}
