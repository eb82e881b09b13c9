//! PersistentVolumes, also in VolumeAttachments.
//!
//! Matches v1.36 pkg/apis/core/validation/validation.go, `ValidatePersistentVolume*`.

use k8s_openapi::api::core::v1::{
    CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeSpec, SecretReference, Volume,
};
use serde_json::{Value, json};

use super::claim::check_modes;
use super::file_path::check_no_backsteps;
use super::metadata::{self, Scope};
use super::names::{NameRule, dns_label, dns_subdomain};
use super::path::Path;
use super::problems::Problems;
use super::storage::check_driver_name;
use super::{pod, text};

const RECLAIM_POLICIES: [&str; 3] = ["Delete", "Recycle", "Retain"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
const NOT_INLINE: &str = "may not be specified in the context of inline volumes";

pub(super) fn validate(volume: &PersistentVolume, problems: &mut Problems) {
    metadata::check(
        &volume.metadata,
        Scope::Cluster,
        NameRule::Subdomain,
        problems,
    );
    let spec = volume.spec.clone().unwrap_or_default();
    check_spec(&spec, &Path::new("spec"), problems);
}

pub(super) fn validate_update(
    new: &PersistentVolume,
    old: &PersistentVolume,
    problems: &mut Problems,
) {
    validate(new, problems);
    // Upstream's strategy validates the volume, and so does the function that it calls then.
    validate(new, problems);
    let (mut spec, old) = (
        new.spec.clone().unwrap_or_default(),
        old.spec.clone().unwrap_or_default(),
    );
    let had_secret = |csi: &CSIPersistentVolumeSource| csi.controller_expand_secret_ref.is_some();
    if let (Some(csi), Some(before)) = (&mut spec.csi, &old.csi)
        && !had_secret(before)
    {
        csi.controller_expand_secret_ref = None;
    }
    let path = Path::new("spec");
    if sources(&spec) != sources(&old) {
        let detail = "spec.persistentvolumesource is immutable after creation\n";
        problems.forbidden(&path.child("persistentvolumesource"), detail);
    }
    problems.immutable(
        &Path::new("volumeMode"),
        &spec.volume_mode,
        &old.volume_mode,
    );
    if old.node_affinity.is_some() && spec.node_affinity != old.node_affinity {
        let shown = super::problems::json(&spec.node_affinity);
        let detail = super::problems::FIELD_IS_IMMUTABLE;
        problems.invalid(&Path::new("nodeAffinity"), shown, detail);
    }
    let (class, old_class) = (
        &spec.volume_attributes_class_name,
        &old.volume_attributes_class_name,
    );
    if old_class.is_some() && class.is_none() {
        let detail = "update from non-nil value to nil is forbidden";
        problems.forbidden(&path.child("volumeAttributesClassName"), detail);
    }
}

/// The source of a volume.
fn sources(spec: &PersistentVolumeSpec) -> Value {
    let mut value = serde_json::to_value(spec).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        for field in [
            "accessModes",
            "capacity",
            "claimRef",
            "mountOptions",
            "nodeAffinity",
            "persistentVolumeReclaimPolicy",
            "storageClassName",
            "volumeAttributesClassName",
            "volumeMode",
        ] {
            fields.remove(field);
        }
    }
    value
}

fn check_spec(spec: &PersistentVolumeSpec, path: &Path<'_>, problems: &mut Problems) {
    check_access_modes(spec, path, problems);
    check_capacity(spec, path, problems);
    let policy = text(&spec.persistent_volume_reclaim_policy);
    let policy_path = path.child("persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        problems.one_of(&policy_path, policy, &RECLAIM_POLICIES);
    }
    if let Some(affinity) = &spec.node_affinity {
        let path = path.child("nodeAffinity");
        let path = path.child("required");
        match &affinity.required {
            Some(selector) => pod::check_node_selector(selector, &path, problems),
            None => problems.required(&path, "must specify required node constraints"),
        }
    }
    check_sources(spec, path, problems);
    let is_root = spec.host_path.as_ref().is_some_and(|host| {
        host.path
            .split('/')
            .all(|part| part.is_empty() || part == ".")
    });
    if is_root && policy == "Recycle" {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        problems.forbidden(&policy_path, detail);
    }
    let class = text(&spec.storage_class_name);
    if !class.is_empty() {
        let path = path.child("storageClassName");
        problems.invalid_each(&path, class, dns_subdomain(class));
    }
    if let Some(mode) = &spec.volume_mode {
        problems.one_of(&path.child("volumeMode"), mode, &VOLUME_MODES);
    }
    check_attributes_class(spec, path, problems);
}

