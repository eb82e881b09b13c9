//! `scheduling.k8s.io/v1`.

use super::Group;
use super::kind::Kind;
use super::strategy::Generation;

const V1: (&str, &str) = ("scheduling.k8s.io", "v1");

pub(super) const GROUP: Group = Group {
    name: V1.0,
    version: V1.1,
    kinds: &[
        Kind::cluster(V1, "PriorityClass", "priorityclasses", "priorityclass")
            .short(&["pc"])
            .generation(Generation::One),
    ],
};
