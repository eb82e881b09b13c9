//! The API server's defaults for the resources of a pod.
//!
//! Matches v1.36 pkg/apis/core/v1/defaults.go, `SetDefaults_Pod` and `SetDefaults_ResourceList`.

use crate::object::pod::PodView;
use crate::resources::{ResourceList, ResourceName};

/// Fills in requests, pod-level values and the rounding that storing a pod implies.
///
/// The order is upstream's: sums are made of unrounded values and rounded afterwards.
pub fn apply(pod: &mut PodView) {
    for container in pod.containers.iter_mut().chain(&mut pod.init_containers) {
        let resources = &mut container.resources;
        resources.requests.fill_from(&resources.limits);
    }
    default_huge_page_limits(pod);
    default_pod_requests(pod);
    round(pod);
}

/// A pod with pod-level resources is limited to the huge pages its containers may use, unless it
/// already has a limit for that page size.
fn default_huge_page_limits(pod: &mut PodView) {
    let container_limits = pod.aggregate(|r| &r.limits);
    let Some(resources) = pod.resources.as_mut().filter(|r| !r.is_empty()) else {
        return;
    };
    let requests = &resources.requests;
    let missing = |name: &ResourceName| name.huge_page_size().is_some() && !requests.contains(name);
    resources
        .limits
        .fill_from(&container_limits.filtered(missing));
}

/// A pod that limits itself requests what its containers request together, or else its limit.
fn default_pod_requests(pod: &mut PodView) {
    let container_requests = pod.aggregate(|r| &r.requests);
    let Some(resources) = pod.resources.as_mut().filter(|r| !r.limits.is_empty()) else {
        return;
    };
    let compute =
        |name: &ResourceName| name.is_supported_at_pod_level() && name.allows_overcommit();
    let requests = &mut resources.requests;
    requests.fill_from(&container_requests.filtered(compute));
    let limits = &resources.limits;
    requests.fill_from(&limits.filtered(ResourceName::is_supported_at_pod_level));
}

fn round(pod: &mut PodView) {
    let containers = pod.containers.iter_mut().chain(&mut pod.init_containers);
    let requirements = containers.map(|container| &mut container.resources);
    for requirements in requirements.chain(&mut pod.resources) {
        requirements.requests.round_up_to_milli();
        requirements.limits.round_up_to_milli();
    }
    ResourceList::round_up_to_milli(&mut pod.overhead);
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::*;
    use crate::admission::draft::PodDraft;

    fn defaulted(spec: Value) -> Value {
        let mut pod: Pod = serde_json::from_value(json!({"spec": spec})).unwrap();
        let mut draft = PodDraft::from_api(&pod).unwrap();
        apply(&mut draft.pod);
        draft.write_to(&mut pod);
        serde_json::to_value(pod.spec.unwrap()).unwrap()
    }

    #[test]
    fn limits_become_requests_where_no_request_is_given() {
        let spec = defaulted(json!({
            "containers": [{"name": "a", "resources": {
                "limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "0"},
            }}],
            "initContainers": [{"name": "i", "resources": {"limits": {"cpu": "2"}}}],
        }));
        assert_eq!(
            spec["containers"][0]["resources"]["requests"],
            json!({"cpu": "0", "memory": "1Gi"})
        );
        assert_eq!(
            spec["initContainers"][0]["resources"]["requests"],
            json!({"cpu": "2"})
        );
    }

    #[test]
    fn amounts_below_a_thousandth_are_rounded_up() {
        let spec = defaulted(json!({"containers": [
            {"name": "a", "resources": {"requests": {"cpu": "100u", "memory": "1.0001"}}},
        ]}));
        assert_eq!(
            spec["containers"][0]["resources"]["requests"],
            json!({"cpu": "1m", "memory": "1001m"})
        );
    }

    #[test]
    fn pod_requests_default_to_container_requests_then_pod_limits() {
        let spec = defaulted(json!({
            "containers": [{"name": "a", "resources": {"requests": {"cpu": "300m"}}}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
        }));
        assert_eq!(
            spec["resources"]["requests"],
            json!({"cpu": "300m", "memory": "1Gi"})
        );
    }

    #[test]
    fn pod_requests_without_limits_are_unchanged() {
        let spec = defaulted(json!({
            "containers": [{"name": "a", "resources": {"requests": {"memory": "1Gi"}}}],
            "resources": {"requests": {"cpu": "1"}},
        }));
        assert_eq!(spec["resources"], json!({"requests": {"cpu": "1"}}));
    }

    #[test]
    fn huge_pages_of_containers_become_a_limit_of_the_pod() {
        let spec = defaulted(json!({
            "containers": [
                {"name": "a", "resources": {"limits": {"hugepages-2Mi": "4Mi", "hugepages-1Gi": "1Gi"}}},
                {"name": "b", "resources": {"limits": {"hugepages-2Mi": "2Mi"}}},
            ],
            "resources": {"requests": {"cpu": "1", "hugepages-1Gi": "2Gi"}},
        }));
        assert_eq!(
            spec["resources"],
            json!({
                "limits": {"hugepages-2Mi": "6Mi"},
                "requests": {"cpu": "1", "hugepages-1Gi": "2Gi", "hugepages-2Mi": "6Mi"},
            })
        );
    }
}