/// The spec of an inline volume.
pub(super) fn check_inline(spec: &PersistentVolumeSpec, path: &Path<'_>, problems: &mut Problems) {
    let has_capacity = spec.capacity.as_ref().is_some_and(|map| !map.is_empty());
    problems.forbid_if(
        spec.claim_ref.is_some(),
        &path.child("claimRef"),
        NOT_INLINE,
    );
    problems.forbid_if(has_capacity, &path.child("capacity"), NOT_INLINE);
    if spec.csi.is_none() {
        let detail = "has to be specified in the context of inline volumes";
        problems.required(&path.child("csi"), detail);
    }
    check_access_modes(spec, path, problems);
    let policy = text(&spec.persistent_volume_reclaim_policy);
    let is_kept = policy.is_empty() || policy == "Retain";
    let policy_path = path.child("persistentVolumeReclaimPolicy");
    let detail = "may only be Retain in the context of inline volumes";
    problems.forbid_if(!is_kept, &policy_path, detail);
    let affinity_path = path.child("nodeAffinity");
    problems.forbid_if(spec.node_affinity.is_some(), &affinity_path, NOT_INLINE);
    check_sources(spec, path, problems);
    let has_class = !text(&spec.storage_class_name).is_empty();
    problems.forbid_if(has_class, &path.child("storageClassName"), NOT_INLINE);
    let mode = spec.volume_mode.as_deref().unwrap_or("Filesystem");
    let detail =
        "may not specify volumeMode other than Filesystem in the context of inline volumes";
    problems.forbid_if(mode != "Filesystem", &path.child("volumeMode"), detail);
    check_attributes_class(spec, path, problems);
}

fn check_access_modes(spec: &PersistentVolumeSpec, path: &Path<'_>, problems: &mut Problems) {
    let path = path.child("accessModes");
    let modes = spec.access_modes.as_deref().unwrap_or_default();
    if modes.is_empty() {
        problems.required(&path, "");
    }
    check_modes(modes, &path, problems);
}

fn check_capacity(spec: &PersistentVolumeSpec, path: &Path<'_>, problems: &mut Problems) {
    let path = path.child("capacity");
    let capacity = spec.capacity.clone().unwrap_or_default();
    if capacity.is_empty() {
        problems.required(&path, "");
    }
    if capacity.len() != 1 || !capacity.contains_key("storage") {
        let shown = super::problems::json(&spec.capacity);
        problems.not_supported_value(&path, shown, &["storage"]);
    }
    for (name, amount) in &capacity {
        problems.positive_quantity(&path.key(name), &amount.0);
    }
}

/// Sources that pods have as well are validated by the rules of pods.
fn check_sources(spec: &PersistentVolumeSpec, path: &Path<'_>, problems: &mut Problems) {
    let mut shared = serde_json::to_value(spec).unwrap_or_default();
    if let Some(fields) = shared.as_object_mut() {
        fields.remove("csi");
        fields.insert("name".to_owned(), json!(""));
    }
    let volume = serde_json::from_value::<Volume>(shared).unwrap_or_default();
    let mut count = pod::check_sources(&volume, path, problems);
    let more = "may not specify more than 1 volume type";
    if let Some(local) = &spec.local {
        let local_path = path.child("local");
        if count > 0 {
            problems.forbidden(&local_path, more);
        } else {
            let path = local_path.child("path");
            problems.require_text(&path, &local.path);
            check_no_backsteps(&local.path, &path, problems);
        }
        count += 1;
        if spec.node_affinity.is_none() {
            let detail = "Local volume requires node affinity";
            problems.required(&path.child("nodeAffinity"), detail);
        }
    }
    if let Some(csi) = &spec.csi {
        let path = path.child("csi");
        if count > 0 {
            problems.forbidden(&path, more);
        } else {
            check_csi(csi, &path, problems);
        }
        count += 1;
    }
    if count == 0 {
        problems.required(path, "must specify a volume type");
    }
}

fn check_csi(csi: &CSIPersistentVolumeSource, path: &Path<'_>, problems: &mut Problems) {
    check_driver_name(&csi.driver, &path.child("driver"), problems);
    problems.require_text(&path.child("volumeHandle"), &csi.volume_handle);
    for (field, secret) in [
        (
            "controllerPublishSecretRef",
            &csi.controller_publish_secret_ref,
        ),
        (
            "controllerExpandSecretRef",
            &csi.controller_expand_secret_ref,
        ),
        ("nodePublishSecretRef", &csi.node_publish_secret_ref),
        ("nodeExpandSecretRef", &csi.node_expand_secret_ref),
    ] {
        if let Some(secret) = secret {
            check_secret(secret, &path.child(field), problems);
        }
    }
}

fn check_secret(secret: &SecretReference, path: &Path<'_>, problems: &mut Problems) {
    let name_path = path.child("name");
    match text(&secret.name) {
        "" => problems.required(&name_path, ""),
        name => problems.invalid_each(&name_path, name, dns_subdomain(name)),
    }
    let namespace_path = path.child("namespace");
    match text(&secret.namespace) {
        "" => problems.required(&namespace_path, ""),
        name => problems.invalid_each(&namespace_path, name, dns_label(name)),
    }
}

fn check_attributes_class(spec: &PersistentVolumeSpec, path: &Path<'_>, problems: &mut Problems) {
    let Some(class) = &spec.volume_attributes_class_name else {
        return;
    };
    let class_path = path.child("volumeAttributesClassName");
    if class.is_empty() {
        problems.required(&class_path, "an empty string is disallowed");
    } else {
        problems.invalid_each(&class_path, class, dns_subdomain(class));
    }
    if spec.csi.is_none() {
        let detail = "has to be specified when using volumeAttributesClassName";
        problems.required(&path.child("csi"), detail);
    }
}
