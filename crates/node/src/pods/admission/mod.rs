//! Whether the node takes a pod.
//!
//! The scheduler has decided already, but its decision may be outdated, or a user may have bound
//! the pod by hand. A pod that is not taken has failed for good: nothing is tried again. Checks
//! come in upstream's order and the first that fails gives the reason. Matches v1.36
//! pkg/kubelet/lifecycle/predicate.go. Critical pods preempt others, see `preemption`.

mod confinement;
mod preemption;
mod sysctl;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use plimsoll_core::admission::node_admit::{self, PressureRule};
use plimsoll_core::devices::{Devices, PodDemand};
use plimsoll_core::object::node::{NodeCondition, NodeView};
use plimsoll_core::object::pod::PodView;
use plimsoll_core::object::resource_rules::is_extended;
use plimsoll_core::object::taint::{ComparisonOperators, TaintFilter, first_untolerated};
use plimsoll_core::problem::Problem;
use plimsoll_core::resources::ResourceName;
use plimsoll_core::scheduling::cluster::NodeState;
use plimsoll_core::scheduling::plugin::Rejection as PluginRejection;
use plimsoll_core::scheduling::plugins::{
    node_affinity, node_name, node_ports, node_resources_fit,
};
use plimsoll_core::scheduling::pod::SchedulingPod;
use plimsoll_core::scheduling::profile::AddedAffinity;

use super::pod_fields;
pub use confinement::{Confinement, Support};
use preemption::{Running, Shortage};

/// What of the node decides.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The node; `None` while nothing is known of it.
    pub node: Option<Arc<NodeView>>,
    /// What the node is short of at the moment.
    pub pressure: BTreeSet<NodeCondition>,
    /// Which pods are rejected because of it.
    pub pressure_rule: PressureRule,
    /// Whether tolerations may compare numbers.
    pub comparison: ComparisonOperators,
    /// Sysctls beyond the safe ones (`allowedUnsafeSysctls`), names or prefixes with `*`.
    pub allowed_unsafe_sysctls: Vec<String>,
    /// Which profiles and labels of containers can be enforced.
    pub confinement: Confinement,
    /// Whether the runtime knows `supplementalGroupsPolicy: Strict`.
    pub has_strict_groups: bool,
    /// Whether the node is about to be switched off.
    pub is_shutting_down: bool,
    /// The devices of device plugins.
    pub devices: Devices,
}

/// That the node takes a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// As things are.
    Now,
    /// Once these pods, by their uids, have made room for it.
    After(Vec<String>),
}

/// Why the node does not take a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Goes to `status.reason`.
    pub reason: String,
    /// Goes to `status.message`, behind the words of a rejection.
    pub message: String,
}

impl Rejection {
    /// That a container cannot have its devices.
    pub fn of_devices(problem: &str) -> Rejection {
        Rejection {
            reason: "UnexpectedAdmissionError".to_owned(),
            message: format!("Allocate failed due to {problem}, which is unexpected"),
        }
    }
}

fn reject<T>(reason: impl Into<String>, message: impl Into<String>) -> Result<T, Rejection> {
    Err(Rejection {
        reason: reason.into(),
        message: message.into(),
    })
}

/// Admits the pod beside the others, or says why not.
pub fn admit<'a>(
    pod: &Pod,
    others: impl IntoIterator<Item = &'a Pod>,
    facts: &Facts,
) -> Result<Admission, Rejection> {
    let view = PodView::from_api(pod).map_err(malformed)?;
    judge(pod, &view, others, facts, view.is_critical())
}

/// Whether there is room for the pod beside all the others.
pub fn fits<'a>(
    pod: &Pod,
    others: impl IntoIterator<Item = &'a Pod>,
    facts: &Facts,
) -> Result<(), Rejection> {
    let view = PodView::from_api(pod).map_err(malformed)?;
    judge(pod, &view, others, facts, false).map(|_| ())
}

fn malformed(problems: Vec<Problem>) -> Rejection {
    Rejection {
        reason: "UnexpectedAdmissionError".to_owned(),
        message: format!("the pod is malformed: {problems:?}"),
    }
}

fn judge<'a>(
    pod: &Pod,
    view: &PodView,
    others: impl IntoIterator<Item = &'a Pod>,
    facts: &Facts,
    may_preempt: bool,
) -> Result<Admission, Rejection> {
    if let Err(refused) =
        node_admit::admit(view, &facts.pressure, facts.pressure_rule, facts.comparison)
    {
        return reject(refused.reason, refused.message);
    }
    sysctl::admit(pod, &facts.allowed_unsafe_sysctls)?;
    let with_devices = facts.devices.admit(&PodDemand::from_api(pod));
    let with_devices = with_devices.map_err(|error| Rejection::of_devices(&error.to_string()))?;
    let Some(node) = &facts.node else {
        return reject("InvalidNodeInfo", "Kubelet cannot get node info.");
    };
    admit_platform(pod, facts)?;
    let scheduling = SchedulingPod::from_api(pod).map_err(malformed)?;
    let mut state = NodeState::new(Arc::clone(node));
    for (resource, count) in with_devices {
        let allocatable = state.allocatable.scalars.entry(resource).or_default();
        *allocatable = count.max(*allocatable);
    }
    let mut running = Vec::new();
    for other in others {
        if let Ok(pod) = SchedulingPod::from_api(other) {
            state.add_pod(Arc::new(pod.clone()));
            if let Ok(view) = PodView::from_api(other) {
                running.push(Running { view, pod });
            }
        }
    }
    let shortages = shortages(&scheduling, &state);
    if let Some(shortage) = shortages.first()
        && !may_preempt
    {
        return Err(insufficient(shortage));
    }
    admit_place(&scheduling, &state)?;
    let taints = (&node.taints, &view.tolerations);
    let untolerated =
        first_untolerated(taints.0, taints.1, TaintFilter::NoExecute, facts.comparison);
    if !pod_fields::is_static(pod) && untolerated.is_some() {
        return predicate(
            "TaintToleration",
            "node(s) had taints that the pod didn't tolerate",
        );
    }
    confinement::admit(pod, facts.confinement)?;
    if facts.is_shutting_down {
        return reject(
            "NodeShutdown",
            "Pod was rejected as the node is shutting down.",
        );
    }
    make_room(view, &running, &shortages)
}

