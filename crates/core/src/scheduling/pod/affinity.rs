//! Affinity and anti-affinity to other pods.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Affinity, PodAffinityTerm, WeightedPodAffinityTerm};

use crate::object::identity::PodRef;
use crate::object::selector::LabelSelector;
use crate::problem::Problem;

/// The affinity and anti-affinity of a pod to other pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodAffinity {
    /// Pods that must be near.
    pub required: Vec<AffinityTerm>,
    /// Pods that must not be near.
    pub required_anti: Vec<AffinityTerm>,
    /// Pods that had better be near.
    pub preferred: Vec<WeightedTerm>,
    /// Pods that had better not be near.
    pub preferred_anti: Vec<WeightedTerm>,
}

/// Pods by namespace and labels, and what "near" means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffinityTerm {
    /// Namespaces by name. The owner's own, if neither names nor a selector are given.
    pub namespaces: BTreeSet<String>,
    /// Namespaces by label.
    pub namespace_selector: LabelSelector,
    /// Pods by label.
    pub selector: LabelSelector,
    /// The node label whose equal values mean "near".
    pub topology_key: String,
}

/// A term and how much it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedTerm {
    /// The term.
    pub term: AffinityTerm,
    /// Its weight.
    pub weight: i32,
}

impl PodAffinity {
    pub(super) fn of_pod(
        owner: &PodRef,
        affinity: Option<&Affinity>,
        problems: &mut Vec<Problem>,
    ) -> PodAffinity {
        let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
        let far = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
        let mut reader = Reader { owner, problems };
        PodAffinity {
            required: reader.required(
                "podAffinity",
                near.and_then(|a| {
                    a.required_during_scheduling_ignored_during_execution
                        .as_ref()
                }),
            ),
            required_anti: reader.required(
                "podAntiAffinity",
                far.and_then(|a| {
                    a.required_during_scheduling_ignored_during_execution
                        .as_ref()
                }),
            ),
            preferred: reader.preferred(
                "podAffinity",
                near.and_then(|a| {
                    a.preferred_during_scheduling_ignored_during_execution
                        .as_ref()
                }),
            ),
            preferred_anti: reader.preferred(
                "podAntiAffinity",
                far.and_then(|a| {
                    a.preferred_during_scheduling_ignored_during_execution
                        .as_ref()
                }),
            ),
        }
    }

    /// Whether it prefers anything.
    pub fn has_preferences(&self) -> bool {
        !self.preferred.is_empty() || !self.preferred_anti.is_empty()
    }

    /// Whether it has no terms.
    pub fn is_empty(&self) -> bool {
        self.required.is_empty() && self.required_anti.is_empty() && !self.has_preferences()
    }
}

impl AffinityTerm {
    /// Whether the pod is meant, given the labels of its namespace.
    pub fn matches(
        &self,
        pod: &PodRef,
        labels: &BTreeMap<String, String>,
        namespace_labels: &BTreeMap<String, String>,
    ) -> bool {
        let is_namespace_meant = self.namespaces.contains(&pod.namespace)
            || self.namespace_selector.matches(namespace_labels);
        is_namespace_meant && self.selector.matches(labels)
    }
}

struct Reader<'a> {
    owner: &'a PodRef,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn required(&mut self, field: &str, terms: Option<&Vec<PodAffinityTerm>>) -> Vec<AffinityTerm> {
        let path = format!("spec.affinity.{field}.requiredDuringSchedulingIgnoredDuringExecution");
        let terms = terms.into_iter().flatten().enumerate();
        terms
            .filter_map(|(index, term)| self.term(&format!("{path}[{index}]"), term))
            .collect()
    }

    fn preferred(
        &mut self,
        field: &str,
        terms: Option<&Vec<WeightedPodAffinityTerm>>,
    ) -> Vec<WeightedTerm> {
        let path = format!("spec.affinity.{field}.preferredDuringSchedulingIgnoredDuringExecution");
        let terms = terms.into_iter().flatten().enumerate();
        terms
            .filter_map(|(index, weighted)| {
                let path = format!("{path}[{index}].podAffinityTerm");
                Some(WeightedTerm {
                    term: self.term(&path, &weighted.pod_affinity_term)?,
                    weight: weighted.weight,
                })
            })
            .collect()
    }

    fn term(&mut self, path: &str, term: &PodAffinityTerm) -> Option<AffinityTerm> {
        let mut selector = |field: &str, api| match LabelSelector::from_api(api) {
            Ok(selector) => Some(selector),
            Err(error) => {
                let path = format!("{path}.{field}");
                let problem = Problem::invalid(path, "", error.to_string());
                self.problems.push(problem);
                None
            }
        };
        let pods = selector("labelSelector", term.label_selector.as_ref());
        let of_namespaces = selector("namespaceSelector", term.namespace_selector.as_ref());
        let mut namespaces: BTreeSet<String> = term.namespaces.iter().flatten().cloned().collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.insert(self.owner.namespace.clone());
        }
        Some(AffinityTerm {
            namespaces,
            namespace_selector: of_namespaces?,
            selector: pods?,
            topology_key: term.topology_key.clone(),
        })
    }
}
