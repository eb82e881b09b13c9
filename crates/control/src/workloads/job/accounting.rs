//! Counting pods that have ended, each once.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::object::event::Note;

use crate::workloads::pod_state;

use super::back_off::BackOff;
use super::condition::{self, COMPLETE, FAILED, FAILURE_TARGET, SUCCESS_CRITERIA_MET};
use super::context::{Context, as_count};
use super::failure_policy::{Verdict, match_policy};
use super::finish::to_failed;
use super::indexed_pod::{completion_index, valid_index};

/// More pods are not recorded at once, so that the status stays small.
const MOST_UNCOUNTED: usize = 500;

/// What to write before finalizers are removed, and from which pods.
#[derive(Debug)]
pub struct Accounting<'a> {
    /// The status to be written first; `None` if it is written already.
    pub first: Option<JobStatus>,
    /// Pods whose finalizer is to be removed after that.
    pub release: Vec<&'a Pod>,
    /// To be remembered when `first` is written.
    pub back_off: BackOff,
    /// The events to record when `first` is written.
    pub notes: Vec<Note>,
    context: Context<'a>,
    status: JobStatus,
    finished: Option<JobCondition>,
    held: BTreeSet<&'a str>,
    is_partial: bool,
}

/// The end of a pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finished {
    /// The status to be written last; `None` if there is nothing new in it.
    pub status: Option<JobStatus>,
    /// The events to record when it is written.
    pub notes: Vec<Note>,
}

