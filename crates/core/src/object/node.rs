//! The fields of a node that decisions read.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{ContainerImage, Node, NodeCondition as ApiNodeCondition};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;

use crate::object::identity::NodeName;
use crate::object::parse_resource_list;
use crate::object::taint::Taint;
use crate::problem::Problem;
use crate::resources::{ResourceList, Resources};

/// A node, reduced to what decisions about its resources read.
#[derive(Clone, Debug, Default)]
pub struct NodeView {
    /// Its name.
    pub name: NodeName,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// The capacity of the machine.
    pub capacity: Amounts,
    /// The part of it that pods may use.
    pub allocatable: Amounts,
    /// How it is.
    pub conditions: NodeConditions,
    /// The taints, in order.
    pub taints: Vec<Taint>,
    /// Whether it is cordoned.
    pub is_unschedulable: bool,
    /// Sizes in bytes of the images on its disk, by each name they have. Of several sizes under
    /// one name the first listed counts.
    pub images: BTreeMap<String, i64>,
}

/// A resource list as written and as typed amounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// As written.
    pub list: ResourceList,
    /// The same, typed.
    pub typed: Resources,
}

/// The node conditions that decisions depend on; other conditions are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeCondition {
    /// Short of memory.
    MemoryPressure,
    /// Short of disk space or inodes.
    DiskPressure,
    /// Short of process ids.
    PidPressure,
    /// The network is not set up.
    NetworkUnavailable,
    /// Able to run pods.
    Ready,
}

impl NodeCondition {
    /// All of them, in the order in which they are listed where upstream's order is arbitrary.
    pub const ALL: [NodeCondition; 5] = [
        NodeCondition::MemoryPressure,
        NodeCondition::DiskPressure,
        NodeCondition::PidPressure,
        NodeCondition::NetworkUnavailable,
        NodeCondition::Ready,
    ];

    /// The `type` in `status.conditions`.
    pub fn as_str(self) -> &'static str {
        match self {
            NodeCondition::MemoryPressure => "MemoryPressure",
            NodeCondition::DiskPressure => "DiskPressure",
            NodeCondition::PidPressure => "PIDPressure",
            NodeCondition::NetworkUnavailable => "NetworkUnavailable",
            NodeCondition::Ready => "Ready",
        }
    }

    /// The condition of that `type`.
    pub fn from_name(name: &str) -> Option<NodeCondition> {
        NodeCondition::ALL.into_iter().find(|c| c.as_str() == name)
    }
}

impl fmt::Display for NodeCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It does.
    True,
    /// It does not.
    False,
    /// The node has sent no heartbeat for too long.
    Unknown,
}

/// The conditions that the node object states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeConditions(BTreeMap<NodeCondition, ConditionStatus>);

impl NodeConditions {
    /// The status of a condition, `None` if the object does not state it.
    pub fn status(&self, condition: NodeCondition) -> Option<ConditionStatus> {
        self.0.get(&condition).copied()
    }

    /// Whether the object states that it holds.
    pub fn is_true(&self, condition: NodeCondition) -> bool {
        self.status(condition) == Some(ConditionStatus::True)
    }

    /// Parses `status.conditions`. Of several of one type the first counts, as upstream's search
    /// finds it.
    fn from_api(conditions: &[ApiNodeCondition], problems: &mut Vec<Problem>) -> NodeConditions {
        let mut parsed = BTreeMap::new();
        for (index, condition) in conditions.iter().enumerate() {
            let Some(known) = NodeCondition::from_name(&condition.type_) else {
                continue;
            };
            let status = match condition.status.as_str() {
                "True" => ConditionStatus::True,
                "False" => ConditionStatus::False,
                "Unknown" => ConditionStatus::Unknown,
                other => {
                    problems.push(Problem::not_supported(
                        format!("status.conditions[{index}].status"),
                        other,
                        &["True", "False", "Unknown"],
                    ));
                    continue;
                }
            };
            parsed.entry(known).or_insert(status);
        }
        NodeConditions(parsed)
    }
}

