//! Pods that no other controller removes.
//!
//! Too many terminated pods, pods of nodes that are gone, terminating pods that were never bound,
//! and terminating pods on a node that an administrator declared out of service. Matches v1.36
//! pkg/controller/podgc/gc_controller.go.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};

use crate::object::identity::{NodeName, PodRef, PodUid};
use crate::object::node::NodeCondition;
use crate::object::taint::NODE_OUT_OF_SERVICE;
use crate::object::timestamp::Timestamp;

/// When pods are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many terminated pods may be kept in the cluster; zero for any number.
    pub terminated_threshold: usize,
    /// How long a node must be missing before its pods are given up.
    pub quarantine: Duration,
    /// How often the loop looks.
    pub period: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            terminated_threshold: 12500,
            quarantine: Duration::from_secs(40),
            period: Duration::from_secs(20),
        }
    }
}

/// Why a pod is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// There are too many terminated pods.
    Terminated,
    /// It terminates on a node that is out of service.
    OutOfService,
    /// Its node is gone.
    Orphaned,
    /// It terminates and was never bound.
    Unscheduled,
}

impl Reason {
    /// The name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Terminated => "terminated",
            Reason::OutOfService => "out-of-service",
            Reason::Orphaned => "orphaned",
            Reason::Unscheduled => "unscheduled",
        }
    }
}

/// A pod as this rule sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectedPod {
    /// Namespace and name.
    pub pod: PodRef,
    /// The unique id.
    pub uid: PodUid,
    /// When it was created.
    pub created: Timestamp,
    /// The node that it is bound to.
    pub node: Option<NodeName>,
    /// Whether it has ended; a phase that is none counts as an end.
    pub is_terminated: bool,
    /// Whether it was evicted.
    pub is_evicted: bool,
    /// Whether it is being deleted.
    pub is_terminating: bool,
}

impl CollectedPod {
    /// Reads a pod.
    pub fn from_api(pod: &Pod) -> CollectedPod {
        let (meta, status) = (&pod.metadata, pod.status.as_ref());
        let phase = status.and_then(|s| s.phase.as_deref()).unwrap_or_default();
        let reason = status.and_then(|s| s.reason.as_deref());
        let node = pod.spec.as_ref().and_then(|s| s.node_name.as_deref());
        let created = meta.creation_timestamp.as_ref();
        CollectedPod {
            pod: PodRef {
                namespace: meta.namespace.clone().unwrap_or_default(),
                name: meta.name.clone().unwrap_or_default(),
            },
            uid: PodUid::new(meta.uid.clone().unwrap_or_default()),
            created: created.map(Timestamp::from_api).unwrap_or_default(),
            node: node.filter(|n| !n.is_empty()).map(NodeName::from),
            is_terminated: !matches!(phase, "Pending" | "Running" | "Unknown"),
            is_evicted: phase == "Failed" && reason == Some("Evicted"),
            is_terminating: meta.deletion_timestamp.is_some(),
        }
    }
}

/// Whether a node is out of service: tainted so, and not ready.
pub fn is_out_of_service(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let mut taints = taints.into_iter().flatten();
    let conditions = node.status.as_ref().and_then(|s| s.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let ready = conditions.find(|c| c.type_ == NodeCondition::Ready.as_str());
    let is_ready = ready.is_some_and(|ready| ready.status == "True");
    !is_ready && taints.any(|taint| taint.key == NODE_OUT_OF_SERVICE)
}

/// The known nodes.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    /// Those that exist, and whether they are out of service.
    pub out_of_service: BTreeMap<NodeName, bool>,
    /// Those that are gone beyond doubt.
    pub gone: BTreeSet<NodeName>,
}

/// The pods to be removed, and why. A pod is named once, for the first reason that applies.
pub fn plan(
    settings: Settings,
    pods: &[CollectedPod],
    nodes: &Nodes,
) -> Vec<(CollectedPod, Reason)> {
    let mut plan = Vec::new();
    let mut planned = BTreeSet::new();
    let excess = excess_terminated(settings, pods);
    let is_out_of_service = |pod: &&CollectedPod| {
        let node = pod.node.as_ref();
        let is_out = node.and_then(|node| nodes.out_of_service.get(node));
        pod.is_terminating && is_out.copied().unwrap_or(false)
    };
    let is_orphaned = |pod: &&CollectedPod| {
        let node = pod.node.as_ref();
        node.is_some_and(|node| nodes.gone.contains(node))
    };
    let is_unscheduled = |pod: &&CollectedPod| pod.is_terminating && pod.node.is_none();
    let mut add = |pods: Vec<&CollectedPod>, reason: Reason| {
        for pod in pods {
            if planned.insert(pod.pod.clone()) {
                plan.push((pod.clone(), reason));
            }
        }
    };
    add(excess, Reason::Terminated);
    let mut on_such_nodes: Vec<_> = pods.iter().filter(is_out_of_service).collect();
    on_such_nodes.sort_by_key(|pod| removal_order(pod));
    add(on_such_nodes, Reason::OutOfService);
    add(pods.iter().filter(is_orphaned).collect(), Reason::Orphaned);
    add(
        pods.iter().filter(is_unscheduled).collect(),
        Reason::Unscheduled,
    );
    plan
}

fn excess_terminated(settings: Settings, pods: &[CollectedPod]) -> Vec<&CollectedPod> {
    if settings.terminated_threshold == 0 {
        return Vec::new();
    }
    let mut terminated: Vec<_> = pods.iter().filter(|pod| pod.is_terminated).collect();
    let excess = terminated
        .len()
        .saturating_sub(settings.terminated_threshold);
    terminated.sort_by_key(|pod| removal_order(pod));
    terminated.truncate(excess);
    terminated
}

