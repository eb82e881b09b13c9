//! Events about pods.

use std::sync::Arc;

use crate::object::identity::{NodeName, PodUid};
use crate::scheduling::pod::SchedulingPod;

use super::{Change, Cluster};

/// Where a pod is.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pod: Arc<SchedulingPod>,
    node: NodeName,
    kind: PlaceKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceKind {
    /// On the node, according to the API server.
    Bound,
    /// On the node, as the scheduler decided; the API server has not said so yet.
    Assumed,
    /// Pending; room was made on the node.
    Nominated,
}

/// The decision of an attempt about the room that is reserved for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nomination {
    /// Nothing: the nomination in the pod's status stays.
    AsStated,
    /// Room is set aside on this node.
    To(NodeName),
    /// Room is no longer set aside.
    Cleared,
}

impl Cluster {
    /// A pod that is on a node, assumed there, or nominated to one.
    pub fn pod(&self, uid: &PodUid) -> Option<&Arc<SchedulingPod>> {
        self.places.get(uid).map(|place| &place.pod)
    }

    /// Learns a pod or its new state.
    ///
    /// A pod with a node name is on that node. One without is pending, and kept only if room was
    /// made for it somewhere. A finished pod is forgotten. That a pod is still pending does not
    /// undo an assumption: only [`Cluster::remove_pod`] does. Nor does it undo a nomination that the
    /// status has never shown: this state may be older than the nomination.
    pub fn set_pod(&mut self, pod: Arc<SchedulingPod>) -> Vec<Change> {
        if pod.is_finished {
            return self.remove_pod(&pod.uid);
        }
        let (node, kind) = match (&pod.node_name, &pod.nominated_node_name) {
            (Some(node), _) => (node.clone(), PlaceKind::Bound),
            (None, _) if self.is_assumed(&pod.uid) => return Vec::new(),
            (None, Some(node)) => (node.clone(), PlaceKind::Nominated),
            (None, None) => match self.nomination_not_in_status(&pod.uid) {
                Some(node) => (node.clone(), PlaceKind::Nominated),
                None => return self.remove_pod(&pod.uid),
            },
        };
        self.place_pod(Place { pod, node, kind })
    }

    /// Records what a failed attempt decided about room for a pod that is still pending, before the
    /// API server knows. A pod that has a node, if only an assumed one, is skipped. Matches v1.36
    /// pkg/scheduler/backend/queue/nominator.go.
    pub fn nominate(&mut self, pod: Arc<SchedulingPod>, nomination: Nomination) -> Vec<Change> {
        let place = self.places.get(&pod.uid);
        if place.is_some_and(|place| place.kind != PlaceKind::Nominated) {
            return Vec::new();
        }
        let node = match nomination {
            Nomination::AsStated => pod.nominated_node_name.clone(),
            Nomination::To(node) => Some(node),
            Nomination::Cleared => None,
        };
        let kind = PlaceKind::Nominated;
        match node {
            Some(node) => self.place_pod(Place { pod, node, kind }),
            None => self.remove_pod(&pod.uid),
        }
    }

    /// The node on which room was made for the pod although its status did not say so.
    fn nomination_not_in_status(&self, uid: &PodUid) -> Option<&NodeName> {
        let place = self.places.get(uid)?;
        let is_unstated =
            place.kind == PlaceKind::Nominated && place.pod.nominated_node_name.is_none();
        is_unstated.then_some(&place.node)
    }

    /// Puts a pod on the node that was chosen for it, before the API server knows.
    pub fn assume_pod(&mut self, pod: Arc<SchedulingPod>, node: &NodeName) -> Vec<Change> {
        let (node, kind) = (node.clone(), PlaceKind::Assumed);
        self.place_pod(Place { pod, node, kind })
    }

    /// Whether the pod is on a node only because the scheduler said so.
    pub fn is_assumed(&self, uid: &PodUid) -> bool {
        let place = self.places.get(uid);
        place.is_some_and(|place| place.kind == PlaceKind::Assumed)
    }

    /// The node on which room was made for the pod, if it is still pending.
    pub fn nomination(&self, uid: &PodUid) -> Option<&NodeName> {
        let place = self.places.get(uid)?;
        (place.kind == PlaceKind::Nominated).then_some(&place.node)
    }

    /// Removes a pod: it is deleted or finished, or could not be bound.
    pub fn remove_pod(&mut self, uid: &PodUid) -> Vec<Change> {
        let Some(place) = self.places.remove(uid) else {
            return Vec::new();
        };
        let Place { pod, node, kind } = place;
        if kind == PlaceKind::Nominated {
            remove_from(&mut self.nominated, &node, uid);
            return vec![self.nomination_changed(&node)];
        }
        if let Some(slot) = self.slot(&node)
            && let Some(state) = self.node_mut(slot)
        {
            state.remove_pod(&pod);
            return vec![Change::PodRemoved { slot, pod }];
        }
        remove_from(&mut self.homeless, &node, uid);
        vec![Change::Other]
    }

    /// A node that is not known learns its nominations when it appears.
    fn nomination_changed(&self, node: &NodeName) -> Change {
        self.slot(node)
            .map_or(Change::Other, Change::NominationChanged)
    }

    fn place_pod(&mut self, place: Place) -> Vec<Change> {
        let mut changes = self.remove_pod(&place.pod.uid);
        let (pod, node) = (Arc::clone(&place.pod), &place.node);
        let change = if place.kind == PlaceKind::Nominated {
            self.nominated.entry(node.clone()).or_default().push(pod);
            self.nomination_changed(node)
        } else if let Some(slot) = self.slot(node)
            && let Some(state) = self.node_mut(slot)
        {
            state.add_pod(Arc::clone(&pod));
            Change::PodAdded { slot, pod }
        } else {
            self.homeless.entry(node.clone()).or_default().push(pod);
            Change::Other
        };
        changes.push(change);
        self.places.insert(place.pod.uid.clone(), place);
        changes
    }
}

fn remove_from(
    lists: &mut std::collections::BTreeMap<NodeName, Vec<Arc<SchedulingPod>>>,
    node: &NodeName,
    uid: &PodUid,
) {
    if let Some(list) = lists.get_mut(node) {
        list.retain(|pod| pod.uid != *uid);
        if list.is_empty() {
            lists.remove(node);
        }
    }
}
