//! `api/selectors.json`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as ApiLabelSelector;
use plimsoll_core::object::selector::{
    FieldSelector, LabelSelector, PreferredNodeAffinity, RequiredNodeAffinity,
    format_label_selector,
};
use plimsoll_core::object::taint::{
    ComparisonOperators, Taint, TaintFilter, Toleration, first_untolerated, is_tolerated,
};
use plimsoll_core::problem::aggregate;
use plimsoll_testkit::vectors::{Outcome, compare};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

type Labels = BTreeMap<String, String>;

pub(crate) fn check(case: &Value) -> Outcome {
    let got = match case["op"].as_str().unwrap() {
        "labelSelectorString" => label_selector_string(case),
        "labelSelectorObject" => label_selector_object(case),
        "fieldSelector" => field_selector(case),
        "taints" => taints(case),
        "nodeAffinity" => node_affinity(case),
        op => return Err(vec![format!("unknown op {op}")]),
    };
    let mut want = case.clone();
    let inputs = [
        "id",
        "op",
        "note",
        "selector",
        "taints",
        "tolerations",
        "comparisonOperatorsEnabled",
        "podSpec",
    ];
    for key in inputs {
        want.as_object_mut().unwrap().remove(key);
    }
    compare(&got, &want)
}

fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

fn refused(error: impl ToString) -> Value {
    json!({"ok": false, "error": error.to_string()})
}

fn matches(case: &Value, input: &str, is_match: impl Fn(&Labels) -> bool) -> Vec<Value> {
    let entries = case["matches"].as_array().into_iter().flatten();
    entries
        .map(|entry| {
            let labels: Option<Labels> = read(&entry[input]);
            json!({input: entry[input], "match": is_match(&labels.unwrap_or_default())})
        })
        .collect()
}

fn label_selector_string(case: &Value) -> Value {
    match case["selector"].as_str().unwrap().parse::<LabelSelector>() {
        Err(error) => refused(error),
        Ok(selector) => json!({
            "ok": true,
            "empty": selector.is_empty(),
            "string": selector.to_string(),
            "matches": matches(case, "labels", |labels| selector.matches(labels)),
        }),
    }
}

fn label_selector_object(case: &Value) -> Value {
    let api: Option<ApiLabelSelector> = read(&case["selector"]);
    match LabelSelector::from_api(api.as_ref()) {
        Err(error) => refused(error),
        Ok(selector) => json!({
            "ok": true,
            "formatted": format_label_selector(api.as_ref()),
            "string": selector.to_string(),
            "matches": matches(case, "labels", |labels| selector.matches(labels)),
        }),
    }
}

fn field_selector(case: &Value) -> Value {
    match case["selector"].as_str().unwrap().parse::<FieldSelector>() {
        Err(error) => refused(error),
        Ok(selector) => {
            let requirement = selector.requirements().iter().map(|requirement| {
                json!({
                    "field": requirement.field,
                    "op": requirement.operator.as_str(),
                    "value": requirement.value,
                })
            });
            json!({
                "ok": true,
                "requirements": requirement.collect::<Vec<Value>>(),
                "string": selector.to_string(),
                "matches": matches(case, "fields", |fields| selector.matches(fields)),
            })
        }
    }
}

fn taints(case: &Value) -> Value {
    let api_taints: Vec<_> = read(&case["taints"]);
    let taints: Vec<Taint> = api_taints.iter().map(Taint::from_api).collect();
    let tolerations: Vec<_> = read(&case["tolerations"]);
    let tolerations: Vec<Toleration> = tolerations.iter().map(Toleration::from_api).collect();
    let comparison = match case["comparisonOperatorsEnabled"].as_bool() {
        Some(true) => ComparisonOperators::Enabled,
        _ => ComparisonOperators::Disabled,
    };
    let tolerated = taints
        .iter()
        .map(|taint| is_tolerated(taint, &tolerations, comparison));
    let first = |filter: TaintFilter| {
        let taint = first_untolerated(&taints, &tolerations, filter, comparison)?;
        let index = taints.iter().position(|other| std::ptr::eq(other, taint))?;
        Some(case["taints"][index].clone())
    };
    json!({
        "toleratedEach": tolerated.collect::<Vec<bool>>(),
        "firstUntoleratedNoScheduleOrNoExecute": first(TaintFilter::NoScheduleOrNoExecute),
        "firstUntoleratedPreferNoSchedule": first(TaintFilter::PreferNoSchedule),
        "firstUntoleratedNoExecute": first(TaintFilter::NoExecute),
    })
}

/// The preferred score stands beside the match in cases whose pod prefers anything.
fn node_affinity(case: &Value) -> Value {
    let spec: PodSpec = read(&case["podSpec"]);
    let required = RequiredNodeAffinity::from_spec(&spec);
    let affinity = spec.affinity.and_then(|affinity| affinity.node_affinity);
    let preferred = affinity
        .and_then(|affinity| affinity.preferred_during_scheduling_ignored_during_execution)
        .map(|terms| PreferredNodeAffinity::from_api(&terms));
    let nodes = case["nodes"].as_array().into_iter().flatten().map(|entry| {
        let labels: Option<Labels> = read(&entry["node"]["labels"]);
        let labels = labels.unwrap_or_default();
        let name = entry["node"]["name"].as_str().unwrap_or_default();
        let mut got = Map::from_iter([("node".to_owned(), entry["node"].clone())]);
        let verdict = required.matches(name, &labels);
        got.insert("match".to_owned(), json!(verdict.unwrap_or(false)));
        if let Err(problems) = verdict {
            got.insert("error".to_owned(), json!(aggregate(problems)));
        }
        for key in entry.as_object().unwrap().keys() {
            let key = key.clone();
            match &preferred {
                Some(Ok(preferred)) if key.to_lowercase().contains("score") => {
                    got.insert(key, json!(preferred.score(name, &labels)));
                }
                Some(Err(problems)) if key.to_lowercase().contains("preferrederr") => {
                    got.insert(key, json!(aggregate(problems)));
                }
                _ => {}
            }
        }
        Value::Object(got)
    });
    json!({"nodes": nodes.collect::<Vec<Value>>()})
}
