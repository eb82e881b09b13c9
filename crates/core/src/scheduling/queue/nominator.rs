//! Which pending pods have room set aside on which node.
//!
//! Matches v1.36 pkg/scheduler/backend/queue/nominator.go.

use std::collections::BTreeMap;

use super::facts::PodFacts;
use crate::object::identity::{NodeName, PodRef, PodUid};

/// What an attempt decided about the nomination of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nomination {
    /// Nothing: what the pod's status says goes on.
    AsStated,
    /// Room is set aside on this node.
    To(NodeName),
    /// Room is no longer set aside.
    Cleared,
}

/// A pod with room set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NominatedPod {
    /// Namespace and name.
    pub pod_ref: PodRef,
    /// Unique id.
    pub uid: PodUid,
}

/// The nominations, by pod and by node.
#[derive(Clone, Debug, Default)]
pub(super) struct Nominator {
    node_of: BTreeMap<PodUid, NodeName>,
    /// In order of nomination.
    on_node: BTreeMap<NodeName, Vec<NominatedPod>>,
}

impl Nominator {
    pub(super) fn nominate(&mut self, pod: &PodFacts, nomination: Nomination) {
        self.remove(&pod.uid);
        let node = match nomination {
            Nomination::AsStated => pod.nominated_node_name.clone(),
            Nomination::To(node) => Some(node),
            Nomination::Cleared => None,
        };
        if let Some(node) = node {
            self.node_of.insert(pod.uid.clone(), node.clone());
            self.on_node.entry(node).or_default().push(NominatedPod {
                pod_ref: pod.pod_ref.clone(),
                uid: pod.uid.clone(),
            });
        }
    }

    /// Follows an update of a pod. A nomination that the status has never shown is kept: the
    /// update may have been made before the nomination reached the API server.
    pub(super) fn update(&mut self, old: &PodFacts, new: &PodFacts) {
        let is_unstated = old.nominated_node_name.is_none() && new.nominated_node_name.is_none();
        let kept = self.node_of.get(&old.uid).filter(|_| is_unstated).cloned();
        self.remove(&old.uid);
        self.nominate(new, kept.map_or(Nomination::AsStated, Nomination::To));
    }

    pub(super) fn remove(&mut self, uid: &PodUid) {
        let Some(node) = self.node_of.remove(uid) else {
            return;
        };
        if let Some(pods) = self.on_node.get_mut(&node) {
            pods.retain(|pod| pod.uid != *uid);
            if pods.is_empty() {
                self.on_node.remove(&node);
            }
        }
    }

    pub(super) fn on_node(&self, node: &NodeName) -> &[NominatedPod] {
        self.on_node.get(node).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pod;

    fn stated(name: &str, node: Option<&str>) -> PodFacts {
        PodFacts {
            nominated_node_name: node.map(NodeName::from),
            ..PodFacts::from_view(&pod(name).view())
        }
    }

    fn names(nominator: &Nominator, node: &str) -> Vec<String> {
        let pods = nominator.on_node(&NodeName::from(node)).iter();
        pods.map(|pod| pod.pod_ref.name.clone()).collect()
    }

    #[test]
    fn a_nomination_follows_the_attempt_or_else_the_status() {
        let mut nominator = Nominator::default();
        nominator.nominate(&stated("a", Some("n1")), Nomination::AsStated);
        nominator.nominate(&stated("b", None), Nomination::AsStated);
        nominator.nominate(&stated("c", None), Nomination::To("n1".into()));
        assert_eq!(names(&nominator, "n1"), ["a", "c"]);
        nominator.nominate(&stated("a", Some("n1")), Nomination::To("n2".into()));
        assert_eq!(names(&nominator, "n1"), ["c"]);
        assert_eq!(names(&nominator, "n2"), ["a"]);
        nominator.nominate(&stated("a", Some("n1")), Nomination::Cleared);
        nominator.remove(&stated("c", None).uid);
        assert!(nominator.on_node.is_empty() && nominator.node_of.is_empty());
    }

    #[test]
    fn an_update_keeps_a_nomination_that_the_status_does_not_show_yet() {
        let mut nominator = Nominator::default();
        nominator.nominate(&stated("a", None), Nomination::To("n1".into()));
        nominator.update(&stated("a", None), &stated("a", None));
        assert_eq!(names(&nominator, "n1"), ["a"]);
        nominator.update(&stated("a", None), &stated("a", Some("n2")));
        assert_eq!(names(&nominator, "n2"), ["a"]);
        nominator.update(&stated("a", Some("n2")), &stated("a", None));
        assert!(names(&nominator, "n2").is_empty());
    }
}
