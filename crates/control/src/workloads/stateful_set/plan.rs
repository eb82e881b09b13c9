//! Which pods to make, to delete and to correct.
//!
//! A set with the policy OrderedReady goes one step at a time: a pod is made when those before it
//! are available, and deleted when those after it are gone. With Parallel all steps of a stage are
//! made together; only the replacement of pods of an old revision keeps its order and its limit.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec};
use plimsoll_core::object::timestamp::Timestamp;

use crate::workloads::fraction::{Rounding, scaled};
use crate::workloads::pod_state;
use crate::workloads::revision::REVISION_HASH;
use plimsoll_core::object::event::Note;

use super::claim;
use super::identity::{
    has_identity, has_storage, name_of, new_pod, ordinal_of, ordinals, replicas, set_identity,
    set_storage,
};
use super::status::{complete_update, compute_status};

/// A revision of the set's template.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// Its name, with which pods are labelled.
    pub name: String,
    /// The template.
    pub template: PodTemplateSpec,
}

/// What a set, its pods and its claims look like.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The set.
    pub set: &'a StatefulSet,
    /// Its pods.
    pub pods: &'a [&'a Pod],
    /// The claim of that name in the set's namespace.
    pub claim: &'a dyn Fn(&str) -> Option<Arc<PersistentVolumeClaim>>,
    /// The revision that an update starts from.
    pub current: &'a Revision,
    /// The revision of the set's template.
    pub update: &'a Revision,
    /// How often the name of a revision was taken.
    pub collisions: i32,
    /// The time.
    pub now: Timestamp,
}

impl std::fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").finish_non_exhaustive()
    }
}

/// One write, or an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create a claim of the pod.
    CreateClaim(Box<PersistentVolumeClaim>),
    /// Replace a claim of the pod.
    UpdateClaim(Box<PersistentVolumeClaim>),
    /// Create the pod.
    CreatePod(Box<Pod>),
    /// Replace the pod.
    UpdatePod(Box<Pod>),
    /// Delete the pod.
    DeletePod,
    /// Record an event.
    Record(Note),
    /// Fail, and try again later.
    Fail(String),
}

/// What a step is called in events about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// A pod is made.
    Create,
    /// A pod is corrected.
    Update,
    /// A pod is deleted.
    Delete,
}

/// The writes for one pod, in their order; those after a failed one are not made.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The name of the pod.
    pub pod: String,
    /// What its success or failure is reported as; some steps are not reported.
    pub verb: Option<Verb>,
    /// The writes.
    pub actions: Vec<Action>,
}

/// Whether the steps of a stage wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after the other.
    Sequential,
    /// All of them at once.
    Parallel,
}

/// The pass over a set.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Whether the steps of a stage wait for each other.
    pub order: Order,
    /// The steps. A stage begins when the one before it has succeeded.
    pub stages: Vec<Vec<Step>>,
    /// The status after the pass.
    pub status: StatefulSetStatus,
}

/// The most pods of a set that are made before what was done is looked at.
pub const BURST_REPLICAS: usize = 500;

/// The pods with the ordinals of the set, by ordinal.
type Replicas<'a> = BTreeMap<i32, &'a Pod>;

/// Whether an ordered set continues with the next pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Continue,
    Wait,
}

/// Plans the pass.
pub fn plan(view: View<'_>) -> Plan {
    let set = view.set;
    let spec = set.spec.as_ref();
    let policy = spec.and_then(|spec| spec.pod_management_policy.as_deref());
    let min_ready = spec.and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
    let planner = Planner {
        view,
        min_ready,
        order: match policy {
            Some("Parallel") => Order::Parallel,
            _ => Order::Sequential,
        },
    };
    let mut plan = Plan {
        order: planner.order,
        stages: Vec::new(),
        status: compute_status(&view, view.pods.iter().copied()),
    };
    if set.metadata.deletion_timestamp.is_none() {
        planner.fill(&mut plan);
    }
    complete_update(set, &mut plan.status);
    plan
}

