//! The plain engine: looks at every node, with every filter and every score, in upstream's order.
//!
//! It is slow and meant to be obviously right. The indexed engine must come to the same verdicts,
//! scores and choices.

use std::collections::BTreeSet;

use super::cluster::{NodeSlot, NodeState};
use super::decision::{Decision, Error, Placement, Rationale};
use super::filter_results::FilterResults;
use super::filters::{Cycle, FilterState, PreFilter};
use super::plugin_names::{FilterPlugin, ScorePlugin};
use super::scores::{InvalidScore, NodeScores, ScoreState};
use super::tie_break::{Attempts, choose};

/// The results of the scores.
#[derive(Clone, Debug)]
pub struct Scored {
    /// Scores with nothing to say about the pod.
    pub skipped: Vec<ScorePlugin>,
    /// Feasible nodes, in order.
    pub nodes: Vec<(NodeSlot, NodeScores)>,
}

/// Which nodes are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// All of them.
    All,
    /// From this place in the node order on, until the profile's number of feasible nodes is found.
    From(usize),
}

/// Runs the filters. Matches v1.36 pkg/scheduler/schedule_one.go, `findNodesThatFitPod`.
pub fn filter_nodes(cycle: &Cycle<'_>, search: Search) -> FilterResults {
    let state = FilterState::scan(cycle.cluster, cycle.profile, cycle.pod);
    let pre_filter = PreFilter::new(cycle.profile, cycle.pod, &state);
    let mut order = cycle.cluster.node_order();
    let mut limit = usize::MAX;
    if let Search::From(start) = search {
        let start = start.checked_rem(order.len()).unwrap_or(0);
        order.rotate_left(start);
        let named = pre_filter.node_names.as_ref().map(BTreeSet::len);
        let in_question = named.map_or(order.len(), |named| named.min(order.len()));
        limit = cycle.profile.nodes_to_find(in_question);
    }
    let mut nodes = Vec::new();
    let mut found = 0;
    for slot in order {
        let Some(node) = cycle.cluster.node(slot) else {
            continue;
        };
        let rejection = match pre_filter.reject(&node.view.name) {
            Some(rejection) => Some(rejection),
            None if found == limit => break,
            None => cycle.filter_with_nominated(node, &state),
        };
        found += usize::from(rejection.is_none());
        nodes.push((slot, rejection));
    }
    FilterResults {
        pre_filter,
        state,
        nodes,
    }
}

/// All filters that would reject the node by themselves, were no pod waiting for room there.
pub fn all_rejecters(
    cycle: &Cycle<'_>,
    filtered: &FilterResults,
    slot: NodeSlot,
) -> Vec<FilterPlugin> {
    let Some(node) = cycle.cluster.node(slot) else {
        return Vec::new();
    };
    let filters = cycle.profile.filters.iter().copied();
    filters
        .filter(|plugin| cycle.filter_by(*plugin, node, &filtered.state).is_some())
        .collect()
}

/// Runs the scores on the feasible nodes.
pub fn score_nodes(cycle: &Cycle<'_>, filtered: &FilterResults) -> Result<Scored, InvalidScore> {
    let feasible: Vec<(NodeSlot, &NodeState)> = filtered
        .feasible()
        .filter_map(|slot| Some((slot, cycle.cluster.node(slot)?)))
        .collect();
    let nodes: Vec<&NodeState> = feasible.iter().map(|(_, node)| *node).collect();
    let state = ScoreState::scan(cycle, &nodes);
    let scores = cycle.score(&nodes, &state)?;
    let plugins = cycle.profile.scores.iter().map(|(plugin, _)| *plugin);
    Ok(Scored {
        skipped: plugins
            .filter(|plugin| cycle.skips_score(*plugin, &state))
            .collect(),
        nodes: feasible
            .into_iter()
            .map(|(slot, _)| slot)
            .zip(scores)
            .collect(),
    })
}

impl Scored {
    /// The best total, and all nodes that have it, in order.
    pub fn best(&self) -> Option<(i64, Vec<NodeSlot>)> {
        let total = self.nodes.iter().map(|(_, scores)| scores.total).max()?;
        let nodes = self.nodes.iter();
        let best = nodes.filter(|(_, scores)| scores.total == total);
        Some((total, best.map(|(slot, _)| *slot).collect()))
    }
}

/// Decides about a pod. Matches v1.36 pkg/scheduler/schedule_one.go, `schedulePod`, and what
/// follows when nothing fits.
pub fn schedule(cycle: &Cycle<'_>, attempts: &mut Attempts) -> Result<Decision, Error> {
    let cluster = cycle.cluster;
    let node_count = cluster.node_count();
    if node_count == 0 {
        return Err(Error::NoNodes);
    }
    let is_nominated = cycle.pod.nominated_node_name.is_some();
    if is_nominated
        && let Some(slot) =
            nominated_slot(cycle, &FilterState::scan(cluster, cycle.profile, cycle.pod))
    {
        return Ok(Decision::Place(Placement::without_choice(slot)));
    }
    let filtered = filter_nodes(cycle, Search::From(attempts.next_start));
    attempts.next_start = (attempts.next_start + filtered.nodes.len()) % node_count;
    let feasible: Vec<NodeSlot> = filtered.feasible().collect();
    match feasible.as_slice() {
        [] => {
            let offsets = attempts.draw_for_preemption(cluster.slot_count());
            let rationale = Rationale::new(cycle, filtered, offsets.start);
            let waiting = rationale.conclude(cluster, offsets.choice);
            Ok(Decision::Wait(Box::new(waiting)))
        }
        [only] => Ok(Decision::Place(Placement::without_choice(*only))),
        _ => {
            let scored = score_nodes(cycle, &filtered)?;
            let (total, best) = scored.best().ok_or(Error::NoNodes)?;
            let slot_count = cluster.slot_count();
            let offset = attempts.draw_offset(slot_count);
            let slot = choose(best.into_iter(), offset, slot_count).ok_or(Error::NoNodes)?;
            Ok(Decision::Place(Placement {
                slot,
                feasible: feasible.len(),
                total: Some(total),
            }))
        }
    }
}

/// What a decision that the pod waits would rest on, were it made next; nothing is drawn for it.
///
/// If a node would do, this is what would be said if it did not.
pub fn rationale(cycle: &Cycle<'_>, mut attempts: Attempts) -> Rationale {
    let filtered = filter_nodes(cycle, Search::From(attempts.next_start));
    let offsets = attempts.draw_for_preemption(cycle.cluster.slot_count());
    Rationale::new(cycle, filtered, offsets.start)
}

/// The node on which room was made for the pod, if it fits there by now.
pub(super) fn nominated_slot(cycle: &Cycle<'_>, state: &FilterState) -> Option<NodeSlot> {
    let slot = cycle
        .cluster
        .slot(cycle.pod.nominated_node_name.as_ref()?)?;
    let node = cycle.cluster.node(slot)?;
    let pre_filter = PreFilter::new(cycle.profile, cycle.pod, state);
    let fits = pre_filter.rejection.is_none() && cycle.filter_with_nominated(node, state).is_none();
    fits.then_some(slot)
}
