//! Whether a pod fits into the quotas of its namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::object::resource_quota::QuotaView;
use crate::quantity::Quantity;
use crate::resources::{ResourceList, ResourceName};

use super::charge::{PodCharge, compute_usage};
use super::scope::is_charged_to_pods;

/// What each container must state when a quota limits it. Upstream calls this list a mistake and
/// does not extend it.
const REQUIRED_RESOURCES: [&str; 6] = [
    "cpu",
    "limits.cpu",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.memory",
];

/// Why a pod does not fit. Displays with upstream's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Containers do not state what a quota limits.
    MustSpecify {
        /// The quota.
        quota: String,
        /// The containers by resource.
        missing: BTreeMap<ResourceName, BTreeSet<String>>,
    },
    /// The use of a quota is not known yet.
    StatusUnknown {
        /// The quota.
        quota: String,
        /// The resources it limits for pods.
        resources: Vec<ResourceName>,
    },
    /// The pod uses less than nothing.
    NegativeUsage(Vec<ResourceName>),
    /// The pod does not fit into what is left.
    Exceeded {
        /// The quota.
        quota: String,
        /// The usage that the pod would add, of resources that do not fit.
        requested: ResourceList,
        /// The usage so far.
        used: ResourceList,
        /// The limit.
        hard: ResourceList,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::MustSpecify { quota, missing } => {
                let lines: Vec<String> = missing
                    .iter()
                    .map(|(resource, containers)| {
                        let containers: Vec<&str> = containers.iter().map(String::as_str).collect();
                        format!("{resource} for: {}", containers.join(","))
                    })
                    .collect();
                write!(
                    f,
                    "failed quota: {quota}: must specify {}",
                    lines.join("; ")
                )
            }
            Refusal::StatusUnknown { quota, resources } => write!(
                f,
                "status unknown for quota: {quota}, resources: {}",
                joined(resources)
            ),
            Refusal::NegativeUsage(resources) => write!(
                f,
                "quota usage is negative for resource(s): {}",
                joined(resources)
            ),
            Refusal::Exceeded {
                quota,
                requested,
                used,
                hard,
            } => write!(
                f,
                "exceeded quota: {quota}, requested: {}, used: {}, limited: {}",
                amounts(requested),
                amounts(used),
                amounts(hard)
            ),
        }
    }
}

/// The usage of each quota with the pod, in the order given; or why it is refused.
///
/// `before` is the pod that is replaced, when an existing one is resized; quotas that counted it
/// are then charged only what is added.
pub fn admit(
    pod: &PodCharge,
    before: Option<&PodCharge>,
    quotas: &[QuotaView],
) -> Result<Vec<ResourceList>, Refusal> {
    let counting = |quota: &&QuotaView| pod.is_counted_by(quota);
    for quota in quotas.iter().filter(counting) {
        check_stated(pod, quota)?;
        check_known(quota)?;
    }
    let is_negative = |(_, quantity): &(&ResourceName, &Quantity)| quantity.signum() < 0;
    let negative = pod.usage.iter().filter(is_negative);
    let negative: Vec<ResourceName> = negative.map(|(name, _)| name.clone()).collect();
    if !negative.is_empty() {
        return Err(Refusal::NegativeUsage(negative));
    }
    let charged = quotas.iter().map(|quota| {
        if !pod.is_counted_by(quota) {
            return Ok(quota.used.clone());
        }
        let before = before.filter(|before| before.is_counted_by(quota));
        charge(quota, &added_usage(pod, before))
    });
    charged.collect()
}

/// The use that the pod adds; nothing is given back where it shrinks.
fn added_usage(pod: &PodCharge, before: Option<&PodCharge>) -> ResourceList {
    let added = pod.usage.iter().map(|(name, quantity)| {
        let mut added = quantity.clone();
        if let Some(before) = before.and_then(|before| before.usage.get(name)) {
            added.sub(before);
        }
        (name.clone(), added)
    });
    added.filter(|(_, added)| added.signum() > 0).collect()
}

pub(super) fn charge(quota: &QuotaView, added: &ResourceList) -> Result<ResourceList, Refusal> {
    let requested = added.filtered(|name| quota.hard.contains(name));
    let mut used = quota.used.clone();
    used.add(&requested);
    let is_exceeded = |name: &ResourceName| {
        requested.contains(name) && used.get_or_zero(name) > quota.hard.get_or_zero(name)
    };
    if quota.hard.names().any(is_exceeded) {
        return Err(Refusal::Exceeded {
            quota: quota.name.clone(),
            requested: requested.filtered(is_exceeded),
            used: quota.used.filtered(is_exceeded),
            hard: quota.hard.filtered(is_exceeded),
        });
    }
    Ok(used)
}

/// A pod with resources of its own need not state them for each container.
fn check_stated(pod: &PodCharge, quota: &QuotaView) -> Result<(), Refusal> {
    if pod.pod.has_pod_level_resources() {
        return Ok(());
    }
    let mut missing: BTreeMap<ResourceName, BTreeSet<String>> = BTreeMap::new();
    let must_be_stated = |name: &&ResourceName| REQUIRED_RESOURCES.contains(&name.as_str());
    for container in pod.pod.all_containers() {
        let resources = &container.resources;
        let stated = compute_usage(&resources.requests, &resources.limits);
        for name in quota.hard.names().filter(must_be_stated) {
            if !stated.contains(name) {
                let containers = missing.entry(name.clone()).or_default();
                containers.insert(container.name.clone());
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let quota = quota.name.clone();
    Err(Refusal::MustSpecify { quota, missing })
}

fn check_known(quota: &QuotaView) -> Result<(), Refusal> {
    let of_pods = quota.hard.names().filter(|name| is_charged_to_pods(name));
    let resources: Vec<ResourceName> = of_pods.cloned().collect();
    if resources.iter().all(|name| quota.used.contains(name)) {
        return Ok(());
    }
    let quota = quota.name.clone();
    Err(Refusal::StatusUnknown { quota, resources })
}

fn joined(names: &[ResourceName]) -> String {
    let names: Vec<&str> = names.iter().map(ResourceName::as_str).collect();
    names.join(",")
}

fn amounts(list: &ResourceList) -> String {
    let amounts = list
        .iter()
        .map(|(name, quantity)| format!("{name}={quantity}"));
    amounts.collect::<Vec<_>>().join(",")
}