/// Evicted pods go first, then the oldest.
fn removal_order(pod: &CollectedPod) -> (bool, Timestamp, String) {
    (!pod.is_evicted, pod.created, pod.pod.name.clone())
}

/// Nodes that pods are bound to and that seem to be missing.
///
/// The cache of nodes may lag behind that of pods, so a node must be missing for a while before it
/// is looked up in the API.
#[derive(Clone, Debug, Default)]
pub struct Quarantine {
    until: BTreeMap<NodeName, Timestamp>,
}

impl Quarantine {
    /// Takes the missing nodes of a pass into account; answers those to ask the API about.
    pub fn observe(
        &mut self,
        missing: &BTreeSet<NodeName>,
        period: Duration,
        now: Timestamp,
    ) -> Vec<NodeName> {
        for node in missing {
            let until = now.saturating_add(period);
            self.until.entry(node.clone()).or_insert(until);
        }
        let over = self.until.iter().filter(|(_, until)| **until <= now);
        let over: Vec<NodeName> = over.map(|(node, _)| node.clone()).collect();
        self.until.retain(|_, until| *until > now);
        over.into_iter().filter(|n| missing.contains(n)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, created: i64) -> CollectedPod {
        CollectedPod {
            pod: PodRef {
                namespace: "default".to_owned(),
                name: name.to_owned(),
            },
            uid: PodUid::from(name),
            created: Timestamp::from_secs(created),
            node: Some(NodeName::from("n1")),
            is_terminated: false,
            is_evicted: false,
            is_terminating: false,
        }
    }

    fn removed(settings: Settings, pods: &[CollectedPod], nodes: &Nodes) -> Vec<(String, Reason)> {
        let plan = plan(settings, pods, nodes).into_iter();
        plan.map(|(pod, reason)| (pod.pod.name, reason)).collect()
    }

    #[test]
    fn pod_gc_deletes_evicted_pods_first_then_the_oldest() {
        let terminated = |name, created, is_evicted| CollectedPod {
            is_terminated: true,
            is_evicted,
            ..pod(name, created)
        };
        let pods = [
            terminated("old", 1, false),
            terminated("young", 9, false),
            terminated("evicted", 10, true),
            terminated("b-same-age", 5, false),
            terminated("a-same-age", 5, false),
            pod("running", 0),
        ];
        let settings = |terminated_threshold| Settings {
            terminated_threshold,
            ..Settings::default()
        };
        let nodes = Nodes::default();
        let names = |threshold| {
            let removed = removed(settings(threshold), &pods, &nodes).into_iter();
            removed.map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(2), ["evicted", "old", "a-same-age"]);
        assert!(names(5).is_empty());
        assert!(names(0).is_empty(), "zero keeps all");
    }

    #[test]
    fn pods_of_lost_nodes_and_unscheduled_terminating_pods_are_deleted() {
        let terminating = |name, node: Option<&str>| CollectedPod {
            is_terminating: true,
            node: node.map(NodeName::from),
            ..pod(name, 0)
        };
        let pods = [
            CollectedPod {
                node: Some(NodeName::from("gone")),
                ..pod("orphan", 0)
            },
            terminating("unscheduled", None),
            terminating("out-of-service", Some("out")),
            terminating("leaving", Some("n1")),
            CollectedPod {
                node: Some(NodeName::from("out")),
                ..pod("stays", 0)
            },
        ];
        let nodes = Nodes {
            out_of_service: [("out", true), ("n1", false)]
                .map(|(name, is_out)| (NodeName::from(name), is_out))
                .into(),
            gone: [NodeName::from("gone")].into(),
        };
        assert_eq!(
            removed(Settings::default(), &pods, &nodes),
            [
                ("out-of-service".to_owned(), Reason::OutOfService),
                ("orphan".to_owned(), Reason::Orphaned),
                ("unscheduled".to_owned(), Reason::Unscheduled),
            ]
        );
    }

    #[test]
    fn missing_node_is_looked_up_after_forty_seconds() {
        let missing = BTreeSet::from([NodeName::from("n1")]);
        let mut quarantine = Quarantine::default();
        let mut observe = |missing: &BTreeSet<NodeName>, secs| {
            let now = Timestamp::from_secs(secs);
            quarantine.observe(missing, Duration::from_secs(40), now)
        };
        assert!(observe(&missing, 0).is_empty());
        assert!(observe(&missing, 20).is_empty());
        assert_eq!(observe(&missing, 40), [NodeName::from("n1")]);
        assert!(observe(&missing, 60).is_empty(), "a new quarantine began");
        assert!(observe(&BTreeSet::new(), 100).is_empty(), "it is back");
    }

    #[test]
    fn pods_and_nodes_are_read() {
        let read = |pod| CollectedPod::from_api(&serde_json::from_value(pod).unwrap());
        let evicted = read(json!({
            "metadata": {"namespace": "a", "name": "b", "uid": "c",
                         "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"nodeName": "", "containers": []},
            "status": {"phase": "Failed", "reason": "Evicted"},
        }));
        assert!(evicted.is_terminated && evicted.is_evicted && evicted.is_terminating);
        assert_eq!(evicted.node, None);
        assert!(
            read(json!({})).is_terminated,
            "no phase is none of the living ones"
        );
        for (ready, is_out) in [("True", false), ("Unknown", true)] {
            let node = serde_json::from_value(json!({
                "spec": {"taints": [{"key": NODE_OUT_OF_SERVICE, "effect": "NoExecute"}]},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            }));
            assert_eq!(is_out_of_service(&node.unwrap()), is_out);
        }
    }
}
