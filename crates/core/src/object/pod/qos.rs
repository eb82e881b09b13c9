//! Quality of service.

use std::fmt;

use crate::resources::{ResourceList, ResourceName};

use super::view::{PodView, Requirements};

/// The three classes, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QosClass {
    /// No cpu or memory stated at all.
    BestEffort,
    /// Anything between.
    Burstable,
    /// Cpu and memory limited everywhere, and requested in full.
    Guaranteed,
}

impl QosClass {
    /// The name in `status.qosClass`.
    pub fn as_str(self) -> &'static str {
        match self {
            QosClass::BestEffort => "BestEffort",
            QosClass::Burstable => "Burstable",
            QosClass::Guaranteed => "Guaranteed",
        }
    }

    /// The class of that name.
    pub fn from_name(name: &str) -> Option<QosClass> {
        let all = [
            QosClass::BestEffort,
            QosClass::Burstable,
            QosClass::Guaranteed,
        ];
        all.into_iter().find(|class| class.as_str() == name)
    }
}

impl fmt::Display for QosClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl PodView {
    /// The class in force: the stored one, else the computed one.
    pub fn qos_class(&self) -> QosClass {
        self.stored_qos_class
            .unwrap_or_else(|| self.compute_qos_class())
    }

    /// The class by the spec.
    ///
    /// Decided on sums over regular and init containers, zeros ignored. If the pod has a
    /// `resources` member, even an empty one, that alone counts and containers do not. Matches
    /// v1.36 pkg/apis/core/v1/helper/qos/qos.go.
    pub fn compute_qos_class(&self) -> QosClass {
        let mut requests = ResourceList::new();
        let mut limits = ResourceList::new();
        let mut is_limited_everywhere = true;
        if let Some(resources) = &self.resources {
            requests = positive_compute(&resources.requests);
            limits = positive_compute(&resources.limits);
            if !resources.limits.is_empty() && limits.len() < 2 {
                is_limited_everywhere = false;
            }
        } else {
            for container in self.all_containers() {
                let Requirements {
                    requests: own_requests,
                    limits: own_limits,
                } = &container.resources;
                let own_limits = positive_compute(own_limits);
                is_limited_everywhere &= own_limits.len() == 2;
                requests.add(&positive_compute(own_requests));
                limits.add(&own_limits);
            }
        }
        if requests.is_empty() && limits.is_empty() {
            QosClass::BestEffort
        } else if is_limited_everywhere && requests == limits {
            QosClass::Guaranteed
        } else {
            QosClass::Burstable
        }
    }
}

/// The cpu and memory entries above zero.
fn positive_compute(list: &ResourceList) -> ResourceList {
    [ResourceName::CPU, ResourceName::MEMORY]
        .into_iter()
        .filter_map(|name| {
            let quantity = list.get(&name)?;
            (quantity.signum() > 0).then(|| (name, quantity.clone()))
        })
        .collect()
}
