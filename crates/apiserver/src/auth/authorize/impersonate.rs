//! Impersonation: `kubectl --as`.
//!
//! There are five modes, and the first that allows the request counts. The constrained modes also
//! check whether this very request may be made as the other user; the legacy mode is the verb
//! `impersonate`. Matches v1.36 apiserver/pkg/endpoints/filters/impersonation.

use plimsoll_core::object::syntax::check_dns_subdomain;
use plimsoll_core::problem::{Problem, joined};

use super::{Authorizer, Decision};
use crate::auth::attributes::{Attributes, Forbidden, Resource, Target};
use crate::auth::identity::{
    ANONYMOUS, AUTHENTICATED, MASTERS, NODE_NAME, NODE_USER_PREFIX, NODES, UNAUTHENTICATED, User,
    service_account_groups, split_service_account,
};

const AUTHENTICATION: &str = "authentication.k8s.io";

/// From this number on, the permission for all of them is checked first.
const MANY: usize = 4;

/// A mode of impersonation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A service account that impersonates the node of its pod.
    AssociatedNode,
    /// Any node.
    ArbitraryNode,
    /// Any service account.
    ServiceAccount,
    /// Any other user.
    UserInfo,
    /// Any user, for any request.
    Legacy,
}

const MODES: [Mode; 5] = [
    Mode::AssociatedNode,
    Mode::ArbitraryNode,
    Mode::ServiceAccount,
    Mode::UserInfo,
    Mode::Legacy,
];

/// The user to impersonate, if `requester` may make the request as `wanted`.
pub fn impersonate(
    authorizer: &Authorizer,
    requester: &User,
    wanted: &User,
    request: &Attributes<'_>,
) -> Result<User, Forbidden> {
    let mut first_error = None;
    for mode in MODES
        .into_iter()
        .filter(|mode| mode.applies(requester, wanted))
    {
        let attempt = Attempt {
            authorizer,
            requester,
            wanted,
            mode,
        };
        match attempt.user(request) {
            Ok(user) => return Ok(user),
            Err(error) => drop(first_error.get_or_insert(error)),
        }
    }
    Err(first_error.expect("the legacy mode applies to every user"))
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::AssociatedNode => "associated-node",
            Mode::ArbitraryNode => "arbitrary-node",
            Mode::ServiceAccount => "serviceaccount",
            Mode::UserInfo => "user-info",
            Mode::Legacy => "",
        }
    }

    fn verb(self) -> String {
        match self {
            Mode::Legacy => "impersonate".to_owned(),
            mode => format!("impersonate:{}", mode.name()),
        }
    }

    fn applies(self, requester: &User, wanted: &User) -> bool {
        let has_only_name =
            wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node_of(&wanted.name);
        let is_account = split_service_account(&wanted.name).is_some();
        match self {
            Mode::AssociatedNode => {
                has_only_name
                    && node.is_some()
                    && split_service_account(&requester.name).is_some()
                    && requester.only_extra(NODE_NAME) == node
            }
            Mode::ArbitraryNode => has_only_name && node.is_some(),
            Mode::ServiceAccount => has_only_name && is_account,
            Mode::UserInfo => node.is_none() && !is_account,
            Mode::Legacy => true,
        }
    }
}

/// One mode, tried for one request.
struct Attempt<'a> {
    authorizer: &'a Authorizer,
    requester: &'a User,
    wanted: &'a User,
    mode: Mode,
}