impl NodeView {
    /// Parses a node; all its problems are reported.
    pub fn from_api(node: &Node) -> Result<NodeView, Vec<Problem>> {
        let mut problems = Vec::new();
        let (spec, status) = (node.spec.as_ref(), node.status.as_ref());
        let mut amounts = |field: &str, list: Option<&BTreeMap<String, ApiQuantity>>| {
            let list = parse_resource_list(format_args!("status.{field}"), list, &mut problems);
            Amounts {
                typed: Resources::from_list(&list),
                list,
            }
        };
        let capacity = amounts("capacity", status.and_then(|s| s.capacity.as_ref()));
        let allocatable = amounts("allocatable", status.and_then(|s| s.allocatable.as_ref()));
        let conditions = status.and_then(|s| s.conditions.as_deref());
        let conditions = NodeConditions::from_api(conditions.unwrap_or_default(), &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let taints = spec.and_then(|s| s.taints.as_deref()).unwrap_or_default();
        Ok(NodeView {
            name: NodeName::new(node.metadata.name.clone().unwrap_or_default()),
            labels: node.metadata.labels.clone().unwrap_or_default(),
            capacity,
            allocatable,
            conditions,
            taints: taints.iter().map(Taint::from_api).collect(),
            is_unschedulable: spec.and_then(|s| s.unschedulable).unwrap_or(false),
            images: sizes_by_name(status.and_then(|s| s.images.as_deref()).unwrap_or_default()),
        })
    }

    /// The failure zone in which the node stands.
    pub fn zone_key(&self) -> String {
        zone_key(&self.labels)
    }
}

/// The failure zone of a node with these labels: region and zone, empty if neither is known.
///
/// The old label names win where both stand. Matches v1.36
/// component-helpers/node/topology/helpers.go.
pub fn zone_key(labels: &BTreeMap<String, String>) -> String {
    let label = |keys: [&str; 2]| {
        let found = keys.into_iter().find_map(|key| labels.get(key));
        found.map_or("", String::as_str)
    };
    let region = label([
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ]);
    let zone = label([
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/zone",
    ]);
    if region.is_empty() && zone.is_empty() {
        return String::new();
    }
    format!("{region}:\0:{zone}")
}

fn sizes_by_name(images: &[ContainerImage]) -> BTreeMap<String, i64> {
    let mut sizes = BTreeMap::new();
    for image in images {
        for name in image.names.iter().flatten() {
            let size = image.size_bytes.unwrap_or(0);
            sizes.entry(name.clone()).or_insert(size);
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::taint::{Effect, NODE_NOT_READY};
    use crate::resources::{Bytes, Millicores};
    use serde_json::{Value, json};

    fn view(node: Value) -> Result<NodeView, Vec<Problem>> {
        NodeView::from_api(&serde_json::from_value(node).unwrap())
    }

    #[test]
    fn a_node_is_read_into_typed_parts() {
        let node = view(json!({
            "metadata": {"name": "n1", "labels": {"zone": "a"}},
            "spec": {
                "unschedulable": true,
                "taints": [{"key": NODE_NOT_READY, "effect": "NoSchedule"}],
            },
            "status": {
                "capacity": {"cpu": "4", "memory": "8Gi"},
                "allocatable": {"cpu": "3900m", "memory": "7Gi"},
                "conditions": [
                    {"type": "Ready", "status": "Unknown"},
                    {"type": "MemoryPressure", "status": "True"},
                    {"type": "MemoryPressure", "status": "False"},
                    {"type": "KernelDeadlock", "status": "maybe"},
                ],
            },
        }))
        .unwrap();
        assert_eq!(node.name.as_str(), "n1");
        assert!(node.is_unschedulable);
        assert_eq!(node.taints[0].effect, Effect::NoSchedule);
        assert_eq!(node.capacity.typed.memory, Bytes(8 << 30));
        assert_eq!(node.allocatable.typed.cpu, Millicores(3900));
        let status = |condition| node.conditions.status(condition);
        assert_eq!(status(NodeCondition::Ready), Some(ConditionStatus::Unknown));
        assert!(node.conditions.is_true(NodeCondition::MemoryPressure));
        assert_eq!(status(NodeCondition::DiskPressure), None);
    }

    #[test]
    fn the_first_size_of_an_image_name_counts_and_the_old_zone_label_wins() {
        let node = view(json!({
            "metadata": {"name": "n1", "labels": {
                "topology.kubernetes.io/zone": "new",
                "failure-domain.beta.kubernetes.io/zone": "old",
            }},
            "status": {"images": [
                {"names": ["a:1", "a@sha256:0"], "sizeBytes": 5},
                {"names": ["a:1"], "sizeBytes": 7},
            ]},
        }))
        .unwrap();
        assert_eq!(node.images["a:1"], 5);
        assert_eq!(node.images.len(), 2);
        assert_eq!(node.zone_key(), ":\0:old");
        assert_eq!(NodeView::default().zone_key(), "");
    }

    #[test]
    fn every_problem_is_reported_with_its_path() {
        let problems = view(json!({"status": {
            "capacity": {"cpu": "four"},
            "allocatable": {"memory": "1Gib"},
            "conditions": [{"type": "Ready", "status": "yes"}],
        }}))
        .unwrap_err();
        let paths: Vec<&str> = problems.iter().map(|p| p.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "status.capacity[cpu]",
                "status.allocatable[memory]",
                "status.conditions[0].status"
            ]
        );
    }
}
