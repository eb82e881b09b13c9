//! Rules for the metadata of every kind.
//!
//! Matches v1.36 apimachinery/pkg/api/validation/objectmeta.go with the stricter rules for
//! finalizers of pkg/apis/core/validation.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    ManagedFieldsEntry, ObjectMeta, OwnerReference,
};
use plimsoll_core::object::syntax::{check_label_key, check_label_value};

use crate::machinery::schema::encode::go_json;

use super::names::{NameRule, dns_label};
use super::path::Path;
use super::problems::{Problems, Shown, api, json};
use super::text;

/// The maximum size of all annotations.
const MAX_ANNOTATIONS_BYTES: usize = 256 << 10;
const MAX_SUBRESOURCE_BYTES: usize = 256;
/// The maximum length of a field manager's name.
const MAX_MANAGER_BYTES: usize = 128;

/// Finalizers that need no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// Whether objects of a kind live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Namespaced,
    Cluster,
}

/// The rules of a kind, whose names follow `rule`.
pub(super) fn check(meta: &ObjectMeta, scope: Scope, rule: NameRule, problems: &mut Problems) {
    check_with(meta, scope, rule, problems);
    check_kube_finalizers(meta, &Path::new("metadata"), problems);
}

/// The rules for every kind.
pub(super) fn check_common(meta: &ObjectMeta, scope: Scope, problems: &mut Problems) {
    check_with(meta, scope, NameRule::PathSegment, problems);
}

fn check_with(meta: &ObjectMeta, scope: Scope, rule: NameRule, problems: &mut Problems) {
    let path = Path::new("metadata");
    let prefix = text(&meta.generate_name);
    if !prefix.is_empty() {
        problems.invalid_each(
            &path.child("generateName"),
            prefix,
            rule.check_prefix(prefix),
        );
    }
    match text(&meta.name) {
        "" => problems.required(&path.child("name"), "name or generateName is required"),
        name => problems.invalid_each(&path.child("name"), name, rule.check(name)),
    }
    match (scope, text(&meta.namespace)) {
        (Scope::Namespaced, "") => problems.required(&path.child("namespace"), ""),
        (Scope::Namespaced, name) => {
            problems.invalid_each(&path.child("namespace"), name, dns_label(name));
        }
        (Scope::Cluster, "") => {}
        (Scope::Cluster, _) => {
            problems.forbidden(&path.child("namespace"), "not allowed on this type");
        }
    }
    problems.nonnegative(
        &path.child("generation"),
        meta.generation.unwrap_or_default(),
    );
    check_maps(meta, &path, problems);
    check_finalizers(meta, &path.child("finalizers"), problems);
    check_managed_fields(meta, &path, problems);
}

/// The rules of a kind for updated metadata.
pub(super) fn check_update(new: &ObjectMeta, old: &ObjectMeta, problems: &mut Problems) {
    check_common_update(new, old, problems);
    check_kube_finalizers(new, &Path::new("metadata"), problems);
}

/// The rules for updated metadata of every kind.
pub(super) fn check_common_update(new: &ObjectMeta, old: &ObjectMeta, problems: &mut Problems) {
    let path = Path::new("metadata");
    if old.deletion_timestamp.is_some() {
        check_no_added_finalizers(new, old, &path, problems);
    }
    if text(&new.resource_version).is_empty() {
        problems.invalid(
            &path.child("resourceVersion"),
            "",
            "must be specified for an update",
        );
    }
    let (generation, old_generation) = (
        new.generation.unwrap_or_default(),
        old.generation.unwrap_or_default(),
    );
    if generation < old_generation {
        problems.invalid(
            &path.child("generation"),
            generation,
            "must not be decremented",
        );
    }
    for (field, new, old) in [
        ("name", &new.name, &old.name),
        ("namespace", &new.namespace, &old.namespace),
        ("uid", &new.uid, &old.uid),
    ] {
        problems.immutable(&path.child(field), &text(new), &text(old));
    }
    problems.immutable(
        &path.child("creationTimestamp"),
        &new.creation_timestamp,
        &old.creation_timestamp,
    );
    problems.immutable(
        &path.child("deletionTimestamp"),
        &new.deletion_timestamp,
        &old.deletion_timestamp,
    );
    problems.immutable(
        &path.child("deletionGracePeriodSeconds"),
        &new.deletion_grace_period_seconds,
        &old.deletion_grace_period_seconds,
    );
    check_maps(new, &path, problems);
    check_managed_fields(new, &path, problems);
}

fn check_maps(meta: &ObjectMeta, path: &Path<'_>, problems: &mut Problems) {
    check_labels(meta.labels.as_ref(), &path.child("labels"), problems);
    check_annotations(
        meta.annotations.as_ref(),
        &path.child("annotations"),
        problems,
    );
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    check_owners(owners, &path.child("ownerReferences"), problems);
}

pub(super) fn check_labels(
    labels: Option<&BTreeMap<String, String>>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    for (key, value) in labels.into_iter().flatten() {
        problems.invalid_each(path, key, check_label_key(key));
        problems.invalid_each(path, value, check_label_value(value));
    }
}

pub(super) fn check_annotations(
    annotations: Option<&BTreeMap<String, String>>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let mut bytes = 0;
    for (key, value) in annotations.into_iter().flatten() {
        problems.invalid_each(path, key, check_label_key(&key.to_lowercase()));
        bytes += key.len() + value.len();
    }
    if bytes > MAX_ANNOTATIONS_BYTES {
        problems.too_long(path, MAX_ANNOTATIONS_BYTES);
    }
}

