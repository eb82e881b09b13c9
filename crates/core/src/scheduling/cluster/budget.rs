//! How many pods of a kind may be disrupted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

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
    pub fn is_charged_by(&self, pod: &SchedulingPod) -> bool {
        !pod.labels.is_empty()
            && self.namespace == pod.pod_ref.namespace
            && !self.selector.is_empty()
            && self.selector.matches(&pod.labels)
            && !self.disrupted_pods.contains(&pod.pod_ref.name)
    }

    /// Whether disrupting any pod spends from both or from neither.
    fn covers_the_same(&self, other: &DisruptionBudget) -> bool {
        self.namespace == other.namespace
            && self.selector == other.selector
            && self.disrupted_pods == other.disrupted_pods
    }
}

/// All budgets, and what has lately changed about them.
#[derive(Clone, Debug, Default)]
pub(super) struct Budgets {
    all: BTreeMap<(String, String), DisruptionBudget>,
    /// Per change: the least that the budget allowed, before or after; `None` if the set of pods
    /// that it covers changed.
    changes: VecDeque<Option<i32>>,
    /// Number of changes forgotten.
    forgotten: u64,
}

/// Changes kept. A reader that is further behind reads everything again.
const KEPT_CHANGES: usize = 1024;

impl Budgets {
    pub(super) fn iter(&self) -> impl Iterator<Item = &DisruptionBudget> {
        self.all.values()
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &DisruptionBudget> {
        let from = (namespace.to_owned(), String::new());
        let from = self.all.range(from..).map(|(_, budget)| budget);
        from.take_while(move |budget| budget.namespace == namespace)
    }

    pub(super) fn set(&mut self, budget: DisruptionBudget) {
        let key = (budget.namespace.clone(), budget.name.clone());
        let change = match self.all.get(&key) {
            Some(old) if *old == budget => return,
            Some(old) if old.covers_the_same(&budget) => {
                Some(old.disruptions_allowed.min(budget.disruptions_allowed))
            }
            _ => None,
        };
        self.all.insert(key, budget);
        self.note(change);
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        if self.all.remove(&key).is_some() {
            self.note(None);
        }
    }

    fn note(&mut self, change: Option<i32>) {
        if self.changes.len() == KEPT_CHANGES {
            self.changes.pop_front();
            self.forgotten += 1;
        }
        self.changes.push_back(change);
    }

    pub(super) fn version(&self) -> u64 {
        self.forgotten + u64::try_from(self.changes.len()).unwrap_or(u64::MAX)
    }

    pub(super) fn least_allowed_since(&self, version: u64) -> Option<i32> {
        let skipped = version.checked_sub(self.forgotten)?;
        let skipped = usize::try_from(skipped).ok()?;
        let mut changes = self.changes.iter().skip(skipped);
        changes.try_fold(i32::MAX, |least, change| change.map(|own| own.min(least)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn budget(name: &str, allowed: i32, app: &str) -> DisruptionBudget {
        let api = json!({
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed},
        });
        DisruptionBudget::from_api(&serde_json::from_value(api).unwrap())
    }

    #[test]
    fn distinguishes_changed_allowance_from_changed_coverage() {
        let mut budgets = Budgets::default();
        budgets.set(budget("a", 3, "a"));
        budgets.set(budget("b", 9, "b"));
        let before = budgets.version();
        assert_eq!(budgets.least_allowed_since(before), Some(i32::MAX));
        budgets.set(budget("a", 5, "a"));
        budgets.set(budget("b", 4, "b"));
        assert_eq!(budgets.least_allowed_since(before), Some(3));
        budgets.set(budget("b", 4, "c"));
        assert_eq!(budgets.least_allowed_since(before), None);
        let before = budgets.version();
        budgets.set(budget("b", 4, "c"));
        assert_eq!(budgets.version(), before);
        budgets.remove("default", "b");
        assert_eq!(budgets.least_allowed_since(before), None);
    }

    #[test]
    fn old_changes_are_dropped() {
        let mut budgets = Budgets::default();
        for allowed in 0..3000 {
            budgets.set(budget("a", allowed, "a"));
        }
        assert_eq!(budgets.version(), 3000);
        assert_eq!(budgets.least_allowed_since(0), None);
        assert_eq!(budgets.least_allowed_since(2999), Some(2998));
    }
}
