//! PersistentVolumeClaims, which also stand in templates.

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, TypedObjectReference,
};
use plimsoll_core::object::resource_rules::check_amount;
use plimsoll_core::quantity::Quantity;
use plimsoll_core::resources::ResourceName;

use super::metadata::{self, Scope};
use super::names::{NameRule, dns_label, dns_subdomain};
use super::path::Path;
use super::problems::Problems;
use super::{selector, text};

const ACCESS_MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

pub(super) fn validate(claim: &PersistentVolumeClaim, problems: &mut Problems) {
    metadata::check(
        &claim.metadata,
        Scope::Namespaced,
        NameRule::Subdomain,
        problems,
    );
    if let Some(spec) = &claim.spec {
        check_spec(spec, &Path::new("spec"), problems);
    }
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
    for mode in modes {
        problems.one_of(&modes_path, mode, &ACCESS_MODES);
    }
    let is_exclusive = |mode: &&String| *mode == "ReadWriteOncePod";
    let is_shared = |mode: &&String| ACCESS_MODES[..3].contains(&mode.as_str());
    if modes.iter().any(|mode| is_exclusive(&mode)) && modes.iter().any(|mode| is_shared(&mode)) {
        let detail = "may not use ReadWriteOncePod with other access modes";
        problems.forbidden(&modes_path, detail);
    }
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
