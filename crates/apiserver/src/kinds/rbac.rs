//! `rbac.authorization.k8s.io/v1`.

use super::Group;
use super::kind::Kind;

const V1: (&str, &str) = ("rbac.authorization.k8s.io", "v1");

pub(super) const GROUP: Group = Group {
    name: V1.0,
    version: V1.1,
    kinds: &[
        Kind::cluster(
            V1,
            "ClusterRoleBinding",
            "clusterrolebindings",
            "clusterrolebinding",
        )
        .put_creates(),
        Kind::cluster(V1, "ClusterRole", "clusterroles", "clusterrole").put_creates(),
        Kind::namespaced(V1, "RoleBinding", "rolebindings", "rolebinding").put_creates(),
        Kind::namespaced(V1, "Role", "roles", "role").put_creates(),
    ],
};
