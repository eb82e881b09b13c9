use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::object::resource_quota::QuotaView;
use crate::resources::{ResourceList, ResourceName};

fn charge(pod: Value) -> PodCharge {
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
    PodCharge::from_api(&pod, now).unwrap()
}

fn quota(hard: Value, used: Value, spec: Value) -> QuotaView {
    let quota: ResourceQuota = serde_json::from_value(json!({
        "metadata": {"name": "q"}, "spec": spec, "status": {"hard": hard, "used": used},
    }))
    .unwrap();
    QuotaView::from_api(&quota).unwrap()
}

fn requesting(cpu: &str) -> Value {
    json!({"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": cpu}}}]}})
}

fn texts(list: &ResourceList) -> Vec<String> {
    list.iter().map(|(n, q)| format!("{n}={q}")).collect()
}

#[test]
fn huge_pages_and_devices_are_charged_by_request() {
    let usage = charge(json!({"spec": {"containers": [{"name": "a", "resources": {
        "requests": {"hugepages-2Mi": "2Mi", "example.com/gpu": "1", "deviceclass.resource.kubernetes.io/x": "3"},
        "limits": {"ephemeral-storage": "1Gi"},
    }}]}}))
    .usage;
    assert_eq!(
        texts(&usage),
        [
            "count/pods=1",
            "hugepages-2Mi=2Mi",
            "limits.ephemeral-storage=1Gi",
            "pods=1",
            "requests.deviceclass.resource.kubernetes.io/x=3",
            "requests.example.com/gpu=1",
            "requests.hugepages-2Mi=2Mi",
        ]
    );
}

#[test]
fn finished_and_overdue_pods_only_take_their_place_in_storage() {
    let overdue = |deleted: &str| {
        let mut pod = requesting("1");
        pod["metadata"] = json!({"deletionTimestamp": deleted, "deletionGracePeriodSeconds": 30});
        texts(&charge(pod).usage).len()
    };
    assert_eq!(overdue("2026-01-01T00:00:29Z"), 1);
    assert_eq!(overdue("2026-01-01T00:00:30Z"), 4);
    let mut finished = requesting("1");
    finished["status"] = json!({"phase": "Succeeded"});
    assert_eq!(texts(&charge(finished).usage), ["count/pods=1"]);
}

#[test]
fn scopes_pick_the_pods_a_quota_counts() {
    let counts = |scope: Value, pod: Value| {
        let spec = if scope.is_string() {
            json!({"scopes": [scope]})
        } else {
            json!({"scopeSelector": {"matchExpressions": [scope]}})
        };
        charge(pod).is_counted_by(&quota(json!({"pods": "1"}), json!({}), spec))
    };
    let idle = json!({"spec": {"containers": [{"name": "a"}]}});
    assert!(counts(json!("BestEffort"), idle.clone()));
    assert!(!counts(json!("BestEffort"), requesting("1")));
    assert!(counts(json!("NotBestEffort"), requesting("1")));
    assert!(counts(json!("NotTerminating"), idle.clone()));
    assert!(!counts(json!("VolumeAttributesClass"), idle.clone()));
    let mut classy = idle.clone();
    classy["spec"]["priorityClassName"] = json!("high");
    let class = |operator: &str, values: Value| json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
    assert!(counts(class("In", json!(["high"])), classy.clone()));
    assert!(!counts(class("In", json!(["low"])), classy.clone()));
    assert!(!counts(class("In", json!(["high"])), idle.clone()));
    assert!(counts(class("NotIn", json!(["high"])), idle.clone()));
    assert!(counts(class("DoesNotExist", json!([])), idle.clone()));
    assert!(counts(class("Exists", json!([])), classy));
    let mut social = idle.clone();
    social["spec"]["affinity"] = json!({"podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "namespaceSelector": {}}},
        ],
    }});
    assert!(counts(json!("CrossNamespacePodAffinity"), social));
    assert!(!counts(json!("CrossNamespacePodAffinity"), idle));
}

#[test]
fn a_quota_without_anything_pods_use_does_not_count_them() {
    let services = quota(json!({"services": "1"}), json!({}), json!({}));
    assert!(!charge(requesting("1")).is_counted_by(&services));
    let devices = quota(
        json!({"requests.example.com/gpu": "1"}),
        json!({}),
        json!({}),
    );
    assert!(charge(requesting("1")).is_counted_by(&devices));
}

#[test]
fn all_exceeded_resources_are_listed() {
    let quota = quota(
        json!({"cpu": "1", "requests.cpu": "2", "pods": "1"}),
        json!({"cpu": "500m", "requests.cpu": "500m", "pods": "1"}),
        json!({}),
    );
    let refusal = admit(&charge(requesting("600m")), None, &[quota]).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "exceeded quota: q, requested: cpu=600m,pods=1, used: cpu=500m,pods=1, limited: cpu=1,pods=1"
    );
}

#[test]
fn quota_with_unknown_usage_refuses_all_pods() {
    let quota = quota(
        json!({"cpu": "1", "pods": "1", "services": "1"}),
        json!({"pods": "0"}),
        json!({}),
    );
    let refusal = admit(&charge(requesting("1m")), None, &[quota]).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "status unknown for quota: q, resources: cpu,pods"
    );
}

#[test]
fn negative_use_is_refused() {
    let refusal = admit(&charge(requesting("-1")), None, &[]).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "quota usage is negative for resource(s): cpu,requests.cpu"
    );
}

#[test]
fn resized_pod_is_charged_the_difference() {
    let quota = quota(
        json!({"cpu": "4", "pods": "1"}),
        json!({"cpu": "1", "pods": "1"}),
        json!({}),
    );
    let after = |before: &str, now: &str| {
        let (before, now) = (charge(requesting(before)), charge(requesting(now)));
        let used = admit(&now, Some(&before), std::slice::from_ref(&quota)).unwrap();
        used[0].get_or_zero(&ResourceName::CPU).to_string()
    };
    assert_eq!(after("1", "3"), "3");
    assert_eq!(after("1", "500m"), "1");
}
