//! Explanations as data. The JSON is documented in docs/explain.md and stable.

use plimsoll_core::eviction::record::shortfall::Consumer;
use serde::Serialize;

use crate::loadline::NodeLine;

pub(crate) const API_VERSION: &str = "plimsoll.dev/v1";

/// What became of a pod, and why.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodReport {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) uid: Option<String>,
    /// Absent if the pod is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// The answer in one sentence.
    pub(crate) headline: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) evicted: Option<Evicted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<Ended>,
    /// Containers that do not run as they should.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) troubles: Vec<Trouble>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) oom_killed: Vec<OomKilled>,
    /// Pods that were evicted to make room for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) displaced: Vec<Displaced>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<Pending>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) placed: Option<Placed>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) events: Vec<EventRow>,
    /// What could not be found out, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unknown: Vec<String>,
}

/// Why no node has taken the pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pending {
    pub(crate) scheduler: String,
    /// What shows whether that scheduler runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) scheduler_signs: Vec<String>,
    /// Whether it runs; absent if nothing says so either way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scheduler_runs: Option<bool>,
    /// Whether the verdicts below are of the default plugins because nothing is known of its own.
    #[serde(skip)]
    pub(crate) is_of_other_scheduler: bool,
    /// What the scheduler says at the present state.
    pub(crate) message: String,
    /// Gates that keep it from being tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) gates: Vec<String>,
    pub(crate) nodes: Vec<NodeVerdict>,
    /// Which pods would have to be evicted to make room, or why that would not help.
    pub(crate) preemption: String,
    /// What would help, the least first.
    pub(crate) fixes: Vec<String>,
}

/// What the filters say of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeVerdict {
    pub(crate) node: String,
    /// Empty for a node that will do.
    pub(crate) rejections: Vec<RejectionRow>,
}

/// What one filter says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RejectionRow {
    /// Absent if no plugin has looked at this very node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plugin: Option<&'static str>,
    pub(crate) reasons: Vec<String>,
    /// The numbers and names behind them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) details: Vec<String>,
    /// Whether removing pods could help.
    pub(crate) is_resolvable: bool,
}

/// Why a pod is where it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Placed {
    pub(crate) node: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<String>,
    /// Who put it there.
    pub(crate) by: String,
    /// How many nodes would have done, as the scheduler noted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) feasible_nodes: Option<usize>,
    /// The score, as the scheduler noted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) score: Option<i64>,
    /// How it would be decided at the present state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) now: Option<Recomputed>,
}

/// A decision worked out again.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Recomputed {
    pub(crate) nodes: usize,
    pub(crate) feasible_nodes: usize,
    /// The best nodes, and the pod's own.
    pub(crate) ranked: Vec<RankedNode>,
    /// The place of the pod's own node; absent if it would not do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<usize>,
    /// Why its own node would not do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rejections: Vec<RejectionRow>,
}

/// A node and its scores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RankedNode {
    pub(crate) node: String,
    pub(crate) total: i64,
    pub(crate) scores: Vec<ScoreRow>,
}

/// What a plugin gives a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScoreRow {
    pub(crate) plugin: &'static str,
    pub(crate) weight: i64,
    /// Out of a hundred.
    pub(crate) score: i64,
}

/// Why a pod had to leave its node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Evicted {
    pub(crate) node: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<String>,
    /// What the pod was told.
    pub(crate) message: String,
    /// What was short, and by how much.
    pub(crate) why: Vec<String>,
    /// What the node tried before.
    pub(crate) before: String,
    /// How the pods stood.
    pub(crate) ranking: Vec<RankRow>,
    /// Why this one.
    pub(crate) why_this: String,
    pub(crate) grace: String,
    /// Whether all of it is from the node's own record.
    pub(crate) is_recorded: bool,
}

/// A pod's place in the order of eviction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RankRow {
    pub(crate) place: usize,
    pub(crate) pod: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<String>,
    pub(crate) exceeds_request: bool,
    pub(crate) excess: String,
    pub(crate) priority: i32,
    pub(crate) qos_class: String,
    /// Critical pods are passed over.
    pub(crate) is_exempt: bool,
    pub(crate) is_evicted: bool,
}

/// Why a pod was ended otherwise: preempted, rejected by its node, deleted for a taint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ended {
    /// In one word: `PreemptionByScheduler`, `OutOfcpu`.
    pub(crate) reason: String,
    pub(crate) message: String,
    /// What that means.
    pub(crate) why: Vec<String>,
}

/// A container, or what comes before all of them, that does not run as it should.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Trouble {
    /// Absent where it is about the whole pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) container: Option<String>,
    /// In one word: `CrashLoopBackOff`, `ErrImagePull`, `Unhealthy`.
    pub(crate) reason: String,
    /// In one clause.
    pub(crate) summary: String,
    pub(crate) why: Vec<String>,
    /// What the container logged last, the latest line last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) log: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) help: Vec<String>,
}

/// A pod that was evicted to make room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Displaced {
    /// Namespace and name.
    pub(crate) pod: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<String>,
}

/// A container that the kernel killed for want of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OomKilled {
    pub(crate) container: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<String>,
    /// What it uses at present, if it runs again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage_now: Option<String>,
    pub(crate) restarts: i32,
    pub(crate) why: String,
}

/// An event about the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<String>,
    pub(crate) reason: String,
    pub(crate) from: String,
    pub(crate) message: String,
}

/// How the pods of an owner do.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OwnerReport {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    /// The kind of the owner: `Deployment`.
    pub(crate) owner_kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The answer in one sentence.
    pub(crate) headline: String,
    /// Conditions and events that say why pods are missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) why: Vec<String>,
    pub(crate) pods: Vec<PodRow>,
    /// The explanation of the first pod that is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first: Option<PodReport>,
}

/// A pod of an owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodRow {
    pub(crate) pod: String,
    pub(crate) is_ready: bool,
    /// As kubectl says it.
    pub(crate) status: String,
    pub(crate) restarts: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
}

/// How a node stands.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeReport {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) line: NodeLine,
    pub(crate) conditions: Vec<ConditionRow>,
    pub(crate) taints: Vec<TaintRow>,
    /// Who would go if the node ran short, by signal.
    pub(crate) next: Vec<NextRow>,
    /// The latest decisions, the latest first.
    pub(crate) decisions: Vec<DecisionRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unknown: Vec<String>,
}

/// A condition of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConditionRow {
    pub(crate) condition: String,
    pub(crate) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<String>,
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaintRow {
    pub(crate) taint: String,
    pub(crate) meaning: String,
}

/// Who would go first for a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NextRow {
    pub(crate) signal: String,
    /// Whether the node's agent says so; else it is worked out from the node's statistics.
    pub(crate) is_agents: bool,
    pub(crate) ranking: Vec<RankRow>,
}

/// A decision in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecisionRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<String>,
    pub(crate) verdict: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) starved: Option<String>,
    pub(crate) evicted: Vec<String>,
    pub(crate) what: String,
    /// Why evicting pods could not help, where that was so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held_outside_pods: Option<String>,
    /// What held the memory then, the largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) consumers: Vec<Consumer>,
}