impl<'a> Accounting<'a> {
    pub(super) fn new(
        context: Context<'a>,
        status: JobStatus,
        finished: Option<JobCondition>,
        notes: Vec<Note>,
        has_changed: bool,
    ) -> Accounting<'a> {
        let held = context.view.pods.iter().filter(|pod| context.is_held(pod));
        let mut accounting = Accounting {
            first: None,
            release: Vec::new(),
            back_off: context.back_off,
            notes,
            held: held.map(|pod| pod_state::uid(pod)).collect(),
            context,
            status,
            finished,
            is_partial: false,
        };
        let mut has_changed = accounting.count_released() || has_changed;
        has_changed |= accounting.note_ended();
        has_changed |= accounting.write_final_condition();
        accounting.first = has_changed.then(|| accounting.status.clone());
        accounting
    }

    /// Moves pods without finalizer from `uncountedTerminatedPods` to the counts.
    fn count_released(&mut self) -> bool {
        let uncounted = self
            .status
            .uncounted_terminated_pods
            .get_or_insert_default();
        let held = &self.held;
        let take = |list: &mut Option<Vec<String>>| {
            let uids = list.take().unwrap_or_default();
            let before = uids.len();
            let left: Vec<String> = uids
                .into_iter()
                .filter(|uid| held.contains(uid.as_str()))
                .collect();
            let counted = before - left.len();
            *list = (!left.is_empty()).then_some(left);
            counted
        };
        let succeeded = take(&mut uncounted.succeeded);
        let failed = take(&mut uncounted.failed);
        let add = |number: &mut Option<i32>, more: usize| {
            let sum = number.unwrap_or(0).saturating_add(as_count(more));
            *number = (sum != 0).then_some(sum);
        };
        add(&mut self.status.succeeded, succeeded);
        add(&mut self.status.failed, failed);
        succeeded + failed > 0
    }

    /// Records pods that have ended, and picks those that lose their finalizer.
    fn note_ended(&mut self) -> bool {
        let mut pods = self.context.view.pods.to_vec();
        if self.context.rules.is_indexed {
            pods.sort_by_key(|pod| completion_index(pod).unwrap_or(-1));
        }
        let mut has_changed = false;
        let mut indexes: BTreeSet<i64> = BTreeSet::new();
        for pod in pods {
            if !self.context.is_held(pod) || !self.may_remove_finalizer(pod) {
                continue;
            }
            self.release.push(pod);
            has_changed |= self.note(pod, &mut indexes);
            if indexes.len() + self.uncounted() >= MOST_UNCOUNTED {
                self.is_partial = true;
                break;
            }
        }
        if self.context.rules.is_indexed {
            has_changed |= self.note_indexes(indexes);
        }
        has_changed
    }

    fn uncounted(&self) -> usize {
        let uncounted = self.status.uncounted_terminated_pods.as_ref();
        uncounted.map_or(0, |uncounted| {
            let count = |list: &Option<Vec<String>>| list.as_ref().map_or(0, Vec::len);
            count(&uncounted.succeeded) + count(&uncounted.failed)
        })
    }

    /// A failed pod stays until its replacement has taken over its count of failures.
    fn may_remove_finalizer(&self, pod: &Pod) -> bool {
        let is_leaving = self.context.view.job.metadata.deletion_timestamp.is_some();
        if is_leaving || self.finished.is_some() || pod_state::phase(pod) == "Succeeded" {
            return true;
        }
        let is_awaiting = completion_index(pod)
            .and_then(|index| self.context.awaiting.get(&index))
            .is_some_and(|awaiting| pod_state::uid(awaiting) == pod_state::uid(pod));
        self.context.rules.is_failed(pod) && !is_awaiting
    }

    /// Records one pod. A completed index shows its success, so successes of indexed jobs are
    /// recorded by index. When the job has failed, pods that still run have failed too.
    fn note(&mut self, pod: &Pod, indexes: &mut BTreeSet<i64>) -> bool {
        let rules = &self.context.rules;
        let uid = pod_state::uid(pod);
        let index = valid_index(rules, pod);
        let job_failed = self
            .finished
            .as_ref()
            .is_some_and(|f| f.type_ != SUCCESS_CRITERIA_MET);
        let uncounted = self
            .status
            .uncounted_terminated_pods
            .get_or_insert_default();
        let is_failure_noted = self.context.uncounted_failed.contains(uid);
        if pod_state::phase(pod) == "Succeeded" && !is_failure_noted {
            if rules.is_indexed {
                let new = index.filter(|index| !self.context.known_indexes.contains(*index));
                indexes.extend(new);
                return new.is_some();
            }
            if self.context.uncounted_succeeded.contains(uid) {
                return false;
            }
            uncounted
                .succeeded
                .get_or_insert_default()
                .push(uid.to_owned());
            return true;
        }
        let counts = (rules.is_failed(pod) || job_failed)
            && !is_failure_noted
            && (!rules.is_indexed || index.is_some())
            && match_policy(rules.failure_policy, pod) != Verdict::Ignore;
        if counts {
            uncounted
                .failed
                .get_or_insert_default()
                .push(uid.to_owned());
        }
        counts
    }

    fn note_indexes(&mut self, new: BTreeSet<i64>) -> bool {
        let succeeded = self.context.succeeded_indexes.with(new);
        let text = |text: String| (!text.is_empty()).then_some(text);
        let completed = text(succeeded.to_string());
        let failed = self
            .context
            .failed_indexes
            .as_ref()
            .map(ToString::to_string);
        let has_changed =
            completed != self.status.completed_indexes || failed != self.status.failed_indexes;
        let count = i32::try_from(succeeded.count()).unwrap_or(i32::MAX);
        self.status.succeeded = (count != 0).then_some(count);
        self.status.completed_indexes = completed;
        self.status.failed_indexes = failed;
        has_changed
    }

    /// Writes how the job is going to end before finalizers are removed, because afterwards there
    /// may be no pod left to derive it from.
    fn write_final_condition(&mut self) -> bool {
        let Some(finished) = self.finished.take() else {
            return false;
        };
        let now = self.context.view.now;
        let conditions = self.status.conditions.get_or_insert_default();
        let is_known = conditions
            .iter()
            .any(|c| c.type_ == finished.type_ && c.status == "True");
        let mut is_new = false;
        self.finished = Some(match finished.type_.as_str() {
            FAILURE_TARGET => {
                is_new = true;
                let failed = to_failed(&finished, now);
                conditions.push(finished);
                failed
            }
            SUCCESS_CRITERIA_MET => {
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                let (reason, message) = (text(&finished.reason), text(&finished.message));
                if !is_known {
                    is_new = true;
                    conditions.push(finished);
                }
                condition::new(COMPLETE, &reason, &message, now)
            }
            _ => finished,
        });
        is_new
    }

    /// The uids of the pods that lose their finalizer.
    pub fn release_uids(&self) -> impl Iterator<Item = &str> {
        self.release.iter().map(|pod| pod_state::uid(pod))
    }

    /// With the pods whose finalizer is gone: the last status of the pass.
    pub fn finish(mut self, released: &BTreeSet<String>) -> Finished {
        self.held.retain(|uid| !released.contains(*uid));
        let has_failed = self
            .release
            .iter()
            .any(|pod| !released.contains(pod_state::uid(pod)));
        let mut has_changed = self.count_released();
        let mut notes = Vec::new();
        if !has_failed
            && !self.is_partial
            && self.uncounted() == 0
            && self.context.terminating == 0
            && let Some(finished) = self.finished.take()
        {
            notes = self.end(finished);
            has_changed = true;
        }
        Finished {
            status: has_changed.then_some(self.status),
            notes,
        }
    }

    fn end(&mut self, finished: JobCondition) -> Vec<Note> {
        let mut notes = Vec::new();
        if finished.type_ == COMPLETE {
            self.status
                .completion_time
                .clone_from(&finished.last_transition_time);
            let completions = self.context.rules.completions;
            if completions.is_some_and(|wanted| self.status.succeeded.unwrap_or(0) > wanted) {
                let message = "Too many succeeded pods running after completion count reached";
                notes.push(Note::warning("TooManySucceededPods", message));
            }
            notes.push(Note::normal("Completed", "Job completed"));
        } else if finished.type_ == FAILED {
            let message = finished.message.clone().unwrap_or_default();
            notes.push(Note::warning(
                reason_word(finished.reason.as_deref()),
                message,
            ));
        }
        condition::ensure(&mut self.status, finished);
        notes
    }
}

/// The reason of a failure as an event has it.
fn reason_word(reason: Option<&str>) -> &'static str {
    const REASONS: [&str; 5] = [
        "PodFailurePolicy",
        "BackoffLimitExceeded",
        "DeadlineExceeded",
        "MaxFailedIndexesExceeded",
        "FailedIndexes",
    ];
    let known = REASONS.iter().find(|known| Some(**known) == reason);
    known.copied().unwrap_or("Failed")
}
