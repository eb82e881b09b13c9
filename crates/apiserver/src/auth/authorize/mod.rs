//! Authorization: whether a user may make a request.
//!
//! `system:masters` may do everything; then the node authorizer decides, then RBAC. The first that
//! allows the request counts. Reading order: [`Authorizer`], `review` (the access reviews),
//! `impersonate`.

use std::fmt;

use k8s_openapi::api::authorization::v1::SubjectRulesReviewStatus;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::Value;

mod impersonate;
mod review;

pub use impersonate::impersonate;
pub use review::{ReviewProblems, review_local, review_self, review_subject};

use super::attributes::{Attributes, Forbidden};
use super::identity::{MASTERS, User};
use super::node::{self, NodeGraph};
use super::rbac::{self, Grant, Malformed, Policy, PolicyKind};

/// The state of all authorizers, kept up to date from objects.
#[derive(Debug)]
pub struct Authorizer {
    policy: Policy,
    graph: NodeGraph,
    node_rules: Vec<PolicyRule>,
}

/// The decision about a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// The request is allowed.
    Allow(AllowReason),
    /// No authorizer allows it. Upstream calls this "no opinion".
    Deny {
        /// The reasons of the authorizers; mostly empty.
        reason: String,
    },
}

/// Why a request is allowed.
#[derive(Clone, Debug, PartialEq)]
pub enum AllowReason {
    /// The user is in `system:masters`.
    Masters,
    /// The user is a kubelet, and the node authorizer allows the request.
    Node,
    /// A binding gives the user a role.
    Role(Grant),
}

/// The reason that an access review shows; for all but roles upstream shows none.
impl fmt::Display for AllowReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllowReason::Masters | AllowReason::Node => Ok(()),
            AllowReason::Role(grant) => write!(f, "RBAC: allowed by {grant}"),
        }
    }
}

impl Default for Authorizer {
    fn default() -> Authorizer {
        Authorizer {
            policy: Policy::default(),
            graph: NodeGraph::default(),
            node_rules: rbac::node_rules(),
        }
    }
}

impl Authorizer {
    /// Updates the state from an object; `None` when it was deleted. Irrelevant objects are
    /// ignored, so that callers can pass all of them. `namespace` is empty for cluster-scoped
    /// objects.
    pub fn observe(
        &mut self,
        group: &str,
        resource: &str,
        namespace: &str,
        name: &str,
        object: Option<&Value>,
    ) -> Result<(), Malformed> {
        match (group, resource) {
            ("", "pods") => self.graph.observe_pod(namespace, name, object),
            ("", "persistentvolumes") => self.graph.observe_volume(name, object),
            ("storage.k8s.io", "volumeattachments") => self.graph.observe_attachment(name, object),
            ("resource.k8s.io", "resourceslices") => self.graph.observe_slice(name, object),
            (rbac::GROUP, resource) => {
                if let Some(kind) = PolicyKind::of_resource(resource) {
                    return self.policy.observe(kind, namespace, name, object);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the user may make the request.
    pub fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Decision {
        if user.is_in(MASTERS) {
            return Decision::Allow(AllowReason::Masters);
        }
        let by_node = node::authorize(&self.graph, &self.node_rules, user, attributes);
        let Err(node_reason) = by_node else {
            return Decision::Allow(AllowReason::Node);
        };
        match self.policy.allows(user, attributes) {
            Ok(grant) => Decision::Allow(AllowReason::Role(grant)),
            Err(reason) => {
                let reasons = [node_reason, reason];
                let reasons: Vec<String> = reasons.into_iter().filter(|r| !r.is_empty()).collect();
                Decision::Deny {
                    reason: reasons.join("\n"),
                }
            }
        }
    }

    /// The same, as the 403 for the response.
    pub fn check(&self, user: &User, attributes: &Attributes<'_>) -> Result<(), Forbidden> {
        match self.authorize(user, attributes) {
            Decision::Allow(_) => Ok(()),
            Decision::Deny { reason } => Err(attributes.forbidden(user, &reason)),
        }
    }

    /// The permissions of the user in a namespace, for `SelfSubjectRulesReview`.
    pub fn rules_review(&self, user: &User, namespace: &str) -> SubjectRulesReviewStatus {
        rbac::rules_review(&self.policy, user, namespace)
    }

    /// The roles and bindings, for escalation checks.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
}

#[cfg(test)]
mod tests;
