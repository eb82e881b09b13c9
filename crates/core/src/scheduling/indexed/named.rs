//! Pods that name their node, as those of daemon sets do.

use std::sync::Arc;

use crate::scheduling::decision::{Decision, Error, Placement};
use crate::scheduling::filters::Seeker;
use crate::scheduling::plugins::pod_topology_spread;
use crate::scheduling::pod::{NamedNodes, SchedulingPod};

use super::Engine;
use super::class::NO_FILTER_STATE;

impl Engine {
    /// A pod that names one node is tried there alone, if no other pods matter to it.
    pub(super) fn schedule_named(
        &mut self,
        profile: usize,
        pod: &Arc<SchedulingPod>,
    ) -> Result<Decision, Error> {
        let seeker = Seeker {
            cluster: &self.cluster,
            profile: &self.profiles[profile],
            pod,
        };
        if let NamedNodes::Only(names) = &pod.node_rules.named
            && names.len() == 1
            && pod.nominated_node_name.is_none()
            && !self.asks_about_others(&seeker)
            && let Some(slot) = names.first().and_then(|name| self.cluster.slot(name))
            && let Some(node) = self.cluster.node(slot)
            && seeker
                .filter_with_nominated(node, &NO_FILTER_STATE)
                .is_none()
        {
            return Ok(Decision::Place(Placement::without_choice(slot)));
        }
        self.ask_reference(profile, pod)
    }

    /// Whether other pods decide where this one may go.
    fn asks_about_others(&self, seeker: &Seeker<'_>) -> bool {
        let Seeker {
            cluster,
            profile,
            pod,
        } = seeker;
        let hard = pod_topology_spread::hard_constraints(pod, &profile.spread, &cluster.owners);
        let namespace_labels = cluster.namespace_labels(&pod.pod_ref.namespace);
        let mut existing = self.kinds.with_terms().iter();
        !hard.is_empty()
            || !pod.affinity.required.is_empty()
            || !pod.affinity.required_anti.is_empty()
            || existing.any(|kind| {
                let mut terms = self.kinds.pod(*kind).affinity.required_anti.iter();
                terms.any(|term| term.matches(&pod.pod_ref, &pod.labels, namespace_labels))
            })
    }
}
