use k8s_openapi::api::core::v1::{LimitRange, PersistentVolumeClaim, Pod};
use serde_json::{Value, json};

use super::*;
use crate::admission::draft::PodDraft;
use crate::object::claim::ClaimView;
use crate::object::limit_range::LimitRangeView;

fn limit_range(name: &str, items: Value) -> LimitRangeView {
    let object = json!({"metadata": {"name": name}, "spec": {"limits": items}});
    let object: LimitRange = serde_json::from_value(object).unwrap();
    let mut view = LimitRangeView::from_api(&object).unwrap();
    view.apply_defaults();
    view
}

fn draft(spec: Value) -> PodDraft {
    let pod: Pod = serde_json::from_value(json!({"spec": spec})).unwrap();
    PodDraft::from_api(&pod).unwrap()
}

fn reasons(item: Value, spec: Value) -> Vec<String> {
    let range = limit_range("lr", json!([item]));
    let refusal = check_pod(&draft(spec).pod, &[range]).err();
    refusal.map(|refusal| refusal.reasons()).unwrap_or_default()
}

#[test]
fn annotation_lists_defaults_of_last_limit_range() {
    let mut pod = draft(json!({
        "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}],
        "initContainers": [{"name": "i", "restartPolicy": "Always"}],
    }));
    let first = limit_range(
        "first",
        json!([{"type": "Container", "default": {"cpu": "2", "memory": "1Gi"}}]),
    );
    apply_defaults(&mut pod, std::slice::from_ref(&first));
    assert_eq!(
        pod.annotations[ANNOTATION],
        "LimitRanger plugin set: memory request for container a; cpu, memory limit for container a; \
         cpu, memory request for init container i; cpu, memory limit for init container i"
    );
    let second = limit_range(
        "second",
        json!([{"type": "Container", "defaultRequest": {"ephemeral-storage": "1Gi"}}]),
    );
    let set = apply_defaults(&mut pod, &[first, second]);
    assert!(set.iter().all(|value| value.limit_range == "second"));
    assert_eq!(
        pod.annotations[ANNOTATION],
        "LimitRanger plugin set: ephemeral-storage request for container a; \
         ephemeral-storage request for init container i"
    );
}

#[test]
fn a_stated_value_is_never_replaced() {
    let mut pod = draft(json!({"containers": [
        {"name": "a", "resources": {"requests": {"cpu": "0"}, "limits": {"cpu": "5"}}},
    ]}));
    let range = limit_range(
        "lr",
        json!([{"type": "Container", "default": {"cpu": "1"}}]),
    );
    assert_eq!(apply_defaults(&mut pod, &[range]), []);
    assert!(pod.annotations.is_empty());
}

#[test]
fn items_of_other_types_have_no_effect() {
    let items = json!([
        {"type": "openshift.io/Image", "max": {"storage": "1"}},
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}},
    ]);
    let range = limit_range("lr", items);
    let mut pod = draft(json!({"containers": [{"name": "a"}]}));
    assert_eq!(apply_defaults(&mut pod, std::slice::from_ref(&range)), []);
    assert_eq!(check_pod(&pod.pod, &[range]), Ok(()));
}

#[test]
fn a_missing_value_is_refused_where_there_is_a_bound() {
    let spec = json!({"containers": [{"name": "a"}]});
    assert_eq!(
        reasons(json!({"type": "Pod", "min": {"cpu": "1"}}), spec.clone()),
        ["minimum cpu usage per Pod is 1.  No request is specified"]
    );
    assert_eq!(
        reasons(json!({"type": "Pod", "max": {"cpu": "1"}}), spec.clone()),
        ["maximum cpu usage per Pod is 1.  No limit is specified"]
    );
    let ratio = json!({"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}});
    assert_eq!(
        reasons(ratio.clone(), spec),
        [
            "cpu max limit to request ratio per Pod is 2, but no request is specified or request is 0"
        ]
    );
    let spec = json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]});
    assert_eq!(
        reasons(ratio, spec),
        ["cpu max limit to request ratio per Pod is 2, but no limit is specified or limit is 0"]
    );
}

#[test]
fn limits_below_the_minimum_and_requests_above_the_maximum_are_refused() {
    let container = |request: &str, limit: &str| {
        json!({"containers": [
            {"name": "a", "resources": {"requests": {"cpu": request}, "limits": {"cpu": limit}}},
        ]})
    };
    assert_eq!(
        reasons(
            json!({"type": "Container", "min": {"cpu": "1"}}),
            container("1", "999m")
        ),
        ["minimum cpu usage per Container is 1, but limit is 999m"]
    );
    assert_eq!(
        reasons(
            json!({"type": "Container", "max": {"cpu": "1"}}),
            container("1001m", "1")
        ),
        ["maximum cpu usage per Container is 1, but request is 1001m"]
    );
}

#[test]
fn pods_are_limited_by_their_sum_or_pod_level_resources() {
    let item = json!({"type": "Pod", "max": {"cpu": "2", "hugepages-2Mi": "2Mi"}});
    let containers = json!([
        {"name": "a", "resources": {"limits": {"cpu": "1500m", "hugepages-2Mi": "4Mi"}}},
        {"name": "b", "resources": {"limits": {"cpu": "1"}}},
    ]);
    let huge = "maximum hugepages-2Mi usage per Pod is 2Mi, but limit is 4Mi";
    assert_eq!(
        reasons(item.clone(), json!({"containers": containers})),
        ["maximum cpu usage per Pod is 2, but limit is 2500m", huge]
    );
    let pod_level = json!({"limits": {"cpu": "2", "hugepages-2Mi": "2Mi"}});
    assert_eq!(
        reasons(
            item,
            json!({"containers": containers, "resources": pod_level})
        ),
        [huge]
    );
}

#[test]
fn names_first_limit_range_that_refuses() {
    let wide = limit_range("wide", json!([{"type": "Container", "max": {"cpu": "4"}}]));
    let tight = limit_range("tight", json!([{"type": "Container", "max": {"cpu": "1"}}]));
    let mut pod = draft(json!({"containers": [
        {"name": "a"}, {"name": "b"},
    ]}));
    let ranges = [wide, tight];
    apply_defaults(&mut pod, &ranges);
    let refusal = check_pod(&pod.pod, &ranges).unwrap_err();
    assert_eq!((refusal.index, refusal.limit_range.as_str()), (1, "tight"));
    let places: Vec<String> = refusal
        .violations
        .iter()
        .filter_map(|violation| violation.place.as_ref().map(ToString::to_string))
        .collect();
    assert_eq!(places, ["container a", "container b"]);
    assert_eq!(
        refusal.status_message("pods", "web"),
        "pods \"web\" is forbidden: maximum cpu usage per Container is 1, but limit is 4"
    );
}

#[test]
fn claims_are_limited_by_their_request() {
    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "spec": {"resources": {"requests": {"storage": "11Gi"}}},
    }))
    .unwrap();
    let claim = ClaimView::from_api(&claim).unwrap();
    let range = limit_range(
        "lr",
        json!([{"type": "PersistentVolumeClaim", "max": {"storage": "10Gi"}}]),
    );
    let refusal = check_claim(&claim, &[range]).unwrap_err();
    assert_eq!(
        refusal.status_message("persistentvolumeclaims", "data"),
        "persistentvolumeclaims \"data\" is forbidden: \
         maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 11Gi"
    );
}
