//! Checks a namespace whose labels change, and finds its pods that would no longer be admitted.
//!
//! Matches v1.36 staging/src/k8s.io/pod-security-admission/admission/admission.go,
//! `ValidateNamespace` and `EvaluatePodsInNamespace`.

use std::collections::{BTreeMap, BTreeSet};

use crate::problem::Problem;

use super::checks::violations;
use super::configuration::PodSecurity;
use super::policy::{Level, LevelVersion, Mode, Policy};
use super::subject::Subject;

/// The most pods that a change of labels is compared with.
pub const MAX_PODS: usize = 3000;

/// How long that may take, in milliseconds.
pub const MAX_MILLISECONDS: u64 = 1000;

/// The result for the namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamespaceVerdict {
    /// It is stored.
    Allowed,
    /// It is refused for its labels.
    Invalid(Vec<Problem>),
    /// It is stored, and the caller is warned.
    Warned(String),
    /// It is stored, and the caller is warned of pods that this policy would refuse: a [`Survey`].
    Tightened(LevelVersion),
}

impl PodSecurity {
    /// Checks the labels of a namespace that is created, or changed from the `old` labels.
    pub fn judge_namespace(
        &self,
        name: &str,
        labels: &BTreeMap<String, String>,
        old: Option<&BTreeMap<String, String>>,
    ) -> NamespaceVerdict {
        let new = self.policy_of(labels);
        let Some(old) = old.map(|old| self.policy_of(old)) else {
            return match new.problems.is_empty() {
                true => self.warn_if_exempt(name, &new.policy, labels),
                false => NamespaceVerdict::Invalid(new.problems),
            };
        };
        // What was malformed before may stay, so that other changes are possible.
        if !new.problems.is_empty() && new.problems != old.problems {
            return NamespaceVerdict::Invalid(new.problems);
        }
        let (new, old) = (new.policy, old.policy);
        let is_relaxed =
            new.enforce.version == old.enforce.version && new.enforce.level <= old.enforce.level;
        if new.enforce.level == Level::Privileged || is_relaxed {
            return NamespaceVerdict::Allowed;
        }
        if self.exempt_namespaces.contains(name) {
            return self.warn_if_exempt(name, &new, labels);
        }
        NamespaceVerdict::Tightened(new.enforce)
    }

    /// Labels on an exempt namespace have no effect.
    fn warn_if_exempt(
        &self,
        name: &str,
        policy: &Policy,
        labels: &BTreeMap<String, String>,
    ) -> NamespaceVerdict {
        let is_exempt = self.exempt_namespaces.contains(name);
        if !is_exempt || policy.is_privileged() || policy.is_equivalent(&self.defaults) {
            return NamespaceVerdict::Allowed;
        }
        let modes = Mode::ALL.into_iter();
        let modes = modes
            .filter(|mode| policy.of(*mode).level != Level::Privileged && mode.is_labelled(labels));
        let modes = modes.map(|mode| format!("{}={}", mode.as_str(), policy.of(mode)));
        let ignored = modes.collect::<Vec<_>>().join(", ");
        NamespaceVerdict::Warned(format!(
            "namespace \"{name}\" is exempt from Pod Security, and the policy ({ignored}) will be \
             ignored"
        ))
    }

    /// The order in which the pods of a namespace are looked at, as indexes: those of exempt
    /// runtime classes are left out, and the first pod of each controller comes before the others.
    pub fn survey_order(&self, pods: &[Candidate]) -> Vec<usize> {
        let mut controllers = BTreeSet::new();
        let mut order = Vec::new();
        let mut replicas = Vec::new();
        for (index, pod) in pods.iter().enumerate() {
            if self.is_runtime_class_exempt(pod.runtime_class.as_deref()) {
                continue;
            }
            let is_first = pod
                .controller
                .as_ref()
                .is_none_or(|uid| controllers.insert(uid));
            match is_first {
                true => order.push(index),
                false => replicas.push(index),
            }
        }
        order.append(&mut replicas);
        order
    }
}

/// The input of the check of a namespace's pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Its runtime class.
    pub runtime_class: Option<String>,
    /// The uid of its controller.
    pub controller: Option<String>,
}

/// Pods of a namespace compared with a policy, one after the other.
#[derive(Clone, Debug)]
pub struct Survey {
    enforce: LevelVersion,
    looked_at: usize,
    /// By what is wrong: the pod whose name comes first, and how many there are.
    found: BTreeMap<String, (String, usize)>,
}

impl Survey {
    /// A survey that has looked at nothing.
    pub fn new(enforce: LevelVersion) -> Survey {
        Survey {
            enforce,
            looked_at: 0,
            found: BTreeMap::new(),
        }
    }

    /// Looks at one pod.
    pub fn look_at(&mut self, name: &str, pod: &Subject<'_>) {
        self.looked_at += 1;
        let violations = violations(self.enforce, pod);
        if violations.is_empty() {
            return;
        }
        let found = self.found.entry(violations.reasons());
        let (first, count) = found.or_insert_with(|| (name.to_owned(), 0));
        if name < first.as_str() {
            name.clone_into(first);
        }
        *count += 1;
    }

    /// The warnings for the caller, when there were `total` pods to check.
    pub fn warnings(self, namespace: &str, total: usize) -> Vec<String> {
        let (looked_at, enforce) = (self.looked_at, self.enforce);
        let mut warnings = Vec::new();
        if looked_at < total {
            warnings.push(format!(
                "new PodSecurity enforce level only checked against the first {looked_at} of \
                 {total} existing pods"
            ));
        }
        if !self.found.is_empty() {
            warnings.push(format!(
                "existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce \
                 level \"{enforce}\""
            ));
        }
        let pods = self
            .found
            .into_iter()
            .map(|(reasons, (first, count))| match count {
                1 => format!("{first}: {reasons}"),
                2 => format!("{first} (and 1 other pod): {reasons}"),
                _ => format!("{first} (and {} other pods): {reasons}", count - 1),
            });
        let mut pods: Vec<String> = pods.collect();
        pods.sort();
        warnings.extend(pods);
        warnings
    }
}
