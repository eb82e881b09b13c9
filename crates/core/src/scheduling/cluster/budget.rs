//! How many pods of a kind may be disrupted.

use std::collections::BTreeSet;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::object::selector::LabelSelector;
use crate::scheduling::pod::SchedulingPod;

/// A pod disruption budget, reduced to what preemption reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisruptionBudget {
    /// Its namespace, which is also that of its pods.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How many more disruptions it allows.
    pub disruptions_allowed: i32,
    selector: LabelSelector,
    disrupted_pods: BTreeSet<String>,
}

impl DisruptionBudget {
    /// Reads a budget. A malformed selector selects nothing.
    pub fn from_api(budget: &PodDisruptionBudget) -> DisruptionBudget {
        let meta = &budget.metadata;
        let status = budget.status.as_ref();
        let disrupted = status.and_then(|status| status.disrupted_pods.as_ref());
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        DisruptionBudget {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            disruptions_allowed: status
                .and_then(|status| status.disruptions_allowed)
                .unwrap_or(0),
            selector: LabelSelector::from_api(selector).unwrap_or(LabelSelector::nothing()),
            disrupted_pods: disrupted
                .into_iter()
                .flat_map(|d| d.keys().cloned())
                .collect(),
        }
    }

    /// Whether disrupting the pod spends from this budget.
    ///
    /// An empty selector selects no pod here, a pod without labels is in no budget, and a pod whose
    /// disruption the API server has granted already does not count again.
    pub fn is_spent_by(&self, pod: &SchedulingPod) -> bool {
        !pod.labels.is_empty()
            && self.namespace == pod.pod_ref.namespace
            && !self.selector.is_empty()
            && self.selector.matches(&pod.labels)
            && !self.disrupted_pods.contains(&pod.pod_ref.name)
    }
}