impl Attempt<'_> {
    fn user(&self, request: &Attributes<'_>) -> Result<User, Forbidden> {
        if self.mode != Mode::Legacy {
            let verb = format!("impersonate-on:{}:{}", self.mode.name(), request.verb);
            let target = request.target;
            self.check(&Attributes {
                verb: &verb,
                target,
            })?;
        }
        let mut user = self.wanted.clone();
        self.check_name(&mut user)?;
        if !self.wanted.uid.is_empty() {
            self.check_part(AUTHENTICATION, "uids", "", &self.wanted.uid)?;
        }
        self.check_groups()?;
        self.check_extra()?;
        if user.name == ANONYMOUS {
            ensure_group(&mut user, UNAUTHENTICATED);
        } else if !user.is_in(UNAUTHENTICATED) {
            ensure_group(&mut user, AUTHENTICATED);
        }
        Ok(user)
    }

    /// Nodes and service accounts have fixed groups, unless others are requested.
    fn check_name(&self, user: &mut User) -> Result<(), Forbidden> {
        let name = &self.wanted.name;
        let mut resource = Resource {
            group: self.name_group(),
            resource: "users",
            name,
            ..Resource::default()
        };
        let node = node_of(name).filter(|_| self.mode != Mode::Legacy);
        if let Some(node) = node {
            resource.resource = "nodes";
            // The token names the node.
            resource.name = if self.mode == Mode::AssociatedNode {
                "*"
            } else {
                node
            };
            user.groups = vec![NODES.to_owned()];
        }
        if let Some((namespace, name)) = split_service_account(name) {
            resource.resource = "serviceaccounts";
            resource.namespace = namespace;
            resource.name = name;
            if user.groups.is_empty() {
                user.groups = service_account_groups(namespace);
            }
        }
        self.check(&Attributes::resource(&self.mode.verb(), resource))
    }

    fn check_groups(&self) -> Result<(), Forbidden> {
        let groups = &self.wanted.groups;
        let is_narrow = self.mode != Mode::Legacy;
        let group = self.name_group();
        if is_narrow {
            let refuse = |name: &str, reason| Err(self.refused(group, "groups", name, reason));
            if groups.iter().any(String::is_empty) {
                return refuse("", "impersonating the empty string group is not allowed");
            }
            if groups.iter().any(|group| group == MASTERS) {
                return refuse(
                    MASTERS,
                    "impersonating the system:masters group is not allowed",
                );
            }
            let may_have_all =
                groups.len() >= MANY && self.check_part(group, "groups", "", "*").is_ok();
            if may_have_all {
                return Ok(());
            }
        }
        groups
            .iter()
            .try_for_each(|name| self.check_part(group, "groups", "", name))
    }

    fn check_extra(&self) -> Result<(), Forbidden> {
        let extra = &self.wanted.extra;
        if self.mode != Mode::Legacy {
            for (key, values) in extra {
                if let Some(reason) = wrong_extra(key, values) {
                    return Err(self.refused(AUTHENTICATION, "userextras", "", &reason));
                }
            }
            let count: usize = extra.values().map(Vec::len).sum();
            let is_large = extra.len() >= MANY || count >= MANY;
            if is_large
                && self
                    .check_part(AUTHENTICATION, "userextras", "*", "*")
                    .is_ok()
            {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.check_part(AUTHENTICATION, "userextras", key, value)?;
            }
        }
        Ok(())
    }

    /// The legacy mode has names and groups in the core group.
    fn name_group(&self) -> &'static str {
        if self.mode == Mode::Legacy {
            ""
        } else {
            AUTHENTICATION
        }
    }

    fn check_part(
        &self,
        group: &str,
        resource: &str,
        subresource: &str,
        name: &str,
    ) -> Result<(), Forbidden> {
        let resource = Resource {
            group,
            resource,
            subresource,
            name,
            ..Resource::default()
        };
        self.check(&Attributes::resource(&self.mode.verb(), resource))
    }

    fn check(&self, attributes: &Attributes<'_>) -> Result<(), Forbidden> {
        match self.authorizer.authorize(self.requester, attributes) {
            Decision::Allow(_) => Ok(()),
            Decision::Deny { reason } => Err(attributes.forbidden(self.requester, &reason)),
        }
    }

    fn refused(&self, group: &str, resource: &str, name: &str, reason: &str) -> Forbidden {
        let verb = self.mode.verb();
        let target = Target::Resource(Resource {
            group,
            resource,
            name,
            ..Resource::default()
        });
        let attributes = Attributes {
            verb: &verb,
            target,
        };
        attributes.forbidden(self.requester, reason)
    }
}

fn ensure_group(user: &mut User, group: &str) {
    if !user.is_in(group) {
        user.groups.push(group.to_owned());
    }
}

fn node_of(user_name: &str) -> Option<&str> {
    let node = user_name.strip_prefix(NODE_USER_PREFIX)?;
    check_dns_subdomain(node).is_empty().then_some(node)
}

/// Why the constrained modes do not accept an extra; `None` if they do.
fn wrong_extra(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let problems = path_problems(key);
    if !problems.is_empty() {
        let problems = joined(problems.iter().map(Problem::to_string));
        return Some(format!(
            "impersonating an invalid key in extra is not allowed: {problems}"
        ));
    }
    let is_empty = values.iter().any(String::is_empty);
    is_empty.then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}

/// What is wrong with a key such as `acme.io/team`.
///
/// Matches v1.36 apimachinery/pkg/util/validation, `IsDomainPrefixedPath`.
fn path_problems(key: &str) -> Vec<Problem> {
    const PATH: &str = "extra.key";
    let parts = key.split_once('/');
    let Some((host, path)) = parts.filter(|(host, path)| !host.is_empty() && !path.is_empty())
    else {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return vec![Problem::invalid(PATH, key, detail)];
    };
    let mut problems: Vec<Problem> = check_dns_subdomain(host)
        .into_iter()
        .map(|rule| Problem::invalid(PATH, host, rule))
        .collect();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
    if !path.chars().all(is_allowed) {
        let rule = "Invalid path (regex used for validation is \
                    '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        problems.push(Problem::invalid(PATH, path, rule));
    }
    problems
}
