//! Explanations as data. The JSON is documented in docs/explain.md and stable.

use plimsoll_core::eviction::record::shortfall::Consumer;
use serde::Serialize;

use crate::loadline::NodeLine;

pub const API_VERSION: &str = "plimsoll.dev/v1";

/// The explanation of a pod.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodReport {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub namespace: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Absent if the pod is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The answer in one sentence.
    pub headline: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evicted: Option<Evicted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// Containers that fail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<Trouble>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub oom_killed: Vec<OomKilled>,
    /// Pods that were preempted for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub displaced: Vec<Displaced>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placed: Option<Placed>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventRow>,
    /// What is unknown, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// Why the pod has no node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    pub scheduler: String,
    /// Evidence of whether that scheduler runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scheduler_signs: Vec<String>,
    /// Whether it runs; absent if there is no evidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler_runs: Option<bool>,
    /// Whether the verdicts are those of the default plugins, because its own plugins are unknown.
    #[serde(skip)]
    pub is_of_other_scheduler: bool,
    /// The scheduler's message at the present state.
    pub message: String,
    /// Its scheduling gates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    pub nodes: Vec<NodeVerdict>,
    /// The pods that preemption would evict, or why it would not help.
    pub preemption: String,
    /// Advice, the smallest change first.
    pub fixes: Vec<String>,
}

/// The results of the filters for a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeVerdict {
    pub node: String,
    /// Empty for a node that fits.
    pub rejections: Vec<RejectionRow>,
}

/// The rejection of one filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RejectionRow {
    /// Absent if no plugin filtered this node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<&'static str>,
    pub reasons: Vec<String>,
    /// The amounts, labels and pods that explain the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// Whether evicting pods could help.
    pub is_resolvable: bool,
}

/// Why a pod was placed on its node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Placed {
    pub node: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The scheduler or other component that bound it.
    pub by: String,
    /// The number of feasible nodes, as the scheduler recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feasible_nodes: Option<usize>,
    /// The score, as the scheduler recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<i64>,
    /// The decision at the present state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<Recomputed>,
}

/// A decision computed again.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recomputed {
    pub nodes: usize,
    pub feasible_nodes: usize,
    /// The best nodes, and the pod's own.
    pub ranked: Vec<RankedNode>,
    /// The rank of the pod's own node; absent if the node does not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    /// Why its own node does not fit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejections: Vec<RejectionRow>,
}

/// A node and its scores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RankedNode {
    pub node: String,
    pub total: i64,
    pub scores: Vec<ScoreRow>,
}

/// The score that a plugin gives a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScoreRow {
    pub plugin: &'static str,
    pub weight: i64,
    /// From 0 to 100.
    pub score: i64,
}

/// Why a pod was evicted by its node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evicted {
    pub node: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The message in the pod's status.
    pub message: String,
    /// The thresholds that were met, and by how much.
    pub why: Vec<String>,
    /// What the node reclaimed first.
    pub before: String,
    /// The ranking of the pods.
    pub ranking: Vec<RankRow>,
    /// Why this pod ranked first.
    pub why_this: String,
    pub grace: String,
    /// Whether the explanation is from the node's record.
    pub is_recorded: bool,
}

/// A pod's rank in the order of eviction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RankRow {
    pub place: usize,
    pub pod: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    pub exceeds_request: bool,
    pub excess: String,
    pub priority: i32,
    pub qos_class: String,
    /// Critical pods are not evicted.
    pub is_exempt: bool,
    pub is_evicted: bool,
}

/// Why a pod ended for another reason: preemption, rejection by its node, a taint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ended {
    /// In one word: `PreemptionByScheduler`, `OutOfcpu`.
    pub reason: String,
    pub message: String,
    /// The meaning of the reason.
    pub why: Vec<String>,
}

/// A failing container, or a failure before any container starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// Absent if the whole pod is affected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// In one word: `CrashLoopBackOff`, `ErrImagePull`, `Unhealthy`.
    pub reason: String,
    /// In one clause.
    pub summary: String,
    pub why: Vec<String>,
    /// The last log lines of the container, the latest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub help: Vec<String>,
}

/// A preempted pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Displaced {
    /// Namespace and name.
    pub pod: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// An OOM-killed container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OomKilled {
    pub container: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Its present usage, if it runs again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_now: Option<String>,
    pub restarts: i32,
    pub why: String,
}

/// An event about the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    pub reason: String,
    pub from: String,
    pub message: String,
}

/// The explanation of the pods of an owner.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReport {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// The kind of the owner: `Deployment`.
    pub owner_kind: String,
    pub namespace: String,
    pub name: String,
    /// The answer in one sentence.
    pub headline: String,
    /// Conditions and events about missing pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    pub pods: Vec<PodRow>,
    /// The explanation of the first pod that is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<PodReport>,
}

/// A pod of an owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodRow {
    pub pod: String,
    pub is_ready: bool,
    /// The status as kubectl prints it.
    pub status: String,
    pub restarts: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// The explanation of a node.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub line: NodeLine,
    pub conditions: Vec<ConditionRow>,
    pub taints: Vec<TaintRow>,
    /// The pods that the node would evict, by signal.
    pub next: Vec<NextRow>,
    /// The latest decisions, the latest first.
    pub decisions: Vec<DecisionRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// A condition of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionRow {
    pub condition: String,
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    pub reason: String,
    pub message: String,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaintRow {
    pub taint: String,
    pub meaning: String,
}

/// The order in which a node would evict pods for a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NextRow {
    pub signal: String,
    /// Whether the node's agent serves the ranking; else it is computed from the node's statistics.
    pub is_agents: bool,
    pub ranking: Vec<RankRow>,
}

/// A decision in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    pub verdict: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starved: Option<String>,
    pub evicted: Vec<String>,
    pub what: String,
    /// Why evicting pods could not help; absent if it could.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_outside_pods: Option<String>,
    /// The largest holders of memory at that time, the largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub consumers: Vec<Consumer>,
}
