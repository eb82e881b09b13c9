//! The eviction maps of the configuration and what they say.

use std::collections::BTreeMap;

use crate::problem::Problem;
use crate::quantity::{self, Quantity};

use super::float::parse_f32;
use super::{Duration, Operator, ParseFloatError, Signal, Threshold, ThresholdValue};
use crate::duration;

/// The value of `enforceNodeAllocatable` that limits all pods together.
const PODS_ENFORCEMENT: &str = "pods";

/// Eviction settings as in the configuration: signal name to text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statements {
    /// `evictionHard`.
    pub hard: BTreeMap<String, String>,
    /// `evictionSoft`.
    pub soft: BTreeMap<String, String>,
    /// `evictionSoftGracePeriod`.
    pub soft_grace_period: BTreeMap<String, String>,
    /// `evictionMinimumReclaim`.
    pub minimum_reclaim: BTreeMap<String, String>,
    /// `enforceNodeAllocatable`; only `pods` matters here. Upstream hands over an empty list under
    /// `--experimental-allocatable-ignore-eviction`.
    pub enforce_node_allocatable: Vec<String>,
}

/// The first thing wrong with [`Statements`]. The messages are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    /// No signal has that name.
    #[error("unsupported eviction signal {0}")]
    UnsupportedSignal(String),
    /// A percentage is no number.
    #[error(transparent)]
    Percentage(#[from] ParseFloatError),
    /// An amount is no quantity.
    #[error(transparent)]
    Quantity(#[from] quantity::ParseError),
    /// A grace period is no duration.
    #[error(transparent)]
    Duration(#[from] duration::ParseError),
    /// Below 0%.
    #[error("eviction percentage threshold {0} must be >= 0%: {1}")]
    PercentageBelowZero(Signal, String),
    /// Above 100%.
    #[error("eviction percentage threshold {0} must be <= 100%: {1}")]
    PercentageAboveHundred(Signal, String),
    /// Zero or negative.
    #[error("eviction threshold {0} must be positive: {1}")]
    NotPositive(Signal, Quantity),
    /// Negative.
    #[error("invalid eviction grace period specified: {0}, must be a positive value")]
    NegativeGracePeriod(String),
    /// Zero or negative.
    #[error("eviction percentage minimum reclaim {0} must be positive: {1}")]
    ReclaimPercentageNotPositive(Signal, String),
    /// Negative.
    #[error("negative eviction minimum reclaim specified for {0}")]
    NegativeReclaim(Signal),
    /// A soft threshold has no grace period.
    #[error("grace period must be specified for the soft eviction threshold {0}")]
    MissingGracePeriod(Signal),
}

/// An error, with the entry and the map.
struct Fault<'a> {
    map: &'static str,
    key: &'a str,
    value: &'a str,
    error: StatementError,
}

impl Statements {
    /// The thresholds: hard ones, soft ones, then the twins of hard `memory.available` ones; or
    /// upstream's error. Of several mistakes in one map upstream reports any; this, the first by
    /// key.
    pub fn parse(&self) -> Result<Vec<Threshold>, StatementError> {
        let (thresholds, faults) = self.read();
        match faults.into_iter().next() {
            Some(fault) => Err(fault.error),
            None => Ok(thresholds),
        }
    }

    /// The thresholds that can be read, whatever else is wrong: for advice, not for acting.
    pub fn readable(&self) -> Vec<Threshold> {
        self.read().0
    }

    /// The hard thresholds alone, which is what allocatable memory and disk are reduced by.
    pub fn hard_only(&self) -> Statements {
        Statements {
            hard: self.hard.clone(),
            ..Statements::default()
        }
    }

    /// All mistakes, each with the path of its map entry.
    pub fn problems(&self) -> Vec<Problem> {
        let (_, faults) = self.read();
        faults.into_iter().map(Fault::into_problem).collect()
    }

    /// Reads everything; faults come in the order in which upstream would meet them.
    fn read(&self) -> (Vec<Threshold>, Vec<Fault<'_>>) {
        let mut faults = Vec::new();
        let hard = read_map("evictionHard", &self.hard, parse_threshold, &mut faults);
        let soft = read_map("evictionSoft", &self.soft, parse_threshold, &mut faults);
        let grace_periods = read_map(
            "evictionSoftGracePeriod",
            &self.soft_grace_period,
            |_, text| parse_grace_period(text),
            &mut faults,
        );
        let reclaims = read_map(
            "evictionMinimumReclaim",
            &self.minimum_reclaim,
            parse_reclaim,
            &mut faults,
        );
        let mut thresholds = Vec::new();
        for (signal, value) in dropping_ignored(&hard) {
            thresholds.push(threshold(signal, value, Duration::ZERO));
        }
        for (signal, value) in dropping_ignored(&soft) {
            match grace_periods.get(&signal) {
                Some(grace_period) => thresholds.push(threshold(signal, value, *grace_period)),
                None if self.soft_grace_period.contains_key(signal.as_str()) => {}
                None => faults.push(Fault {
                    map: "evictionSoftGracePeriod",
                    key: signal.as_str(),
                    value: "",
                    error: StatementError::MissingGracePeriod(signal),
                }),
            }
        }
        for threshold in &mut thresholds {
            threshold.min_reclaim = reclaims.get(&threshold.signal).cloned();
        }
        if self
            .enforce_node_allocatable
            .iter()
            .any(|key| key == PODS_ENFORCEMENT)
        {
            add_allocatable_twins(&mut thresholds);
        }
        (thresholds, faults)
    }
}

impl Fault<'_> {
    fn into_problem(self) -> Problem {
        let path = format!("{}[{}]", self.map, self.key);
        match self.error {
            StatementError::UnsupportedSignal(name) => {
                Problem::not_supported(path, &name, &Signal::ALL.map(Signal::as_str))
            }
            StatementError::MissingGracePeriod(_) => {
                Problem::required(path, self.error.to_string())
            }
            error => Problem::invalid(path, self.value, error.to_string()),
        }
    }
}

