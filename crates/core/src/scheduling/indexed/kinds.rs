//! Existing pods by what they mean to others.
//!
//! To a pod that looks for a node, an existing one is its namespace, its labels, its affinity terms
//! and whether it is about to end. Pods that agree in these are of one kind, and a kind is matched
//! once instead of each of its pods.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::scheduling::cluster::{Cluster, NodeSlot};
use crate::scheduling::pod::SchedulingPod;

/// A number that stands for a kind.
pub(super) type KindId = u32;

/// Kinds, and how many pods of each are where.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    all: Vec<Kind>,
    by_hash: BTreeMap<u64, Vec<KindId>>,
    with_terms: Vec<KindId>,
    on_slot: Vec<Vec<(KindId, u32)>>,
    unused: usize,
}

#[derive(Debug)]
struct Kind {
    /// Any pod of the kind.
    pod: Arc<SchedulingPod>,
    pods: u32,
}

/// Kinds that no pod is of any more are kept up to this number and half of all.
const KEPT_UNUSED: usize = 1024;

impl Kinds {
    /// A pod of the kind.
    pub(super) fn pod(&self, kind: KindId) -> &Arc<SchedulingPod> {
        &self.all[index(kind)].pod
    }

    /// Number of kinds ever seen.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Kinds whose pods have affinity terms.
    pub(super) fn with_terms(&self) -> &[KindId] {
        &self.with_terms
    }

    /// Kinds on a node, with how many pods of each.
    pub(super) fn on(&self, slot: NodeSlot) -> &[(KindId, u32)] {
        self.on_slot.get(slot.index()).map_or(&[], Vec::as_slice)
    }

    /// Records that a pod came to a node.
    pub(super) fn add(&mut self, slot: NodeSlot, pod: &Arc<SchedulingPod>) -> KindId {
        let kind = self.intern(pod);
        let known = &mut self.all[index(kind)];
        self.unused -= usize::from(known.pods == 0);
        known.pods += 1;
        if self.on_slot.len() <= slot.index() {
            self.on_slot.resize_with(slot.index() + 1, Vec::new);
        }
        let here = &mut self.on_slot[slot.index()];
        match here.iter_mut().find(|(own, _)| *own == kind) {
            Some((_, pods)) => *pods += 1,
            None => here.push((kind, 1)),
        }
        kind
    }

    /// Records that a pod left a node.
    pub(super) fn remove(&mut self, slot: NodeSlot, pod: &Arc<SchedulingPod>) -> KindId {
        let kind = self.intern(pod);
        self.forget(slot, kind, 1);
        kind
    }

    /// Records that a node is gone with all its pods.
    pub(super) fn remove_all(&mut self, slot: NodeSlot) {
        let Some(here) = self.on_slot.get(slot.index()) else {
            return;
        };
        for (kind, pods) in here.clone() {
            self.forget(slot, kind, pods);
        }
    }

    fn forget(&mut self, slot: NodeSlot, kind: KindId, pods: u32) {
        let known = &mut self.all[index(kind)];
        known.pods -= pods;
        self.unused += usize::from(known.pods == 0);
        if let Some(here) = self.on_slot.get_mut(slot.index())
            && let Some(place) = here.iter().position(|(own, _)| *own == kind)
        {
            here[place].1 -= pods;
            if here[place].1 == 0 {
                here.swap_remove(place);
            }
        }
    }

    /// Whether so many kinds are out of use that it pays to rebuild them.
    pub(super) fn needs_rebuild(&self) -> bool {
        self.unused > KEPT_UNUSED.max(self.all.len() / 2)
    }

    /// The kinds of the pods that are there, renumbered.
    pub(super) fn rebuilt(cluster: &Cluster) -> Kinds {
        let mut kinds = Kinds::default();
        for (slot, node) in cluster.nodes() {
            for pod in node.pods() {
                kinds.add(slot, pod);
            }
        }
        kinds
    }

    fn intern(&mut self, pod: &Arc<SchedulingPod>) -> KindId {
        let same_hash = self.by_hash.entry(hash(pod)).or_default();
        let known = same_hash
            .iter()
            .find(|kind| is_same(&self.all[index(**kind)].pod, pod));
        if let Some(kind) = known {
            return *kind;
        }
        let kind = u32::try_from(self.all.len()).expect("fewer than 2^32 kinds");
        same_hash.push(kind);
        if !pod.affinity.is_empty() {
            self.with_terms.push(kind);
        }
        self.unused += 1;
        self.all.push(Kind {
            pod: Arc::clone(pod),
            pods: 0,
        });
        kind
    }
}

fn index(kind: KindId) -> usize {
    usize::try_from(kind).expect("32 bits fit in an index")
}

fn hash(pod: &SchedulingPod) -> u64 {
    let mut hasher = DefaultHasher::new();
    pod.pod_ref.namespace.hash(&mut hasher);
    pod.labels.hash(&mut hasher);
    pod.is_terminating.hash(&mut hasher);
    hasher.finish()
}

fn is_same(a: &SchedulingPod, b: &SchedulingPod) -> bool {
    a.pod_ref.namespace == b.pod_ref.namespace
        && a.labels == b.labels
        && a.is_terminating == b.is_terminating
        && a.affinity == b.affinity
}
