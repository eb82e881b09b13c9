//! Cluster events, and which plugins registered for them.
//!
//! Matches v1.36 pkg/scheduler/framework/events.go and the event types of
//! staging/src/k8s.io/kube-scheduler/framework/types.go.

use std::fmt;
use std::sync::Arc;

use super::action::Action;
use super::facts::{
    CsiDriverFacts, CsiNodeFacts, CsiStorageCapacityFacts, DeviceClassFacts, NodeFacts,
    PersistentVolumeClaimFacts, PersistentVolumeFacts, PodFacts, ResourceClaimFacts,
    StorageClassFacts, VolumeAttachmentFacts,
};

/// A change of an object.
#[derive(Clone, Debug)]
pub enum Change<T> {
    /// It is there.
    Added(Arc<T>),
    /// It is another.
    Updated {
        /// The object before.
        old: Arc<T>,
        /// The object after.
        new: Arc<T>,
    },
    /// It is gone; this is how it was last.
    Deleted(Arc<T>),
}

impl<T> Change<T> {
    /// The object before.
    pub fn before(&self) -> Option<&T> {
        match self {
            Change::Added(_) => None,
            Change::Updated { old, .. } | Change::Deleted(old) => Some(old),
        }
    }

    /// The object after.
    pub fn after(&self) -> Option<&T> {
        match self {
            Change::Added(new) | Change::Updated { new, .. } => Some(new),
            Change::Deleted(_) => None,
        }
    }

    fn action(&self) -> Action {
        match self {
            Change::Added(_) => Action::ADD,
            Change::Updated { .. } => Action::UPDATE,
            Change::Deleted(_) => Action::DELETE,
        }
    }
}

/// The object that changed.
#[derive(Clone, Debug)]
pub enum Object {
    /// A pod: assigned, or pending and updated itself. A pending pod with a nominated node that is
    /// deleted, or loses the nomination, counts as an assigned pod that is deleted.
    Pod(Change<PodFacts>),
    /// A node.
    Node(Change<NodeFacts>),
    /// A persistent volume.
    PersistentVolume(Change<PersistentVolumeFacts>),
    /// A claim for a volume.
    PersistentVolumeClaim(Change<PersistentVolumeClaimFacts>),
    /// A storage class.
    StorageClass(Change<StorageClassFacts>),
    /// The storage drivers of a node.
    CsiNode(Change<CsiNodeFacts>),
    /// A storage driver.
    CsiDriver(Change<CsiDriverFacts>),
    /// Free space of a storage driver.
    CsiStorageCapacity(Change<CsiStorageCapacityFacts>),
    /// A volume attached to a node.
    VolumeAttachment(Change<VolumeAttachmentFacts>),
    /// A claim for devices.
    ResourceClaim(Change<ResourceClaimFacts>),
    /// Devices of a node; no hint looks into them.
    ResourceSlice(Change<()>),
    /// A class of devices.
    DeviceClass(Change<DeviceClassFacts>),
}

/// A kind of object, as plugins register for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Pods, assigned and pending.
    Pod,
    /// Nodes.
    Node,
    /// Persistent volumes.
    PersistentVolume,
    /// Claims for volumes.
    PersistentVolumeClaim,
    /// Storage classes.
    StorageClass,
    /// Storage drivers of nodes.
    CsiNode,
    /// Storage drivers.
    CsiDriver,
    /// Free space of storage drivers.
    CsiStorageCapacity,
    /// Volumes attached to nodes.
    VolumeAttachment,
    /// Claims for devices.
    ResourceClaim,
    /// Devices of nodes.
    ResourceSlice,
    /// Classes of devices.
    DeviceClass,
}

impl Object {
    /// Its kind.
    pub fn resource(&self) -> Resource {
        match self {
            Object::Pod(_) => Resource::Pod,
            Object::Node(_) => Resource::Node,
            Object::PersistentVolume(_) => Resource::PersistentVolume,
            Object::PersistentVolumeClaim(_) => Resource::PersistentVolumeClaim,
            Object::StorageClass(_) => Resource::StorageClass,
            Object::CsiNode(_) => Resource::CsiNode,
            Object::CsiDriver(_) => Resource::CsiDriver,
            Object::CsiStorageCapacity(_) => Resource::CsiStorageCapacity,
            Object::VolumeAttachment(_) => Resource::VolumeAttachment,
            Object::ResourceClaim(_) => Resource::ResourceClaim,
            Object::ResourceSlice(_) => Resource::ResourceSlice,
            Object::DeviceClass(_) => Resource::DeviceClass,
        }
    }

