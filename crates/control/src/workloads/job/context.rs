//! The input of a pass over a job, with derived values.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::object::timestamp::Timestamp;

use crate::workloads::pod_state;

use super::back_off::BackOff;
use super::failure_policy::{Verdict, match_policy};
use super::indexed_pod::{awaiting_replacement, ends_index, valid_index};
use super::indexes::Indexes;
use super::is_tracked;
use super::rules::Rules;

/// The input of a pass.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The job, not yet finished.
    pub job: &'a Job,
    /// Its pods.
    pub pods: &'a [&'a Pod],
    /// Whether all creations and deletions that were ordered have been seen.
    pub expectations_are_met: bool,
    /// Uids of pods whose finalizer was removed, which may not be seen yet.
    pub released: &'a BTreeSet<String>,
    /// The failures so far.
    pub back_off: BackOff,
    /// The time.
    pub now: Timestamp,
}

#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) view: View<'a>,
    pub(super) rules: Rules<'a>,
    pub(super) active: Vec<&'a Pod>,
    pub(super) ready: i32,
    pub(super) terminating: i32,
    /// Uids in `status.uncountedTerminatedPods`.
    pub(super) uncounted_succeeded: BTreeSet<&'a str>,
    pub(super) uncounted_failed: BTreeSet<&'a str>,
    /// Successes and failures, those not yet in the status included.
    pub(super) succeeded: i32,
    pub(super) failed: i32,
    pub(super) back_off: BackOff,
    /// Indexes that the status calls completed, and those that are.
    pub(super) known_indexes: Indexes,
    pub(super) succeeded_indexes: Indexes,
    /// Indexes that have failed for good; `None` where no limit per index is set.
    pub(super) failed_indexes: Option<Indexes>,
    /// The last failed pods of indexes that are tried again.
    pub(super) awaiting: BTreeMap<i64, &'a Pod>,
}

impl<'a> Context<'a> {
    pub(super) fn new(view: View<'a>) -> Context<'a> {
        let rules = Rules::of(view.job);
        let status = view.job.status.as_ref();
        let active: Vec<&Pod> = view
            .pods
            .iter()
            .copied()
            .filter(|pod| pod_state::is_active(pod))
            .collect();
        let uncounted = status.and_then(|status| status.uncounted_terminated_pods.as_ref());
        let uids = |list: Option<&'a Vec<String>>| {
            list.into_iter().flatten().map(String::as_str).collect()
        };
        let mut context = Context {
            view,
            rules,
            ready: as_count(active.iter().filter(|pod| pod_state::is_ready(pod)).count()),
            terminating: as_count(
                view.pods
                    .iter()
                    .filter(|pod| pod_state::is_terminating(pod))
                    .count(),
            ),
            active,
            uncounted_succeeded: uids(uncounted.and_then(|u| u.succeeded.as_ref())),
            uncounted_failed: uids(uncounted.and_then(|u| u.failed.as_ref())),
            succeeded: 0,
            failed: 0,
            back_off: view.back_off,
            known_indexes: Indexes::default(),
            succeeded_indexes: Indexes::default(),
            failed_indexes: None,
            awaiting: BTreeMap::new(),
        };
        context.count();
        if rules.is_indexed {
            context.count_indexes();
        }
        context
    }

    fn count(&mut self) {
        let status = self.view.job.status.as_ref();
        let has_succeeded = |pod: &&Pod| pod_state::phase(pod) == "Succeeded";
        let succeeded: Vec<&Pod> = self
            .countable(&self.uncounted_succeeded)
            .filter(has_succeeded)
            .collect();
        let failed: Vec<&Pod> = self
            .countable(&self.uncounted_failed)
            .filter(|pod| self.rules.is_failed(pod))
            .collect();
        let counted = failed
            .iter()
            .filter(|pod| match_policy(self.rules.failure_policy, pod) != Verdict::Ignore);
        let sum = |known: Option<i32>, new: usize, noted: usize| {
            known
                .unwrap_or(0)
                .saturating_add(as_count(new))
                .saturating_add(as_count(noted))
        };
        self.failed = sum(
            status.and_then(|s| s.failed),
            counted.count(),
            self.uncounted_failed.len(),
        );
        self.succeeded = sum(
            status.and_then(|s| s.succeeded),
            succeeded.len(),
            self.uncounted_succeeded.len(),
        );
        self.back_off = self.view.back_off.after(&succeeded, &failed);
    }

    fn count_indexes(&mut self) {
        let status = self.view.job.status.as_ref();
        let end = self.rules.index_count();
        let known = status.and_then(|status| status.completed_indexes.as_deref());
        self.known_indexes = Indexes::parse(known.unwrap_or_default(), end);
        let tracked: Vec<&Pod> = self
            .view
            .pods
            .iter()
            .copied()
            .filter(|pod| is_tracked(pod))
            .collect();
        let succeeded = tracked
            .iter()
            .filter(|pod| pod_state::phase(pod) == "Succeeded");
        let succeeded = succeeded.filter_map(|pod| valid_index(&self.rules, pod));
        self.succeeded_indexes = self.known_indexes.with(succeeded);
        self.succeeded = i32::try_from(self.succeeded_indexes.count()).unwrap_or(i32::MAX);
        if self.rules.backoff_limit_per_index.is_some() {
            let known = status.and_then(|status| status.failed_indexes.as_deref());
            let failed = tracked.iter().filter(|pod| ends_index(&self.rules, pod));
            let failed = failed.filter_map(|pod| valid_index(&self.rules, pod));
            self.failed_indexes = Some(Indexes::parse(known.unwrap_or_default(), end).with(failed));
            self.awaiting = awaiting_replacement(self);
        }
    }

    /// Whether the pod has its finalizer as far as is known.
    pub(super) fn is_held(&self, pod: &Pod) -> bool {
        is_tracked(pod) && !self.view.released.contains(pod_state::uid(pod))
    }

    /// Pods that the status does not count yet, of indexes that there are, and not among those
    /// recorded.
    pub(super) fn countable<'c>(
        &'c self,
        noted: &'c BTreeSet<&str>,
    ) -> impl Iterator<Item = &'a Pod> + 'c {
        self.view.pods.iter().copied().filter(move |pod| {
            self.is_held(pod)
                && !noted.contains(pod_state::uid(pod))
                && (!self.rules.is_indexed || valid_index(&self.rules, pod).is_some())
        })
    }
}

pub(super) fn as_count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
