//! `node/thresholds.json`.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::quantity::{Format, Quantity};
use plimsoll_core::threshold::flag::{Separator, parse_map};
use plimsoll_core::threshold::{
    DiskLayout, Statements, Threshold, ThresholdValue, derive_container_fs,
};
use plimsoll_testkit::vectors::{Outcome, compare_with_expected};
use serde_json::{Map, Value, json};

pub(crate) fn check(case: &Value) -> Outcome {
    let got = match case["op"].as_str().unwrap() {
        "parse" => match statements(&case["config"]).parse() {
            Err(error) => json!({"error": error.to_string()}),
            Ok(thresholds) => json!({
                "thresholds": described(&thresholds),
                "percentageAtCapacity": at_capacities(&thresholds, &case["expect"]["percentageAtCapacity"]),
            }),
        },
        "containerfs" => {
            let is = |key: &str| case[key].as_bool().unwrap_or_default();
            let layout =
                DiskLayout::from_dedicated(is("dedicatedImageFs"), is("dedicatedContainerFs"));
            match statements(&case["config"]).parse() {
                Err(error) => json!({"error": error.to_string()}),
                Ok(thresholds) => {
                    let derived = derive_container_fs(thresholds, layout);
                    json!({
                        "thresholds": described(&derived.thresholds),
                        "warning": derived.warning,
                    })
                }
            }
        }
        "flag" => {
            let separator = match case["flag"].as_str().unwrap() {
                "eviction-hard" | "eviction-soft" => Separator::LessThan,
                _ => Separator::Equals,
            };
            match parse_map(case["value"].as_str().unwrap(), separator) {
                Err(error) => json!({"error": error.to_string()}),
                Ok(map) => json!({"map": map}),
            }
        }
        op => return Err(vec![format!("unknown op {op}")]),
    };
    compare_with_expected(case, &got)
}

/// The eviction settings of a case; also those of the synchronize cases.
pub(crate) fn statements(config: &Value) -> Statements {
    let map = |key: &str| -> BTreeMap<String, String> {
        serde_json::from_value(config[key].clone()).unwrap_or_default()
    };
    Statements {
        hard: map("evictionHard"),
        soft: map("evictionSoft"),
        soft_grace_period: map("evictionSoftGracePeriod"),
        minimum_reclaim: map("evictionMinimumReclaim"),
        enforce_node_allocatable: serde_json::from_value(config["enforceNodeAllocatable"].clone())
            .unwrap_or_default(),
    }
}

/// By signal, then grace period, as the README says.
pub(crate) fn described(thresholds: &[Threshold]) -> Vec<Value> {
    let mut sorted: Vec<&Threshold> = thresholds.iter().collect();
    sorted.sort_by_key(|t| (t.signal.as_str(), t.grace_period));
    let describe = |t: &Threshold| {
        json!({
            "signal": t.signal.as_str(),
            "operator": t.operator.as_str(),
            "value": described_value(&t.value),
            "gracePeriodSeconds": t.grace_period.as_secs_f64(),
            "minReclaim": t.min_reclaim.as_ref().map(described_value),
        })
    };
    sorted.into_iter().map(describe).collect()
}

fn described_value(value: &ThresholdValue) -> Value {
    match value {
        ThresholdValue::Quantity(quantity) => {
            json!({"quantity": quantity.to_string(), "quantityValue": quantity.value()})
        }
        ThresholdValue::Percentage(percentage) => json!({
            "percentage": f64::from(*percentage),
            "percentageF32Bits": percentage.to_bits(),
        }),
    }
}

/// Every percentage at the capacities of the recorded answer.
fn at_capacities(thresholds: &[Threshold], asked: &Value) -> Map<String, Value> {
    let capacities: BTreeSet<&String> = asked
        .as_object()
        .into_iter()
        .flat_map(|by_bits| by_bits.values())
        .flat_map(|by_capacity| by_capacity.as_object().unwrap().keys())
        .collect();
    let mut by_bits = Map::new();
    let values = thresholds.iter().map(|t| &t.value);
    let reclaims = thresholds.iter().filter_map(|t| t.min_reclaim.as_ref());
    for value in values.chain(reclaims) {
        let ThresholdValue::Percentage(percentage) = value else {
            continue;
        };
        let at = |capacity: &str| {
            let capacity = Quantity::new(capacity.parse().unwrap(), Format::BinarySi);
            json!(value.at_capacity(&capacity).value())
        };
        let by_capacity: Map<String, Value> = capacities
            .iter()
            .map(|capacity| ((*capacity).clone(), at(capacity)))
            .collect();
        by_bits.insert(percentage.to_bits().to_string(), json!(by_capacity));
    }
    by_bits
}