    /// The name in labels. Upstream distinguishes pending pods from assigned ones by whether the
    /// new version has a node; what is added or deleted is always an assigned one here.
    fn label(&self) -> &'static str {
        match self {
            Object::Pod(Change::Updated { new, .. }) if new.node_name.is_none() => {
                "UnschedulablePod"
            }
            Object::Pod(_) => "AssignedPod",
            Object::Node(_) => "Node",
            Object::PersistentVolume(_) => "PersistentVolume",
            Object::PersistentVolumeClaim(_) => "PersistentVolumeClaim",
            Object::StorageClass(_) => "storage.k8s.io/StorageClass",
            Object::CsiNode(_) => "storage.k8s.io/CSINode",
            Object::CsiDriver(_) => "storage.k8s.io/CSIDriver",
            Object::CsiStorageCapacity(_) => "storage.k8s.io/CSIStorageCapacity",
            Object::VolumeAttachment(_) => "storage.k8s.io/VolumeAttachment",
            Object::ResourceClaim(_) => "resource.k8s.io/ResourceClaim",
            Object::ResourceSlice(_) => "resource.k8s.io/ResourceSlice",
            Object::DeviceClass(_) => "resource.k8s.io/DeviceClass",
        }
    }

    fn actions(&self) -> Vec<Action> {
        match self {
            Object::Pod(Change::Updated { old, new }) => pod_updates(old, new),
            Object::Node(Change::Updated { old, new }) => node_updates(old, new),
            Object::Pod(change) => vec![change.action()],
            Object::Node(change) => vec![change.action()],
            Object::PersistentVolume(change) => vec![change.action()],
            Object::PersistentVolumeClaim(change) => vec![change.action()],
            Object::StorageClass(change) => vec![change.action()],
            Object::CsiNode(change) => vec![change.action()],
            Object::CsiDriver(change) => vec![change.action()],
            Object::CsiStorageCapacity(change) => vec![change.action()],
            Object::VolumeAttachment(change) => vec![change.action()],
            Object::ResourceClaim(change) => vec![change.action()],
            Object::ResourceSlice(change) => vec![change.action()],
            Object::DeviceClass(change) => vec![change.action()],
        }
    }
}

/// One thing that happened to one object.
#[derive(Clone, Debug)]
pub struct ClusterEvent {
    action: Action,
    object: Object,
}

impl ClusterEvent {
    /// All events that a change makes. An update of a pod or node makes one for each aspect that
    /// changed: none for a node where nothing of interest did, a general one for such a pod.
    pub fn all_of(object: &Object) -> Vec<ClusterEvent> {
        let event = |action| ClusterEvent {
            action,
            object: object.clone(),
        };
        object.actions().into_iter().map(event).collect()
    }

    /// The action.
    pub fn action(&self) -> Action {
        self.action
    }

    /// To what.
    pub fn object(&self) -> &Object {
        &self.object
    }
}

/// As metrics and logs name it: `AssignedPodDelete`, `NodeUpdateNodeTaint`.
impl fmt::Display for ClusterEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.object.label(), self.action.name())
    }
}

fn pod_updates(old: &PodFacts, new: &PodFacts) -> Vec<Action> {
    let aspects = [
        (new.labels != old.labels, Action::UPDATE_POD_LABEL),
        (is_scaled_down(old, new), Action::UPDATE_POD_SCALE_DOWN),
        (
            new.scheduling_gates.is_empty() && !old.scheduling_gates.is_empty(),
            Action::UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
        ),
        // Tolerations can only be added, so that comparing their number is enough.
        (
            new.tolerations.len() != old.tolerations.len(),
            Action::UPDATE_POD_TOLERATION,
        ),
        (
            !new.resource_claims.have_status_of(&old.resource_claims),
            Action::UPDATE_POD_GENERATED_RESOURCE_CLAIM,
        ),
    ];
    let mut actions = changed(&aspects);
    if actions.is_empty() {
        actions.push(Action::UPDATE);
    }
    actions
}

/// A resize counts from when the node has carried it out. Upstream compares the amounts as written;
/// these would differ only in fractions of bytes, and in zeros that are no longer stated.
fn is_scaled_down(old: &PodFacts, new: &PodFacts) -> bool {
    let (before, after) = (&old.requests.on_node, &new.requests.on_node);
    before.any(|name, amount| amount > after.get(name))
}

