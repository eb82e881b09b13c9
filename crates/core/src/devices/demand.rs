//! The device requests of a pod.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod};

use crate::object::identity::PodUid;
use crate::object::resource_rules::is_extended;
use crate::quantity::Quantity;
use crate::resources::ResourceName;

/// The extended resources that a pod requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodDemand {
    /// The pod.
    pub pod: PodUid,
    /// All its containers, init containers first.
    pub containers: Vec<ContainerDemand>,
}

/// The extended resources that a container requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerDemand {
    /// The name of the container.
    pub name: String,
    /// When it runs.
    pub kind: ContainerKind,
    /// How many of each. Extended resources are not overcommitted: requests equal limits.
    pub limits: BTreeMap<ResourceName, usize>,
}

/// When a container runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerKind {
    /// Before the containers after it.
    Init,
    /// From its place among the init containers on.
    Sidecar,
    /// When all init containers are done.
    App,
}

impl PodDemand {
    /// The requests of an API object.
    pub fn from_api(pod: &Pod) -> PodDemand {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let spec = pod.spec.as_ref();
        let init = spec.and_then(|spec| spec.init_containers.as_ref());
        let init = init.into_iter().flatten().map(|container| {
            let kind = match container.restart_policy.as_deref() {
                Some("Always") => ContainerKind::Sidecar,
                _ => ContainerKind::Init,
            };
            demand(container, kind)
        });
        let app = spec.into_iter().flat_map(|spec| &spec.containers);
        let app = app.map(|container| demand(container, ContainerKind::App));
        PodDemand {
            pod: PodUid::from(uid),
            containers: init.chain(app).collect(),
        }
    }

    /// Whether it requests nothing.
    pub fn is_empty(&self) -> bool {
        self.containers
            .iter()
            .all(|container| container.limits.is_empty())
    }
}

fn demand(container: &Container, kind: ContainerKind) -> ContainerDemand {
    let limits = container
        .resources
        .as_ref()
        .and_then(|resources| resources.limits.as_ref());
    let limits = limits.into_iter().flatten().filter_map(|(name, quantity)| {
        let name = ResourceName::from(name.as_str());
        let wanted = quantity.0.parse::<Quantity>().ok()?.value();
        let wanted = usize::try_from(wanted).ok()?;
        (wanted > 0 && is_extended(&name)).then_some((name, wanted))
    });
    ContainerDemand {
        name: container.name.clone(),
        kind,
        limits: limits.collect(),
    }
}
