//! Labels a node may give itself.
//!
//! Matches v1.36 cmd/kubelet/app/options/options.go, ValidateKubeletFlags, and
//! staging/src/k8s.io/kubelet/pkg/apis/well_known_labels.go.

use crate::problem::Problem;

use super::{Refusals, relocate};

/// Labels that nodes are known to set on themselves.
const KUBELET_LABELS: &[&str] = &[
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// Namespaces in which a node may set any label.
const KUBELET_LABEL_NAMESPACES: &[&str] = &["kubelet.kubernetes.io", "node.kubernetes.io"];

/// Labels in Kubernetes' namespaces decide over trust, so a node may set only some of them. The
/// rule is younger than OKD 3.
pub(super) fn validate(refusals: &mut Refusals<'_>) {
    let config = refusals.config;
    if config.profile.is_okd() {
        return;
    }
    for key in config.node_labels.keys() {
        if may_label_itself(key) {
            continue;
        }
        let sentence = format!(
            "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [{key}]\n\
             --node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix ({}) \
             or be in the specifically allowed set ({})",
            KUBELET_LABEL_NAMESPACES.join(", "),
            KUBELET_LABELS.join(", ")
        );
        let problem = Problem::refused(format!("--node-labels[{key}]"), sentence);
        refusals.problems.push(relocate(config, problem));
    }
}

/// Whether a node may give itself a label of this name: one outside of Kubernetes' own domains, or
/// one of those in them that are meant for it.
#[must_use]
pub fn may_label_itself(key: &str) -> bool {
    let namespace = key.split_once('/').map_or("", |(namespace, _)| namespace);
    let is_of = |domain: &&str| is_in(namespace, domain);
    let is_kubernetes = ["kubernetes.io", "k8s.io"].iter().any(is_of);
    let is_own_namespace = KUBELET_LABEL_NAMESPACES.iter().any(is_of);
    !is_kubernetes || is_own_namespace || KUBELET_LABELS.contains(&key)
}

fn is_in(namespace: &str, domain: &str) -> bool {
    let host = namespace.strip_suffix(domain);
    host.is_some_and(|host| host.is_empty() || host.ends_with('.'))
}
