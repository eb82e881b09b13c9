//! A pod's way in, from the text a user wrote to the answer the API server gives.
//!
//! The order is that of a create request: API defaults, LimitRange defaults, override, field
//! validation (422), LimitRange limits (403). After the modern override, which is a webhook, API
//! and LimitRange defaults run again. Quotas come last and have an entry of their own,
//! [`quota::admit`](super::quota::admit), because they need to know what is in use.

use k8s_openapi::api::core::v1::Pod;

use crate::object::limit_range::LimitRangeView;
use crate::object::namespace::NamespaceView;
use crate::problem::Problem;

use super::draft::PodDraft;
use super::forbidden::name_in_refusal;
use super::limit_range::{self, Defaulted};
use super::overcommit::{Overridden, Override, Variant};
use super::{pod_defaults, pod_validation};

/// The rules for pods of a namespace.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// The namespace.
    pub namespace: &'a NamespaceView,
    /// Its LimitRanges, with their own API defaults, in the order in which they are applied.
    pub limit_ranges: &'a [LimitRangeView],
    /// The cluster's override, if it has one.
    pub overcommit: Option<&'a Override>,
}

/// The result for a pod, with reasons.
#[derive(Clone, Debug)]
pub struct Review {
    /// The pod as it would be stored.
    pub pod: Pod,
    /// The defaults from LimitRanges.
    pub defaulted: Vec<Defaulted>,
    /// The values that the override set; `None` where it does not apply.
    pub overridden: Option<Vec<Overridden>>,
    /// The errors of field validation.
    pub problems: Vec<Problem>,
    /// The LimitRange that refuses it. Checked even if field validation already refused, so that
    /// the user sees all errors at once.
    pub refusal: Option<limit_range::Refusal>,
}

/// The answer to a create request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// 201: stored.
    Created,
    /// 422: field validation refuses it. Takes precedence over 403.
    Invalid,
    /// 403: a LimitRange refuses it.
    Forbidden,
}

impl Outcome {
    /// The HTTP status code.
    pub fn code(self) -> u16 {
        match self {
            Outcome::Created => 201,
            Outcome::Invalid => 422,
            Outcome::Forbidden => 403,
        }
    }
}

impl Review {
    /// The answer.
    pub fn outcome(&self) -> Outcome {
        if !self.problems.is_empty() {
            Outcome::Invalid
        } else if self.refusal.is_some() {
            Outcome::Forbidden
        } else {
            Outcome::Created
        }
    }

    /// The message with which a LimitRange refuses the pod.
    pub fn refusal_message(&self) -> Option<String> {
        let name = name_in_refusal(&self.pod.metadata);
        let refusal = self.refusal.as_ref();
        refusal.map(|refusal| refusal.status_message("pods", name))
    }
}

/// Takes a pod through all rules. Only a pod that cannot be parsed has no review.
pub fn review(pod: &Pod, rules: Rules<'_>) -> Result<Review, Vec<Problem>> {
    let mut draft = PodDraft::from_api(pod)?;
    pod_defaults::apply(&mut draft.pod);
    let applying = |configured: &&Override| configured.applies_to(rules.namespace);
    let overcommit = rules.overcommit.filter(applying);
    let (defaulted, overridden) = set_resources(&mut draft, rules.limit_ranges, overcommit);
    let mut pod = pod.clone();
    draft.write_to(&mut pod);
    Ok(Review {
        problems: pod_validation::validate(&pod, &draft.pod),
        refusal: limit_range::check_pod(&draft.pod, rules.limit_ranges).err(),
        pod,
        defaulted,
        overridden,
    })
}

/// Sets what LimitRanges give a pod and what the override makes of it; `overcommit` is one that
/// applies to the namespace. Returns what was given and what was set.
pub fn set_resources(
    draft: &mut PodDraft,
    limit_ranges: &[LimitRangeView],
    overcommit: Option<&Override>,
) -> (Vec<Defaulted>, Option<Vec<Overridden>>) {
    let mut defaulted = limit_range::apply_defaults(draft, limit_ranges);
    let overridden = overcommit.map(|configured| {
        if configured.variant != Variant::Modern {
            return configured.apply(draft, limit_ranges);
        }
        draft.reread();
        let overridden = configured.apply(draft, limit_ranges);
        draft.reread();
        pod_defaults::apply(&mut draft.pod);
        defaulted.extend(limit_range::apply_defaults(draft, limit_ranges));
        overridden
    });
    (defaulted, overridden)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::LimitRange;
    use serde_json::{Value, json};

    use super::*;
    use crate::admission::draft::Part;

    fn reviewed(item: Value, resources: Value) -> Review {
        let object: LimitRange = serde_json::from_value(json!({
            "metadata": {"name": "limits"}, "spec": {"limits": [item]},
        }))
        .unwrap();
        let mut limit_range = LimitRangeView::from_api(&object).unwrap();
        limit_range.apply_defaults();
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"containers": [{"name": "a", "resources": resources}]},
        }))
        .unwrap();
        let rules = Rules {
            namespace: &NamespaceView::default(),
            limit_ranges: &[limit_range],
            overcommit: None,
        };
        review(&pod, rules).unwrap()
    }

    #[test]
    fn defaults_are_reported_with_their_limit_range() {
        let review = reviewed(
            json!({"type": "Container", "default": {"cpu": "1"}}),
            json!({}),
        );
        assert_eq!(review.outcome(), Outcome::Created);
        let sources: Vec<(&str, Part, String)> = review
            .defaulted
            .iter()
            .map(|d| (d.limit_range.as_str(), d.part, d.quantity.to_string()))
            .collect();
        assert_eq!(
            sources,
            [
                ("limits", Part::Request, "1".to_owned()),
                ("limits", Part::Limit, "1".to_owned()),
            ]
        );
    }

    #[test]
    fn a_default_limit_below_the_request_is_invalid_before_it_is_forbidden() {
        let review = reviewed(
            json!({"type": "Container", "max": {"cpu": "1"}}),
            json!({"requests": {"cpu": "1100m"}}),
        );
        assert_eq!(review.outcome().code(), 422);
        assert_eq!(
            review.refusal_message().unwrap(),
            "pods \"web\" is forbidden: maximum cpu usage per Container is 1, but request is 1100m"
        );
    }

    #[test]
    fn pod_beyond_several_bounds_gets_all_violations() {
        let review = reviewed(
            json!({"type": "Pod", "max": {"cpu": "1"}, "min": {"memory": "1Gi"}, "maxLimitRequestRatio": {"cpu": "2"}}),
            json!({"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}),
        );
        assert_eq!(review.outcome().code(), 403);
        assert_eq!(
            review.refusal_message().unwrap(),
            "pods \"web\" is forbidden: [minimum memory usage per Pod is 1Gi.  No request is specified, \
             maximum cpu usage per Pod is 1, but limit is 3, \
             cpu max limit to request ratio per Pod is 2, but provided ratio is 3.000000]"
        );
    }
}
