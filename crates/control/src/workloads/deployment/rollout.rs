//! One pass over a deployment.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use plimsoll_core::object::event::Note;
use plimsoll_core::object::timestamp::Timestamp;

use super::annotations;
use super::condition::{self, DEPLOYMENT_PAUSED, DEPLOYMENT_RESUMED, PROGRESSING};
use super::desired_state::{DesiredState, Strategy};
use super::status;

/// The input of a pass.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The deployment.
    pub deployment: &'a Deployment,
    /// The sets it controls.
    pub sets: &'a [&'a ReplicaSet],
    /// The pods that those sets control.
    pub pods: &'a [&'a Pod],
    /// The time.
    pub now: Timestamp,
}

/// One write. They are carried out in order; after one that fails the pass is over.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create this set, then record the events.
    Create(Box<ReplicaSet>, Vec<Note>),
    /// Write this set, then record the events.
    Update(Box<ReplicaSet>, Vec<Note>),
    /// Delete the set of this name.
    Delete(String),
    /// Write the deployment itself, then record the events.
    UpdateDeployment(Box<Deployment>, Vec<Note>),
    /// Record an event.
    RecordEvent(Note),
}

/// The result of a pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes that come first.
    pub actions: Vec<Action>,
    /// The deployment with the status (and the revision annotation) to be written after that;
    /// `None` if it has them already.
    pub status: Option<Box<Deployment>>,
    /// When to look again even if nothing changes.
    pub again_after: Option<Duration>,
}

/// A set as it was found and as it shall be.
#[derive(Clone, Debug)]
pub(super) struct SetState {
    /// As found; a set made in this pass counts as found with its first size.
    pub(super) found: ReplicaSet,
    pub(super) desired: ReplicaSet,
    pub(super) notes: Vec<Note>,
    pub(super) is_created: bool,
}

impl SetState {
    /// The size it shall have.
    pub(super) fn replicas(&self) -> i32 {
        replicas(&self.desired)
    }

    /// How many of its pods are available.
    pub(super) fn available(&self) -> i32 {
        let status = self.found.status.as_ref();
        status.and_then(|s| s.available_replicas).unwrap_or(0)
    }

    pub(super) fn name(&self) -> &str {
        self.desired.metadata.name.as_deref().unwrap_or_default()
    }
}

/// The size in the spec of a set.
pub(super) fn replicas(set: &ReplicaSet) -> i32 {
    set.spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1)
}

/// A pass at work.
#[derive(Debug)]
pub(super) struct Rollout<'a> {
    pub(super) view: View<'a>,
    pub(super) wanted: DesiredState,
    /// The deployment as it shall be.
    pub(super) deployment: Deployment,
    /// Its sets from the oldest to the newest creation.
    pub(super) sets: Vec<SetState>,
    /// Which of them has the deployment's template.
    pub(super) newest: Option<usize>,
    pub(super) actions: Vec<Action>,
}

/// How the status at the end of a pass is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// A roll-out is under way: see whether it gets on.
    Estimated,
    /// Nothing is rolled out.
    Left,
}

/// Decides what a deployment needs next.
pub fn reconcile(view: View<'_>) -> Plan {
    let mut rollout = Rollout::new(view);
    if view
        .deployment
        .spec
        .as_ref()
        .is_some_and(|spec| spec.selector == LabelSelector::default())
    {
        return rollout.refuse_to_select_all();
    }
    if view.deployment.metadata.deletion_timestamp.is_some() {
        rollout.find_newest();
        return rollout.finish(Progress::Left);
    }
    rollout.note_pause();
    if rollout.wanted.is_paused {
        return rollout.rescale();
    }
    if let Some(revision) = rollout.requested_rollback() {
        return rollout.roll_back(revision);
    }
    rollout.find_newest();
    if rollout.is_resized() {
        return rollout.rescale();
    }
    match rollout.wanted.strategy {
        Strategy::RollingUpdate => rollout.roll(),
        Strategy::Recreate => rollout.recreate(),
    }
}