fn threshold(signal: Signal, value: &ThresholdValue, grace_period: Duration) -> Threshold {
    Threshold {
        signal,
        operator: Operator::LessThan,
        value: value.clone(),
        grace_period,
        min_reclaim: None,
    }
}

/// Pods together may not eat the memory that hard eviction is to keep free, so each hard
/// `memory.available` threshold is also put on the memory left below the limit of all pods.
fn add_allocatable_twins(thresholds: &mut Vec<Threshold>) {
    let twins: Vec<Threshold> = thresholds
        .iter()
        .filter(|t| t.signal == Signal::MemoryAvailable && t.is_hard())
        .map(|t| Threshold {
            signal: Signal::AllocatableMemoryAvailable,
            ..t.clone()
        })
        .collect();
    thresholds.extend(twins);
}

fn read_map<'a, T>(
    map: &'static str,
    entries: &'a BTreeMap<String, String>,
    parse: impl Fn(Signal, &str) -> Result<T, StatementError>,
    faults: &mut Vec<Fault<'a>>,
) -> BTreeMap<Signal, T> {
    let mut parsed = BTreeMap::new();
    for (key, value) in entries {
        let result = Signal::from_name(key)
            .ok_or_else(|| StatementError::UnsupportedSignal(key.clone()))
            .and_then(|signal| Ok((signal, parse(signal, value)?)));
        match result {
            Ok((signal, value)) => {
                parsed.insert(signal, value);
            }
            Err(error) => faults.push(Fault {
                map,
                key,
                value,
                error,
            }),
        }
    }
    parsed
}

fn dropping_ignored(
    values: &BTreeMap<Signal, Option<ThresholdValue>>,
) -> impl Iterator<Item = (Signal, &ThresholdValue)> {
    values
        .iter()
        .filter_map(|(signal, value)| Some((*signal, value.as_ref()?)))
}

