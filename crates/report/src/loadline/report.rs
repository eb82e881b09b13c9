//! The load lines as data. The JSON is documented in docs/loadline.md and stable.

use std::cmp::Ordering;

use serde::Serialize;

use crate::text::Unit;

/// The load lines of all nodes at one moment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub items: Vec<NodeLine>,
}

impl Report {
    pub fn new(items: Vec<NodeLine>) -> Report {
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
pub struct NodeLine {
    pub node: String,
    /// As kubectl prints it: `Ready,SchedulingDisabled`.
    pub status: String,
    /// Pressure conditions that are true.
    pub pressure: Vec<&'static str>,
    /// Pods that hold resources.
    pub pods: usize,
    pub resources: Vec<ResourceLine>,
    /// What is unknown, and why.
    pub unknown: Vec<String>,
}

/// One resource of a node. An absent field is unknown, or does not exist for the resource.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceLine {
    pub resource: &'static str,
    pub unit: Unit,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved: Option<Reserved>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocatable: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<i64>,
    /// The number of pods whose cgroup has no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods_without_limit: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_use: Option<i64>,
    pub thresholds: Vec<ThresholdLine>,
}

/// The terms between capacity and allocatable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reserved {
    pub kube: i64,
    pub system: i64,
    pub hard_eviction: i64,
    /// Huge pages, and the rest of the difference.
    pub other: i64,
}

/// One eviction threshold.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThresholdLine {
    pub signal: String,
    pub unit: Unit,
    pub is_hard: bool,
    /// How long it may be met before pods are evicted; absent for a hard threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_period: Option<String>,
    /// The threshold is met when less than this is available.
    pub line: i64,
    /// The available amount.
    pub available: i64,
    /// The total amount.
    pub capacity: i64,
    /// The amount available above the threshold; negative if the threshold is met.
    pub distance: i64,
    /// The rate at which the available amount changes; absent if it was measured only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_per_second: Option<f64>,
    /// When it is reached at that rate; zero if it is met.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached_in_seconds: Option<f64>,
}

impl NodeLine {
    /// The resource and threshold that the node reaches first.
    pub fn nearest(&self) -> Option<(&ResourceLine, &ThresholdLine)> {
        let nearest = self.resources.iter();
        let nearest = nearest.filter_map(|line| Some((line, line.nearest()?)));
        nearest.min_by(|(_, a), (_, b)| a.proximity().compare(b.proximity()))
    }
}

impl ResourceLine {
    /// The threshold that is reached first.
    pub fn nearest(&self) -> Option<&ThresholdLine> {
        self.nearest_of(|_| true)
    }

    /// The soft and the hard threshold that are reached first, the soft one first: what is drawn
    /// and forecast.
    pub fn drawn(&self) -> impl Iterator<Item = &ThresholdLine> {
        let of_kind = [false, true].map(|is_hard| self.nearest_of(|line| line.is_hard == is_hard));
        of_kind.into_iter().flatten()
    }

    /// The amount in use when the threshold is met. `None` for a threshold that the line of this
    /// resource cannot show: on inodes, or on another file system.
    pub fn position(&self, threshold: &ThresholdLine) -> Option<i64> {
        let is_same_disk = || self.capacity == Some(threshold.capacity);
        let is_here = self.resource != "ephemeral-storage" || is_same_disk();
        let in_use = self.in_use.filter(|_| is_here)?;
        (threshold.unit == self.unit).then(|| in_use.saturating_add(threshold.distance))
    }

    /// The signal that counts the resource of the whole machine.
    pub fn main_signal(&self) -> &'static str {
        match self.resource {
            "memory" => "memory.available",
            "ephemeral-storage" => "nodefs.available",
            "pids" => "pid.available",
            _ => "",
        }
    }

    fn nearest_of(&self, is_meant: impl Fn(&ThresholdLine) -> bool) -> Option<&ThresholdLine> {
        let thresholds = self.thresholds.iter().filter(|line| is_meant(line));
        // Amounts of one unit are compared directly, others as fractions of the total.
        let is_one_unit = self.thresholds.iter().all(|line| line.unit == self.unit);
        let proximity = |line: &ThresholdLine| match line.proximity() {
            Proximity::Away(_) if is_one_unit => Proximity::Away(float(line.distance)),
            proximity => proximity,
        };
        thresholds.min_by(|a, b| proximity(a).compare(proximity(b)))
    }
}

/// How near a threshold is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Proximity {
    /// It is met; the fraction of the total that is missing.
    Met(f64),
    /// Reached in so many seconds at the present rate.
    Reached(f64),
    /// Not approaching, as far as known; the fraction of the total above the threshold.
    Away(f64),
}

impl Proximity {
    /// The nearer threshold first.
    pub fn compare(self, other: Proximity) -> Ordering {
        let key = |proximity| match proximity {
            Proximity::Met(missing) => (0, -missing),
            Proximity::Reached(seconds) => (1, seconds),
            Proximity::Away(distance) => (2, distance),
        };
        let (own, others) = (key(self), key(other));
        own.0.cmp(&others.0).then(own.1.total_cmp(&others.1))
    }
}

impl ThresholdLine {
    pub fn is_met(&self) -> bool {
        self.distance < 0
    }

    pub fn kind(&self) -> &'static str {
        if self.is_hard { "hard" } else { "soft" }
    }

    /// The distance, comparable between resources.
    pub fn proximity(&self) -> Proximity {
        let share = float(self.distance.saturating_abs()) / float(self.capacity.max(1));
        match self.reached_in_seconds {
            _ if self.is_met() => Proximity::Met(share),
            Some(seconds) => Proximity::Reached(seconds),
            None => Proximity::Away(share),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "it is only compared with others of its kind"
)]
fn float(number: i64) -> f64 {
    number as f64
}
