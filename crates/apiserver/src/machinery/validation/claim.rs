//! PersistentVolumeClaims, also in templates.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, TypedObjectReference,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use plimsoll_core::object::resource_rules::check_amount;
use plimsoll_core::object::syntax::check_label_key;
use plimsoll_core::quantity::Quantity;
use plimsoll_core::resources::ResourceName;

use super::metadata::{self, Scope};
use super::names::{NameRule, dns_label, dns_subdomain};
use super::path::Path;
use super::problems::{FIELD_IS_IMMUTABLE, Problems};
use super::{selector, text};

const ACCESS_MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

const RESIZE_STATES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

/// The annotation of the class before it was a field.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn validate(claim: &PersistentVolumeClaim, problems: &mut Problems) {
    metadata::check(
        &claim.metadata,
        Scope::Namespaced,
        NameRule::Subdomain,
        problems,
    );
    let spec = claim.spec.clone().unwrap_or_default();
    check_spec(&spec, &Path::new("spec"), problems);
}

/// Claims are immutable, but a bound one may be expanded and get another volume attributes class.
pub(super) fn validate_update(
    new: &PersistentVolumeClaim,
    old: &PersistentVolumeClaim,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    validate(new, problems);
    let (spec, old_spec) = (
        new.spec.clone().unwrap_or_default(),
        old.spec.clone().unwrap_or_default(),
    );
    let mut comparable = spec.clone();
    let mut before = old_spec.clone();
    if text(&before.volume_name).is_empty() {
        before.volume_name.clone_from(&comparable.volume_name);
    }
    check_class_change(new, old, &mut comparable, &before, problems);
    let status = new.status.clone().unwrap_or_default();
    if text(&status.phase) == "Bound" {
        let requests = |spec: &PersistentVolumeClaimSpec| spec.resources.clone()?.requests;
        let known = requests(&before).and_then(|requests| requests.get("storage").cloned());
        let resources = comparable.resources.as_mut();
        if let Some(requests) = resources.and_then(|resources| resources.requests.as_mut()) {
            requests.insert("storage".to_owned(), known.unwrap_or_default());
        }
        comparable
            .volume_attributes_class_name
            .clone_from(&before.volume_attributes_class_name);
    }
    let path = Path::new("spec");
    if comparable != before {
        let detail = "spec is immutable after creation except resources.requests and \
                      volumeAttributesClassName for bound claims\n";
        problems.forbidden(&path, detail);
    }
    check_size_change(&spec, old, &path, problems);
    let mode_path = Path::new("volumeMode");
    problems.immutable(&mode_path, &spec.volume_mode, &old_spec.volume_mode);
    let old_status = old.status.clone().unwrap_or_default();
    let class = &spec.volume_attributes_class_name;
    if *class != old_spec.volume_attributes_class_name
        && old_status.current_volume_attributes_class_name.is_some()
    {
        let what = match class.as_deref() {
            None => "nil",
            Some("") => "empty string",
            Some(_) => return,
        };
        let detail = format!(
            "update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
        );
        problems.forbidden(&path.child("volumeAttributesClassName"), detail);
    }
}

/// The class may be set once, and may move from the annotation to the field.
fn check_class_change(
    new: &PersistentVolumeClaim,
    old: &PersistentVolumeClaim,
    comparable: &mut PersistentVolumeClaimSpec,
    before: &PersistentVolumeClaimSpec,
    problems: &mut Problems,
) {
    let annotation = |claim: &PersistentVolumeClaim| {
        let annotations = claim.metadata.annotations.as_ref();
        annotations.and_then(|annotations| annotations.get(CLASS_ANNOTATION).cloned())
    };
    let (given, known) = (annotation(new), annotation(old));
    let class = comparable.storage_class_name.clone();
    let is_first = before.storage_class_name.is_none() && class.is_some();
    let is_moved = is_first && known.is_some() && class == known;
    if is_moved && (given.is_none() || given == known) {
        comparable.storage_class_name = None;
        return;
    }
    if given != known {
        let path = Path::new("metadata");
        let path = path.child("annotations");
        let given = given.unwrap_or_default();
        problems.invalid(&path.key(CLASS_ANNOTATION), &given, FIELD_IS_IMMUTABLE);
    }
    if is_first && (known.is_none() || class == known) {
        comparable.storage_class_name = None;
    }
}

/// A claim whose expansion failed may be reduced, but not below its capacity.
fn check_size_change(
    spec: &PersistentVolumeClaimSpec,
    old: &PersistentVolumeClaim,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let amount = |map: Option<&BTreeMap<String, ApiQuantity>>| {
        let amount = map.and_then(|map| map.get("storage"));
        let amount = amount.and_then(|amount| amount.0.parse::<Quantity>().ok());
        amount.unwrap_or(Quantity::ZERO)
    };
    let requested = |spec: &PersistentVolumeClaimSpec| {
        let resources = spec.resources.as_ref();
        amount(resources.and_then(|resources| resources.requests.as_ref()))
    };
    let before = old.spec.as_ref().map_or(Quantity::ZERO, requested);
    let status = old.status.as_ref();
    let held = amount(status.and_then(|status| status.capacity.as_ref()));
    let size = requested(spec);
    if size < before && size <= held {
        let path = path.child("resources");
        let path = path.child("requests");
        let detail = "field can not be less than status.capacity";
        problems.forbidden(&path.child("storage"), detail);
    }
}

