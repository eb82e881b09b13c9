//! The eviction lines of a node, hard and soft side by side.

use std::collections::BTreeMap;

use crate::config::{Enforcement, NodeConfig};
use crate::quantity::{Format, Quantity};
use crate::threshold::{Duration, Signal, Statements, Threshold, ThresholdValue};

use super::MachineFacts;

/// The configuration of one signal.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The signal.
    pub signal: Signal,
    /// Below this, pods are evicted at once.
    pub hard: Option<ThresholdValue>,
    /// Below this for the grace period, pods are evicted gracefully.
    pub soft: Option<ThresholdValue>,
    /// How long the soft line may be crossed.
    pub grace: Option<Duration>,
    /// How far above the line the node has to get back.
    pub minimum_reclaim: Option<ThresholdValue>,
}

/// The lines that can be read, in the order of signals.
pub fn compute_lines(config: &NodeConfig) -> Vec<Line> {
    let hard = by_signal(Statements {
        hard: config.eviction_hard.value.clone(),
        minimum_reclaim: config.eviction_minimum_reclaim.value.clone(),
        ..Statements::default()
    });
    let soft = by_signal(Statements {
        soft: config.eviction_soft.value.clone(),
        soft_grace_period: config.eviction_soft_grace_period.value.clone(),
        minimum_reclaim: config.eviction_minimum_reclaim.value.clone(),
        ..Statements::default()
    });
    let lines = Signal::ALL.into_iter().map(|signal| {
        let (hard, soft) = (hard.get(&signal), soft.get(&signal));
        let any = hard.or(soft)?;
        Some(Line {
            signal,
            hard: hard.map(|threshold| threshold.value.clone()),
            soft: soft.map(|threshold| threshold.value.clone()),
            grace: soft.map(|threshold| threshold.grace_period),
            minimum_reclaim: any.min_reclaim.clone(),
        })
    });
    lines.flatten().collect()
}

fn by_signal(statements: Statements) -> BTreeMap<Signal, Threshold> {
    let readable = statements.readable().into_iter();
    readable
        .map(|threshold| (threshold.signal, threshold))
        .collect()
}

/// Whether pods are hard-evicted when they come near the limit of all pods, too.
pub fn has_allocatable_twin(config: &NodeConfig) -> bool {
    config.enforce_node_allocatable.contains(&Enforcement::Pods)
        && !*config.experimental_allocatable_ignore_eviction
}

/// The amount a line stands for; `None` for a percentage of an unknown capacity.
pub fn amount_of(value: &ThresholdValue, signal: Signal, machine: &MachineFacts) -> Option<i64> {
    match value {
        ThresholdValue::Quantity(quantity) => Some(quantity.value()),
        ThresholdValue::Percentage(_) => {
            let capacity = Quantity::new(machine.capacity_of(signal)?, Format::BinarySi);
            Some(value.at_capacity(&capacity).value())
        }
    }
}
