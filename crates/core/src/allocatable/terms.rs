//! The answer, with every term that went into it.

use std::collections::BTreeMap;

use crate::problem::quoted;
use crate::quantity::Quantity;
use crate::resources::{ResourceList, ResourceName};

/// The terms of a node's allocatable, resource by resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocatable {
    /// The terms by resource name.
    pub terms: BTreeMap<ResourceName, Terms>,
}

/// The terms of one resource. `None` where a list does not have the resource at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The machine's own resources; not for pods and devices.
    pub machine: Option<Quantity>,
    /// node.status.capacity; not for process ids.
    pub capacity: Option<Quantity>,
    /// Kept for the node agent and the runtime.
    pub kube_reserved: Quantity,
    /// Kept for the rest of the system.
    pub system_reserved: Quantity,
    /// Kept free by hard eviction.
    pub hard_eviction: Quantity,
    /// Taken from memory by huge pages of all sizes.
    pub huge_pages: Quantity,
    /// node.status.allocatable.
    pub allocatable: Option<Quantity>,
    /// The machine minus both reservations.
    pub absolute: Option<Quantity>,
    /// The limits of the `kubepods` cgroup: `absolute` where it is enforced, else `machine`.
    pub cgroup_limit: Option<Quantity>,
}

impl Terms {
    /// kube + system + hard eviction.
    pub fn reservation(&self) -> Quantity {
        let mut sum = Quantity::ZERO;
        sum.add(&self.system_reserved);
        sum.add(&self.kube_reserved);
        sum.add(&self.hard_eviction);
        sum
    }
}

/// A resource of which more is kept than there is. Upstream refuses to start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Resource {} has a reservation of {reservation} but capacity of {capacity}. Expected capacity >= reservation.",
    quoted(.resource.as_str())
)]
pub struct OverReserved {
    /// Which.
    pub resource: ResourceName,
    /// How much is kept.
    pub reservation: Quantity,
    /// How much there is.
    pub capacity: Quantity,
}

impl Allocatable {
    /// node.status.capacity.
    pub fn capacity(&self) -> ResourceList {
        self.list(|_, terms| terms.capacity.clone())
    }

    /// node.status.allocatable.
    pub fn allocatable(&self) -> ResourceList {
        self.list(|_, terms| terms.allocatable.clone())
    }

    /// The sum that is subtracted from the capacity, without zeros.
    pub fn reservation(&self) -> ResourceList {
        self.list(|name, terms| {
            let is_reported = terms.machine.is_some() && *name != ResourceName::PID;
            Some(terms.reservation()).filter(|sum| is_reported && !sum.is_zero())
        })
    }

    /// The machine minus both reservations, without process ids.
    pub fn absolute(&self) -> ResourceList {
        self.list(|name, terms| {
            let absolute = terms.absolute.clone();
            absolute.filter(|_| *name != ResourceName::PID)
        })
    }

    /// The limits of the `kubepods` cgroup.
    pub fn cgroup_limits(&self) -> ResourceList {
        self.list(|_, terms| terms.cgroup_limit.clone())
    }

    /// The resources of which more is kept than there is. Process ids are not checked, as
    /// upstream.
    pub fn over_reserved(&self) -> Vec<OverReserved> {
        let reservations = self.reservation();
        let over = |(name, reservation): (ResourceName, Quantity)| {
            let capacity = self.terms.get(&name)?.machine.clone()?;
            (capacity < reservation).then_some(OverReserved {
                resource: name,
                reservation,
                capacity,
            })
        };
        reservations.into_iter().filter_map(over).collect()
    }

    fn list(&self, pick: impl Fn(&ResourceName, &Terms) -> Option<Quantity>) -> ResourceList {
        self.terms
            .iter()
            .filter_map(|(name, terms)| Some((name.clone(), pick(name, terms)?)))
            .collect()
    }
}
