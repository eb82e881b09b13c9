//! Users of the API: a name, groups, and further attributes.

use std::collections::BTreeMap;

use k8s_openapi::api::authentication::v1::UserInfo;

use super::syntax::{check_dns_subdomain, is_dns_label};

/// The name of a user without credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of all users with valid credentials.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of all users without credentials.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group that may do everything, whatever the roles grant.
pub const MASTERS: &str = "system:masters";
/// The group of machines with a join token.
pub const BOOTSTRAPPERS: &str = "system:bootstrappers";
/// The group of kubelets.
pub const NODES: &str = "system:nodes";
/// The group of all service accounts.
pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// The prefix of a kubelet's user name.
pub const NODE_USER_PREFIX: &str = "system:node:";

/// The extra key that identifies the certificate or token.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
/// The extra key of the pod that a token is bound to.
pub const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
/// The extra key of that pod's uid.
pub const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
/// The extra key of the node that a token is bound to.
pub const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// The extra key of that node's uid.
pub const NODE_UID: &str = "authentication.kubernetes.io/node-uid";

/// The user of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name: `alice`, `system:node:n1`, `system:serviceaccount:default:web`.
    pub name: String,
    /// Distinguishes users of the same name; often empty.
    pub uid: String,
    /// The groups, in the order in which the credentials name them.
    pub groups: Vec<String>,
    /// Further attributes by key.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user with that name and those groups.
    pub fn new(name: impl Into<String>, groups: &[&str]) -> User {
        User {
            name: name.into(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..User::default()
        }
    }

    /// A user without credentials.
    pub fn anonymous() -> User {
        User::new(ANONYMOUS, &[UNAUTHENTICATED])
    }

    /// The user of a service account.
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> User {
        User {
            name: service_account_user_name(namespace, name),
            uid: uid.to_owned(),
            groups: service_account_groups(namespace),
            extra: BTreeMap::new(),
        }
    }

    /// Whether the user is in that group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// The node whose kubelet this user is; an empty name is a kubelet without one.
    ///
    /// Matches v1.36 pkg/auth/nodeidentifier/default.go.
    pub fn node_name(&self) -> Option<&str> {
        let name = self.name.strip_prefix(NODE_USER_PREFIX)?;
        self.is_in(NODES).then_some(name)
    }

    /// The user after authentication: in `system:authenticated`.
    #[must_use]
    pub fn authenticated(mut self) -> User {
        let is_marked = self.is_in(AUTHENTICATED) || self.is_in(UNAUTHENTICATED);
        if self.name != ANONYMOUS && !is_marked {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    /// The only value of an extra key; `None` if there are several or none.
    pub fn only_extra(&self, key: &str) -> Option<&str> {
        match self.extra.get(key).map(Vec::as_slice) {
            Some([only]) => Some(only),
            _ => None,
        }
    }

    /// The user of a review.
    pub fn from_api(info: UserInfo) -> User {
        User {
            name: info.username.unwrap_or_default(),
            uid: info.uid.unwrap_or_default(),
            groups: info.groups.unwrap_or_default(),
            extra: info.extra.unwrap_or_default(),
        }
    }

    /// The user in the form of the reviews.
    pub fn to_api(&self) -> UserInfo {
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        UserInfo {
            username: given(&self.name),
            uid: given(&self.uid),
            groups: (!self.groups.is_empty()).then(|| self.groups.clone()),
            extra: (!self.extra.is_empty()).then(|| self.extra.clone()),
        }
    }
}

/// The user name of a service account.
pub fn service_account_user_name(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

/// The groups that every service account of a namespace is in.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![
        SERVICE_ACCOUNTS.to_owned(),
        format!("{SERVICE_ACCOUNTS}:{namespace}"),
    ]
}

/// The namespace and name of the service account with this user name.
///
/// Matches v1.36 apiserver/pkg/authentication/serviceaccount/util.go, `SplitUsername`.
pub fn split_service_account(user_name: &str) -> Option<(&str, &str)> {
    let rest = user_name.strip_prefix("system:serviceaccount:")?;
    let (namespace, name) = rest.split_once(':')?;
    let is_label = namespace.len() <= 63 && is_dns_label(namespace);
    let is_valid = is_label && check_dns_subdomain(name).is_empty();
    is_valid.then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_name_is_split_only_when_both_parts_are_names() {
        let cases = [
            ("system:serviceaccount:ns:web", Some(("ns", "web"))),
            ("system:serviceaccount:ns:web.v1", Some(("ns", "web.v1"))),
            ("system:serviceaccount:n.s:web", None),
            ("system:serviceaccount:ns:web:x", None),
            ("system:serviceaccount:ns:", None),
            ("system:serviceaccount::web", None),
            ("system:serviceaccount:ns:Web", None),
            ("alice", None),
        ];
        for (name, expected) in cases {
            assert_eq!(split_service_account(name), expected, "{name}");
        }
    }

    #[test]
    fn kubelet_is_identified_by_name_and_group() {
        assert_eq!(
            User::new("system:node:n1", &[NODES]).node_name(),
            Some("n1")
        );
        assert_eq!(User::new("system:node:", &[NODES]).node_name(), Some(""));
        assert_eq!(User::new("system:node:n1", &["x"]).node_name(), None);
        assert_eq!(User::new("n1", &[NODES]).node_name(), None);
    }

    #[test]
    fn user_of_a_review_is_read_as_it_was_written() {
        let mut user = User::new("alice", &["dev"]);
        user.uid = "7".to_owned();
        user.extra
            .insert(CREDENTIAL_ID.to_owned(), vec!["a".to_owned()]);
        assert_eq!(User::from_api(user.to_api()), user);
        assert_eq!(User::from_api(UserInfo::default()), User::default());
    }

    #[test]
    fn authenticated_group_is_added_once_and_never_to_anonymous() {
        let alice = User::new("alice", &["dev"]).authenticated();
        assert_eq!(alice.groups, ["dev", AUTHENTICATED]);
        assert_eq!(alice.clone().authenticated(), alice);
        assert_eq!(User::anonymous().authenticated(), User::anonymous());
    }
}
