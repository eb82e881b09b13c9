//! A pod while admission changes it.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};

use crate::object::pod::{ContainerView, PodView, Requirements};
use crate::object::render_resource_list;
use crate::problem::Problem;
use crate::resources::ResourceList;

/// The parts of a pod that admission changes, parsed once.
///
/// Rules work on this and not on the API object, because quantities keep their format while they
/// are parsed, and some rules look at it.
#[derive(Clone, Debug, Default)]
pub struct PodDraft {
    /// The parsed pod.
    pub pod: PodView,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

impl PodDraft {
    /// Parses a pod; all its malformed quantities are reported.
    pub fn from_api(pod: &Pod) -> Result<PodDraft, Vec<Problem>> {
        Ok(PodDraft {
            pod: PodView::from_api(pod)?,
            annotations: pod.metadata.annotations.clone().unwrap_or_default(),
        })
    }

    /// Writes resources and annotations into the API object that the draft was made from.
    pub fn write_to(&self, pod: &mut Pod) {
        if !self.annotations.is_empty() {
            pod.metadata.annotations = Some(self.annotations.clone());
        }
        let Some(spec) = &mut pod.spec else { return };
        write_containers(&self.pod.containers, &mut spec.containers);
        if let Some(init_containers) = &mut spec.init_containers {
            write_containers(&self.pod.init_containers, init_containers);
        }
        if let Some(resources) = &self.pod.resources {
            write_requirements(resources, &mut spec.resources);
        }
        spec.overhead = render_resource_list(&self.pod.overhead);
    }

    /// All containers with their places: regular ones first, then init containers, which is the
    /// order of upstream's defaulting and limits.
    pub(crate) fn containers_mut(&mut self) -> impl Iterator<Item = (Place, &mut ContainerView)> {
        let regular = self.pod.containers.iter_mut().map(|c| (false, c));
        let init = self.pod.init_containers.iter_mut().map(|c| (true, c));
        regular.chain(init).map(|(is_init, container)| {
            let name = container.name.clone();
            (Place { name, is_init }, container)
        })
    }

    /// What the pod becomes when it is written as JSON and read again, as each webhook does.
    ///
    /// Binary formats whose number has no binary spelling come back decimal: `1.1Gi` is no whole
    /// number of bytes and returns as `1181116006400m`.
    pub(crate) fn reread(&mut self) {
        let lists = self.pod.containers.iter_mut();
        let lists = lists.chain(&mut self.pod.init_containers);
        for requirements in lists
            .map(|container| &mut container.resources)
            .chain(&mut self.pod.resources)
        {
            reread_list(&mut requirements.requests);
            reread_list(&mut requirements.limits);
        }
    }
}

/// Which container of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// Whether it is among the init containers, sidecars included.
    pub is_init: bool,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_init {
            "init container"
        } else {
            "container"
        };
        write!(f, "{kind} {}", self.name)
    }
}

/// Which of the two lists of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// What the scheduler sets aside.
    Request,
    /// What the kernel enforces.
    Limit,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Part::Request => "request",
            Part::Limit => "limit",
        })
    }
}

fn write_containers(views: &[ContainerView], containers: &mut [Container]) {
    for (view, container) in views.iter().zip(containers) {
        if !view.resources.is_empty() || container.resources.is_some() {
            write_requirements(&view.resources, &mut container.resources);
        }
    }
}

fn write_requirements(view: &Requirements, api: &mut Option<ResourceRequirements>) {
    let api = api.get_or_insert_default();
    api.requests = render_resource_list(&view.requests);
    api.limits = render_resource_list(&view.limits);
}

fn reread_list(list: &mut ResourceList) {
    let reread = std::mem::take(list).into_iter().map(|(name, quantity)| {
        let again = quantity.to_string().parse();
        (name, again.unwrap_or(quantity))
    });
    *list = reread.collect();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn untouched_draft_writes_back_the_pod() {
        let mut pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p"},
            "spec": {
                "containers": [
                    {"name": "a", "resources": {"limits": {"cpu": "1"}, "claims": [{"name": "x"}]}},
                    {"name": "b"},
                ],
                "initContainers": [{"name": "i", "resources": {"requests": {"memory": "1Gi"}}}],
                "resources": {},
            },
        }))
        .unwrap();
        let before = pod.clone();
        PodDraft::from_api(&pod).unwrap().write_to(&mut pod);
        assert_eq!(pod, before);
    }

    #[test]
    fn format_without_spelling_is_lost_through_json() {
        let pod: Pod = serde_json::from_value(json!({"spec": {"containers": [
            {"name": "a", "resources": {"limits": {"memory": "1.1Gi"}}},
        ]}}))
        .unwrap();
        let mut draft = PodDraft::from_api(&pod).unwrap();
        draft.reread();
        let memory = crate::resources::ResourceName::MEMORY;
        let limit = draft.pod.containers[0].resources.limits.get(&memory);
        assert_eq!(
            limit.map(crate::quantity::Quantity::format),
            Some(crate::quantity::Format::DecimalSi)
        );
    }
}