/// `None` for exactly `0%` and `100%`, which upstream takes as "no threshold".
fn parse_threshold(signal: Signal, text: &str) -> Result<Option<ThresholdValue>, StatementError> {
    if text == "0%" || text == "100%" {
        return Ok(None);
    }
    if text.ends_with('%') {
        let percentage = parse_percentage(text)?;
        if percentage < 0.0 {
            return Err(StatementError::PercentageBelowZero(signal, text.to_owned()));
        }
        if percentage > 1.0 {
            return Err(StatementError::PercentageAboveHundred(
                signal,
                text.to_owned(),
            ));
        }
        return Ok(Some(ThresholdValue::Percentage(percentage)));
    }
    let quantity: Quantity = text.parse()?;
    if quantity.signum() <= 0 {
        return Err(StatementError::NotPositive(signal, quantity));
    }
    Ok(Some(ThresholdValue::Quantity(quantity)))
}

fn parse_grace_period(text: &str) -> Result<Duration, StatementError> {
    let grace_period: Duration = text.parse()?;
    if grace_period.is_negative() {
        return Err(StatementError::NegativeGracePeriod(text.to_owned()));
    }
    Ok(grace_period)
}

fn parse_reclaim(signal: Signal, text: &str) -> Result<ThresholdValue, StatementError> {
    if text.ends_with('%') {
        let percentage = parse_percentage(text)?;
        if percentage <= 0.0 {
            return Err(StatementError::ReclaimPercentageNotPositive(
                signal,
                text.to_owned(),
            ));
        }
        return Ok(ThresholdValue::Percentage(percentage));
    }
    let quantity: Quantity = text.parse()?;
    if quantity.signum() < 0 {
        return Err(StatementError::NegativeReclaim(signal));
    }
    Ok(ThresholdValue::Quantity(quantity))
}

fn parse_percentage(text: &str) -> Result<f32, ParseFloatError> {
    Ok(parse_f32(text.trim_end_matches('%'))? / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        entries.iter().map(owned).collect()
    }

    fn hard(signal: &str, text: &str) -> Result<Vec<Threshold>, String> {
        let statements = Statements {
            hard: map(&[(signal, text)]),
            ..Statements::default()
        };
        statements.parse().map_err(|error| error.to_string())
    }

    #[test]
    fn only_the_literal_texts_0_and_100_percent_are_dropped() {
        assert_eq!(hard("nodefs.available", "0%"), Ok(vec![]));
        assert_eq!(hard("nodefs.available", "100%"), Ok(vec![]));
        for text in ["00%", "100.0%", "1_0%", "0x1p3%", "10%%", "-0%"] {
            assert_eq!(hard("nodefs.available", text).unwrap().len(), 1, "{text}");
        }
    }

    #[test]
    fn every_error_is_reported_with_its_path() {
        let statements = Statements {
            hard: map(&[("memory.available", "0"), ("memory.free", "1")]),
            soft: map(&[("nodefs.available", "10%"), ("pid.available", "1k")]),
            soft_grace_period: map(&[("nodefs.available", "1d")]),
            minimum_reclaim: map(&[("pid.available", "0%")]),
            enforce_node_allocatable: vec![],
        };
        let problems: Vec<String> = statements
            .problems()
            .iter()
            .map(|p| p.path.clone())
            .collect();
        assert_eq!(
            problems,
            [
                "evictionHard[memory.available]",
                "evictionHard[memory.free]",
                "evictionSoftGracePeriod[nodefs.available]",
                "evictionMinimumReclaim[pid.available]",
                "evictionSoftGracePeriod[pid.available]",
            ]
        );
    }

    #[test]
    fn hard_memory_thresholds_get_an_allocatable_twin_when_pods_are_enforced() {
        let statements = Statements {
            hard: map(&[("memory.available", "100Mi")]),
            soft: map(&[("memory.available", "1Gi")]),
            soft_grace_period: map(&[("memory.available", "0s")]),
            minimum_reclaim: map(&[("memory.available", "5%")]),
            enforce_node_allocatable: vec!["pods".to_owned()],
        };
        let thresholds = statements.parse().unwrap();
        let twins: Vec<&Threshold> = thresholds
            .iter()
            .filter(|t| t.signal == Signal::AllocatableMemoryAvailable)
            .collect();
        assert_eq!(twins.len(), 2, "a soft threshold without grace is hard");
        assert!(twins.iter().all(|twin| twin.min_reclaim.is_some()));
    }
}
