//! Which resource names and amounts an API object may hold.
//!
//! Matches v1.36 pkg/apis/core/validation/validation.go and pkg/apis/core/helper/helpers.go.

use crate::problem::Problem;
use crate::quantity::Quantity;
use crate::resources::ResourceName;

use super::syntax::check_label_key;

/// The prefix of requests in quotas; not allowed in the name of a resource itself.
pub const REQUESTS_PREFIX: &str = "requests.";

/// Resources that pods request, as quotas and nodes name them.
pub const COMPUTE: [&str; 9] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

/// Resources that volumes request.
const STORAGE: [&str; 2] = ["storage", "requests.storage"];

/// Resources that are counted in whole numbers.
const INTEGER_RESOURCES: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Checks a name for any resource list.
pub fn check_resource_name(name: &ResourceName, path: &str, problems: &mut Vec<Problem>) {
    let mistakes = check_label_key(name.as_str());
    if mistakes.is_empty() && !is_qualified(name) && !is_standard(name) {
        let detail = "must be a standard resource type or fully qualified";
        problems.push(Problem::invalid(path, name.as_str(), detail));
    }
    for mistake in mistakes {
        problems.push(Problem::invalid(path, name.as_str(), mistake));
    }
}

/// Checks a name in the requests or limits of a container.
pub fn check_container_resource_name(name: &ResourceName, path: &str, problems: &mut Vec<Problem>) {
    check_resource_name(name, path, problems);
    let detail = if !is_qualified(name) {
        let is_container_resource = ["cpu", "memory", "ephemeral-storage"].contains(&name.as_str())
            || name.huge_page_size().is_some();
        (!is_container_resource).then_some("must be a standard resource for containers")
    } else {
        (!name.is_native() && !is_extended(name))
            .then_some("doesn't follow extended resource name standard")
    };
    if let Some(detail) = detail {
        problems.push(Problem::invalid(path, name.as_str(), detail));
    }
}

/// Checks a name in the requests or limits of a pod as a whole.
pub fn check_pod_resource_name(name: &ResourceName, path: &str, problems: &mut Vec<Problem>) {
    let known = problems.len();
    check_resource_name(name, path, problems);
    if problems.len() == known && !name.is_supported_at_pod_level() {
        let supported = ["cpu", "hugepages-", "memory"];
        problems.push(Problem::not_supported(path, name.as_str(), &supported));
    }
}

/// Checks that an amount is not negative, and whole where pieces are counted.
pub fn check_amount(
    name: &ResourceName,
    quantity: &Quantity,
    path: &str,
    problems: &mut Vec<Problem>,
) {
    if quantity.signum() < 0 {
        let detail = "must be greater than or equal to 0";
        problems.push(Problem::invalid(path, &quantity.to_string(), detail));
    }
    let is_whole = INTEGER_RESOURCES.contains(&name.as_str()) || is_extended(name);
    if is_whole && quantity.milli_value() % 1000 != 0 {
        let detail = "must be an integer";
        problems.push(Problem::invalid(path, &quantity.to_string(), detail));
    }
}

/// Whether the resource is defined outside Kubernetes, like `nvidia.com/gpu`.
pub fn is_extended(name: &ResourceName) -> bool {
    !name.is_native()
        && !name.as_str().starts_with(REQUESTS_PREFIX)
        && check_label_key(name.prefixed(REQUESTS_PREFIX).as_str()).is_empty()
}

fn is_qualified(name: &ResourceName) -> bool {
    name.as_str().contains('/')
}

fn is_standard(name: &ResourceName) -> bool {
    let text = name.as_str();
    let in_quota = text.strip_prefix(REQUESTS_PREFIX).map(ResourceName::new);
    let known = [&COMPUTE[..], &INTEGER_RESOURCES, &STORAGE];
    known.iter().any(|names| names.contains(&text))
        || name.huge_page_size().is_some()
        || in_quota.is_some_and(|name| name.huge_page_size().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_names_have_a_foreign_domain_and_are_qualified() {
        assert!(is_extended(&ResourceName::new("example.com/gpu")));
        for name in [
            "cpu",
            "kubernetes.io/x",
            "sub.kubernetes.io/x",
            "requests.example.com/x",
            "Example.com/x",
            "example..com/x",
            "example.com/",
            "example.com/a/b",
            "example.com/-a",
        ] {
            assert!(!is_extended(&ResourceName::new(name)), "{name}");
        }
    }

    fn container_problems(name: &str) -> Vec<String> {
        let mut problems = Vec::new();
        check_container_resource_name(&ResourceName::new(name), "x", &mut problems);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn containers_may_request_compute_huge_pages_and_extended_resources() {
        for name in ["cpu", "hugepages-1Gi", "nvidia.com/gpu", "kubernetes.io/x"] {
            assert_eq!(container_problems(name), [""; 0], "{name}");
        }
    }

    #[test]
    fn other_names_are_refused_for_containers() {
        assert_eq!(
            container_problems("foo"),
            [
                "x: Invalid value: \"foo\": must be a standard resource type or fully qualified",
                "x: Invalid value: \"foo\": must be a standard resource for containers",
            ]
        );
        assert_eq!(
            container_problems("requests.example.com/x"),
            [
                "x: Invalid value: \"requests.example.com/x\": doesn't follow extended resource name standard"
            ]
        );
        assert_eq!(container_problems("storage").len(), 1);
    }

    #[test]
    fn devices_are_whole_and_nothing_is_negative() {
        let mut problems = Vec::new();
        let gpu = ResourceName::new("nvidia.com/gpu");
        check_amount(&gpu, &"-1500m".parse().unwrap(), "x", &mut problems);
        let texts: Vec<String> = problems.iter().map(Problem::message).collect();
        assert_eq!(
            texts,
            [
                "Invalid value: \"-1500m\": must be greater than or equal to 0",
                "Invalid value: \"-1500m\": must be an integer",
            ]
        );
    }
}
