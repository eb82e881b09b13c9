//! The pod as the scheduler sees it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};

use crate::object::identity::{NodeName, PodRef, PodUid};
use crate::object::pod::{PodView, is_terminal};
use crate::object::taint::Toleration;
use crate::problem::Problem;

use super::{HostPort, NodeRules, PodAffinity, PodImages, PodRequests, SpreadConstraints};

/// A pod, read once and shared. See the [module](super) for its parts.
#[derive(Clone, Debug)]
pub struct SchedulingPod {
    /// Unique id.
    pub uid: PodUid,
    /// Namespace and name.
    pub pod_ref: PodRef,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Resolved priority; none is zero.
    pub priority: i32,
    /// Whether it may push others out.
    pub preemption_policy: PreemptionPolicy,
    /// The node it is bound to, or that it names.
    pub node_name: Option<NodeName>,
    /// The node on which room was made for it.
    pub nominated_node_name: Option<NodeName>,
    /// The scheduler that is to place it.
    pub scheduler_name: String,
    /// When it started, in microseconds since 1970; `None` before it did.
    pub start_time: Option<i64>,
    /// Whether it has a deletion timestamp.
    pub is_terminating: bool,
    /// Whether it has run to its end. The scheduler does not see such pods at all.
    pub is_finished: bool,
    /// Whether the scheduler itself marked it as a victim of preemption.
    pub is_preempted: bool,
    /// The scheduling gates.
    pub scheduling_gates: Vec<String>,
    /// Its requests.
    pub requests: PodRequests,
    /// Its tolerations, in order.
    pub tolerations: Vec<Toleration>,
    /// Which nodes.
    pub node_rules: NodeRules,
    /// Ports on the node.
    pub host_ports: Vec<HostPort>,
    /// Images on the node.
    pub images: PodImages,
    /// How it is to be spread with others of its kind.
    pub spread: SpreadConstraints,
    /// Which pods near it.
    pub affinity: PodAffinity,
    /// The controller that created it.
    pub controller: Option<ControllerRef>,
}

/// Whether a pod may push others out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreemptionPolicy {
    /// Those of lower priority.
    #[default]
    PreemptLowerPriority,
    /// Preempts no pods.
    Never,
}

/// The owner that controls a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerRef {
    /// Group and version: `apps/v1`.
    pub api_version: String,
    /// Kind: `ReplicaSet`.
    pub kind: String,
    /// Name, in the pod's namespace.
    pub name: String,
}

impl SchedulingPod {
    /// Reads a pod; all its malformed parts are reported.
    pub fn from_api(pod: &Pod) -> Result<SchedulingPod, Vec<Problem>> {
        let view = PodView::from_api(pod)?;
        let mut problems = Vec::new();
        let no_spec = PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&no_spec);
        let status = pod.status.as_ref();
        let constraints = spec.topology_spread_constraints.as_deref();
        let gates = spec.scheduling_gates.iter().flatten();
        let owners = pod.metadata.owner_references.iter().flatten();
        let read = SchedulingPod {
            requests: PodRequests::new(&view, status, &mut problems),
            node_rules: NodeRules::of_pod(spec, &mut problems),
            spread: SpreadConstraints::from_api(
                "spec.topologySpreadConstraints",
                constraints.unwrap_or_default(),
                &view.labels,
                &mut problems,
            ),
            affinity: PodAffinity::of_pod(&view.pod_ref, spec.affinity.as_ref(), &mut problems),
            host_ports: HostPort::of_pod(spec),
            images: PodImages::of_pod(spec),
            priority: view.priority.unwrap_or(0),
            preemption_policy: match spec.preemption_policy.as_deref() {
                Some("Never") => PreemptionPolicy::Never,
                _ => PreemptionPolicy::PreemptLowerPriority,
            },
            node_name: given_name(spec.node_name.as_deref()),
            nominated_node_name: given_name(status.and_then(|s| s.nominated_node_name.as_deref())),
            scheduler_name: match spec.scheduler_name.as_deref() {
                None | Some("") => "default-scheduler".to_owned(),
                Some(name) => name.to_owned(),
            },
            start_time: status
                .and_then(|status| status.start_time.as_ref())
                .map(|time| time.0.as_microsecond()),
            is_terminating: pod.metadata.deletion_timestamp.is_some(),
            is_finished: is_terminal(pod),
            is_preempted: status.is_some_and(is_preempted),
            scheduling_gates: gates.map(|gate| gate.name.clone()).collect(),
            controller: owners
                .filter(|owner| owner.controller == Some(true))
                .map(|owner| ControllerRef {
                    api_version: owner.api_version.clone(),
                    kind: owner.kind.clone(),
                    name: owner.name.clone(),
                })
                .next(),
            uid: view.uid,
            pod_ref: view.pod_ref,
            labels: view.labels,
            tolerations: view.tolerations,
        };
        if problems.is_empty() {
            Ok(read)
        } else {
            Err(problems)
        }
    }
}

fn given_name(name: Option<&str>) -> Option<NodeName> {
    name.filter(|name| !name.is_empty()).map(NodeName::from)
}

/// The first condition of the type counts, as upstream's search finds it.
fn is_preempted(status: &PodStatus) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    let target = conditions.find(|condition| condition.type_ == "DisruptionTarget");
    target.is_some_and(|condition| {
        condition.status == "True" && condition.reason.as_deref() == Some("PreemptionByScheduler")
    })
}
