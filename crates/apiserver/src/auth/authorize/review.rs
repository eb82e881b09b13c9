//! The access reviews: `kubectl auth can-i`, and API servers that check permissions of their users.
//!
//! Matches v1.36 pkg/registry/authorization and pkg/apis/authorization/validation.

use k8s_openapi::api::authorization::v1::{
    FieldSelectorAttributes, NonResourceAttributes, ResourceAttributes, SelfSubjectAccessReview,
    SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plimsoll_core::object::selector::{
    FieldOperator, FieldRequirement, FieldSelector, LabelSelector,
};
use plimsoll_core::problem::Problem;
use serde::Serialize;

use super::{Authorizer, Decision};
use crate::auth::attributes::{Attributes, Resource};
use crate::auth::identity::User;

/// The 422 for an invalid review.
pub type ReviewProblems = Vec<Problem>;

/// Handles a `SelfSubjectAccessReview`: whether the caller may do this.
pub fn review_self(
    authorizer: &Authorizer,
    user: &User,
    review: &SelfSubjectAccessReview,
) -> Result<SubjectAccessReviewStatus, ReviewProblems> {
    let mut problems = Vec::new();
    let spec = &review.spec;
    check_targets(
        spec.resource_attributes.as_ref(),
        spec.non_resource_attributes.as_ref(),
        &mut problems,
    );
    check_selectors(spec.resource_attributes.as_ref(), &mut problems);
    check_metadata(&review.metadata, "must be empty", &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let resource = spec.resource_attributes.as_ref();
    let path = spec.non_resource_attributes.as_ref();
    Ok(evaluate(authorizer, user, resource, path))
}

/// Handles a `SubjectAccessReview`: whether that user may do this.
pub fn review_subject(
    authorizer: &Authorizer,
    metadata: &ObjectMeta,
    spec: &SubjectAccessReviewSpec,
) -> Result<SubjectAccessReviewStatus, ReviewProblems> {
    let mut problems = subject_problems(spec);
    check_metadata(metadata, "must be empty", &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(evaluate_subject(authorizer, spec))
}

/// Handles a `LocalSubjectAccessReview`: the same for the namespace in its metadata.
pub fn review_local(
    authorizer: &Authorizer,
    metadata: &ObjectMeta,
    spec: &SubjectAccessReviewSpec,
) -> Result<SubjectAccessReviewStatus, ReviewProblems> {
    let mut problems = subject_problems(spec);
    let without_namespace = ObjectMeta {
        namespace: None,
        ..metadata.clone()
    };
    let rule = "must be empty except for namespace";
    check_metadata(&without_namespace, rule, &mut problems);
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let requested = spec.resource_attributes.as_ref();
    let requested = requested.map(|resource| resource.namespace.as_deref().unwrap_or_default());
    if let Some(other) = requested.filter(|requested| *requested != namespace) {
        let path = "spec.resourceAttributes.namespace";
        problems.push(Problem::invalid(
            path,
            other,
            "must match metadata.namespace",
        ));
    }
    if let Some(path) = &spec.non_resource_attributes {
        let detail = "disallowed on this kind of request";
        problems.push(invalid("spec.nonResourceAttributes", Some(path), detail));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(evaluate_subject(authorizer, spec))
}

fn subject_problems(spec: &SubjectAccessReviewSpec) -> ReviewProblems {
    let mut problems = Vec::new();
    check_targets(
        spec.resource_attributes.as_ref(),
        spec.non_resource_attributes.as_ref(),
        &mut problems,
    );
    let user = spec.user.as_deref().unwrap_or_default();
    if user.is_empty() && spec.groups.as_ref().is_none_or(Vec::is_empty) {
        let detail = "at least one of user or group must be specified";
        problems.push(Problem::invalid("spec.user", user, detail));
    }
    check_selectors(spec.resource_attributes.as_ref(), &mut problems);
    problems
}

fn check_targets(
    resource: Option<&ResourceAttributes>,
    path: Option<&NonResourceAttributes>,
    problems: &mut ReviewProblems,
) {
    match (resource, path) {
        (Some(_), Some(path)) => problems.push(invalid(
            "spec.nonResourceAttributes",
            Some(path),
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => problems.push(invalid(
            "spec.resourceAttributes",
            None::<&NonResourceAttributes>,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
}

/// A value of several parts is shown as JSON.
fn invalid(path: &str, value: Option<&impl Serialize>, detail: &str) -> Problem {
    let value = serde_json::to_string(&value).expect("API objects are JSON");
    Problem::invalid_bare(path, value, detail)
}

fn check_metadata(metadata: &ObjectMeta, rule: &str, problems: &mut ReviewProblems) {
    let rest = ObjectMeta {
        managed_fields: None,
        ..metadata.clone()
    };
    if rest != ObjectMeta::default() {
        problems.push(invalid("metadata", Some(metadata), rule));
    }
}

fn check_selectors(resource: Option<&ResourceAttributes>, problems: &mut ReviewProblems) {
    let Some(resource) = resource else {
        return;
    };
    let mut check = |part: &str, raw: &Option<String>, count: usize| {
        let path = format!("spec.resourceAttributes.{part}");
        let raw = raw.as_deref().unwrap_or_default();
        if !raw.is_empty() && count > 0 {
            let detail = "may not specified at the same time as requirements";
            problems.push(Problem::invalid(format!("{path}.rawSelector"), raw, detail));
        }
        if raw.is_empty() && count == 0 {
            let detail =
                format!("when {path} is specified, requirements or rawSelector is required");
            problems.push(Problem::required(format!("{path}.requirements"), detail));
        }
    };
    if let Some(fields) = &resource.field_selector {
        let count = fields.requirements.as_ref().map_or(0, Vec::len);
        check("fieldSelector", &fields.raw_selector, count);
    }
    if let Some(labels) = &resource.label_selector {
        let count = labels.requirements.as_ref().map_or(0, Vec::len);
        check("labelSelector", &labels.raw_selector, count);
    }
}

fn evaluate_subject(
    authorizer: &Authorizer,
    spec: &SubjectAccessReviewSpec,
) -> SubjectAccessReviewStatus {
    let user = User {
        name: spec.user.clone().unwrap_or_default(),
        uid: spec.uid.clone().unwrap_or_default(),
        groups: spec.groups.clone().unwrap_or_default(),
        extra: spec.extra.clone().unwrap_or_default(),
    };
    let resource = spec.resource_attributes.as_ref();
    let path = spec.non_resource_attributes.as_ref();
    evaluate(authorizer, &user, resource, path)
}

fn evaluate(
    authorizer: &Authorizer,
    user: &User,
    resource: Option<&ResourceAttributes>,
    path: Option<&NonResourceAttributes>,
) -> SubjectAccessReviewStatus {
    let given = |text: &'_ Option<String>| text.clone().unwrap_or_default();
    let mut evaluation_errors = Vec::new();
    let decision = match resource {
        None => {
            let verb = given(&path.and_then(|path| path.verb.clone()));
            let path = given(&path.and_then(|path| path.path.clone()));
            authorizer.authorize(user, &Attributes::path(&verb, &path))
        }
        Some(requested) => {
            let selector = requested.field_selector.as_ref();
            let selector = selector.map(field_requirements).unwrap_or_default();
            evaluation_errors.extend(selector.ignored("fieldSelector"));
            evaluation_errors.extend(ignored_labels(requested));
            let text = |part: &'_ Option<String>| part.clone().unwrap_or_default();
            let (group, resource) = (text(&requested.group), text(&requested.resource));
            let (subresource, namespace) =
                (text(&requested.subresource), text(&requested.namespace));
            let (name, verb) = (text(&requested.name), text(&requested.verb));
            let resource = Resource {
                group: &group,
                resource: &resource,
                subresource: &subresource,
                namespace: &namespace,
                name: &name,
                field_selector: &selector.understood,
            };
            authorizer.authorize(user, &Attributes::resource(&verb, resource))
        }
    };
    let (allowed, reason) = match decision {
        Decision::Allow(because) => (true, because.to_string()),
        Decision::Deny { reason } => (false, reason),
    };
    let evaluation_error = evaluation_errors.join("; ");
    SubjectAccessReviewStatus {
        allowed,
        denied: None,
        evaluation_error: (!evaluation_error.is_empty()).then_some(evaluation_error),
        reason: (!reason.is_empty()).then_some(reason),
    }
}

/// The parsed part of a field selector. Leaving out the rest requests more, not less.
#[derive(Debug, Default)]
struct Selector {
    understood: Vec<FieldRequirement>,
    has_errors: bool,
}

impl Selector {
    fn ignored(&self, part: &str) -> Option<String> {
        let extent = if self.understood.is_empty() {
            ""
        } else {
            "partially "
        };
        let text = format!("spec.resourceAttributes.{part} {extent}ignored due to parse error");
        self.has_errors.then_some(text)
    }
}

fn field_requirements(selector: &FieldSelectorAttributes) -> Selector {
    let mut found = Selector::default();
    match selector.raw_selector.as_deref() {
        None | Some("") => {}
        Some(raw) => match raw.parse::<FieldSelector>() {
            Ok(parsed) => found.understood = parsed.requirements().to_vec(),
            Err(_) => found.has_errors = true,
        },
    }
    for requirement in selector.requirements.iter().flatten() {
        let operator = match requirement.operator.as_str() {
            "In" => Some(FieldOperator::Equals),
            "NotIn" => Some(FieldOperator::NotEquals),
            _ => None,
        };
        match (operator, requirement.values.as_deref()) {
            (Some(operator), Some([value])) => found.understood.push(FieldRequirement {
                field: requirement.key.clone(),
                operator,
                value: value.clone(),
            }),
            _ => found.has_errors = true,
        }
    }
    found
}

/// No authorizer here uses labels; errors in them are still reported.
fn ignored_labels(requested: &ResourceAttributes) -> Option<String> {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
    let selector = requested.label_selector.as_ref()?;
    let raw = selector
        .raw_selector
        .as_deref()
        .filter(|raw| !raw.is_empty());
    let raw_is_wrong = raw.is_some_and(|raw| raw.parse::<LabelSelector>().is_err());
    let requirements = selector.requirements.iter().flatten();
    let (wrong, right): (Vec<_>, Vec<_>) = requirements.partition(|requirement| {
        let alone = meta::LabelSelector {
            match_expressions: Some(vec![(*requirement).clone()]),
            ..meta::LabelSelector::default()
        };
        LabelSelector::from_api(Some(&alone)).is_err()
    });
    let extent = if right.is_empty() { "" } else { "partially " };
    let text = format!("spec.resourceAttributes.labelSelector {extent}ignored due to parse error");
    (raw_is_wrong || !wrong.is_empty()).then_some(text)
}
