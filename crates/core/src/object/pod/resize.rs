//! Resources of a pod that is being resized in place.
//!
//! Between the desired resources in the spec and the actual ones on the node, the larger of the two
//! counts. Matches v1.36 component-helpers/resource/helpers.go with `UseStatusResources`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ContainerStatus, PodStatus, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;

use crate::object::parse_resource_list;
use crate::problem::Problem;
use crate::resources::ResourceName;

use super::view::{ContainerKind, PodView, Requirements};

/// Whose resizes count. Upstream's quota and scheduler differ in this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResizeScope {
    /// Those of containers; what the pod states for itself counts as stated.
    Containers,
    /// Those of the pod itself too.
    ContainersAndPod,
}

impl PodView {
    /// The pod with the requests and limits that are in force, as its status reports them.
    ///
    /// A resize that the node called infeasible is not waited for: then only the status counts.
    /// Init containers that run to their end cannot be resized.
    pub fn with_status_resources(
        &self,
        status: Option<&PodStatus>,
        scope: ResizeScope,
        problems: &mut Vec<Problem>,
    ) -> PodView {
        let mut view = self.clone();
        let Some(status) = status else {
            return view;
        };
        let is_infeasible = is_resize_infeasible(status);
        let containers = view.containers.iter_mut().chain(&mut view.init_containers);
        for container in containers.filter(|c| c.kind != ContainerKind::Init) {
            // Of two statuses with one name the later counts, as in upstream's map.
            let found = statuses(status).filter(|(_, own)| own.name == container.name);
            if let Some((path, own)) = found.last()
                && let Some(actual) = &own.resources
            {
                let allocated = own.allocated_resources.as_ref();
                let actual_or_allocated = read_actual(&path, actual, allocated, problems);
                container.resources =
                    in_force(&container.resources, actual_or_allocated, is_infeasible);
            }
        }
        if scope == ResizeScope::ContainersAndPod
            && let Some(stated) = &mut view.resources
            && let Some(actual) = &status.resources
        {
            let allocated = status.allocated_resources.as_ref();
            let actual_or_allocated = read_actual("status", actual, allocated, problems);
            let effective = in_force(stated, actual_or_allocated, is_infeasible);
            // Only what the pod states for itself is replaced.
            let names: Vec<ResourceName> = stated.requests.names().cloned().collect();
            for name in names {
                let quantity = effective.requests.get_or_zero(&name);
                stated.requests.insert(name, quantity);
            }
            let names: Vec<ResourceName> = stated.limits.names().cloned().collect();
            for name in names {
                let quantity = effective.limits.get_or_zero(&name);
                stated.limits.insert(name, quantity);
            }
        }
        view
    }
}

/// Container statuses with the path at which they stand.
fn statuses(status: &PodStatus) -> impl Iterator<Item = (String, &ContainerStatus)> {
    let app = status.container_statuses.iter().flatten().enumerate();
    let init = status.init_container_statuses.iter().flatten().enumerate();
    app.map(|(index, own)| (format!("status.containerStatuses[{index}]"), own))
        .chain(init.map(|(index, own)| (format!("status.initContainerStatuses[{index}]"), own)))
}

fn is_resize_infeasible(status: &PodStatus) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    let pending = conditions.find(|condition| condition.type_ == "PodResizePending");
    pending.is_some_and(|condition| condition.reason.as_deref() == Some("Infeasible"))
}

/// Actual and allocated resources, the larger of the two.
fn read_actual(
    path: &str,
    actual: &ResourceRequirements,
    allocated: Option<&BTreeMap<String, ApiQuantity>>,
    problems: &mut Vec<Problem>,
) -> Requirements {
    let mut actual_or_allocated =
        Requirements::from_api(format_args!("{path}.resources"), Some(actual), problems);
    let path = format_args!("{path}.allocatedResources");
    actual_or_allocated
        .requests
        .raise_to(&parse_resource_list(path, allocated, problems));
    actual_or_allocated
}

fn in_force(
    desired: &Requirements,
    actual_or_allocated: Requirements,
    is_infeasible: bool,
) -> Requirements {
    if is_infeasible {
        return actual_or_allocated;
    }
    let mut larger = desired.clone();
    larger.requests.raise_to(&actual_or_allocated.requests);
    larger.limits.raise_to(&actual_or_allocated.limits);
    larger
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::pod::Overhead;
    use crate::resources::ResourceName;
    use k8s_openapi::api::core::v1::Pod;

    fn cpu_request(reason: &str) -> String {
        let pod: Pod = serde_json::from_value(json!({
            "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "4"}}}]},
            "status": {
                "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
                "containerStatuses": [{
                    "name": "a", "ready": true, "restartCount": 0, "image": "", "imageID": "",
                    "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "2"},
                }],
            },
        }))
        .unwrap();
        let view = PodView::from_api(&pod).unwrap();
        let mut problems = Vec::new();
        let (status, scope) = (pod.status.as_ref(), ResizeScope::Containers);
        let view = view.with_status_resources(status, scope, &mut problems);
        assert_eq!(problems, []);
        let requests = view.requests(Overhead::Included);
        requests.get_or_zero(&ResourceName::CPU).to_string()
    }

    #[test]
    fn larger_of_desired_and_actual_counts_unless_infeasible() {
        assert_eq!(cpu_request("Deferred"), "4");
        assert_eq!(cpu_request("Infeasible"), "2");
    }
}
