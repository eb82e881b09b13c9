//! RuntimeClass admission: a runtime's overhead and scheduling constraints.
//!
//! Matches v1.36 plugin/pkg/admission/runtimeclass.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodSpec, Toleration};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use plimsoll_core::problem::quoted;
use plimsoll_core::quantity::Quantity;

use super::Reason;

type List = BTreeMap<String, ApiQuantity>;

const OTHER_OVERHEAD: &str =
    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
const OVERHEAD_WITHOUT_CLASS: &str =
    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";

pub(super) fn admit(
    spec: &mut PodSpec,
    classes: &BTreeMap<String, RuntimeClass>,
) -> Result<(), Reason> {
    let Some(class) = class_of(spec, classes)? else {
        return Ok(());
    };
    if let Some(overhead) = overhead_of(class) {
        let own = spec.overhead.as_ref().filter(|own| !own.is_empty());
        if own.is_some_and(|own| !is_same(own, overhead)) {
            return Err(OTHER_OVERHEAD.to_owned());
        }
        spec.overhead = Some(overhead.clone());
    }
    let Some(scheduling) = &class.scheduling else {
        return Ok(());
    };
    for (key, value) in scheduling.node_selector.iter().flatten() {
        let selector = spec.node_selector.get_or_insert_default();
        match selector.get(key).filter(|own| *own != value) {
            Some(own) => {
                return Err(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; \
                     pod.spec.nodeSelector[{key}] = {own}"
                ));
            }
            None => {
                selector.insert(key.clone(), value.clone());
            }
        }
    }
    let own = spec.tolerations.take().unwrap_or_default();
    let more = scheduling.tolerations.clone().unwrap_or_default();
    let merged = merge(own.into_iter().chain(more).collect());
    spec.tolerations = (!merged.is_empty()).then_some(merged);
    Ok(())
}

pub(super) fn check(
    spec: &PodSpec,
    classes: &BTreeMap<String, RuntimeClass>,
) -> Result<(), Reason> {
    let class = class_of(spec, classes)?;
    let own = spec.overhead.as_ref().filter(|own| !own.is_empty());
    match (class.and_then(overhead_of), own) {
        (Some(overhead), own) if !own.is_some_and(|own| is_same(own, overhead)) => {
            Err(OTHER_OVERHEAD.to_owned())
        }
        (None, Some(_)) => Err(OVERHEAD_WITHOUT_CLASS.to_owned()),
        _ => Ok(()),
    }
}

fn class_of<'a>(
    spec: &PodSpec,
    classes: &'a BTreeMap<String, RuntimeClass>,
) -> Result<Option<&'a RuntimeClass>, Reason> {
    let Some(name) = &spec.runtime_class_name else {
        return Ok(None);
    };
    match classes.get(name) {
        Some(class) => Ok(Some(class)),
        None => Err(format!(
            "pod rejected: RuntimeClass {} not found",
            quoted(name)
        )),
    }
}

fn overhead_of(class: &RuntimeClass) -> Option<&List> {
    class
        .overhead
        .as_ref()
        .and_then(|overhead| overhead.pod_fixed.as_ref())
}

fn is_same(a: &List, b: &List) -> bool {
    let parse = |quantity: &ApiQuantity| quantity.0.parse::<Quantity>().ok();
    a.len() == b.len()
        && a.iter().all(|(name, amount)| {
            b.get(name)
                .is_some_and(|other| parse(amount) == parse(other))
        })
}

/// Removes tolerations that another one covers; of equal ones the first stays.
fn merge(all: Vec<Toleration>) -> Vec<Toleration> {
    let mut merged: Vec<Toleration> = Vec::new();
    for (index, toleration) in all.iter().enumerate() {
        let is_covered_before = merged.iter().any(|other| covers(other, toleration));
        let mut later = all[index + 1..].iter();
        let is_covered_later = later.any(|other| other != toleration && covers(other, toleration));
        if !is_covered_before && !is_covered_later {
            merged.push(toleration.clone());
        }
    }
    merged
}

/// Whether the first toleration tolerates all that the second does, at least as long.
fn covers(wide: &Toleration, narrow: &Toleration) -> bool {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    if wide == narrow {
        return true;
    }
    let (wide_key, narrow_key) = (text(&wide.key), text(&narrow.key));
    let wide_exists = text(&wide.operator) == "Exists";
    if narrow_key != wide_key && !(wide_key.is_empty() && wide_exists) {
        return false;
    }
    let wide_effect = text(&wide.effect);
    if text(&narrow.effect) != wide_effect && !wide_effect.is_empty() {
        return false;
    }
    if wide_effect == "NoExecute" {
        match (wide.toleration_seconds, narrow.toleration_seconds) {
            (Some(_), None) => return false,
            (Some(wide), Some(narrow)) if wide < narrow => return false,
            _ => {}
        }
    }
    wide_exists || (text(&narrow.operator) != "Exists" && text(&wide.value) == text(&narrow.value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn runtime_class_adds_overhead_and_scheduling() {
        let class: RuntimeClass = serde_json::from_value(json!({
            "handler": "h",
            "overhead": {"podFixed": {"cpu": "250m"}},
            "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]},
        }))
        .unwrap();
        let classes = BTreeMap::from([("r".to_owned(), class)]);
        let mut spec = PodSpec {
            runtime_class_name: Some("r".to_owned()),
            ..PodSpec::default()
        };
        admit(&mut spec, &classes).unwrap();
        assert_eq!(spec.overhead.as_ref().unwrap()["cpu"].0, "250m");
        assert_eq!(spec.node_selector.as_ref().unwrap()["a"], "b");
        assert_eq!(spec.tolerations.as_ref().unwrap().len(), 1);
        assert_eq!(check(&spec, &classes), Ok(()));
        spec.runtime_class_name = None;
        assert_eq!(
            check(&spec, &classes),
            Err(OVERHEAD_WITHOUT_CLASS.to_owned())
        );
    }
}