struct Planner<'a> {
    view: View<'a>,
    min_ready: i32,
    order: Order,
}

impl<'a> Planner<'a> {
    fn fill(&self, plan: &mut Plan) {
        let set = self.view.set;
        let (replicas, condemned) = self.sort_pods();
        let first_unavailable = self.first_unavailable(&replicas, &condemned);

        let mut steps = Vec::new();
        for ordinal in ordinals(set) {
            let progress = match replicas.get(&ordinal) {
                Some(pod) => self.keep(ordinal, pod, &mut steps),
                None => self.create(ordinal, &mut steps),
            };
            let is_waiting = progress == Progress::Wait && self.order == Order::Sequential;
            if is_waiting || steps.len() >= BURST_REPLICAS {
                plan.stages.push(steps);
                return;
            }
        }
        plan.stages.push(steps);

        let fixed = condemned.iter().filter_map(|pod| {
            let actions = self.claim_updates(pod);
            (!actions.is_empty()).then(|| step(pod_state::name(pod), None, actions))
        });
        plan.stages.push(fixed.collect());

        let mut steps = Vec::new();
        for pod in &condemned {
            let progress = self.scale_down(pod, first_unavailable, &mut steps);
            if progress == Progress::Wait && self.order == Order::Sequential {
                plan.stages.push(steps);
                return;
            }
        }
        plan.stages.push(steps);

        let replaced = self.replace(&replicas);
        let current = plan.status.current_replicas.unwrap_or(0);
        let deleted = i32::try_from(replaced.len()).unwrap_or(i32::MAX);
        plan.status.current_replicas = Some(current.saturating_sub(deleted).max(0));
        plan.stages.push(replaced);
    }

    /// The pods with the ordinals of the set, and those beyond them from the highest ordinal.
    fn sort_pods(&self) -> (Replicas<'a>, Vec<&'a Pod>) {
        let set = self.view.set;
        let wanted = ordinals(set);
        let of_pod = |pod: &&'a Pod| Some((ordinal_of(name_of(set), pod_state::name(pod))?, *pod));
        let by_ordinal: Replicas<'a> = self.view.pods.iter().filter_map(of_pod).collect();
        let (replicas, condemned): (Replicas<'a>, Replicas<'a>) = by_ordinal
            .into_iter()
            .partition(|(ordinal, _)| wanted.contains(ordinal));
        (replicas, condemned.into_values().rev().collect())
    }

    /// The pod of an ordinal that has none. During an update, pods below the partition are of the
    /// revision that it started from.
    fn missing(&self, ordinal: i32) -> Pod {
        let set = self.view.set;
        let strategy = set.spec.as_ref().and_then(|s| s.update_strategy.as_ref());
        let is_rolling = strategy.is_some_and(|s| s.type_.as_deref() == Some("RollingUpdate"));
        let kept = match strategy.and_then(|strategy| strategy.rolling_update.as_ref()) {
            Some(rolling) => rolling.partition.unwrap_or(0),
            None if is_rolling => {
                let status = set.status.as_ref();
                status
                    .and_then(|status| status.current_replicas)
                    .unwrap_or(0)
            }
            None => 0,
        };
        let revision = match ordinal < ordinals(set).start.saturating_add(kept) {
            true => self.view.current,
            false => self.view.update,
        };
        new_pod(set, ordinal, &revision.name, &revision.template)
    }

    fn is_available(&self, pod: &Pod) -> bool {
        pod_state::is_available(pod, self.min_ready, self.view.now)
    }

    fn is_unavailable(&self, pod: &Pod) -> bool {
        !self.is_available(pod) || pod.metadata.deletion_timestamp.is_some()
    }

    /// How many of the wanted pods are unavailable, or missing.
    fn count_unavailable(&self, replicas: &Replicas<'_>) -> usize {
        let wanted = ordinals(self.view.set).len();
        let available = replicas.values().filter(|pod| !self.is_unavailable(pod));
        wanted.saturating_sub(available.count())
    }

