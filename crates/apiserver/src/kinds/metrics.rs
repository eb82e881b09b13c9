//! `metrics.k8s.io/v1beta1`: usage as the node agents last reported it.

use super::Group;
use super::kind::{Kind, Verb};

const V1BETA1: (&str, &str) = ("metrics.k8s.io", "v1beta1");

pub(super) const GROUP: Group = Group {
    name: V1BETA1.0,
    version: V1BETA1.1,
    kinds: &[
        // Plural and singular are as metrics-server has them.
        Kind::cluster(V1BETA1, "NodeMetrics", "nodes", "").not_stored(&[Verb::Get, Verb::List]),
        Kind::namespaced(V1BETA1, "PodMetrics", "pods", "").not_stored(&[Verb::Get, Verb::List]),
    ],
};