/// Annotations are not looked at: no plugin registers for them.
fn node_updates(old: &NodeFacts, new: &NodeFacts) -> Vec<Action> {
    changed(&[
        // Uncordoning is an event of taints, too; cordoning makes no pod schedulable and is none.
        (
            old.is_unschedulable && !new.is_unschedulable,
            Action::UPDATE_NODE_TAINT,
        ),
        (
            old.allocatable.list != new.allocatable.list,
            Action::UPDATE_NODE_ALLOCATABLE,
        ),
        (old.labels != new.labels, Action::UPDATE_NODE_LABEL),
        (old.taints != new.taints, Action::UPDATE_NODE_TAINT),
        (
            old.conditions != new.conditions,
            Action::UPDATE_NODE_CONDITION,
        ),
        (
            old.declared_features != new.declared_features,
            Action::UPDATE_NODE_DECLARED_FEATURE,
        ),
    ])
}

fn changed(aspects: &[(bool, Action)]) -> Vec<Action> {
    let changed = aspects.iter().filter(|(is_changed, _)| *is_changed);
    changed.map(|(_, action)| *action).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::identity::NodeName;
    use crate::object::node::NodeView;
    use crate::object::taint::{Effect, Taint};
    use crate::testing::{PodBuilder, pod};
    use serde_json::json;

    fn facts(pod: PodBuilder) -> PodFacts {
        PodFacts::from_api(&pod.build()).unwrap()
    }

    fn labels(object: &Object) -> Vec<String> {
        let events = ClusterEvent::all_of(object);
        events.iter().map(ToString::to_string).collect()
    }

    fn pod_update(old: PodFacts, new: PodFacts) -> Object {
        Object::Pod(Change::Updated {
            old: Arc::new(old),
            new: Arc::new(new),
        })
    }

    #[test]
    fn a_pod_update_makes_an_event_for_each_aspect_or_a_general_one() {
        let old = facts(pod("a").cpu("2").memory("1Gi"));
        let same = pod_update(old.clone(), old.clone());
        assert_eq!(labels(&same), ["UnschedulablePodUpdate"]);

        let mut new = facts(pod("a").cpu("1").memory("2Gi"));
        let view = Arc::make_mut(&mut new.view);
        view.node_name = Some(NodeName::from("n"));
        view.labels.insert("a".to_owned(), "b".to_owned());
        assert_eq!(
            labels(&pod_update(old.clone(), new)),
            ["AssignedPodUpdatePodLabel", "AssignedPodUpdatePodScaleDown"]
        );

        let mut gated = old.clone();
        Arc::make_mut(&mut gated.view).scheduling_gates = vec!["g".to_owned()];
        assert_eq!(
            labels(&pod_update(gated, old)),
            ["UnschedulablePodUpdatePodSchedulingGatesEliminated"]
        );
    }

    #[test]
    fn a_resource_no_longer_requested_is_a_scale_down() {
        let old = facts(pod("a").cpu("1"));
        let new = facts(pod("a"));
        assert_eq!(
            labels(&pod_update(old, new)),
            ["UnschedulablePodUpdatePodScaleDown"]
        );
    }

    #[test]
    fn a_resize_is_a_scale_down_when_the_node_has_carried_it_out() {
        let asking = |spec: &str, actual: &str| {
            let mut pod = pod("a").cpu(spec).build();
            pod.status = serde_json::from_value(json!({"containerStatuses": [{
                "name": "c", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                "resources": {"requests": {"cpu": actual}}, "allocatedResources": {"cpu": actual},
            }]}))
            .unwrap();
            PodFacts::from_api(&pod).unwrap()
        };
        let asked = pod_update(asking("2", "2"), asking("1", "2"));
        assert_eq!(labels(&asked), ["UnschedulablePodUpdate"]);
        let done = pod_update(asking("1", "2"), asking("1", "1"));
        assert_eq!(labels(&done), ["UnschedulablePodUpdatePodScaleDown"]);
    }

    #[test]
    fn a_node_update_makes_an_event_for_each_aspect_and_uncordoning_is_a_taint_event() {
        let old = NodeFacts::new(Arc::new(NodeView {
            is_unschedulable: true,
            taints: vec![Taint {
                key: "a".to_owned(),
                value: String::new(),
                effect: Effect::NoSchedule,
            }],
            ..NodeView::default()
        }));
        let update = |old: &NodeFacts, new: &NodeFacts| {
            Object::Node(Change::Updated {
                old: Arc::new(old.clone()),
                new: Arc::new(new.clone()),
            })
        };
        assert!(labels(&update(&old, &old)).is_empty());
        let new = NodeFacts {
            declared_features: vec!["f".to_owned()],
            ..NodeFacts::default()
        };
        assert_eq!(
            labels(&update(&old, &new)),
            [
                "NodeUpdateNodeTaint",
                "NodeUpdateNodeTaint",
                "NodeUpdateNodeDeclaredFeature"
            ]
        );
        let cordoned = update(&NodeFacts::default(), &old);
        assert_eq!(labels(&cordoned), ["NodeUpdateNodeTaint"]);
    }
}