impl<'a> Rollout<'a> {
    fn new(view: View<'a>) -> Rollout<'a> {
        let mut sets: Vec<SetState> = view
            .sets
            .iter()
            .map(|set| SetState {
                found: (*set).clone(),
                desired: (*set).clone(),
                notes: Vec::new(),
                is_created: false,
            })
            .collect();
        sets.sort_by(|a, b| age(&a.found).cmp(&age(&b.found)));
        Rollout {
            view,
            wanted: DesiredState::from_deployment(view.deployment),
            deployment: view.deployment.clone(),
            sets,
            newest: None,
            actions: Vec::new(),
        }
    }

    pub(super) fn name(&self) -> &str {
        self.deployment.metadata.name.as_deref().unwrap_or_default()
    }

    fn refuse_to_select_all(mut self) -> Plan {
        let message = "This deployment is selecting all pods. A non-empty selector is required.";
        self.actions
            .push(Action::RecordEvent(Note::warning("SelectingAll", message)));
        let generation = self.deployment.metadata.generation;
        self.deployment
            .status
            .get_or_insert_default()
            .observed_generation = generation;
        let has_changed = self.deployment.status != self.view.deployment.status;
        Plan {
            actions: self.actions,
            status: has_changed.then(|| Box::new(self.deployment)),
            again_after: None,
        }
    }

    /// A pause is written into the condition, so that the time of the pause does not count against
    /// the deadline. A deployment that has run out of time stays so.
    fn note_pause(&mut self) {
        let status = self.deployment.status.get_or_insert_default();
        let is_late =
            condition::has_reason(status, PROGRESSING, condition::PROGRESS_DEADLINE_EXCEEDED);
        if self.wanted.progress_deadline_seconds.is_none() || is_late {
            return;
        }
        let is_noted = condition::has_reason(status, PROGRESSING, DEPLOYMENT_PAUSED);
        let (reason, message) = match (self.wanted.is_paused, is_noted) {
            (true, false) => (DEPLOYMENT_PAUSED, "Deployment is paused"),
            (false, true) => (DEPLOYMENT_RESUMED, "Deployment is resumed"),
            _ => return,
        };
        let condition = condition::new(PROGRESSING, "Unknown", reason, message, self.view.now);
        condition::set(status, condition);
    }

    /// The sets that do not have the deployment's template, from the oldest to the newest.
    pub(super) fn old(&self) -> Vec<usize> {
        (0..self.sets.len())
            .filter(|index| Some(*index) != self.newest)
            .collect()
    }

    /// Those of them that have or ought to have pods.
    pub(super) fn active(&self, sets: impl IntoIterator<Item = usize>) -> Vec<usize> {
        sets.into_iter()
            .filter(|index| self.sets[*index].replicas() > 0)
            .collect()
    }

    /// Sets the size of a set, if it differs; returns whether it did.
    pub(super) fn scale(&mut self, index: usize, size: i32) -> bool {
        let state = &mut self.sets[index];
        let before = state.replicas();
        if before == size {
            return false;
        }
        state.desired.spec.get_or_insert_default().replicas = Some(size);
        annotations::remember_sizes(&mut state.desired.metadata, &self.wanted);
        let direction = if before < size { "up" } else { "down" };
        let message = format!(
            "Scaled {direction} replica set {} from {before} to {size}",
            state.name()
        );
        state.notes.push(Note::normal("ScalingReplicaSet", message));
        true
    }

    /// Deletes the oldest of the sets that are no longer needed to go back to.
    pub(super) fn clean_up(&mut self) {
        let Some(limit) = self.wanted.revision_history_limit else {
            return;
        };
        let mut old: Vec<&SetState> = self
            .old()
            .into_iter()
            .map(|index| &self.sets[index])
            .collect();
        old.retain(|set| set.found.metadata.deletion_timestamp.is_none());
        let excess = old
            .len()
            .saturating_sub(usize::try_from(limit).unwrap_or(0));
        old.sort_by(|a, b| by_revision(&a.found, &b.found));
        for set in old
            .into_iter()
            .take(excess)
            .filter(|set| is_fully_scaled_down(&set.found))
        {
            self.actions.push(Action::Delete(set.name().to_owned()));
        }
    }

    /// Collects the writes and computes the status.
    pub(super) fn finish(mut self, progress: Progress) -> Plan {
        let status = status::compute(&self, progress);
        let again_after = match progress {
            Progress::Estimated => status::until_deadline(&self, &status),
            Progress::Left => None,
        };
        let found = self.view.deployment;
        let has_changed = found.status.clone().unwrap_or_default() != status
            || found.metadata.annotations != self.deployment.metadata.annotations;
        self.deployment.status = Some(status);
        // A set that cannot be made must not cost the old ones their pods.
        let (created, others): (Vec<SetState>, Vec<SetState>) =
            self.sets.into_iter().partition(|set| set.is_created);
        let create = |set: SetState| Action::Create(Box::new(set.desired), set.notes);
        let update = |set: SetState| Action::Update(Box::new(set.desired), set.notes);
        let changed = others.into_iter().filter(|set| set.found != set.desired);
        let created = created.into_iter().map(create);
        let mut actions: Vec<Action> = created.chain(changed.map(update)).collect();
        actions.extend(self.actions);
        Plan {
            actions,
            status: has_changed.then(|| Box::new(self.deployment)),
            again_after: again_after.filter(|_| !has_changed),
        }
    }
}

/// Sorts by creation, then by name.
pub(super) fn age(set: &ReplicaSet) -> (Option<Timestamp>, &str) {
    let time = set.metadata.creation_timestamp.as_ref();
    (
        time.map(Timestamp::from_api),
        set.metadata.name.as_deref().unwrap_or_default(),
    )
}

/// Sorts by revision where both have one, else by age.
fn by_revision(a: &ReplicaSet, b: &ReplicaSet) -> std::cmp::Ordering {
    match (
        annotations::revision(&a.metadata),
        annotations::revision(&b.metadata),
    ) {
        (Some(first), Some(second)) if first != second => first.cmp(&second),
        _ => age(a).cmp(&age(b)),
    }
}

/// Whether the set has no pods, needs none, and its controller has observed it.
fn is_fully_scaled_down(set: &ReplicaSet) -> bool {
    let status = set.status.clone().unwrap_or_default();
    status.replicas == 0
        && replicas(set) == 0
        && set.metadata.generation.unwrap_or(0) <= status.observed_generation.unwrap_or(0)
}
