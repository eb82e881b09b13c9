use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LimitRange, Pod};
use serde_json::{Value, json};

use super::*;
use crate::admission::draft::PodDraft;
use crate::object::limit_range::LimitRangeView;

fn settings(fields: Value) -> Settings {
    Settings::from_json(&fields, Variant::Modern).unwrap()
}

fn limit_range(item: Value) -> LimitRangeView {
    let object: LimitRange = serde_json::from_value(json!({"spec": {"limits": [item]}})).unwrap();
    LimitRangeView::from_api(&object).unwrap()
}

/// Resources of a single container after the override.
fn overridden(configured: &Override, limit_ranges: &[LimitRangeView], resources: Value) -> Value {
    let mut pod: Pod = serde_json::from_value(
        json!({"spec": {"containers": [{"name": "a", "resources": resources}]}}),
    )
    .unwrap();
    let mut draft = PodDraft::from_api(&pod).unwrap();
    configured.apply(&mut draft, limit_ranges);
    draft.write_to(&mut pod);
    let container = &pod.spec.unwrap().containers[0];
    serde_json::to_value(&container.resources).unwrap()
}

#[test]
fn requests_are_a_share_of_limits_and_cpu_follows_memory() {
    let fields = json!({
        "limitCPUToMemoryPercent": 200, "cpuRequestToLimitPercent": 25, "memoryRequestToLimitPercent": 50,
    });
    for variant in [Variant::Okd36, Variant::Okd39, Variant::Modern] {
        let configured = Override::new(variant, settings(fields.clone()));
        let limits = json!({"limits": {"memory": "1Gi"}});
        assert_eq!(
            overridden(&configured, &[], limits),
            json!({
                "limits": {"memory": "1Gi", "cpu": "2"},
                "requests": {"memory": "512Mi", "cpu": "500m"},
            })
        );
    }
}

#[test]
fn twenty_nine_percent_of_memory_acts_as_twenty_eight() {
    let configured = Override::new(
        Variant::Okd36,
        settings(json!({"memoryRequestToLimitPercent": 29})),
    );
    let result = overridden(&configured, &[], json!({"limits": {"memory": "100Mi"}}));
    assert_eq!(result["requests"]["memory"], "28Mi");
}

#[test]
fn namespace_minimum_raises_results_where_a_floor_is_set() {
    let ranges = [limit_range(
        json!({"type": "Container", "min": {"cpu": "500m"}}),
    )];
    let fields = json!({"cpuRequestToLimitPercent": 20});
    let request = |floor: Option<Floor>, variant| {
        let mut settings = settings(fields.clone());
        settings.floor = floor;
        let configured = Override::new(variant, settings);
        let limits = json!({"limits": {"cpu": "1"}});
        overridden(&configured, &ranges, limits)["requests"]["cpu"].clone()
    };
    assert_eq!(request(None, Variant::Okd36), "200m");
    assert_eq!(request(None, Variant::Okd39), "500m");
    assert_eq!(request(None, Variant::Modern), "500m");
    assert_eq!(request(Some(Floor::LimitRangeMin), Variant::Okd36), "500m");
    assert_eq!(request(Some(Floor::None), Variant::Modern), "200m");
}

#[test]
fn only_modern_variant_respects_the_maximum() {
    let ranges = [limit_range(
        json!({"type": "Container", "max": {"cpu": "300m"}}),
    )];
    let limit = |variant| {
        let configured = Override::new(variant, settings(json!({"limitCPUToMemoryPercent": 100})));
        let limits = json!({"limits": {"memory": "1Gi"}});
        overridden(&configured, &ranges, limits)["limits"]["cpu"].clone()
    };
    assert_eq!(limit(Variant::Okd39), "1");
    assert_eq!(limit(Variant::Modern), "300m");
}

#[test]
fn a_second_round_scales_the_request_as_first_written() {
    let configured = Override::new(
        Variant::Modern,
        settings(json!({"cpuRequestToRequestPercent": 50})),
    );
    let pod: Pod = serde_json::from_value(json!({"spec": {"containers": [
        {"name": "a", "resources": {"requests": {"cpu": "300m"}}},
    ]}}))
    .unwrap();
    let mut draft = PodDraft::from_api(&pod).unwrap();
    configured.apply(&mut draft, &[]);
    let second = configured.apply(&mut draft, &[]);
    assert_eq!(second[0].to.to_string(), "150m");
    let key = format!("{ORIGINAL_CPU_REQUEST_ANNOTATION}-a");
    assert_eq!(draft.annotations[&key], "300m");
}

#[test]
fn each_variant_has_its_own_way_to_be_switched() {
    let namespace = |name: &str, annotation: Option<&str>, label: Option<&str>| {
        let map = |key: &str, value: Option<&str>| -> BTreeMap<String, String> {
            value
                .map(|v| (key.to_owned(), v.to_owned()))
                .into_iter()
                .collect()
        };
        NamespaceView {
            name: name.to_owned(),
            labels: map(OPT_IN_LABEL, label),
            annotations: map(OPT_OUT_ANNOTATION, annotation),
        }
    };
    let on = |variant, namespace: &NamespaceView| {
        Override::new(variant, Settings::default()).applies_to(namespace)
    };
    let plain = namespace("proj", None, None);
    assert!(on(Variant::Okd36, &plain) && on(Variant::Okd39, &plain));
    assert!(!on(Variant::Modern, &plain));
    assert!(!on(Variant::Okd36, &namespace("proj", Some("True"), None)));
    assert!(on(Variant::Okd36, &namespace("kube-system", None, None)));
    assert!(!on(Variant::Okd39, &namespace("kube-system", None, None)));
    assert!(on(Variant::Okd39, &namespace("kubelet-tests", None, None)));
    assert!(on(Variant::Modern, &namespace("kube", None, Some("true"))));
    assert!(!on(Variant::Modern, &namespace("proj", None, Some("True"))));
}

#[test]
fn the_file_is_read_in_both_forms() {
    let flat = "kind: ClusterResourceOverrideConfig\ncpuRequestToLimitPercent: 25\n";
    let nested = "apiVersion: v1\nkind: ClusterResourceOverrideConfig\nspec:\n  cpuRequestToLimitPercent: 25\n  forceSelinuxRelabel: false\n";
    let want = Settings {
        cpu_request_to_limit_percent: 25,
        ..Settings::default()
    };
    for text in [flat, nested] {
        assert_eq!(Settings::from_yaml(text, Variant::Okd36).unwrap(), want);
    }
}

#[test]
fn every_wrong_field_is_reported_with_its_path() {
    let problems = |text: &str| -> Vec<String> {
        let problems = Settings::from_yaml(text, Variant::Okd39).unwrap_err();
        problems.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        problems(
            "spec:\n  limitCPUToMemoryPercent: -1\n  cpuRequestToLimitPercent: 101\n  cpuRequestToRequestPercent: 5\n  memoryPercent: 1\n  floor: min\n"
        )
        .len(),
        5
    );
    assert_eq!(
        problems("cpuRequestToLimitPercent: 101"),
        ["cpuRequestToLimitPercent: Invalid value: 101: must be between 0 and 100"]
    );
    assert_eq!(
        problems("cpuRequestToLimitPercent: 0"),
        [
            "ClusterResourceOverrideConfig: Forbidden: plugin enabled but no percentages were specified"
        ]
    );
    assert_eq!(problems("[1]").len(), 1);
    assert_eq!(problems("a: [").len(), 1);
}
