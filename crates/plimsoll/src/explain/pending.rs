//! Why a pod waits: every node, every filter.

use std::collections::BTreeMap;

use plimsoll_core::object::identity::NodeName;
use plimsoll_core::object::taint::{NODE_UNSCHEDULABLE, TaintFilter, is_tolerated};
use plimsoll_core::resources::ResourceName;
use plimsoll_core::scheduling::cluster::{NodeSlot, NodeState};
use plimsoll_core::scheduling::decision::{Decision, Error, Unschedulable};
use plimsoll_core::scheduling::filtered::Filtered;
use plimsoll_core::scheduling::filters::{Cycle, FilterState};
use plimsoll_core::scheduling::plugin::{Code, FilterPlugin, Rejection};
use plimsoll_core::scheduling::preemption::PreemptionResult;
use plimsoll_core::scheduling::reference::{Search, filter_nodes, schedule};
use plimsoll_core::scheduling::tie_break::Attempts;

use crate::print::Unit;

use super::fix::fixes;
use super::report::{NodeVerdict, Pending, RejectionRow};

/// A pod that looks for a node, with what only people need of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'a> {
    pub(crate) cycle: Cycle<'a>,
    pub(crate) node_selector: &'a BTreeMap<String, String>,
}

impl Case<'_> {
    /// What each filter that rejects the node says, in their order. That a node is cordoned is
    /// said by two of them; once is enough.
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

    /// Taints of the node that keep the pod away.
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

    /// Labels that the pod's node selector asks for and the node has not.
    pub(super) fn unmatched_labels(&self, node: &NodeState) -> Vec<String> {
        let wanted = self.node_selector.iter();
        wanted
            .filter(|(key, value)| node.label(key) != Some(value.as_str()))
            .map(|(key, value)| format!("{key}={value}"))
            .collect()
    }
}

/// Looks at every node as the scheduler would.
pub(crate) fn explain(case: &Case<'_>) -> Pending {
    let gates = case.cycle.pod.scheduling_gates.clone();
    let filtered = filter_nodes(&case.cycle, Search::All);
    let nodes = verdicts(case, &filtered);
    let (message, preemption) = match schedule(&case.cycle, &mut Attempts::new(0)) {
        Ok(Decision::Wait(why)) => (why.message.clone(), preemption(case, &why)),
        Ok(Decision::Place(_)) => (String::new(), String::new()),
        Err(error @ (Error::NoNodes | Error::InvalidScore(_))) => {
            (error.to_string(), String::new())
        }
    };
    Pending {
        scheduler: case.cycle.profile.scheduler_name.clone(),
        message,
        fixes: match gates.is_empty() {
            true => fixes(case, &filtered, &nodes),
            false => Vec::new(),
        },
        gates,
        nodes,
        preemption,
    }
}

/// What the filters say of every node, in the order of names.
pub(crate) fn verdicts(case: &Case<'_>, filtered: &Filtered) -> Vec<NodeVerdict> {
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

/// All filters that reject the node; `first` is what the scheduler says, which may be no plugin's.
pub(crate) fn rejections(
    case: &Case<'_>,
    filtered: &Filtered,
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
    // Room that is set aside for others, and nodes that the pod does not name.
    let is_told = rows.iter().any(|row| row.plugin == name_of(first));
    if !is_told {
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
    format!("room is set aside there for {}", pods.join(", "))
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

/// The numbers and names behind a rejection.
fn details(case: &Case<'_>, node: &NodeState, plugin: FilterPlugin) -> Vec<String> {
    let pod = case.cycle.pod;
    match plugin {
        FilterPlugin::NodeResourcesFit => {
            let lacks = shortages(case, node).into_iter();
            let mut details: Vec<String> = lacks.map(|lack| lack.sentence()).collect();
            let pods = i64::try_from(node.pods().len()).unwrap_or(i64::MAX);
            if pods >= node.allowed_pods {
                details.push(format!("has {pods} of {} pods", node.allowed_pods));
            }
            details
        }
        FilterPlugin::TaintToleration => case.untolerated(node),
        FilterPlugin::NodeName => {
            let named = pod.node_name.iter();
            named.map(|name| format!("the pod names {name}")).collect()
        }
        FilterPlugin::NodePorts => {
            let wanted = pod.host_ports.iter();
            wanted
                .map(|port| format!("wants {}/{}", port.port, port.protocol))
                .collect()
        }
        FilterPlugin::NodeAffinity => {
            let labels = case.unmatched_labels(node).into_iter();
            labels.map(|label| format!("wants {label}")).collect()
        }
        FilterPlugin::NodeUnschedulable
        | FilterPlugin::PodTopologySpread
        | FilterPlugin::InterPodAffinity => Vec::new(),
    }
}

/// A resource of which a node has not enough left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shortage {
    pub(super) name: ResourceName,
    pub(super) wanted: i64,
    pub(super) free: i64,
    pub(super) allocatable: i64,
}

impl Shortage {
    pub(super) fn unit(&self) -> Unit {
        match &self.name {
            name if *name == ResourceName::CPU => Unit::Millicores,
            name if name.is_in_bytes() => Unit::Bytes,
            _ => Unit::Count,
        }
    }

    pub(super) fn amount(&self, value: i64) -> String {
        self.unit().about(value)
    }

    /// What is missing.
    pub(super) fn lack(&self) -> i64 {
        self.wanted.saturating_sub(self.free)
    }

    fn sentence(&self) -> String {
        let (wanted, free) = (self.amount(self.wanted), self.amount(self.free.max(0)));
        let allocatable = self.amount(self.allocatable);
        format!(
            "asks for {} {wanted}, {free} of {allocatable} free",
            self.name
        )
    }
}

/// What the node lacks for the pod.
pub(super) fn shortages(case: &Case<'_>, node: &NodeState) -> Vec<Shortage> {
    let request = &case.cycle.pod.requests.incoming;
    let scalars = request.scalars.keys().cloned();
    let names = [
        ResourceName::CPU,
        ResourceName::MEMORY,
        ResourceName::EPHEMERAL_STORAGE,
    ];
    let all = names.into_iter().chain(scalars).map(|name| Shortage {
        wanted: request.get(&name),
        free: node
            .allocatable
            .get(&name)
            .saturating_sub(node.requested().get(&name)),
        allocatable: node.allocatable.get(&name),
        name,
    });
    all.filter(|shortage| shortage.wanted > 0 && shortage.lack() > 0)
        .collect()
}

fn preemption(case: &Case<'_>, why: &Unschedulable) -> String {
    match &why.room {
        PreemptionResult::At(candidate) => {
            let victims = candidate.victims.iter();
            let victims: Vec<String> = victims
                .map(|victim| format!("{} (priority {})", victim.pod_ref, victim.priority))
                .collect();
            let node = case.cycle.cluster.node(candidate.slot);
            let node = node.map_or_else(String::new, |node| node.view.name.to_string());
            format!(
                "Room can be made on {node} if these go: {}.",
                victims.join(", ")
            )
        }
        PreemptionResult::None => "Nobody of lower priority could make enough room.".to_owned(),
        PreemptionResult::NotTried => "No pod that goes would help.".to_owned(),
        PreemptionResult::NotEligible(reason) => format!("Not tried: {reason}"),
        PreemptionResult::SwitchedOff(_) => "The scheduler's profile does not preempt.".to_owned(),
    }
}
