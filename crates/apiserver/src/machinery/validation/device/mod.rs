//! Kinds of the resource group: ResourceClaims, DeviceClasses and ResourceSlices.
//!
//! CEL expressions are checked for their length only; the scheduler finds out whether they
//! compile. Matches v1.36 pkg/apis/resource/validation/validation.go for the rest.

mod claim;
mod slice;

use std::collections::BTreeSet;

use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceClassSpec, DeviceSelector, OpaqueDeviceConfiguration,
};
use serde_json::Value;

use super::metadata::{self, Scope};
use super::names::NameRule;
use super::path::Path;
use super::problems::Problems;
use super::storage::check_driver_name;

pub(super) use claim::{validate_claim, validate_claim_status_update, validate_claim_update};
pub(super) use slice::{validate_slice, validate_slice_update};

const MAX_SELECTORS: usize = 32;
const MAX_CONFIGS: usize = 32;
const MAX_EXPRESSION_BYTES: usize = 10 << 10;
const MAX_PARAMETERS_BYTES: usize = 10 << 10;
const MAX_IDENTIFIER_BYTES: usize = 32;
const IDENTIFIER_RULE: &str = "a valid C identifier must start with alphabetic character or '_', \
    followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or \
    'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";

pub(super) fn validate_class(class: &DeviceClass, problems: &mut Problems) {
    metadata::check(
        &class.metadata,
        Scope::Cluster,
        NameRule::Subdomain,
        problems,
    );
    check_class(&class.spec, problems);
}

pub(super) fn validate_class_update(new: &DeviceClass, old: &DeviceClass, problems: &mut Problems) {
    metadata::check(&new.metadata, Scope::Cluster, NameRule::Subdomain, problems);
    metadata::check_update(&new.metadata, &old.metadata, problems);
    check_class(&new.spec, problems);
}

fn check_class(spec: &DeviceClassSpec, problems: &mut Problems) {
    let path = Path::new("spec");
    check_selectors(spec.selectors.as_deref(), &path, problems);
    let configs = spec.config.as_deref().unwrap_or_default();
    check_each(
        configs,
        MAX_CONFIGS,
        &path.child("config"),
        problems,
        |config, path, problems| check_configuration(config.opaque.as_ref(), path, problems),
    );
}

/// Validates each item, or none if there are too many.
fn check_each<T>(
    items: &[T],
    most: usize,
    path: &Path<'_>,
    problems: &mut Problems,
    check: impl Fn(&T, &Path<'_>, &mut Problems),
) {
    if items.len() > most {
        return problems.too_many(path, items.len(), most);
    }
    for (index, item) in items.iter().enumerate() {
        check(item, &path.index(index), problems);
    }
}

/// Rejects duplicate names, unless there are too many items.
fn check_unique<'a>(
    names: impl ExactSizeIterator<Item = &'a str>,
    most: usize,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if names.len() > most {
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, name) in names.enumerate() {
        if !seen.insert(name) {
            problems.duplicate(&path.index(index), name);
        }
    }
}

fn check_selectors(selectors: Option<&[DeviceSelector]>, path: &Path<'_>, problems: &mut Problems) {
    check_each(
        selectors.unwrap_or_default(),
        MAX_SELECTORS,
        &path.child("selectors"),
        problems,
        |selector, path, problems| {
            let path = path.child("cel");
            match &selector.cel {
                None => problems.required(&path, ""),
                Some(cel) if cel.expression.len() > MAX_EXPRESSION_BYTES => {
                    problems.too_long(&path.child("expression"), MAX_EXPRESSION_BYTES);
                }
                Some(_) => {}
            }
        },
    );
}

fn check_configuration(
    opaque: Option<&OpaqueDeviceConfiguration>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let path = path.child("opaque");
    let Some(opaque) = opaque else {
        return problems.required(&path, "");
    };
    check_driver_name(&opaque.driver, &path.child("driver"), problems);
    let path = path.child("parameters");
    match &opaque.parameters.0 {
        Value::Null => problems.required(&path, ""),
        value if value.to_string().len() > MAX_PARAMETERS_BYTES => {
            problems.too_long(&path, MAX_PARAMETERS_BYTES);
        }
        Value::Object(_) => {}
        _ => problems.invalid(&path, "<value omitted>", "must be a valid JSON object"),
    }
}

/// A name with an optional domain.
fn check_qualified_name(name: &str, path: &Path<'_>, problems: &mut Problems) {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [name] => check_identifier(name, path, problems),
        [domain, name] => {
            if domain.is_empty() {
                problems.invalid(path, "", "the domain must not be empty");
            } else {
                check_driver_name(domain, path, problems);
            }
            if name.is_empty() {
                problems.invalid(path, "", "the name must not be empty");
            } else {
                check_identifier(name, path, problems);
            }
        }
        // Upstream lets names with more slashes pass.
        _ => {}
    }
}

fn check_identifier(name: &str, path: &Path<'_>, problems: &mut Problems) {
    if name.len() > MAX_IDENTIFIER_BYTES {
        problems.too_long(path, MAX_IDENTIFIER_BYTES);
    }
    let is_word = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let starts_well = name
        .bytes()
        .next()
        .is_some_and(|byte| !byte.is_ascii_digit());
    if !is_word || !starts_well {
        problems.invalid(path, name, IDENTIFIER_RULE);
    }
}