    /// The name of the first pod that is unavailable, if it is one of those beyond the wanted number.
    fn first_unavailable(&self, replicas: &Replicas<'_>, condemned: &[&'a Pod]) -> Option<&'a str> {
        if self.count_unavailable(replicas) > 0 {
            return None;
        }
        let mut from_lowest = condemned.iter().rev();
        let found = from_lowest.find(|pod| self.is_unavailable(pod));
        found.map(|pod| pod_state::name(pod))
    }

    /// Makes room for another pod if this one has ended, and corrects it.
    fn keep(&self, ordinal: i32, pod: &Pod, steps: &mut Vec<Step>) -> Progress {
        let name = pod_state::name(pod);
        let is_leaving = pod.metadata.deletion_timestamp.is_some();
        if pod_state::is_terminal(pod) {
            if !is_leaving {
                steps.push(step(name, Some(Verb::Delete), vec![Action::DeletePod]));
            }
            return Progress::Wait;
        }
        let is_pending = pod_state::phase(pod) == "Pending";
        if is_pending {
            let mut actions = self.claim_creations(ordinal, pod);
            actions.extend(self.claim_updates(pod));
            if !actions.is_empty() {
                steps.push(step(name, None, actions));
            }
        }
        let is_serving = pod_state::phase(pod) == "Running" && self.is_available(pod);
        if self.order == Order::Sequential && (is_leaving || !is_serving) {
            return Progress::Wait;
        }
        let actions = self.corrections(ordinal, pod, is_pending);
        if !actions.is_empty() {
            steps.push(step(name, Some(Verb::Update), actions));
        }
        Progress::Continue
    }

    fn create(&self, ordinal: i32, steps: &mut Vec<Step>) -> Progress {
        let set = self.view.set;
        let pod = self.missing(ordinal);
        let found = claim::claim_templates(set).iter();
        let mut found =
            found.filter_map(|t| (self.view.claim)(&claim::claim_name(set, t, ordinal)));
        // A claim that goes with the former pod of this name is about to be deleted.
        if found.any(|found| claim::is_stale(&found, set, &pod)) {
            return Progress::Wait;
        }
        let name = pod_state::name(&pod).to_owned();
        let mut actions = self.claim_creations(ordinal, &pod);
        let owners = self.claim_updates(&pod);
        actions.push(Action::CreatePod(Box::new(pod)));
        actions.extend(owners);
        steps.push(step(&name, Some(Verb::Create), actions));
        Progress::Wait
    }

    /// Creates the claims that are missing. One that is being deleted is in the way.
    fn claim_creations(&self, ordinal: i32, pod: &Pod) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut leaving = Vec::new();
        for claim in claim::new_claims(self.view.set, pod, ordinal) {
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            match (self.view.claim)(name) {
                None => actions.push(Action::CreateClaim(Box::new(claim))),
                Some(found) if found.metadata.deletion_timestamp.is_some() => {
                    leaving.push(format!("pvc {name} is being deleted"));
                }
                Some(_) => {}
            }
        }
        match leaving.as_slice() {
            [] => {}
            [only] => actions.push(Action::Fail(only.clone())),
            several => actions.push(Action::Fail(format!("[{}]", several.join(", ")))),
        }
        actions
    }

    /// Gives the claims the owners that the policy requires.
    fn claim_updates(&self, pod: &Pod) -> Vec<Action> {
        let set = self.view.set;
        let Some(ordinal) = ordinal_of(name_of(set), pod_state::name(pod)) else {
            return Vec::new();
        };
        let mut actions = Vec::new();
        for template in claim::claim_templates(set) {
            let name = claim::claim_name(set, template, ordinal);
            let Some(found) = (self.view.claim)(&name) else {
                continue;
            };
            if claim::are_owners_current(&found, set, pod) {
                continue;
            }
            if claim::has_other_controller(&found, set, pod) {
                let message = format!(
                    "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a \
                     manging controller, the retention policy is ignored for this claim"
                );
                actions.push(Action::Record(Note::warning(
                    "ConflictingController",
                    message,
                )));
            }
            let mut claim = (*found).clone();
            claim::set_owners(&mut claim, set, pod);
            actions.push(Action::UpdateClaim(Box::new(claim)));
        }
        actions
    }

    /// What a pod that was adopted or changed lacks.
    fn corrections(&self, ordinal: i32, pod: &Pod, are_claims_done: bool) -> Vec<Action> {
        let set = self.view.set;
        let (has_identity, has_storage) = (has_identity(pod), has_storage(set, pod, ordinal));
        let mut actions = Vec::new();
        if !has_storage && !are_claims_done {
            actions.extend(self.claim_creations(ordinal, pod));
        }
        if !are_claims_done {
            actions.extend(self.claim_updates(pod));
        }
        if !has_identity || !has_storage {
            let mut pod = pod.clone();
            set_identity(&mut pod, ordinal);
            set_storage(set, &mut pod, ordinal);
            actions.push(Action::UpdatePod(Box::new(pod)));
        }
        actions
    }

    /// Deletes a pod beyond the wanted number. In order, a pod that is unavailable is waited for,
    /// unless it is the first that is.
    fn scale_down(
        &self,
        pod: &Pod,
        first_unavailable: Option<&str>,
        steps: &mut Vec<Step>,
    ) -> Progress {
        let name = pod_state::name(pod);
        if pod.metadata.deletion_timestamp.is_some() {
            return Progress::Wait;
        }
        let is_serving = pod_state::phase(pod) == "Running" && self.is_available(pod);
        let is_waited_for = !is_serving && first_unavailable != Some(name);
        if self.order == Order::Parallel || !is_waited_for {
            steps.push(step(name, Some(Verb::Delete), vec![Action::DeletePod]));
        }
        Progress::Wait
    }

    /// Deletes pods of other revisions than the new one, from the highest ordinal down to the
    /// partition.
    fn replace(&self, pods: &Replicas<'a>) -> Vec<Step> {
        let set = self.view.set;
        let strategy = set.spec.as_ref().and_then(|s| s.update_strategy.as_ref());
        if strategy.is_some_and(|s| s.type_.as_deref() == Some("OnDelete")) {
            return Vec::new();
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let partition = rolling.and_then(|rolling| rolling.partition).unwrap_or(0);
        let wanted = ordinals(set);
        let first = wanted.start.saturating_add(partition.max(0));
        let limit = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        let Some(limit) = limit else {
            return self.replace_next(pods, first).into_iter().collect();
        };
        // A small percentage still lets one go.
        let limit = scaled(limit, replicas(set), Rounding::Down).unwrap_or(1);
        let unavailable = self.count_unavailable(pods);
        let left = usize::try_from(limit.max(1))
            .unwrap_or(1)
            .saturating_sub(unavailable);
        let outdated = pods
            .range(first..)
            .rev()
            .filter(|(_, pod)| self.is_outdated(pod));
        outdated.take(left).map(|(_, pod)| deletion(pod)).collect()
    }

    /// Without a limit of its own: one pod at a time, and none while one after it is unavailable.
    fn replace_next(&self, pods: &Replicas<'a>, first: i32) -> Option<Step> {
        let mut ordinal = ordinals(self.view.set).end;
        while ordinal > first {
            ordinal -= 1;
            let pod = pods.get(&ordinal)?;
            if self.is_outdated(pod) {
                return Some(deletion(pod));
            }
            if self.is_unavailable(pod) {
                return None;
            }
        }
        None
    }

    fn is_outdated(&self, pod: &Pod) -> bool {
        pod_state::label(pod, REVISION_HASH) != Some(&self.view.update.name)
            && pod.metadata.deletion_timestamp.is_none()
    }
}

fn deletion(pod: &Pod) -> Step {
    step(
        pod_state::name(pod),
        Some(Verb::Delete),
        vec![Action::DeletePod],
    )
}

fn step(pod: &str, verb: Option<Verb>, actions: Vec<Action>) -> Step {
    Step {
        pod: pod.to_owned(),
        verb,
        actions,
    }
}
