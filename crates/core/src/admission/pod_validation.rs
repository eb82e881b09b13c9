//! Validation of a pod's resources.
//!
//! Only the part of pod validation that concerns requests, limits and overhead; it runs after the
//! last change to the pod. Matches v1.36 pkg/apis/core/validation/validation.go.

use k8s_openapi::api::core::v1::{Pod, PodSpec};

use crate::object::pod::{ContainerView, PodView, Requirements};
use crate::object::resource_rules::{
    check_amount, check_container_resource_name, check_pod_resource_name,
};
use crate::problem::Problem;
use crate::quantity::Quantity;
use crate::resources::{ResourceList, ResourceName};

/// How names are checked: for containers or for the pod as a whole.
type NameRule = fn(&ResourceName, &str, &mut Vec<Problem>);

/// All that is wrong with the resources of the pod. `view` is the parsed form of `pod`.
pub fn validate(pod: &Pod, view: &PodView) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (field, containers) in [
        ("containers", &view.containers),
        ("initContainers", &view.init_containers),
    ] {
        for (index, container) in containers.iter().enumerate() {
            let path = format!("spec.{field}[{index}].resources");
            validate_container_resources(&container.resources, &path, &mut problems);
        }
    }
    if let Some(spec) = &pod.spec {
        validate_pod_resources(spec, view, "spec.resources", &mut problems);
    }
    validate_overhead(&view.overhead, "spec.overhead", &mut problems);
    problems
}

/// Validates the requests and limits of a container that stand at `path`.
pub fn validate_container_resources(
    resources: &Requirements,
    path: &str,
    problems: &mut Vec<Problem>,
) {
    check_requirements(resources, check_container_resource_name, path, problems);
}

/// What is wrong with the overhead that stands at `path`. It is checked as if it were limits, which
/// shows in the paths of the problems.
pub fn validate_overhead(overhead: &ResourceList, path: &str, problems: &mut Vec<Problem>) {
    let as_limits = Requirements {
        limits: overhead.clone(),
        requests: ResourceList::new(),
    };
    validate_container_resources(&as_limits, path, problems);
}

/// Validates the pod-level resources, which stand at `path`.
pub fn validate_pod_resources(
    spec: &PodSpec,
    view: &PodView,
    path: &str,
    problems: &mut Vec<Problem>,
) {
    let Some(resources) = &view.resources else {
        return;
    };
    if spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        problems.push(Problem::forbidden(path, "may not be set for a windows pod"));
        return;
    }
    let written = spec.resources.as_ref();
    if written.is_some_and(|resources| resources.claims.is_some()) {
        let detail = "claims may not be set for Resources at pod-level";
        problems.push(Problem::forbidden(format!("{path}.claims"), detail));
    }
    check_requirements(resources, check_pod_resource_name, path, problems);
    check_pod_covers_containers(view, resources, path, problems);
}

/// Names and amounts, requests against limits, huge pages.
fn check_requirements(
    resources: &Requirements,
    check_name: NameRule,
    path: &str,
    problems: &mut Vec<Problem>,
) {
    let Requirements { requests, limits } = resources;
    for (name, quantity) in limits {
        let key = format!("{path}.limits[{name}]");
        check_name(name, &key, problems);
        check_amount(name, quantity, &key, problems);
        check_huge_pages(name, quantity, &key, problems);
    }
    for (name, quantity) in requests {
        let key = format!("{path}.requests[{name}]");
        check_name(name, &key, problems);
        check_amount(name, quantity, &key, problems);
        check_against_limit(name, quantity, limits.get(name), path, problems);
        check_huge_pages(name, quantity, &key, problems);
    }
    let names = || requests.names().chain(limits.names());
    let has_compute = names().any(|n| *n == ResourceName::CPU || *n == ResourceName::MEMORY);
    if !has_compute && names().any(|n| n.huge_page_size().is_some()) {
        problems.push(Problem::forbidden(path, "HugePages require cpu or memory"));
    }
}

fn check_against_limit(
    name: &ResourceName,
    request: &Quantity,
    limit: Option<&Quantity>,
    path: &str,
    problems: &mut Vec<Problem>,
) {
    let Some(limit) = limit else {
        if !name.allows_overcommit() {
            let detail = "Limit must be set for non overcommitable resources";
            problems.push(Problem::required(format!("{path}.limits"), detail));
        }
        return;
    };
    let rule = if request != limit && !name.allows_overcommit() {
        "equal to"
    } else if request > limit {
        "less than or equal to"
    } else {
        return;
    };
    problems.push(Problem::invalid(
        format!("{path}.requests"),
        &request.to_string(),
        format!("must be {rule} {name} limit of {limit}"),
    ));
}

