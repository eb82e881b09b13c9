//! Resources of a pod that is being resized in place.
//!
//! Between the wish in the spec and the deed on the node, the larger of the two counts. Matches
//! v1.36 component-helpers/resource/helpers.go with `UseStatusResources`.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use crate::object::parse_resource_list;
use crate::problem::Problem;
use crate::resources::ResourceList;

use super::view::{ContainerKind, PodView, Requirements};

impl PodView {
    /// The pod with the requests and limits that are in force, as its status reports them.
    ///
    /// A resize that the node called infeasible is not waited for: then only the status counts.
    /// Init containers that run to their end cannot be resized.
    pub fn with_status_resources(&self, pod: &Pod) -> Result<PodView, Vec<Problem>> {
        let mut view = self.clone();
        let Some(status) = &pod.status else {
            return Ok(view);
        };
        let mut problems = Vec::new();
        let pending = status.conditions.iter().flatten();
        let is_infeasible = pending
            .into_iter()
            .find(|condition| condition.type_ == "PodResizePending")
            .is_some_and(|condition| condition.reason.as_deref() == Some("Infeasible"));
        let statuses = status.container_statuses.iter().flatten();
        let statuses = statuses.chain(status.init_container_statuses.iter().flatten());
        let statuses: Vec<&ContainerStatus> = statuses.collect();
        let containers = view.containers.iter_mut().chain(&mut view.init_containers);
        for container in containers.filter(|c| c.kind != ContainerKind::Init) {
            // Of two statuses with one name the later counts, as in upstream's map.
            let status = statuses
                .iter()
                .rfind(|status| status.name == container.name);
            if let Some(status) = status.filter(|status| status.resources.is_some()) {
                let spec = &mut container.resources;
                adopt_status(spec, status, is_infeasible, &mut problems);
            }
        }
        if problems.is_empty() {
            Ok(view)
        } else {
            Err(problems)
        }
    }
}

fn adopt_status(
    spec: &mut Requirements,
    status: &ContainerStatus,
    is_infeasible: bool,
    problems: &mut Vec<Problem>,
) {
    let path = format!("status.containerStatuses[{}]", status.name);
    let actual = status.resources.as_ref();
    let actual = Requirements::from_api(format_args!("{path}.resources"), actual, problems);
    let allocated = parse_resource_list(
        format_args!("{path}.allocatedResources"),
        status.allocated_resources.as_ref(),
        problems,
    );
    if is_infeasible {
        *spec = Requirements {
            requests: ResourceList::new(),
            limits: ResourceList::new(),
        };
    }
    spec.requests.raise_to(&actual.requests);
    spec.requests.raise_to(&allocated);
    spec.limits.raise_to(&actual.limits);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::pod::Overhead;
    use crate::resources::ResourceName;

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
        let view = view.with_status_resources(&pod).unwrap();
        let requests = view.requests(Overhead::Included);
        requests.get_or_zero(&ResourceName::CPU).to_string()
    }

    #[test]
    fn the_larger_of_wish_and_deed_counts_unless_the_wish_is_infeasible() {
        assert_eq!(cpu_request("Deferred"), "4");
        assert_eq!(cpu_request("Infeasible"), "2");
    }
}
