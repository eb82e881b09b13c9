//! `node.k8s.io/v1`.

use super::Group;
use super::kind::Kind;

const V1: (&str, &str) = ("node.k8s.io", "v1");

pub(super) const GROUP: Group = Group {
    name: V1.0,
    version: V1.1,
    kinds: &[
        Kind::cluster(V1, "RuntimeClass", "runtimeclasses", "runtimeclass")
            .put_creates()
            .put_needs_version(),
    ],
};
