//! What a pod requests, as the scheduler counts it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodStatus;

use crate::object::pod::{Overhead, PodView, ResizeScope};
use crate::object::resource_rules::is_extended;
use crate::problem::Problem;
use crate::quantity::{Format, Quantity};
use crate::resources::{ResourceList, ResourceName};

/// The default for scoring of a container that requests no cpu, in thousandths of a core.
const DEFAULT_MILLI_CPU: i64 = 100;
/// The default for scoring of a container that requests no memory, in bytes.
const DEFAULT_MEMORY: i64 = 200 * 1024 * 1024;

/// Amounts of resources: of one pod, of all pods of a node, or of the node itself.
///
/// Sums wrap as upstream's do, so that taking away what was added always leads back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Thousandths of a core.
    pub milli_cpu: i64,
    /// Bytes.
    pub memory: i64,
    /// Bytes.
    pub ephemeral_storage: i64,
    /// Everything else that the scheduler counts: devices, huge pages, attachable volumes.
    pub scalars: BTreeMap<ResourceName, i64>,
}

impl Request {
    /// Reads the resources that the scheduler counts, fractions rounded up.
    pub fn from_list(list: &ResourceList) -> Request {
        let mut request = Request::default();
        for (name, quantity) in list {
            if *name == ResourceName::CPU {
                request.milli_cpu = quantity.milli_value();
            } else if *name == ResourceName::MEMORY {
                request.memory = quantity.value();
            } else if *name == ResourceName::EPHEMERAL_STORAGE {
                request.ephemeral_storage = quantity.value();
            } else if is_scalar_resource_name(name) {
                request.scalars.insert(name.clone(), quantity.value());
            }
        }
        request
    }

    /// The amount of that resource, zero where none is stated.
    pub fn get(&self, name: &ResourceName) -> i64 {
        if *name == ResourceName::CPU {
            self.milli_cpu
        } else if *name == ResourceName::MEMORY {
            self.memory
        } else if *name == ResourceName::EPHEMERAL_STORAGE {
            self.ephemeral_storage
        } else {
            self.scalars.get(name).copied().unwrap_or(0)
        }
    }

    /// Whether the test holds for any of the resources of which there is any.
    pub fn any(&self, test: impl Fn(&ResourceName, i64) -> bool) -> bool {
        let plain = [
            (ResourceName::CPU, self.milli_cpu),
            (ResourceName::MEMORY, self.memory),
            (ResourceName::EPHEMERAL_STORAGE, self.ephemeral_storage),
        ];
        let holds = |name: &ResourceName, amount: i64| amount != 0 && test(name, amount);
        plain.iter().any(|(name, amount)| holds(name, *amount))
            || self
                .scalars
                .iter()
                .any(|(name, amount)| holds(name, *amount))
    }

    /// Adds another request.
    pub fn add(&mut self, other: &Request) {
        self.combine(other, i64::wrapping_add);
    }

    /// Takes another request away.
    pub fn sub(&mut self, other: &Request) {
        self.combine(other, i64::wrapping_sub);
    }

    fn combine(&mut self, other: &Request, with: fn(i64, i64) -> i64) {
        self.milli_cpu = with(self.milli_cpu, other.milli_cpu);
        self.memory = with(self.memory, other.memory);
        self.ephemeral_storage = with(self.ephemeral_storage, other.ephemeral_storage);
        for (name, amount) in &other.scalars {
            match self.scalars.get_mut(name) {
                Some(sum) => *sum = with(*sum, *amount),
                None => {
                    self.scalars.insert(name.clone(), with(0, *amount));
                }
            }
        }
    }
}

/// The same pod's request by the three rules that upstream has for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRequests {
    /// For the fit of a pod that looks for a node: the spec alone.
    pub incoming: Request,
    /// For the sums of its node, and for balance: a resize in flight counts with the larger values.
    pub on_node: Request,
    /// Cpu of `on_node`, with 100m for each container that is silent about it.
    pub non_zero_milli_cpu: i64,
    /// Memory of `on_node`, with 200Mi for each container that is silent about it.
    pub non_zero_memory: i64,
    /// For the score of the fit: containers and overhead only, with the same assumptions for
    /// silent containers. Pod-level values do not count: upstream's scorer is built without them.
    pub scoring: Request,
}

