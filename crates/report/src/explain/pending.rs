//! Why a pod is pending: every node, every filter.

use plimsoll_core::object::identity::NodeName;
use plimsoll_core::object::taint::{NODE_UNSCHEDULABLE, TaintFilter, is_tolerated};
use plimsoll_core::scheduling::cluster::{NodeSlot, NodeState};
use plimsoll_core::scheduling::decision::{Decision, Error, Unschedulable};
use plimsoll_core::scheduling::filter_results::FilterResults;
use plimsoll_core::scheduling::filters::{Cycle, FilterState};
use plimsoll_core::scheduling::plugin_names::{Code, FilterPlugin, Rejection};
use plimsoll_core::scheduling::preemption::PreemptionResult;
use plimsoll_core::scheduling::reference::{Search, filter_nodes, schedule};
use plimsoll_core::scheduling::tie_break::Attempts;

use super::fix::fixes;
use super::obstacle::details;
use super::report::{NodeVerdict, Pending, RejectionRow};

/// A pod to be scheduled, with details that only the explanation needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'a> {
    pub(crate) cycle: Cycle<'a>,
    /// Whether the pod names a scheduler that has no profile.
    pub(crate) is_of_other_scheduler: bool,
}

impl Case<'_> {
    /// The rejections of all filters, in their order. Two filters reject a cordoned node; only the
    /// first rejection is kept.
    pub(super) fn obstacles(&self, node: &NodeState, state: &FilterState) -> Vec<Rejection> {
        let filters = self.cycle.profile.filters.iter();
        let mut obstacles: Vec<Rejection> = filters
            .filter_map(|plugin| self.cycle.filter_by(*plugin, node, state))
            .collect();
        let is_by = |obstacle: &Rejection, plugin| obstacle.plugin == Some(plugin);
        let mut all = obstacles.iter();
        let is_cordoned = all.any(|one| is_by(one, FilterPlugin::NodeUnschedulable));
        let taints = self.untolerated(node);
        let is_only_that = |taint: &String| taint.starts_with(NODE_UNSCHEDULABLE);
        if is_cordoned && taints.iter().all(is_only_that) {
            obstacles.retain(|one| !is_by(one, FilterPlugin::TaintToleration));
        }
        obstacles
    }

    /// Taints of the node that the pod does not tolerate.
    pub(super) fn untolerated(&self, node: &NodeState) -> Vec<String> {
        let comparison = self.cycle.profile.comparison_operators;
        let tolerations = &self.cycle.pod.tolerations;
        let taints = node.view.taints.iter();
        let forbidding = taints.filter(|taint| {
            TaintFilter::NoScheduleOrNoExecute.includes(taint)
                && !is_tolerated(taint, tolerations, comparison)
        });
        forbidding.map(ToString::to_string).collect()
    }
}

/// Filters every node as the scheduler would.
pub(crate) fn explain(case: &Case<'_>) -> Pending {
    let gates = case.cycle.pod.scheduling_gates.clone();
    let filtered = filter_nodes(&case.cycle, Search::All);
    let nodes = verdicts(case, &filtered);
    let (message, preemption) = match schedule(&case.cycle, &mut Attempts::new(0)) {
        Ok(Decision::Wait(why)) => (why.message.clone(), preemption(case, &why, &nodes)),
        Ok(Decision::Place(_)) => (String::new(), String::new()),
        Err(error @ (Error::NoNodes | Error::InvalidScore(_))) => {
            (error.to_string(), String::new())
        }
    };
    Pending {
        scheduler: case.cycle.profile.scheduler_name.clone(),
        is_of_other_scheduler: case.is_of_other_scheduler,
        message,
        fixes: match gates.is_empty() {
            true => fixes(case, &filtered, &nodes),
            false => Vec::new(),
        },
        gates,
        nodes,
        preemption,
        ..Pending::default()
    }
}

/// The results of the filters for every node, in the order of names.
pub(crate) fn verdicts(case: &Case<'_>, filtered: &FilterResults) -> Vec<NodeVerdict> {
    let looked_at = filtered.nodes.iter();
    let mut nodes: Vec<NodeVerdict> = looked_at
        .filter_map(|(slot, first)| {
            let node = case.cycle.cluster.node(*slot)?;
            Some(NodeVerdict {
                node: node.view.name.to_string(),
                rejections: rejections(case, filtered, *slot, first.as_ref()),
            })
        })
        .collect();
    nodes.sort_by(|a, b| a.node.cmp(&b.node));
    nodes
}

/// All filters that reject the node; `first` is the scheduler's, which may be no plugin's.
pub(crate) fn rejections(
    case: &Case<'_>,
    filtered: &FilterResults,
    slot: NodeSlot,
    first: Option<&Rejection>,
) -> Vec<RejectionRow> {
    let Some(node) = case.cycle.cluster.node(slot) else {
        return Vec::new();
    };
    let Some(first) = first else {
        return Vec::new();
    };
    let obstacles = case.obstacles(node, &filtered.state);
    let mut rows: Vec<RejectionRow> = obstacles
        .iter()
        .map(|obstacle| row(case, node, obstacle))
        .collect();
    // Room reserved for nominated pods, and nodes that the pod does not name.
    let is_listed = rows.iter().any(|row| row.plugin == name_of(first));
    if !is_listed {
        let mut row = row(case, node, first);
        if !case
            .cycle
            .cluster
            .nominated_pods(&node.view.name)
            .is_empty()
        {
            row.details.push(set_aside(case, &node.view.name));
        }
        rows.insert(0, row);
    }
    rows
}

fn set_aside(case: &Case<'_>, node: &NodeName) -> String {
    let nominated = case.cycle.cluster.nominated_pods(node).iter();
    let pods: Vec<String> = nominated.map(|pod| pod.pod_ref.to_string()).collect();
    format!("room is kept there for {}", pods.join(", "))
}

fn name_of(rejection: &Rejection) -> Option<&'static str> {
    rejection.plugin.map(FilterPlugin::as_str)
}

fn row(case: &Case<'_>, node: &NodeState, rejection: &Rejection) -> RejectionRow {
    RejectionRow {
        plugin: name_of(rejection),
        reasons: rejection.reasons.iter().map(ToString::to_string).collect(),
        details: match rejection.plugin {
            Some(plugin) => details(case, node, plugin),
            None => Vec::new(),
        },
        is_resolvable: rejection.code == Code::Unschedulable,
    }
}

fn preemption(case: &Case<'_>, why: &Unschedulable, nodes: &[NodeVerdict]) -> String {
    let is_resolvable = |node: &NodeVerdict| node.rejections.iter().all(|row| row.is_resolvable);

    match &why.room {
        PreemptionResult::At(candidate) => {
            let victims = candidate.victims.iter();
            let victims: Vec<String> = victims
                .map(|victim| format!("{} (priority {})", victim.pod_ref, victim.priority))
                .collect();
            let node = case.cycle.cluster.node(candidate.slot);
            let node = node.map_or_else(String::new, |node| node.view.name.to_string());
            format!(
                "Evicting these pods would make room on {node}: {}.",
                victims.join(", ")
            )
        }
        PreemptionResult::None if !nodes.iter().any(is_resolvable) => {
            "Evicting pods would not help.".to_owned()
        }
        PreemptionResult::None => {
            "Evicting pods of lower priority would not make enough room.".to_owned()
        }
        PreemptionResult::NotTried => "Evicting pods would not help.".to_owned(),
        PreemptionResult::NotEligible(reason) => format!("Not tried: {reason}"),
        PreemptionResult::SwitchedOff(_) => "The scheduler's profile does not preempt.".to_owned(),
    }
}
