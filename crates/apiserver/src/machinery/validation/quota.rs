//! LimitRanges and ResourceQuotas.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    LimitRange, ResourceQuota, ResourceQuotaSpec, ScopeSelector, ScopedResourceSelectorRequirement,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use plimsoll_core::admission::limit_range_validation;
use plimsoll_core::object::limit_range::LimitRangeView;
use plimsoll_core::object::resource_rules::{check_amount, check_resource_name};
use plimsoll_core::quantity::Quantity;
use plimsoll_core::resources::ResourceName;
use serde::Serialize;

use super::metadata::{self, Scope};
use super::names::NameRule;
use super::path::Path;
use super::problems::{FIELD_IS_IMMUTABLE, Problems, json};
use super::selector::NO_OPERATOR;
use super::{Part, text};

const STANDARD: [&str; 19] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];
const POD_COMPUTE: [&str; 6] = [
    "cpu",
    "memory",
    "limits.cpu",
    "limits.memory",
    "requests.cpu",
    "requests.memory",
];
const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];
const CONFLICTS: [[&str; 2]; 2] = [
    ["BestEffort", "NotBestEffort"],
    ["Terminating", "NotTerminating"],
];

pub(super) fn validate_limit_range(limit_range: &LimitRange, problems: &mut Problems) {
    metadata::check(
        &limit_range.metadata,
        Scope::Namespaced,
        NameRule::Subdomain,
        problems,
    );
    match LimitRangeView::from_api(limit_range) {
        Ok(view) => problems.extend(limit_range_validation::validate(&view)),
        Err(found) => problems.extend(found),
    }
}

pub(super) fn validate_limit_range_update(
    new: &LimitRange,
    _old: &LimitRange,
    problems: &mut Problems,
) {
    validate_limit_range(new, problems);
}

pub(super) fn validate_quota(quota: &ResourceQuota, problems: &mut Problems) {
    metadata::check(
        &quota.metadata,
        Scope::Namespaced,
        NameRule::Subdomain,
        problems,
    );
    let spec = quota.spec.clone().unwrap_or_default();
    check_spec(&spec, problems);
    check_status(quota, problems);
}

pub(super) fn validate_quota_update(
    new: &ResourceQuota,
    old: &ResourceQuota,
    part: Part,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    if part == Part::Status {
        if text(&new.metadata.resource_version).is_empty() {
            problems.required(&Path::new("resourceVersion"), "");
        }
        return check_status(new, problems);
    }
    let (spec, old_spec) = (
        new.spec.clone().unwrap_or_default(),
        old.spec.clone().unwrap_or_default(),
    );
    check_spec(&spec, problems);
    let scopes = |spec: &ResourceQuotaSpec| -> BTreeSet<String> {
        spec.scopes.iter().flatten().cloned().collect()
    };
    if scopes(&spec) != scopes(&old_spec) {
        let path = Path::new("spec");
        problems.invalid(
            &path.child("scopes"),
            json(&spec.scopes),
            FIELD_IS_IMMUTABLE,
        );
    }
}

fn check_status(quota: &ResourceQuota, problems: &mut Problems) {
    let path = Path::new("status");
    if let Some(status) = &quota.status {
        check_list(status.hard.as_ref(), &path.child("hard"), problems);
        check_list(status.used.as_ref(), &path.child("used"), problems);
    }
}

fn check_spec(spec: &ResourceQuotaSpec, problems: &mut Problems) {
    let path = Path::new("spec");
    check_list(spec.hard.as_ref(), &path.child("hard"), problems);
    let scopes = spec.scopes.as_deref().unwrap_or_default();
    let scopes_path = path.child("scopes");
    for scope in scopes {
        if !SCOPES.contains(&scope.as_str()) {
            problems.invalid(&scopes_path, json(&scopes), "unsupported scope");
        }
        for _ in unfit_resources(spec, scope) {
            let detail = "unsupported scope applied to resource";
            problems.invalid(&scopes_path, json(&scopes), detail);
        }
    }
    check_conflicts(
        scopes.iter().map(String::as_str),
        spec,
        &scopes_path,
        problems,
    );
    if let Some(selector) = &spec.scope_selector {
        let path = path.child("scopeSelector");
        check_selector(selector, spec, &path.child("matchExpressions"), problems);
    }
}

