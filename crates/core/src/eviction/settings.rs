//! How the engine is set up.

use crate::config::{NodeConfig, Profile};
use crate::threshold::{
    DiskLayout, Duration, Signal, StatementError, Statements, Threshold, ThresholdValue,
    derive_container_fs,
};

use super::candidate::ActivePod;
use super::rank::{self, Ranked};
use super::signal_source::{MemorySource, StallRule};

/// How the engine is set up. Fixed for its life.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Whose rules hold where releases differ.
    pub profile: Profile,
    /// The lines, as configured.
    pub thresholds: Vec<Threshold>,
    /// Which of the node's file systems are one.
    pub layout: DiskLayout,
    /// How long a condition is reported after its last sighting.
    pub pressure_transition_period: Duration,
    /// The longest grace period of a soft eviction, in seconds.
    pub max_pod_grace_period_seconds: i64,
    /// Whether the pods' own disk limits are enforced.
    pub local_storage_capacity_isolation: bool,
    /// Where the memory signals come from.
    pub memory_source: MemorySource,
    /// Whether stalls count as memory pressure too.
    pub memory_stall: Option<StallRule>,
    /// Whether it backs off where evicting pods cannot bring memory back; upstream does not.
    pub back_off: bool,
    /// Whether pods get the grace period of their eviction even where the node runs dry before it
    /// is over, as upstream does.
    pub always_give_grace: bool,
}

impl Settings {
    /// Which pods would be evicted first if the signal were starved at this moment; exempt pods are
    /// listed too.
    pub(super) fn ranking<'a>(&self, signal: Signal, pods: &[ActivePod<'a>]) -> Vec<Ranked<'a>> {
        let order = self.profile.eviction_rank();
        rank::rank(signal, self.layout, order, pods.iter().copied())
    }

    /// The settings of a configured node with upstream's signals, or what is wrong with its
    /// thresholds.
    pub fn new(config: &NodeConfig, layout: DiskLayout) -> Result<Settings, StatementError> {
        let ignores_eviction = *config.experimental_allocatable_ignore_eviction;
        let enforced = config.enforce_node_allocatable.iter();
        let statements = Statements {
            hard: (*config.eviction_hard).clone(),
            soft: (*config.eviction_soft).clone(),
            soft_grace_period: (*config.eviction_soft_grace_period).clone(),
            minimum_reclaim: (*config.eviction_minimum_reclaim).clone(),
            enforce_node_allocatable: enforced
                .filter(|_| !ignores_eviction)
                .map(|enforcement| enforcement.as_str().to_owned())
                .collect(),
        };
        Ok(Settings {
            profile: config.profile,
            thresholds: statements.parse()?,
            layout,
            pressure_transition_period: *config.eviction_pressure_transition_period,
            max_pod_grace_period_seconds: (*config.eviction_max_pod_grace_period).into(),
            local_storage_capacity_isolation: *config.local_storage_capacity_isolation,
            memory_source: MemorySource::WorkingSet,
            memory_stall: None,
            back_off: true,
            always_give_grace: false,
        })
    }
}

/// The thresholds that are watched: the configured ones with those of the containerfs derived.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lines {
    all: Vec<Threshold>,
    /// How many of them there are without the appended ones.
    configured: usize,
    warning: Option<String>,
}

impl Lines {
    /// Thresholds that upstream cannot tell apart, which share a key of its maps, are one.
    pub(super) fn new(settings: &Settings) -> Lines {
        let configured = settings.thresholds.len();
        let derived = derive_container_fs(settings.thresholds.clone(), settings.layout);
        let mut lines = Lines {
            all: Vec::new(),
            configured: 0,
            warning: derived.warning,
        };
        for (index, threshold) in derived.thresholds.into_iter().enumerate() {
            if !lines.all.iter().any(|line| share_key(line, &threshold)) {
                lines.all.push(threshold);
                lines.configured += usize::from(index < configured);
            }
        }
        lines
    }

    /// Upstream's warning about a configured threshold on the containerfs.
    pub(super) fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Every line.
    pub(super) fn all(&self) -> &[Threshold] {
        &self.all
    }

    /// The lines of a first pass. Upstream derives those of the containerfs in that pass, but
    /// after it took the list, so that appended ones count from the second pass on.
    pub(super) fn of_pass(&self, is_first: bool) -> &[Threshold] {
        if is_first {
            &self.all[..self.configured]
        } else {
            &self.all
        }
    }
}

/// Amounts and reclaims are pointers upstream, so only percentages without reclaim can be equal.
fn share_key(a: &Threshold, b: &Threshold) -> bool {
    let is_plain =
        |t: &Threshold| t.min_reclaim.is_none() && matches!(t.value, ThresholdValue::Percentage(_));
    is_plain(a) && is_plain(b) && is_same_line(a, b)
}

/// Whether they say the same, reclaim aside. Matches v1.36 `hasThreshold`.
pub(super) fn is_same_line(a: &Threshold, b: &Threshold) -> bool {
    a.signal == b.signal
        && a.operator == b.operator
        && a.grace_period == b.grace_period
        && a.value == b.value
}
