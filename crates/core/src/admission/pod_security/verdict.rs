//! The verdict on a pod, or on a workload with a pod template.
//!
//! Matches v1.36 staging/src/k8s.io/pod-security-admission/admission/admission.go, `EvaluatePod`.

use std::collections::BTreeMap;

use crate::problem::aggregate;

use super::checks::{Violations, violations};
use super::configuration::{Exemption, PodSecurity};
use super::policy::{LevelVersion, Mode, NamespacePolicy};
use super::subject::Subject;

/// The checked object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A pod, which may be refused.
    Pod,
    /// A workload: its pods are checked when they are created.
    Template,
}

/// That a policy was evaluated, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// In which mode.
    pub mode: Mode,
    /// The policy that applied.
    pub policy: LevelVersion,
    /// Whether the pod complied.
    pub is_allowed: bool,
}

/// The verdict, with reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Why it is refused, if it is: the reason of a 403.
    pub denial: Option<String>,
    /// The warnings for the caller.
    pub warnings: Vec<String>,
    /// The audit annotations, by key without [`PREFIX`](super::PREFIX).
    pub annotations: BTreeMap<&'static str, String>,
    /// Why it was exempt, if it was.
    pub exemption: Option<Exemption>,
    /// Which policies were evaluated. Complying with `audit` and `warn` is not counted.
    pub evaluations: Vec<Evaluation>,
    /// Whether labels of the namespace could not be read.
    pub has_malformed_policy: bool,
}

impl Verdict {
    /// Exempt.
    pub fn exempt(exemption: Exemption) -> Verdict {
        Verdict {
            annotations: BTreeMap::from([("exempt", exemption.as_str().to_owned())]),
            exemption: Some(exemption),
            ..Verdict::default()
        }
    }

    /// A pod in a namespace that takes all pods.
    pub fn privileged(policy: LevelVersion) -> Verdict {
        Verdict {
            annotations: BTreeMap::from([("enforce-policy", "privileged:latest".to_owned())]),
            evaluations: vec![Evaluation {
                mode: Mode::Enforce,
                policy,
                is_allowed: true,
            }],
            ..Verdict::default()
        }
    }
}

impl PodSecurity {
    /// The verdict without a look at the object, where none is needed: exempt callers and
    /// namespaces, and policies that allow everything.
    pub fn verdict_unseen(
        &self,
        target: Target,
        namespace: &str,
        user: &str,
        policy: &NamespacePolicy,
    ) -> Option<Verdict> {
        if let Some(exemption) = self.exemption(namespace, user) {
            return Some(Verdict::exempt(exemption));
        }
        let asked: &[Mode] = match target {
            Target::Pod => &Mode::ALL,
            Target::Template => &[Mode::Audit, Mode::Warn],
        };
        let is_privileged = |mode: &Mode| policy.policy.of(*mode).level == super::Level::Privileged;
        if !policy.problems.is_empty() || !asked.iter().all(is_privileged) {
            return None;
        }
        Some(match target {
            Target::Pod => Verdict::privileged(policy.policy.enforce),
            Target::Template => Verdict::default(),
        })
    }

    /// Checks a pod or a template against the policy of its namespace.
    pub fn judge(
        &self,
        target: Target,
        namespace: &NamespacePolicy,
        subject: &Subject<'_>,
    ) -> Verdict {
        if self.is_runtime_class_exempt(subject.spec.runtime_class_name.as_deref()) {
            return Verdict::exempt(Exemption::RuntimeClass);
        }
        let policy = namespace.policy;
        let mut verdict = Verdict::default();
        if !namespace.problems.is_empty() {
            let problems = aggregate(&namespace.problems);
            let error = format!("Failed to parse policy: {problems}");
            verdict.annotations.insert("error", error);
            verdict.has_malformed_policy = true;
        }
        let mut known: Vec<(LevelVersion, Violations)> = Vec::new();
        let mut ask = |of: LevelVersion| -> Violations {
            if let Some((_, found)) = known.iter().find(|(known, _)| *known == of) {
                return found.clone();
            }
            let found = violations(of, subject);
            known.push((of, found.clone()));
            found
        };
        if target == Target::Pod {
            let of = policy.enforce;
            verdict.annotations.insert("enforce-policy", of.to_string());
            let found = ask(of);
            verdict.note(Mode::Enforce, of, found.is_empty());
            if !found.is_empty() {
                let details = found.details();
                verdict.denial = Some(format!("violates PodSecurity \"{of}\": {details}"));
            }
        }
        let found = ask(policy.audit);
        if !found.is_empty() {
            let text = would_violate(policy.audit, &found);
            verdict.annotations.insert("audit-violations", text);
            verdict.note(Mode::Audit, policy.audit, false);
        }
        // A refusal already has all reasons.
        if verdict.denial.is_none() {
            let found = ask(policy.warn);
            if !found.is_empty() {
                verdict.warnings.push(would_violate(policy.warn, &found));
                verdict.note(Mode::Warn, policy.warn, false);
            }
        }
        verdict
    }
}

impl Verdict {
    fn note(&mut self, mode: Mode, policy: LevelVersion, is_allowed: bool) {
        self.evaluations.push(Evaluation {
            mode,
            policy,
            is_allowed,
        });
    }
}

fn would_violate(of: LevelVersion, found: &Violations) -> String {
    format!("would violate PodSecurity \"{of}\": {}", found.details())
}
