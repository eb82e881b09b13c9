//! The default roles and bindings of every cluster.
//!
//! They are those of upstream's v1.36 plugin/pkg/auth/authorizer/rbac/bootstrappolicy with its
//! default feature gates, kept as three small tables.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding};

mod parse;

const CLUSTER: &str = include_str!("cluster.policy");
const CONTROLLERS: &str = include_str!("controllers.policy");
const NAMESPACED: &str = include_str!("namespaced.policy");

/// The prefix of controllers' roles.
const CONTROLLER_PREFIX: &str = "system:controller:";

/// The default roles and bindings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standard {
    /// Roles of the whole cluster.
    pub cluster_roles: Vec<ClusterRole>,
    /// Bindings of the whole cluster.
    pub cluster_role_bindings: Vec<ClusterRoleBinding>,
    /// Roles in the `kube-*` namespaces.
    pub roles: Vec<Role>,
    /// Bindings in the `kube-*` namespaces.
    pub role_bindings: Vec<RoleBinding>,
}

impl Standard {
    /// Reads the tables.
    pub fn new() -> Standard {
        let mut standard = Standard::default();
        for table in [CLUSTER, CONTROLLERS, NAMESPACED] {
            parse::parse(table, &mut standard).expect("the tables are well formed");
        }
        standard.bind_controllers();
        standard
    }

    /// Each controller's role is bound to the service account of the same name.
    fn bind_controllers(&mut self) {
        for role in &self.cluster_roles {
            let name = role.metadata.name.as_deref().unwrap_or_default();
            let Some(account) = name.strip_prefix(CONTROLLER_PREFIX) else {
                continue;
            };
            let subject = parse::account("kube-system", account);
            let binding = parse::cluster_role_binding(name, name, vec![subject]);
            self.cluster_role_bindings.push(binding);
        }
    }
}

/// The permissions of every kubelet; the node authorizer restricts some of them to the node's own
/// objects.
pub fn node_rules() -> Vec<PolicyRule> {
    let roles = Standard::new().cluster_roles.into_iter();
    let mut node = roles.filter(|role| role.metadata.name.as_deref() == Some("system:node"));
    node.next().and_then(|role| role.rules).unwrap_or_default()
}