fn check_owners(owners: &[OwnerReference], path: &Path<'_>, problems: &mut Problems) {
    let mut first_controller: Option<String> = None;
    for owner in owners {
        check_owner(owner, path, problems);
        if owner.controller != Some(true) {
            continue;
        }
        let this = format!("{}/{}", owner.kind, owner.name);
        match &first_controller {
            None => first_controller = Some(this),
            Some(first) => problems.invalid(
                path,
                shown_owners(owners),
                format!(
                    "Only one reference can have Controller set to true. Found \"true\" in \
                     references for {first} and {this}"
                ),
            ),
        }
    }
}

fn shown_owners(owners: &[OwnerReference]) -> Shown {
    let meta = ObjectMeta {
        owner_references: Some(owners.to_vec()),
        ..ObjectMeta::default()
    };
    let shown = go_json("meta.ObjectMeta", &meta);
    // The list is the only member.
    let list = shown
        .strip_prefix("{\"ownerReferences\":")
        .and_then(|rest| rest.strip_suffix('}'));
    Shown::bare(list.unwrap_or_default())
}

fn check_owner(owner: &OwnerReference, path: &Path<'_>, problems: &mut Problems) {
    let (group, version) = match owner.api_version.split_once('/') {
        Some((_, rest)) if rest.contains('/') => ("", ""),
        Some((group, version)) => (group, version),
        None => ("", owner.api_version.as_str()),
    };
    if version.is_empty() {
        problems.invalid(
            &path.child("apiVersion"),
            &owner.api_version,
            "version must not be empty",
        );
    }
    for (field, value) in [
        ("kind", &owner.kind),
        ("name", &owner.name),
        ("uid", &owner.uid),
    ] {
        if value.is_empty() {
            problems.invalid(&path.child(field), value, "must not be empty");
        }
    }
    if (group, version, owner.kind.as_str()) == ("", "v1", "Event") {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        problems.invalid(path, api("meta.OwnerReference", owner), detail);
    }
}

fn check_finalizers(meta: &ObjectMeta, path: &Path<'_>, problems: &mut Problems) {
    let finalizers = meta.finalizers.as_deref().unwrap_or_default();
    for finalizer in finalizers {
        problems.invalid_each(path, finalizer, check_label_key(finalizer));
    }
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        problems.invalid(path, json(&finalizers), detail);
    }
}

fn check_kube_finalizers(meta: &ObjectMeta, path: &Path<'_>, problems: &mut Problems) {
    let path = path.child("finalizers");
    for (index, finalizer) in meta.finalizers.iter().flatten().enumerate() {
        check_kube_finalizer(finalizer, &path.index(index), problems);
    }
}

/// A finalizer is one of the standard ones or has a domain.
pub(super) fn check_kube_finalizer(finalizer: &str, path: &Path<'_>, problems: &mut Problems) {
    if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer) {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        problems.invalid(path, finalizer, detail);
    }
}

fn check_no_added_finalizers(
    new: &ObjectMeta,
    old: &ObjectMeta,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let set = |meta: &ObjectMeta| -> BTreeSet<String> {
        meta.finalizers.iter().flatten().cloned().collect()
    };
    let (new, old) = (set(new), set(old));
    let added: Vec<String> = new
        .difference(&old)
        .map(|name| plimsoll_core::problem::quoted(name))
        .collect();
    if !added.is_empty() {
        problems.forbidden(
            &path.child("finalizers"),
            format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{}}}",
                added.join(", ")
            ),
        );
    }
}

fn check_managed_fields(meta: &ObjectMeta, path: &Path<'_>, problems: &mut Problems) {
    let path = path.child("managedFields");
    for (index, entry) in meta.managed_fields.iter().flatten().enumerate() {
        check_managed_entry(entry, &path.index(index), problems);
    }
}

fn check_managed_entry(entry: &ManagedFieldsEntry, path: &Path<'_>, problems: &mut Problems) {
    let operation = text(&entry.operation);
    if operation != "Apply" && operation != "Update" {
        problems.invalid(
            &path.child("operation"),
            json(&operation),
            "must be `Apply` or `Update`",
        );
    }
    let fields_type = text(&entry.fields_type);
    if !fields_type.is_empty() && fields_type != "FieldsV1" {
        problems.invalid(&path.child("fieldsType"), fields_type, "must be `FieldsV1`");
    }
    check_field_manager(text(&entry.manager), &path.child("manager"), problems);
    if text(&entry.subresource).len() > MAX_SUBRESOURCE_BYTES {
        problems.too_long(&path.child("subresource"), MAX_SUBRESOURCE_BYTES);
    }
}

/// The name of a field manager.
pub(super) fn check_field_manager(manager: &str, path: &Path<'_>, problems: &mut Problems) {
    if manager.len() > MAX_MANAGER_BYTES {
        problems.too_long(path, MAX_MANAGER_BYTES);
    }
    for (position, c) in manager.char_indices().filter(|(_, c)| c.is_control()) {
        let code = u32::from(c);
        let detail = format!("invalid character U+{code:04X} (at position {position})");
        problems.invalid(path, manager, detail);
    }
}
