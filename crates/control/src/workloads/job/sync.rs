//! A pass over a job, up to the status.

use std::time::Duration;

use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};
use plimsoll_core::object::event::Note;
use plimsoll_core::object::timestamp::Timestamp;

use super::accounting::Accounting;
use super::condition::{self, SUCCESS_CRITERIA_MET, SUSPENDED};
use super::context::{Context, View, as_count};
use super::finish::{until_deadline, verdict};
use super::manage::{PodWork, manage};

/// A pass that has decided about pods.
#[derive(Debug)]
pub struct Sync<'a> {
    /// The pods to create and delete first.
    pub work: PodWork<'a>,
    /// When to look again in any case.
    pub again_after: Option<Duration>,
    context: Context<'a>,
    status: JobStatus,
    finished: Option<JobCondition>,
    was_managed: bool,
}

/// The results of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Pods made.
    pub created: usize,
    /// Pods deleted, or found deleted.
    pub deleted: usize,
    /// Those of them that were ready.
    pub deleted_ready: usize,
}

/// Decides whether the job has ended, and which pods it needs if not.
pub fn plan(view: View<'_>) -> Sync<'_> {
    let context = Context::new(view);
    let mut status = view.job.status.clone().unwrap_or_default();
    status.uncounted_terminated_pods.get_or_insert_default();
    if status.start_time.is_none() && !context.rules.is_suspended {
        status.start_time = Some(view.now.to_api_seconds());
    }
    let start = status.start_time.as_ref().map(Timestamp::from_api);
    let finished = verdict(&context, start);
    let is_leaving = view.job.metadata.deletion_timestamp.is_some();
    let was_managed = finished.is_none() && view.expectations_are_met && !is_leaving;
    let work = match &finished {
        Some(_) if context.active.is_empty() => PodWork::Nothing,
        Some(_) => PodWork::Stop(context.active.clone()),
        None if was_managed => manage(&context),
        None => PodWork::Nothing,
    };
    let deadline = until_deadline(&context, start).filter(|_| finished.is_none());
    let wait = match &work {
        PodWork::Wait(wait) => Some((*wait).max(Duration::from_secs(1))),
        _ => None,
    };
    Sync {
        again_after: deadline.into_iter().chain(wait).min(),
        work,
        context,
        status,
        finished,
        was_managed,
    }
}

impl<'a> Sync<'a> {
    /// After the work: what to write and which pods lose their finalizer.
    pub fn conclude(mut self, done: Done) -> Accounting<'a> {
        let mut active = as_count(self.context.active.len());
        let (created, deleted) = (as_count(done.created), as_count(done.deleted));
        let was_finishing = self.finished.is_some();
        if was_finishing && (deleted != active || !self.context.view.expectations_are_met) {
            // Pods may be left that were not seen yet.
            self.finished = None;
        }
        active = active.saturating_add(created).saturating_sub(deleted);
        self.context.terminating = self.context.terminating.saturating_add(deleted);
        self.context.ready = self
            .context
            .ready
            .saturating_sub(as_count(done.deleted_ready));
        let mut notes = Vec::new();
        let mut has_changed = false;
        if !was_finishing {
            if self.is_complete(active) {
                let message = "Reached expected number of succeeded pods";
                let now = self.context.view.now;
                self.finished = Some(condition::new(
                    SUCCESS_CRITERIA_MET,
                    "CompletionsReached",
                    message,
                    now,
                ));
            } else if self.was_managed {
                has_changed = self.note_suspension(&mut notes);
            }
        }
        let status = &mut self.status;
        let (ready, terminating) = (Some(self.context.ready), Some(self.context.terminating));
        has_changed |= status.active.unwrap_or(0) != active
            || status.ready != ready
            || status.terminating != terminating;
        status.active = (active != 0).then_some(active);
        status.ready = ready;
        status.terminating = terminating;
        Accounting::new(self.context, self.status, self.finished, notes, has_changed)
    }

    fn is_complete(&self, active: i32) -> bool {
        let enough = self.context.rules.completions.unwrap_or(1);
        match self.context.rules.completions {
            None => self.context.succeeded > 0 && active == 0,
            Some(_) => self.context.succeeded >= enough && active == 0,
        }
    }

    /// The deadline of a job counts from when it was last resumed.
    fn note_suspension(&mut self, notes: &mut Vec<Note>) -> bool {
        let now = self.context.view.now;
        let is_suspended = self.context.rules.is_suspended;
        let (status, reason, message, event) = match is_suspended {
            true => ("True", "JobSuspended", "Job suspended", "Suspended"),
            false => ("False", "JobResumed", "Job resumed", "Resumed"),
        };
        let mut suspended = condition::new(SUSPENDED, reason, message, now);
        status.clone_into(&mut suspended.status);
        if !condition::ensure(&mut self.status, suspended) {
            return false;
        }
        self.status.start_time = (!is_suspended).then(|| now.to_api_seconds());
        notes.push(Note::normal(event, message));
        true
    }
}