pub(super) fn validate_status_update(
    new: &PersistentVolumeClaim,
    old: &PersistentVolumeClaim,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    let modes = new
        .spec
        .as_ref()
        .and_then(|spec| spec.access_modes.as_ref());
    if modes.is_none_or(Vec::is_empty) {
        let path = Path::new("Spec");
        problems.required(&path.child("accessModes"), "");
    }
    let Some(status) = &new.status else { return };
    let path = Path::new("status");
    let capacity_path = path.child("capacity");
    for (name, amount) in status.capacity.iter().flatten() {
        problems.nonnegative_quantity(&capacity_path.key(name), &amount.0);
    }
    let states_path = path.child("allocatedResourceStatuses");
    for (name, state) in status.allocated_resource_statuses.iter().flatten() {
        check_resource_key(name, &states_path, problems);
        if !RESIZE_STATES.contains(&state.as_str()) {
            problems.not_supported(&states_path, name, &RESIZE_STATES);
        }
    }
    let allocated_path = path.child("allocatedResources");
    for (name, amount) in status.allocated_resources.iter().flatten() {
        if check_resource_key(name, &allocated_path, problems) {
            problems.nonnegative_quantity(&allocated_path.key(name), &amount.0);
        }
    }
}

/// Only storage, or extended resources; returns whether the name is valid.
fn check_resource_key(name: &str, path: &Path<'_>, problems: &mut Problems) -> bool {
    let before = problems.len();
    problems.invalid_each(path, name, check_label_key(name));
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    if problems.len() == before && is_native && name != "storage" {
        problems.not_supported(path, name, &["storage"]);
    }
    problems.len() == before
}

pub(super) fn check_spec(
    spec: &PersistentVolumeClaimSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let modes = spec.access_modes.as_deref().unwrap_or_default();
    let modes_path = path.child("accessModes");
    if modes.is_empty() {
        problems.required(&modes_path, "at least 1 access mode is required");
    }
    selector::check(spec.selector.as_ref(), &path.child("selector"), problems);
    check_modes(modes, &modes_path, problems);
    check_storage(spec, path, problems);
    check_class(
        spec.storage_class_name.as_deref(),
        &path.child("storageClassName"),
        problems,
    );
    if let Some(mode) = &spec.volume_mode {
        problems.one_of(&path.child("volumeMode"), mode, &["Block", "Filesystem"]);
    }
    check_sources(spec, path, problems);
    let class = spec.volume_attributes_class_name.as_deref();
    check_class(class, &path.child("volumeAttributesClassName"), problems);
}

/// Known modes, of which one excludes the others.
pub(super) fn check_modes(modes: &[String], path: &Path<'_>, problems: &mut Problems) {
    for mode in modes {
        problems.one_of(path, mode, &ACCESS_MODES);
    }
    let is_exclusive = modes.iter().any(|mode| mode == "ReadWriteOncePod");
    let is_shared = |mode: &String| ACCESS_MODES[..3].contains(&mode.as_str());
    if is_exclusive && modes.iter().any(is_shared) {
        let detail = "may not use ReadWriteOncePod with other access modes";
        problems.forbidden(path, detail);
    }
}

fn check_class(name: Option<&str>, path: &Path<'_>, problems: &mut Problems) {
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        problems.invalid_each(path, name, dns_subdomain(name));
    }
}

fn check_storage(spec: &PersistentVolumeClaimSpec, path: &Path<'_>, problems: &mut Problems) {
    let path = path.child("resources");
    let path = path.key("storage");
    let requests = spec
        .resources
        .as_ref()
        .and_then(|resources| resources.requests.as_ref());
    let Some(storage) = requests.and_then(|requests| requests.get("storage")) else {
        return problems.required(&path, "");
    };
    let Ok(quantity) = storage.0.parse::<Quantity>() else {
        return;
    };
    if quantity.signum() <= 0 {
        return problems.invalid(&path, &quantity.to_string(), "must be greater than zero");
    }
    let mut found = Vec::new();
    check_amount(
        &ResourceName::STORAGE,
        &quantity,
        &path.to_string(),
        &mut found,
    );
    problems.extend(found);
}

fn check_sources(spec: &PersistentVolumeClaimSpec, path: &Path<'_>, problems: &mut Problems) {
    let local = spec
        .data_source
        .as_ref()
        .map(|source| TypedObjectReference {
            api_group: source.api_group.clone(),
            kind: source.kind.clone(),
            name: source.name.clone(),
            namespace: None,
        });
    if let Some(source) = &local {
        check_source(source, &path.child("dataSource"), problems);
    }
    let Some(reference) = &spec.data_source_ref else {
        return;
    };
    let reference_path = path.child("dataSourceRef");
    check_source(reference, &reference_path, problems);
    let namespace = text(&reference.namespace);
    if !namespace.is_empty() {
        let path = reference_path.child("namespace");
        problems.invalid_each(&path, namespace, dns_label(namespace));
    }
    let Some(local) = local else { return };
    // Upstream shows the path of the other field as the value.
    let shown = || super::problems::Shown::bare("{}");
    if !namespace.is_empty() {
        let detail = "may not be specified when dataSourceRef.namespace is specified";
        problems.invalid(path, shown(), detail);
    } else if local != *reference {
        problems.invalid(path, shown(), "must match dataSourceRef");
    }
}

fn check_source(source: &TypedObjectReference, path: &Path<'_>, problems: &mut Problems) {
    problems.require_text(&path.child("name"), &source.name);
    problems.require_text(&path.child("kind"), &source.kind);
    let group = text(&source.api_group);
    if group.is_empty() {
        if source.kind != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            problems.invalid(path, &source.kind, detail);
        }
    } else {
        problems.invalid_each(&path.child("apiGroup"), group, dns_subdomain(group));
    }
}