fn check_huge_pages(
    name: &ResourceName,
    quantity: &Quantity,
    key: &str,
    problems: &mut Vec<Problem>,
) {
    let Some(page_size) = name.huge_page_size() else {
        return;
    };
    let is_multiple = page_size.parse::<Quantity>().is_ok_and(|page_size| {
        page_size.signum() > 0
            && page_size.milli_value() % 1000 == 0
            && quantity.value().checked_rem(page_size.value()) == Some(0)
    });
    if !is_multiple {
        let detail = format!("{quantity} is not positive integer multiple of {name}");
        problems.push(Problem::invalid(key, &quantity.to_string(), detail));
    }
}

/// A pod's own values must cover what its containers request together, what huge pages they may
/// use together, and what each of them may use alone.
fn check_pod_covers_containers(
    view: &PodView,
    resources: &Requirements,
    path: &str,
    problems: &mut Vec<Problem>,
) {
    let requested = view.aggregate(|r| &r.requests);
    let huge_pages = view.aggregate(|r| &r.limits);
    let huge_pages = huge_pages.filtered(|name| name.huge_page_size().is_some());
    for (part, pod_level, total) in [
        ("requests", &resources.requests, &requested),
        ("limits", &resources.limits, &huge_pages),
    ] {
        for (name, total) in total {
            if let Some(own) = pod_level.get(name).filter(|own| total > *own) {
                problems.push(Problem::invalid(
                    format!("{path}.{part}[{name}]"),
                    &own.to_string(),
                    format!(
                        "must be greater than or equal to aggregate container {part} of {total}"
                    ),
                ));
            }
        }
    }
    for (index, container) in view.containers.iter().enumerate() {
        let path = format!("{path}.containers[{index}]");
        check_container_within_pod(&path, container, &resources.limits, problems);
    }
}

/// The path is upstream's, which nests the container below the pod's resources.
fn check_container_within_pod(
    path: &str,
    container: &ContainerView,
    pod_limits: &ResourceList,
    problems: &mut Vec<Problem>,
) {
    for (name, limit) in &container.resources.limits {
        if let Some(pod_limit) = pod_limits.get(name).filter(|pod_limit| limit > *pod_limit) {
            problems.push(Problem::invalid(
                format!("{path}[{name}].limits"),
                &limit.to_string(),
                format!("must be less than or equal to pod limits of {pod_limit}"),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problems(spec: Value) -> Vec<String> {
        let pod: Pod = serde_json::from_value(json!({"spec": spec})).unwrap();
        let view = PodView::from_api(&pod).unwrap();
        let problems = validate(&pod, &view);
        problems.iter().map(ToString::to_string).collect()
    }

    fn container(resources: Value) -> Value {
        json!({"containers": [{"name": "a", "resources": resources}]})
    }

    #[test]
    fn requests_may_not_exceed_limits() {
        let spec = container(json!({"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}));
        assert_eq!(
            problems(spec),
            [
                "spec.containers[0].resources.requests: Invalid value: \"2Gi\": must be less than or equal to memory limit of 1Gi"
            ]
        );
    }

    #[test]
    fn devices_are_requested_in_full() {
        let spec = container(
            json!({"requests": {"example.com/x": "0"}, "limits": {"example.com/x": "1"}}),
        );
        assert_eq!(
            problems(spec),
            [
                "spec.containers[0].resources.requests: Invalid value: \"0\": must be equal to example.com/x limit of 1"
            ]
        );
        assert_eq!(
            problems(container(json!({"requests": {"example.com/x": "1"}}))),
            [
                "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"
            ]
        );
    }

    #[test]
    fn huge_pages_are_whole_pages_beside_cpu_or_memory() {
        let spec = container(json!({"limits": {"hugepages-2Mi": "3Mi"}}));
        assert_eq!(
            problems(spec),
            [
                "spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi",
                "spec.containers[0].resources: Forbidden: HugePages require cpu or memory",
            ]
        );
    }

    #[test]
    fn a_pod_covers_its_containers() {
        let spec = json!({
            "containers": [
                {"name": "a", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}},
            ],
            "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
        });
        assert_eq!(
            problems(spec),
            [
                "spec.resources.requests[cpu]: Invalid value: \"1\": must be greater than or equal to aggregate container requests of 2",
                "spec.resources.containers[0][cpu].limits: Invalid value: \"3\": must be less than or equal to pod limits of 1",
            ]
        );
    }

    #[test]
    fn pod_level_resources_are_few_and_not_for_windows() {
        let spec = json!({"containers": [], "resources": {"limits": {"ephemeral-storage": "1"}}});
        assert_eq!(
            problems(spec),
            [
                "spec.resources.limits[ephemeral-storage]: Unsupported value: \"ephemeral-storage\": supported values: \"cpu\", \"hugepages-\", \"memory\""
            ]
        );
        let spec = json!({"containers": [], "os": {"name": "windows"}, "resources": {}});
        assert_eq!(
            problems(spec),
            ["spec.resources: Forbidden: may not be set for a windows pod"]
        );
    }
}
