//! May this user do that?
//!
//! `system:masters` may do everything; then the node authorizer is asked, then the roles. The
//! first yes counts. Reading order: [`Authorizer`], `review` (the access reviews), `impersonate`.

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

/// All that decides about requests, kept up to date from objects.
#[derive(Debug)]
pub struct Authorizer {
    policy: Policy,
    graph: NodeGraph,
    node_rules: Vec<PolicyRule>,
}

/// What is decided about a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// It may be done.
    Allow(Because),
    /// It may not: nobody allows it. Upstream calls this "no opinion".
    Deny {
        /// What the authorizers have to say about it; mostly nothing.
        reason: String,
    },
}

/// Why a request is allowed.
#[derive(Clone, Debug, PartialEq)]
pub enum Because {
    /// The user is in `system:masters`.
    Masters,
    /// The user is a kubelet, and this is its business.
    Node,
    /// A binding gives the user a role.
    Role(Grant),
}

/// The reason that an access review shows; for all but roles upstream shows none.
impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Because::Masters | Because::Node => Ok(()),
            Because::Role(grant) => write!(f, "RBAC: allowed by {grant}"),
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
    /// Takes note of any object as it is now; `None` when it is gone. Objects that have no say are
    /// ignored, so that callers can pass everything. `namespace` is empty where there is none.
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

    /// Whether the user may do this.
    pub fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Decision {
        if user.is_in(MASTERS) {
            return Decision::Allow(Because::Masters);
        }
        let by_node = node::authorize(&self.graph, &self.node_rules, user, attributes);
        let Err(node_reason) = by_node else {
            return Decision::Allow(Because::Node);
        };
        match self.policy.allows(user, attributes) {
            Ok(grant) => Decision::Allow(Because::Role(grant)),
            Err(reason) => {
                let reasons = [node_reason, reason];
                let said: Vec<String> = reasons.into_iter().filter(|r| !r.is_empty()).collect();
                Decision::Deny {
                    reason: said.join("\n"),
                }
            }
        }
    }

    /// The same, as the 403 that the request is answered with.
    pub fn check(&self, user: &User, attributes: &Attributes<'_>) -> Result<(), Forbidden> {
        match self.authorize(user, attributes) {
            Decision::Allow(_) => Ok(()),
            Decision::Deny { reason } => Err(attributes.forbidden(user, &reason)),
        }
    }

    /// What the user may do in a namespace, for `SelfSubjectRulesReview`.
    pub fn rules_review(&self, user: &User, namespace: &str) -> SubjectRulesReviewStatus {
        rbac::rules_review(&self.policy, user, namespace)
    }

    /// The roles and bindings, for the checks on writing them.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
}

#[cfg(test)]
mod tests;