impl PodRequests {
    /// Computes all of them. Matches v1.36 component-helpers/resource/helpers.go,
    /// pkg/scheduler/framework/types.go and plugins/noderesources.
    pub(super) fn new(
        view: &PodView,
        status: Option<&PodStatus>,
        problems: &mut Vec<Problem>,
    ) -> PodRequests {
        let scope = ResizeScope::ContainersAndPod;
        let resized = view.with_status_resources(status, scope, problems);
        let on_node = resized.requests(Overhead::Included);
        let assumed =
            |name: &ResourceName| !resized.has_pod_level_requests() || !on_node.contains(name);
        let (cpu, memory) = (ResourceName::CPU, ResourceName::MEMORY);
        let non_zero = with_assumptions(&resized, assumed(&cpu), assumed(&memory));
        let non_zero = non_zero.requests(Overhead::Included);

        let mut containers_only = with_assumptions(view, true, true);
        containers_only.resources = None;
        PodRequests {
            incoming: Request::from_list(&view.requests(Overhead::Included)),
            on_node: Request::from_list(&on_node),
            non_zero_milli_cpu: non_zero.get_or_zero(&cpu).milli_value(),
            non_zero_memory: non_zero.get_or_zero(&memory).value(),
            scoring: Request::from_list(&containers_only.requests(Overhead::Included)),
        }
    }
}

/// The pod with requests assumed for containers that state none.
fn with_assumptions(view: &PodView, cpu: bool, memory: bool) -> PodView {
    let mut view = view.clone();
    let containers = view.init_containers.iter_mut().chain(&mut view.containers);
    for container in containers {
        let requests = &mut container.resources.requests;
        if cpu && !requests.contains(&ResourceName::CPU) {
            let assumed = Quantity::from_milli(DEFAULT_MILLI_CPU, Format::DecimalSi);
            requests.insert(ResourceName::CPU, assumed);
        }
        if memory && !requests.contains(&ResourceName::MEMORY) {
            let assumed = Quantity::new(DEFAULT_MEMORY, Format::DecimalSi);
            requests.insert(ResourceName::MEMORY, assumed);
        }
    }
    view
}

/// Whether the scheduler counts the resource beside cpu, memory and ephemeral storage.
///
/// Matches v1.36 pkg/scheduler/util/utils.go.
pub fn is_scalar_resource_name(name: &ResourceName) -> bool {
    is_extended(name)
        || name.huge_page_size().is_some()
        || name.as_str().contains("kubernetes.io/")
        || name.as_str().starts_with("attachable-volumes-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn requests(pod: Value) -> PodRequests {
        let pod: k8s_openapi::api::core::v1::Pod = serde_json::from_value(pod).unwrap();
        let view = PodView::from_api(&pod).unwrap();
        let mut problems = Vec::new();
        let requests = PodRequests::new(&view, pod.status.as_ref(), &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        requests
    }

    #[test]
    fn containers_without_requests_count_with_defaults_and_explicit_zeros_stay() {
        let requests = requests(json!({"spec": {"containers": [
            {"name": "a"}, {"name": "b", "resources": {"requests": {"cpu": "0", "memory": "1Mi"}}},
        ]}}));
        assert_eq!(requests.incoming.milli_cpu, 0);
        assert_eq!(requests.non_zero_milli_cpu, 100);
        assert_eq!(requests.non_zero_memory, (200 << 20) + (1 << 20));
        assert_eq!(requests.scoring.milli_cpu, 100);
    }

    #[test]
    fn the_fit_score_does_not_see_pod_level_values() {
        let requests = requests(json!({"spec": {
            "resources": {"requests": {"cpu": "2"}},
            "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}],
        }}));
        assert_eq!(requests.incoming.milli_cpu, 2000);
        assert_eq!(requests.non_zero_milli_cpu, 2000);
        assert_eq!(requests.non_zero_memory, 200 << 20);
        assert_eq!(requests.scoring.milli_cpu, 1000);
    }

    #[test]
    fn a_resize_in_flight_counts_with_the_larger_value_unless_it_is_infeasible() {
        let pod = |reason: &str| {
            json!({
                "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "3"}}}]},
                "status": {
                    "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
                    "containerStatuses": [{
                        "name": "a", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                        "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "2"},
                    }],
                },
            })
        };
        assert_eq!(requests(pod("Deferred")).on_node.milli_cpu, 3000);
        assert_eq!(requests(pod("Infeasible")).on_node.milli_cpu, 2000);
        assert_eq!(requests(pod("Infeasible")).incoming.milli_cpu, 3000);
    }

    #[test]
    fn plain_names_that_the_scheduler_does_not_know_are_dropped() {
        for (name, is_scalar) in [
            ("example.com/gpu", true),
            ("hugepages-2Mi", true),
            ("attachable-volumes-x", true),
            ("kubernetes.io/thing", true),
            ("storage", false),
            ("requests.example.com/gpu", false),
        ] {
            assert_eq!(is_scalar_resource_name(&name.into()), is_scalar, "{name}");
        }
    }
}
