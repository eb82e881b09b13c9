//! Which device goes to which container.

use std::collections::{BTreeMap, BTreeSet};

use super::Devices;
use super::allocation::{Allocation, ContainerSettings};
use super::demand::{ContainerDemand, ContainerKind, PodDemand};
use crate::problem::quoted;
use crate::resources::ResourceName;

/// A container's demand for one resource.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The pod.
    pub pod: &'a PodDemand,
    /// The container.
    pub container: &'a ContainerDemand,
    /// The resource.
    pub resource: &'a ResourceName,
    /// How many.
    pub count: usize,
}

/// The devices that a container can have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// Devices of the pod's earlier init containers, which come first.
    pub reused: BTreeSet<String>,
    /// Free devices, of which some are needed besides; empty if none are.
    pub available: BTreeSet<String>,
    /// How many the container needs in all.
    pub count: usize,
}

/// Why a container gets no devices; in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocationError {
    /// It had another number of them before.
    #[error(
        "pod {} container {} changed request for resource {} from {before} to {after}",
        quoted(.pod), quoted(.container), quoted(.resource.as_str())
    )]
    Changed {
        /// The uid of the pod.
        pod: String,
        /// The container.
        container: String,
        /// The resource.
        resource: ResourceName,
        /// How many it has.
        before: usize,
        /// How many it requests.
        after: usize,
    },
    /// The resource has no plugin.
    #[error("cannot allocate unregistered device {0}")]
    Unregistered(ResourceName),
    /// All its devices are unhealthy.
    #[error("no healthy devices present; cannot allocate unhealthy devices {0}")]
    NoHealthyDevices(ResourceName),
    /// Devices that the container has are unhealthy.
    #[error(
        "previously allocated devices are no longer healthy; cannot allocate unhealthy devices {0}"
    )]
    Unhealthy(ResourceName),
    /// Too few are free.
    #[error(
        "requested number of devices unavailable for {resource}. Requested: {requested}, Available: {available}"
    )]
    Unavailable {
        /// The resource.
        resource: ResourceName,
        /// How many more are needed.
        requested: usize,
        /// How many are free.
        available: usize,
    },
}

impl Candidates {
    /// The devices for the container: reused ones, then those the plugin prefers, then the first of
    /// the others.
    pub fn choose(&self, preferred: &[String]) -> BTreeSet<String> {
        let preferred = preferred.iter().filter(|id| self.available.contains(*id));
        let in_order = self.reused.iter().chain(preferred).chain(&self.available);
        let mut chosen = BTreeSet::new();
        for id in in_order {
            if chosen.len() == self.count {
                break;
            }
            chosen.insert(id.clone());
        }
        chosen
    }
}

impl Devices {
    /// The demands of a container for resources of plugins.
    pub fn requests<'a>(
        &self,
        pod: &'a PodDemand,
        container: &'a ContainerDemand,
    ) -> Vec<Request<'a>> {
        let limits = container.limits.iter();
        let managed = limits.filter(|(resource, _)| self.is_managed(resource));
        let requests = managed.map(|(resource, count)| Request {
            pod,
            container,
            resource,
            count: *count,
        });
        requests.collect()
    }

    /// The devices of the resource that the container has, if it was given any.
    pub fn allocated(&self, request: Request<'_>) -> Option<&Allocation> {
        let (pod, container) = (&request.pod.pod, &request.container.name);
        self.allocations.get(pod, container, request.resource)
    }

    /// The devices that the container can have; `None` if it has them already.
    pub fn candidates(&self, request: Request<'_>) -> Result<Option<Candidates>, AllocationError> {
        let (resource, count) = (request.resource, request.count);
        let allocated = self.allocated(request);
        let before = allocated.map_or(count, |allocation| allocation.devices.len());
        if before != count {
            return Err(AllocationError::Changed {
                pod: request.pod.pod.to_string(),
                container: request.container.name.clone(),
                resource: resource.clone(),
                before,
                after: count,
            });
        }
        let Some(plugin) = self.plugins.get(resource) else {
            return Err(AllocationError::Unregistered(resource.clone()));
        };
        let healthy: BTreeSet<&str> = plugin.healthy().map(|device| device.id.as_str()).collect();
        if healthy.is_empty() {
            return Err(AllocationError::NoHealthyDevices(resource.clone()));
        }
        if let Some(allocation) = allocated {
            let mut own = allocation.devices.keys();
            return match own.all(|id| healthy.contains(id.as_str())) {
                true => Ok(None),
                false => Err(AllocationError::Unhealthy(resource.clone())),
            };
        }
        let mut reused = self.reusable(request);
        while reused.len() > count {
            reused.pop_last();
        }
        let requested = count - reused.len();
        if requested == 0 {
            let available = BTreeSet::new();
            return Ok(Some(Candidates {
                reused,
                available,
                count,
            }));
        }
        let in_use = self.allocations.in_use(resource);
        let available: BTreeSet<String> = healthy
            .difference(&in_use)
            .map(|id| (*id).to_owned())
            .collect();
        if available.len() < requested {
            return Err(AllocationError::Unavailable {
                resource: resource.clone(),
                requested,
                available: available.len(),
            });
        }
        Ok(Some(Candidates {
            reused,
            available,
            count,
        }))
    }

    /// The devices of init containers that are done when the container starts, and that no other
    /// container uses again.
    fn reusable(&self, request: Request<'_>) -> BTreeSet<String> {
        let mut reusable = BTreeSet::new();
        for other in &request.pod.containers {
            if other.name == request.container.name {
                // Init containers after this one have nothing yet, or have it from this one.
                match request.container.kind {
                    ContainerKind::App => continue,
                    ContainerKind::Init | ContainerKind::Sidecar => break,
                }
            }
            let devices = self
                .allocations
                .get(&request.pod.pod, &other.name, request.resource);
            let devices = devices
                .into_iter()
                .flat_map(|allocation| allocation.devices.keys());
            for id in devices {
                match other.kind {
                    ContainerKind::Init => reusable.insert(id.clone()),
                    ContainerKind::Sidecar | ContainerKind::App => reusable.remove(id),
                };
            }
        }
        reusable
    }

    /// Whether all containers of a pod that comes to the node can have their devices. What the pod
    /// has already is not looked at: it was given by an earlier agent, whose plugins may not be back.
    ///
    /// The answer is how much of each resource has to be taken for allocatable at least, so that pods
    /// with devices keep them while no plugin offers any.
    pub fn admit(&self, pod: &PodDemand) -> Result<BTreeMap<ResourceName, i64>, AllocationError> {
        let is_managed = |container: &ContainerDemand| !self.requests(pod, container).is_empty();
        if !pod.containers.iter().any(is_managed) {
            return Ok(BTreeMap::new());
        }
        let mut imagined = self.clone();
        for container in &pod.containers {
            for request in self.requests(pod, container) {
                if imagined.allocated(request).is_some() {
                    continue;
                }
                if let Some(candidates) = imagined.candidates(request)? {
                    let chosen = candidates.choose(&[]).into_iter();
                    imagined.allocate(Allocation {
                        devices: chosen.map(|id| (id, Vec::new())).collect(),
                        ..request.allocation()
                    });
                }
            }
        }
        Ok(imagined.allocations.counts())
    }
}

impl Request<'_> {
    /// An allocation without devices.
    pub fn allocation(&self) -> Allocation {
        Allocation {
            pod: self.pod.pod.clone(),
            container: self.container.name.clone(),
            resource: self.resource.clone(),
            devices: BTreeMap::new(),
            settings: ContainerSettings::default(),
        }
    }
}
