//! ResourceClaims.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::resource::v1::{
    DeviceClaim, DeviceConstraint, DeviceRequest, DeviceToleration, ResourceClaim,
};
use plimsoll_core::object::syntax::check_label_value;

use super::super::metadata::{self, Scope};
use super::super::names::{NameRule, dns_label, dns_subdomain};
use super::super::path::Path;
use super::super::problems::{FIELD_IS_IMMUTABLE, Problems, api};
use super::super::{selector, text};
use super::{
    MAX_CONFIGS, check_configuration, check_each, check_qualified_name, check_selectors,
    check_unique,
};

const MAX_REQUESTS: usize = 32;
const MAX_CONSTRAINTS: usize = 32;
const MAX_ALTERNATIVES: usize = 8;
const NO_REQUEST: &str = "must be the name of a request in the claim or the name of a request and \
    a subrequest separated by '/'";

/// Requests and the alternatives within them.
type Names<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

pub(in super::super) fn validate_claim(claim: &ResourceClaim, problems: &mut Problems) {
    let meta = &claim.metadata;
    metadata::check(meta, Scope::Namespaced, NameRule::Subdomain, problems);
    let path = Path::new("spec");
    let devices = claim.spec.devices.clone().unwrap_or_default();
    check_devices(&devices, &path.child("devices"), problems);
}

pub(in super::super) fn validate_claim_update(
    new: &ResourceClaim,
    old: &ResourceClaim,
    problems: &mut Problems,
) {
    let meta = &new.metadata;
    metadata::check(meta, Scope::Namespaced, NameRule::Subdomain, problems);
    metadata::check_update(meta, &old.metadata, problems);
    if new.spec != old.spec {
        let shown = api("resource.ResourceClaimSpec", &new.spec);
        problems.invalid(&Path::new("spec"), shown, FIELD_IS_IMMUTABLE);
    }
}

/// An allocation is immutable; the controllers are responsible for the rest of a status.
pub(in super::super) fn validate_claim_status_update(
    new: &ResourceClaim,
    old: &ResourceClaim,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    let allocation =
        |claim: &ResourceClaim| claim.status.as_ref().and_then(|s| s.allocation.clone());
    let (after, before) = (allocation(new), allocation(old));
    if let (Some(after), Some(before)) = (&after, &before)
        && after != before
    {
        let path = Path::new("status");
        let shown = api("resource.AllocationResult", after);
        problems.invalid(&path.child("allocation"), shown, FIELD_IS_IMMUTABLE);
    }
}

fn check_devices(devices: &DeviceClaim, path: &Path<'_>, problems: &mut Problems) {
    let requests = devices.requests.as_deref().unwrap_or_default();
    let names: Names<'_> = requests
        .iter()
        .map(|request| {
            let alternatives = request.first_available.iter().flatten();
            let alternatives = alternatives.map(|request| request.name.as_str()).collect();
            (request.name.as_str(), alternatives)
        })
        .collect();
    let requests_path = path.child("requests");
    check_each(
        requests,
        MAX_REQUESTS,
        &requests_path,
        problems,
        check_request,
    );
    let own_names = requests.iter().map(|request| request.name.as_str());
    check_unique(own_names, MAX_REQUESTS, &requests_path, problems);
    check_each(
        devices.constraints.as_deref().unwrap_or_default(),
        MAX_CONSTRAINTS,
        &path.child("constraints"),
        problems,
        |constraint, path, problems| check_constraint(constraint, &names, path, problems),
    );
    check_each(
        devices.config.as_deref().unwrap_or_default(),
        MAX_CONFIGS,
        &path.child("config"),
        problems,
        |config, path, problems| {
            check_references(config.requests.as_deref(), &names, path, problems);
            check_configuration(config.opaque.as_ref(), path, problems);
        },
    );
}

fn check_request(request: &DeviceRequest, path: &Path<'_>, problems: &mut Problems) {
    problems.invalid_each(&path.child("name"), &request.name, dns_label(&request.name));
    let alternatives = request.first_available.as_deref().unwrap_or_default();
    match (&request.exactly, alternatives.is_empty()) {
        (None, true) => {
            let detail = "exactly one of `exactly` or `firstAvailable` is required";
            problems.required(path, detail);
        }
        (Some(_), false) => {
            let detail = "exactly one of `exactly` or `firstAvailable` is required, but multiple \
                          fields are set";
            problems.invalid(path, super::super::problems::json(&()), detail);
        }
        (None, false) => check_alternatives(request, path, problems),
        (Some(exact), true) => {
            let path = path.child("exactly");
            check_class(&exact.device_class_name, &path, problems);
            check_selectors(exact.selectors.as_deref(), &path, problems);
            let mode = text(&exact.allocation_mode);
            check_mode(mode, exact.count.unwrap_or_default(), &path, problems);
            check_tolerations(exact.tolerations.as_deref(), &path, problems);
        }
    }
}