/// The resources that a scope does not limit.
fn unfit_resources<'a>(
    spec: &'a ResourceQuotaSpec,
    scope: &'a str,
) -> impl Iterator<Item = &'a String> {
    let names = spec.hard.iter().flatten().map(|(name, _)| name);
    names.filter(move |name| is_standard(name) && !fits(scope, name))
}

fn is_standard(name: &str) -> bool {
    let is_huge_pages = name
        .strip_prefix("requests.")
        .unwrap_or(name)
        .starts_with("hugepages-");
    STANDARD.contains(&name) || is_huge_pages
}

fn fits(scope: &str, resource: &str) -> bool {
    let is_pods = resource == "pods";
    match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => is_pods || POD_COMPUTE.contains(&resource),
        "BestEffort" => is_pods,
        "VolumeAttributesClass" => {
            ["persistentvolumeclaims", "requests.storage"].contains(&resource)
        }
        _ => true,
    }
}

/// The scopes that exclude each other. Upstream shows the plain scopes in both places.
fn check_conflicts<'a>(
    scopes: impl Iterator<Item = &'a str>,
    spec: &ResourceQuotaSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let given: BTreeSet<&str> = scopes.collect();
    for pair in CONFLICTS {
        if pair.iter().all(|scope| given.contains(scope)) {
            problems.invalid(path, json(&spec.scopes), "conflicting scopes");
        }
    }
}

fn check_selector(
    selector: &ScopeSelector,
    spec: &ResourceQuotaSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let requirements = selector.match_expressions.as_deref().unwrap_or_default();
    for requirement in requirements {
        let scope = requirement.scope_name.as_str();
        if !SCOPES.contains(&scope) {
            problems.invalid(&path.child("scopeName"), json(&scope), "unsupported scope");
        }
        for _ in unfit_resources(spec, scope) {
            let shown = InternalSelector::from(requirements);
            let detail = "unsupported scope applied to resource";
            problems.invalid(path, json(&shown), detail);
        }
        check_requirement(requirement, path, problems);
    }
    check_conflicts(
        requirements.iter().map(|r| r.scope_name.as_str()),
        spec,
        path,
        problems,
    );
}

fn check_requirement(
    requirement: &ScopedResourceSelectorRequirement,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let operator = requirement.operator.as_str();
    let has_no_values = !["PriorityClass", "VolumeAttributesClass"]
        .contains(&requirement.scope_name.as_str())
        && SCOPES.contains(&requirement.scope_name.as_str());
    if has_no_values && operator != "Exists" {
        let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                      ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                      ResourceQuotaScopeNotBestEffort or \
                      ResourceQuotaScopeCrossNamespacePodAffinity";
        problems.invalid(&path.child("operator"), json(&operator), detail);
    }
    let values = requirement.values.as_deref().unwrap_or_default();
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            let detail =
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
            problems.required(&path.child("values"), detail);
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail =
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
            problems.invalid(&path.child("values"), json(&values), detail);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => problems.invalid(&path.child("operator"), json(&other), NO_OPERATOR),
    }
}

/// A scope selector in upstream's format.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct InternalSelector<'a> {
    match_expressions: Vec<InternalRequirement<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct InternalRequirement<'a> {
    scope_name: &'a str,
    operator: &'a str,
    values: Option<&'a [String]>,
}

impl<'a> From<&'a [ScopedResourceSelectorRequirement]> for InternalSelector<'a> {
    fn from(requirements: &'a [ScopedResourceSelectorRequirement]) -> InternalSelector<'a> {
        let shown = requirements.iter().map(|requirement| InternalRequirement {
            scope_name: &requirement.scope_name,
            operator: &requirement.operator,
            values: requirement.values.as_deref(),
        });
        InternalSelector {
            match_expressions: shown.collect(),
        }
    }
}

fn check_list(
    list: Option<&BTreeMap<String, ApiQuantity>>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    for (name, ApiQuantity(amount)) in list.into_iter().flatten() {
        let Ok(quantity) = amount.parse::<Quantity>() else {
            continue;
        };
        let path = path.key(name);
        let resource = ResourceName::new(name.as_str());
        let mut found = Vec::new();
        check_resource_name(&resource, &path.to_string(), &mut found);
        problems.extend(found);
        if !name.contains('/') && !is_standard(name) {
            problems.invalid(&path, json(name), "must be a standard resource for quota");
        }
        let mut found = Vec::new();
        check_amount(&resource, &quantity, &path.to_string(), &mut found);
        problems.extend(found);
    }
}