/// The pods that a critical pod preempts.
fn make_room(
    critical: &PodView,
    running: &[Running],
    shortages: &[Shortage],
) -> Result<Admission, Rejection> {
    if shortages.is_empty() {
        return Ok(Admission::Now);
    }
    let victims = match preemption::victims(critical, running, shortages) {
        Ok(victims) => victims,
        Err(why) => {
            let message = format!(
                "Unexpected error while attempting to recover from admission failure: \
                 preemption: error finding a set of pods to preempt: {why}"
            );
            return reject("UnexpectedAdmissionError", message);
        }
    };
    let uids = victims.into_iter().map(|index| &running[index].view.uid);
    Ok(Admission::After(uids.map(ToString::to_string).collect()))
}

/// Pods for other systems, or that want what the runtime cannot do.
fn admit_platform(pod: &Pod, facts: &Facts) -> Result<(), Rejection> {
    const OS_LABEL: &str = "kubernetes.io/os";
    let label = pod.metadata.labels.as_ref().and_then(|l| l.get(OS_LABEL));
    if label.is_some_and(|os| os != "linux") {
        return reject(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        );
    }
    let spec = pod_fields::spec(pod);
    let os = spec.and_then(|spec| spec.os.as_ref());
    if os.is_some_and(|os| os.name != "linux") {
        return reject(
            "PodOSNotSupported",
            "Failed to admit pod as the OS field doesn't match node OS",
        );
    }
    let security = spec.and_then(|spec| spec.security_context.as_ref());
    let policy = security.and_then(|s| s.supplemental_groups_policy.as_deref());
    if policy == Some("Strict") && !facts.has_strict_groups {
        return reject(
            "SupplementalGroupsPolicyNotSupported",
            "SupplementalGroupsPolicy=Strict is not supported in this node",
        );
    }
    Ok(())
}

fn predicate<T>(name: &str, description: &str) -> Result<T, Rejection> {
    reject(name, format!("Predicate {name} failed: {description}"))
}

/// What the node has too little of.
fn shortages(pod: &SchedulingPod, node: &NodeState) -> Vec<Shortage> {
    // Extended resources that the node does not know are those of the cluster.
    let is_ignored =
        |name: &ResourceName| is_extended(name) && !node.allocatable.scalars.contains_key(name);
    let refused = node_resources_fit::rejection(pod, node, is_ignored);
    let reasons = refused.into_iter().flat_map(|refused| refused.reasons);
    reasons.map(|reason| shortage(&reason, pod, node)).collect()
}

/// Node affinity, node name, host ports.
fn admit_place(pod: &SchedulingPod, node: &NodeState) -> Result<(), Rejection> {
    let refusals: [Option<PluginRejection>; 3] = [
        node_affinity::filter(pod, &AddedAffinity::default(), &node.view),
        node_name::filter(pod, &node.view),
        node_ports::filter(pod, node),
    ];
    match refusals.into_iter().flatten().next() {
        None => Ok(()),
        Some(refused) => {
            let name = refused.plugin.map_or("", |plugin| plugin.as_str());
            let description = refused.reasons.first().map_or("", |reason| reason.as_ref());
            predicate(name, description)
        }
    }
}

/// The plugin's reason with the numbers behind it.
fn shortage(reason: &str, pod: &SchedulingPod, node: &NodeState) -> Shortage {
    let name = reason.strip_prefix("Insufficient ").unwrap_or("pods");
    let count = i64::try_from(node.pods().len()).unwrap_or(i64::MAX);
    let (requested, used, capacity) = match name {
        "pods" => (1, count, node.allowed_pods),
        name => {
            let name = ResourceName::from(name);
            (
                pod.requests.incoming.get(&name),
                node.requested().get(&name),
                node.allocatable.get(&name),
            )
        }
    };
    Shortage {
        resource: ResourceName::from(name),
        requested,
        used,
        capacity,
    }
}

fn insufficient(shortage: &Shortage) -> Rejection {
    let Shortage {
        resource: name,
        requested,
        used,
        capacity,
    } = shortage;
    Rejection {
        reason: format!("OutOf{name}"),
        message: format!(
            "Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
        ),
    }
}

#[cfg(test)]
mod tests;
