//! Explanations as data. The JSON is documented in docs/explain.md and stable.

use plimsoll_core::eviction::record::shortfall::Consumer;
use serde::Serialize;

use crate::loadline::NodeLine;

pub(crate) const API_VERSION: &str = "plimsoll.dev/v1";

/// The explanation of a pod.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodReport {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) uid: Option<String>,
    /// Absent if the pod is deleted.
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
    /// Containers that fail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) troubles: Vec<Trouble>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) oom_killed: Vec<OomKilled>,
    /// Pods that were preempted for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) displaced: Vec<Displaced>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<Pending>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) placed: Option<Placed>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) events: Vec<EventRow>,
    /// What is unknown, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unknown: Vec<String>,
}

/// Why the pod has no node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pending {
    pub(crate) scheduler: String,
    /// Evidence of whether that scheduler runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) scheduler_signs: Vec<String>,
    /// Whether it runs; absent if there is no evidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scheduler_runs: Option<bool>,
    /// Whether the verdicts are those of the default plugins, because its own plugins are unknown.
    #[serde(skip)]
    pub(crate) is_of_other_scheduler: bool,
    /// The scheduler's message at the present state.
    pub(crate) message: String,
    /// Its scheduling gates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) gates: Vec<String>,
    pub(crate) nodes: Vec<NodeVerdict>,
    /// The pods that preemption would evict, or why it would not help.
    pub(crate) preemption: String,
    /// Advice, the smallest change first.
    pub(crate) fixes: Vec<String>,
}

/// The results of the filters for a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeVerdict {
    pub(crate) node: String,
    /// Empty for a node that fits.
    pub(crate) rejections: Vec<RejectionRow>,
}

/// The rejection of one filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RejectionRow {
    /// Absent if no plugin filtered this node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plugin: Option<&'static str>,
    pub(crate) reasons: Vec<String>,
    /// The amounts, labels and pods that explain the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) details: Vec<String>,
    /// Whether evicting pods could help.
    pub(crate) is_resolvable: bool,
}

/// Why a pod was placed on its node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Placed {
    pub(crate) node: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<String>,
    /// The scheduler or other component that bound it.
    pub(crate) by: String,
    /// The number of feasible nodes, as the scheduler recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) feasible_nodes: Option<usize>,
    /// The score, as the scheduler recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) score: Option<i64>,
    /// The decision at the present state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) now: Option<Recomputed>,
}

/// A decision computed again.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Recomputed {
    pub(crate) nodes: usize,
    pub(crate) feasible_nodes: usize,
    /// The best nodes, and the pod's own.
    pub(crate) ranked: Vec<RankedNode>,
    /// The rank of the pod's own node; absent if the node does not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<usize>,
    /// Why its own node does not fit.
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

/// The score that a plugin gives a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScoreRow {
    pub(crate) plugin: &'static str,
    pub(crate) weight: i64,
    /// From 0 to 100.
    pub(crate) score: i64,
}

/// Why a pod was evicted by its node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Evicted {
    pub(crate) node: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<String>,
    /// The message in the pod's status.
    pub(crate) message: String,
    /// The thresholds that were met, and by how much.
    pub(crate) why: Vec<String>,
    /// What the node reclaimed first.
    pub(crate) before: String,
    /// The ranking of the pods.
    pub(crate) ranking: Vec<RankRow>,
    /// Why this pod ranked first.
    pub(crate) why_this: String,
    pub(crate) grace: String,
    /// Whether the explanation is from the node's record.
    pub(crate) is_recorded: bool,
}

/// A pod's rank in the order of eviction.
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
    /// Critical pods are not evicted.
    pub(crate) is_exempt: bool,
    pub(crate) is_evicted: bool,
}

/// Why a pod ended for another reason: preemption, rejection by its node, a taint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ended {
    /// In one word: `PreemptionByScheduler`, `OutOfcpu`.
    pub(crate) reason: String,
    pub(crate) message: String,
    /// The meaning of the reason.
    pub(crate) why: Vec<String>,
}

/// A failing container, or a failure before any container starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Trouble {
    /// Absent if the whole pod is affected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) container: Option<String>,
    /// In one word: `CrashLoopBackOff`, `ErrImagePull`, `Unhealthy`.
    pub(crate) reason: String,
    /// In one clause.
    pub(crate) summary: String,
    pub(crate) why: Vec<String>,
    /// The last log lines of the container, the latest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) log: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) help: Vec<String>,
}

/// A preempted pod.
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

/// An OOM-killed container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OomKilled {
    pub(crate) container: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<String>,
    /// Its present usage, if it runs again.
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

/// The explanation of the pods of an owner.
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
    /// Conditions and events about missing pods.
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
    /// The status as kubectl prints it.
    pub(crate) status: String,
    pub(crate) restarts: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
}

/// The explanation of a node.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeReport {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) line: NodeLine,
    pub(crate) conditions: Vec<ConditionRow>,
    pub(crate) taints: Vec<TaintRow>,
    /// The pods that the node would evict, by signal.
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

/// The order in which a node would evict pods for a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NextRow {
    pub(crate) signal: String,
    /// Whether the node's agent serves the ranking; else it is computed from the node's statistics.
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
    /// Why evicting pods could not help; absent if it could.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held_outside_pods: Option<String>,
    /// The largest holders of memory at that time, the largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) consumers: Vec<Consumer>,
}
