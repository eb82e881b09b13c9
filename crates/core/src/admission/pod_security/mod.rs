//! PodSecurity: which pods a namespace takes, by the Pod Security Standards.
//!
//! A namespace chooses a [`Level`] for each of three modes with labels: `enforce` refuses pods,
//! `audit` records violations in the audit log, `warn` sends them to the caller. A policy may be
//! pinned to the rules of a release, see [`Version`]. Workloads with a pod template are never
//! refused, only audited and warned about: their pods are checked when they are created.
//!
//! Nothing here reads a cluster or a clock. Callers pass the labels of the namespace and the pod,
//! and carry out the [`Verdict`].
//!
//! Reading order: [`policy`] (levels, versions, labels), [`subject`] (the checked fields), [`checks`]
//! (the rules, with the releases in which they apply), [`configuration`] (defaults and
//! exemptions), [`verdict`] (the result for a pod or a template), [`namespace`] (the check of
//! a namespace whose labels change).
//!
//! Matches v1.36 staging/src/k8s.io/pod-security-admission; messages are equal.

pub mod checks;
pub mod configuration;
pub mod namespace;
pub mod policy;
pub mod subject;
#[cfg(test)]
mod tests;
pub mod verdict;

pub use checks::{Violations, violations};
pub use configuration::{Exemption, PodSecurity};
pub use policy::{Level, LevelVersion, Mode, NamespacePolicy, Policy, Version};
pub use subject::{Subject, is_significant_update, template_of};
pub use verdict::{Evaluation, Target, Verdict};

/// The prefix of the labels of namespaces and of the keys of audit annotations.
pub const PREFIX: &str = "pod-security.kubernetes.io/";
