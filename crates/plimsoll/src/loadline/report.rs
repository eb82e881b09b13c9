//! The load lines as data. The JSON is documented in docs/loadline.md and stable.

use serde::Serialize;

use crate::print::Unit;

/// All that the command says at one moment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) items: Vec<NodeLine>,
}

impl Report {
    pub(crate) fn new(items: Vec<NodeLine>) -> Report {
        Report {
            api_version: "plimsoll.dev/v1",
            kind: "LoadLineList",
            items,
        }
    }
}

/// One node.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeLine {
    pub(crate) node: String,
    /// As kubectl says it: `Ready,SchedulingDisabled`.
    pub(crate) status: String,
    /// Pressure conditions that hold.
    pub(crate) pressure: Vec<&'static str>,
    /// Pods that hold resources.
    pub(crate) pods: usize,
    pub(crate) resources: Vec<ResourceLine>,
    /// What could not be found out, and why.
    pub(crate) unknown: Vec<String>,
}

/// One resource of a node. What is absent is not known, or does not exist for the resource.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceLine {
    pub(crate) resource: &'static str,
    pub(crate) unit: Unit,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) capacity: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reserved: Option<Reserved>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allocatable: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requested: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limits: Option<i64>,
    /// Pods that may use as much as there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pods_without_limit: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) in_use: Option<i64>,
    pub(crate) thresholds: Vec<ThresholdLine>,
}

/// Who keeps how much from pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reserved {
    pub(crate) kube: i64,
    pub(crate) system: i64,
    pub(crate) hard_eviction: i64,
    /// Huge pages, and what cannot be explained.
    pub(crate) other: i64,
}

/// One eviction threshold.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ThresholdLine {
    pub(crate) signal: String,
    pub(crate) unit: Unit,
    pub(crate) is_hard: bool,
    /// How long it may be crossed; nothing for a hard one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) grace_period: Option<String>,
    /// Met when less than this is left.
    pub(crate) line: i64,
    /// What is left.
    pub(crate) available: i64,
    /// How much may still go; negative by how much it is missed.
    pub(crate) distance: i64,
    /// By how much what is left changes; absent if it was measured only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) change_per_second: Option<f64>,
    /// When it is reached at that rate; zero if it is met.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reached_in_seconds: Option<f64>,
}

impl ResourceLine {
    /// The thresholds that lie on the drawn line: those on what the whole machine has.
    pub(crate) fn drawn(&self) -> impl Iterator<Item = &ThresholdLine> {
        let signal = match self.resource {
            "memory" => "memory.available",
            "ephemeral-storage" => "nodefs.available",
            "pids" => "pid.available",
            _ => "",
        };
        let thresholds = self.thresholds.iter();
        thresholds.filter(move |threshold| threshold.signal == signal)
    }
}

impl ThresholdLine {
    pub(crate) fn is_met(&self) -> bool {
        self.distance < 0
    }

    pub(crate) fn kind(&self) -> &'static str {
        if self.is_hard { "hard" } else { "soft" }
    }
}
