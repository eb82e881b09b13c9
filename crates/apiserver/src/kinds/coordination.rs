//! `coordination.k8s.io/v1`.

use super::Group;
use super::kind::Kind;

const V1: (&str, &str) = ("coordination.k8s.io", "v1");

pub(super) const GROUP: Group = Group {
    name: V1.0,
    version: V1.1,
    kinds: &[Kind::namespaced(V1, "Lease", "leases", "lease")
        .put_creates()
        .put_needs_version()],
};
