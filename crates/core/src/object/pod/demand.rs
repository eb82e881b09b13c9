//! Sums over the containers of a pod.
//!
//! Three rules exist upstream, and they differ:
//! - [`PodView::requests`] and [`PodView::limits`]: the scheduler's and the cgroups'.
//! - [`PodView::eviction_request`]: the eviction ranking's.
//!
//! Init containers run one after another before the rest, sidecars keep running, so that
//!   demand = max( sum(app) + sum(sidecars), max over i of (init_i + sidecars before i) )
//! per resource; pod-level values then replace it and the overhead is added.
//! Matches v1.36 component-helpers/resource/helpers.go.

use crate::quantity::{Format, Quantity};
use crate::resources::{ResourceList, ResourceName, Resources};

use super::view::{ContainerKind, ContainerView, PodView, Requirements};

/// Whether the runtime's own needs are part of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overhead {
    /// Added.
    Included,
    /// Left out.
    Excluded,
}

impl PodView {
    /// The requests that the scheduler reserves for the pod.
    pub fn requests(&self, overhead: Overhead) -> ResourceList {
        let mut sum = self.aggregate(|resources| &resources.requests);
        if let Some(pod_level) = &self.resources {
            replace_supported(&mut sum, &pod_level.requests);
        }
        if overhead == Overhead::Included {
            sum.add(&self.overhead);
        }
        sum
    }

    /// The limits that the kernel enforces on the pod. The overhead raises a limit that exists and
    /// is not zero.
    pub fn limits(&self, overhead: Overhead) -> ResourceList {
        let mut sum = self.aggregate(|resources| &resources.limits);
        if let Some(pod_level) = &self.resources {
            replace_supported(&mut sum, &pod_level.limits);
        }
        if overhead == Overhead::Included {
            for (name, quantity) in &self.overhead {
                if let Some(limit) = sum.get(name)
                    && !limit.is_zero()
                {
                    let mut raised = limit.clone();
                    raised.add(quantity);
                    sum.insert(name.clone(), raised);
                }
            }
        }
        sum
    }

    /// The scheduler's view of the pod, typed; counts the pod itself.
    pub fn demand(&self) -> Resources {
        let mut demand = Resources::from_list(&self.requests(Overhead::Included));
        demand.pods = crate::resources::Count(1);
        demand
    }

    /// The request as the eviction ranking sees it.
    ///
    /// Any pod-level resource hides all container requests, of every resource; the overhead
    /// counts only on top of a request. Matches v1.36 pkg/api/v1/resource/helpers.go.
    pub fn eviction_request(&self, name: &ResourceName) -> Quantity {
        let mut request = if self.has_pod_level_resources() {
            let pod_level = self.resources.as_ref();
            pod_level
                .and_then(|resources| resources.requests.get(name))
                .filter(|_| name.is_supported_at_pod_level())
                .cloned()
        } else {
            self.requests(Overhead::Excluded).get(name).cloned()
        }
        .unwrap_or_else(|| Quantity::new(0, usual_format(name)));
        if let Some(overhead) = self.overhead.get(name)
            && !request.is_zero()
        {
            request.add(overhead);
        }
        request
    }

    /// Whether the pod itself states any resource that pods may state.
    pub fn has_pod_level_resources(&self) -> bool {
        self.has_pod_level(|r| &r.requests) || self.has_pod_level(|r| &r.limits)
    }

    /// Whether the pod itself states a request.
    pub fn has_pod_level_requests(&self) -> bool {
        self.has_pod_level(|r| &r.requests)
    }

    /// Whether the pod itself states a limit.
    pub fn has_pod_level_limits(&self) -> bool {
        self.has_pod_level(|r| &r.limits)
    }

    fn has_pod_level(&self, part: fn(&Requirements) -> &ResourceList) -> bool {
        let list = self.resources.as_ref().map(part);
        list.is_some_and(|list| list.names().any(ResourceName::is_supported_at_pod_level))
    }

    /// The sum over containers alone, without pod-level values and overhead.
    pub fn aggregate(&self, part: fn(&Requirements) -> &ResourceList) -> ResourceList {
        let mut total = ResourceList::new();
        for container in &self.containers {
            total.add(part(&container.resources));
        }
        let mut sidecars = ResourceList::new();
        let mut peak = ResourceList::new();
        for container in &self.init_containers {
            let own = part(&container.resources);
            if container.kind == ContainerKind::Sidecar {
                total.add(own);
                sidecars.add(own);
                peak.raise_to(&sidecars);
            } else {
                let mut step = own.clone();
                step.add(&sidecars);
                peak.raise_to(&step);
            }
        }
        total.raise_to(&peak);
        total
    }

    /// The sidecars of the pod.
    pub fn sidecars(&self) -> impl Iterator<Item = &ContainerView> {
        let all = self.init_containers.iter();
        all.filter(|container| container.kind == ContainerKind::Sidecar)
    }
}

fn replace_supported(sum: &mut ResourceList, pod_level: &ResourceList) {
    for (name, quantity) in pod_level {
        if name.is_supported_at_pod_level() {
            sum.insert(name.clone(), quantity.clone());
        }
    }
}

fn usual_format(name: &ResourceName) -> Format {
    let is_bytes = [
        ResourceName::MEMORY,
        ResourceName::STORAGE,
        ResourceName::EPHEMERAL_STORAGE,
    ]
    .contains(name);
    if is_bytes {
        Format::BinarySi
    } else {
        Format::DecimalSi
    }
}