fn check_alternatives(request: &DeviceRequest, path: &Path<'_>, problems: &mut Problems) {
    let path = path.child("firstAvailable");
    let alternatives = request.first_available.as_deref().unwrap_or_default();
    check_each(
        alternatives,
        MAX_ALTERNATIVES,
        &path,
        problems,
        |request, path, problems| {
            problems.invalid_each(&path.child("name"), &request.name, dns_label(&request.name));
            check_class(&request.device_class_name, path, problems);
            check_selectors(request.selectors.as_deref(), path, problems);
            let mode = text(&request.allocation_mode);
            check_mode(mode, request.count.unwrap_or_default(), path, problems);
            check_tolerations(request.tolerations.as_deref(), path, problems);
        },
    );
    let names = alternatives.iter().map(|request| request.name.as_str());
    check_unique(names, MAX_ALTERNATIVES, &path, problems);
}

fn check_class(name: &str, path: &Path<'_>, problems: &mut Problems) {
    let path = path.child("deviceClassName");
    if name.is_empty() {
        problems.required(&path, "");
    } else {
        problems.invalid_each(&path, name, dns_subdomain(name));
    }
}

fn check_mode(mode: &str, count: i64, path: &Path<'_>, problems: &mut Problems) {
    let count_path = path.child("count");
    match mode {
        "All" if count != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            problems.invalid(&count_path, count, detail);
        }
        "All" => {}
        "ExactCount" => problems.positive(&count_path, count),
        other => {
            let path = path.child("allocationMode");
            problems.not_supported(&path, other, &["All", "ExactCount"]);
        }
    }
}

fn check_tolerations(
    tolerations: Option<&[DeviceToleration]>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let list = path.child("tolerations");
    for (index, toleration) in tolerations.unwrap_or_default().iter().enumerate() {
        let path = list.index(index);
        let (key, value) = (text(&toleration.key), text(&toleration.value));
        if !key.is_empty() {
            selector::check_key(key, &path.child("key"), problems);
        }
        let value_path = path.child("value");
        match text(&toleration.operator) {
            "Exists" if !value.is_empty() => {
                problems.invalid(&value_path, value, "must be empty for operator `Exists`");
            }
            "Exists" => {}
            "Equal" => problems.invalid_each(&value_path, value, check_label_value(value)),
            operator => {
                let known = ["Equal", "Exists"];
                problems.required_one_of(&path.child("operator"), operator, &known);
            }
        }
        let effect = text(&toleration.effect);
        if !effect.is_empty() {
            let known = ["NoExecute", "NoSchedule", "None"];
            problems.one_of(&path.child("effect"), effect, &known);
        }
    }
}

fn check_constraint(
    constraint: &DeviceConstraint,
    names: &Names<'_>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    check_references(constraint.requests.as_deref(), names, path, problems);
    match (&constraint.match_attribute, &constraint.distinct_attribute) {
        (Some(name), _) => check_full_name(name, &path.child("matchAttribute"), problems),
        (None, Some(name)) => check_full_name(name, &path.child("distinctAttribute"), problems),
        (None, None) => {
            let detail = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, \
                          but multiple fields are set";
            problems.required(path, detail);
        }
    }
}

fn check_full_name(name: &str, path: &Path<'_>, problems: &mut Problems) {
    check_qualified_name(name, path, problems);
    if !name.contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        problems.invalid(path, name, detail);
    }
}

/// Names of requests, or of one and an alternative in it.
fn check_references(
    references: Option<&[String]>,
    names: &Names<'_>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let path = path.child("requests");
    let references = references.unwrap_or_default();
    check_each(
        references,
        MAX_REQUESTS,
        &path,
        problems,
        |reference, path, problems| {
            let parts: Vec<&str> = reference.split('/').collect();
            if parts.len() > 2 {
                return problems.invalid(path, reference, NO_REQUEST);
            }
            for part in &parts {
                problems.invalid_each(path, part, dns_label(part));
            }
            let is_known = names.get(parts[0]).is_some_and(|alternatives| {
                parts.get(1).is_none_or(|part| alternatives.contains(part))
            });
            if !is_known {
                problems.invalid(path, reference, NO_REQUEST);
            }
        },
    );
    let texts = references.iter().map(String::as_str);
    check_unique(texts, MAX_REQUESTS, &path, problems);
}
