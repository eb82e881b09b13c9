//! The pods that would be preempted on one node.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::scheduling::cluster::{Cluster, DisruptionBudget, NodeSlot, NodeState};
use crate::scheduling::filters::{Cycle, Trial};
use crate::scheduling::plugin_names::Rejection;
use crate::scheduling::pod::SchedulingPod;

use super::Candidate;

const REASON_NO_VICTIMS: &str = "No preemption victims found for incoming pod";

/// Whether a pod may be pushed out by another.
pub fn is_victim(pod: &SchedulingPod, preemptor: &SchedulingPod) -> bool {
    pod.priority < preemptor.priority
}

/// The fewest pods to remove from the node so that the pod fits, or what would still be in the way.
///
/// All pods of lower priority are taken away; then, the most important first and those under a
/// spent disruption budget before the rest, each is put back and stays if the pod still fits.
pub fn select_victims(
    cycle: &Cycle<'_>,
    slot: NodeSlot,
    mut trial: Trial,
) -> Result<Candidate, Rejection> {
    let pods = trial.node.pods().iter();
    let mut potential: Vec<Arc<SchedulingPod>> = pods
        .filter(|pod| is_victim(pod, cycle.pod))
        .cloned()
        .collect();
    if potential.is_empty() {
        return Err(Rejection::by_no_plugin(REASON_NO_VICTIMS));
    }
    // The last first: that is where the node looks for them.
    for pod in potential.iter().rev() {
        cycle.remove_on_trial(&mut trial, pod);
    }
    if let Some(rejection) = cycle.filter_with_nominated(&trial.node, &trial.state) {
        return Err(rejection);
    }
    sort_by_importance(&mut potential);
    let budgets = budgets_of(cycle.cluster, &potential);
    let (violating, others) = split_by_budgets(potential, &budgets);
    let is_mixed = !violating.is_empty() && !others.is_empty();
    let mut victims = cannot_stay(cycle, &mut trial, violating);
    let pdb_violations = victims.len();
    victims.extend(cannot_stay(cycle, &mut trial, others));
    if is_mixed {
        sort_by_importance(&mut victims);
    }
    Ok(Candidate {
        slot,
        victims,
        pdb_violations,
    })
}

/// Puts pods back one by one, and returns those that do not leave room for the pod.
fn cannot_stay(
    cycle: &Cycle<'_>,
    trial: &mut Trial,
    pods: Vec<Arc<SchedulingPod>>,
) -> Vec<Arc<SchedulingPod>> {
    let mut victims = Vec::new();
    for pod in pods {
        cycle.add_on_trial(trial, &pod);
        let rejection = cycle.filter_with_nominated(&trial.node, &trial.state);
        if rejection.is_some() {
            cycle.remove_on_trial(trial, &pod);
            victims.push(pod);
        }
    }
    victims
}

/// The most important first: by priority, then by age.
///
/// A pod that has not started is the youngest. Of several such the last comes first: upstream takes
/// the current time for each in turn, so that the one it compares first is the older.
fn sort_by_importance(pods: &mut Vec<Arc<SchedulingPod>>) {
    let mut numbered: Vec<(usize, Arc<SchedulingPod>)> =
        std::mem::take(pods).into_iter().enumerate().collect();
    numbered.sort_by_key(|(index, pod)| match pod.start_time {
        Some(start) => (Reverse(pod.priority), 0, start, Reverse(0)),
        None => (Reverse(pod.priority), 1, 0, Reverse(*index)),
    });
    pods.extend(numbered.into_iter().map(|(_, pod)| pod));
}

type Pods = Vec<Arc<SchedulingPod>>;

/// The budgets that any of the pods could be under.
fn budgets_of<'a>(cluster: &'a Cluster, pods: &[Arc<SchedulingPod>]) -> Vec<&'a DisruptionBudget> {
    let namespaces = pods.iter().map(|pod| pod.pod_ref.namespace.as_str());
    let namespaces: BTreeSet<&str> = namespaces.collect();
    let budgets = namespaces.into_iter().flat_map(|ns| cluster.budgets_in(ns));
    budgets.collect()
}

/// How many pods that could have to go are under the budget that has the most of them.
///
/// While budgets allow at least as many, it does not matter to the node how many they allow.
pub(in crate::scheduling) fn most_in_one_budget(cycle: &Cycle<'_>, node: &NodeState) -> usize {
    let budgets = budgets_of(cycle.cluster, node.pods());
    let victims = || node.pods().iter().filter(|pod| is_victim(pod, cycle.pod));
    let counts = budgets
        .iter()
        .map(|budget| victims().filter(|pod| budget.is_charged_by(pod)).count());
    counts.max().unwrap_or(0)
}

/// Splits off the pods that break a disruption budget, if all before them in the list go too.
fn split_by_budgets(pods: Pods, budgets: &[&DisruptionBudget]) -> (Pods, Pods) {
    let mut allowed: Vec<i32> = budgets.iter().map(|b| b.disruptions_allowed).collect();
    pods.into_iter().partition(|pod| {
        let mut is_violating = false;
        for (budget, allowed) in budgets.iter().zip(&mut allowed) {
            if budget.is_charged_by(pod) {
                *allowed = allowed.wrapping_sub(1);
                is_violating |= *allowed < 0;
            }
        }
        is_violating
    })
}
