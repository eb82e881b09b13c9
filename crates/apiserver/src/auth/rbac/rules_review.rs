//! `SelfSubjectRulesReview`: all permissions of a user in a namespace.

use k8s_openapi::api::authorization::v1::{
    NonResourceRule, ResourceRule, SubjectRulesReviewStatus,
};
use k8s_openapi::api::rbac::v1::PolicyRule;
use plimsoll_core::problem::joined;

use super::Policy;
use super::rule::parts;
use crate::auth::identity::User;

/// The user's permissions in the namespace, as far as they are rules. Decisions of the node
/// authorizer are not, so the answer for a kubelet is incomplete.
///
/// Matches v1.36 pkg/registry/authorization/selfsubjectrulesreview and the `RulesFor` of the
/// authorizers.
pub fn rules_review(policy: &Policy, user: &User, namespace: &str) -> SubjectRulesReviewStatus {
    let (rules, errors) = policy.rules_for(user, namespace);
    let mut problems = Vec::new();
    let is_node = user.node_name().is_some();
    if is_node {
        problems.push("node authorizer does not support user rule resolution".to_owned());
    }
    if !errors.is_empty() {
        problems.push(joined(errors));
    }
    let of_resources = |rule: &&PolicyRule| !parts(&rule.resources).is_empty();
    let of_paths = |rule: &&PolicyRule| !parts(&rule.non_resource_urls).is_empty();
    SubjectRulesReviewStatus {
        resource_rules: rules
            .iter()
            .filter(of_resources)
            .map(resource_rule)
            .collect(),
        non_resource_rules: rules.iter().filter(of_paths).map(path_rule).collect(),
        incomplete: is_node,
        evaluation_error: (!problems.is_empty()).then(|| joined(problems)),
    }
}

fn resource_rule(rule: &PolicyRule) -> ResourceRule {
    ResourceRule {
        api_groups: rule.api_groups.clone(),
        resource_names: rule.resource_names.clone(),
        resources: rule.resources.clone(),
        verbs: rule.verbs.clone(),
    }
}

fn path_rule(rule: &PolicyRule) -> NonResourceRule {
    NonResourceRule {
        non_resource_urls: rule.non_resource_urls.clone(),
        verbs: rule.verbs.clone(),
    }
}
