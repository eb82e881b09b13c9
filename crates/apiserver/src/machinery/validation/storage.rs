//! Kinds of the storage group.
//!
//! Matches v1.36 pkg/apis/storage/validation/validation.go.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::TopologySelectorTerm;
use k8s_openapi::api::storage::v1::{
    CSIDriver, CSIDriverSpec, CSINode, CSINodeDriver, CSIStorageCapacity, StorageClass,
    TokenRequest, VolumeAttachment, VolumeError,
};
use plimsoll_core::object::syntax::check_label_key;

use super::metadata::{self, Scope};
use super::names::{NameRule, dns_subdomain};
use super::path::Path;
use super::problems::{Problems, api, json};
use super::{internal, persistent_volume, selector, text};

const MAX_PARAMETERS: usize = 512;
const MAX_PARAMETERS_BYTES: usize = 256 << 10;
const MAX_ERROR_BYTES: usize = 1024;
const MAX_NODE_ID_BYTES: usize = 256;
const MAX_DRIVER_BYTES: usize = 63;
const SHORTEST_TOKEN_SECONDS: i64 = 600;
const LONGEST_TOKEN_SECONDS: i64 = 1 << 32;
const SHORTEST_UPDATE_SECONDS: i64 = 10;

pub(super) fn validate_class(class: &StorageClass, problems: &mut Problems) {
    metadata::check(
        &class.metadata,
        Scope::Cluster,
        NameRule::Subdomain,
        problems,
    );
    check_provisioner(&class.provisioner, problems);
    check_parameters(class.parameters.as_ref(), problems);
    if let Some(policy) = class
        .reclaim_policy
        .as_deref()
        .filter(|policy| !policy.is_empty())
    {
        let path = Path::new("reclaimPolicy");
        problems.one_of(&path, policy, &["Delete", "Retain"]);
    }
    let path = Path::new("volumeBindingMode");
    match class.volume_binding_mode.as_deref() {
        None => problems.required(&path, ""),
        Some(mode) => problems.one_of(&path, mode, &["Immediate", "WaitForFirstConsumer"]),
    }
    let topologies = class.allowed_topologies.as_deref().unwrap_or_default();
    check_topologies(topologies, &Path::new("allowedTopologies"), problems);
}

pub(super) fn validate_class_update(
    new: &StorageClass,
    old: &StorageClass,
    problems: &mut Problems,
) {
    validate_class(new, problems);
    metadata::check_update(&new.metadata, &old.metadata, problems);
    problems.immutable(&Path::new("parameters"), &new.parameters, &old.parameters);
    problems.immutable(
        &Path::new("provisioner"),
        &new.provisioner,
        &old.provisioner,
    );
    problems.immutable(
        &Path::new("reclaimPolicy"),
        &new.reclaim_policy,
        &old.reclaim_policy,
    );
    problems.immutable(
        &Path::new("volumeBindingMode"),
        &new.volume_binding_mode,
        &old.volume_binding_mode,
    );
}

fn check_provisioner(provisioner: &str, problems: &mut Problems) {
    let path = Path::new("provisioner");
    if provisioner.is_empty() {
        problems.required(&path, "");
    } else {
        let lower = provisioner.to_lowercase();
        problems.invalid_each(&path, &lower, check_label_key(&lower));
    }
}

fn check_parameters(parameters: Option<&BTreeMap<String, String>>, problems: &mut Problems) {
    let path = Path::new("parameters");
    let Some(parameters) = parameters else { return };
    if parameters.len() > MAX_PARAMETERS {
        return problems.too_long(&path, MAX_PARAMETERS);
    }
    if parameters.contains_key("") {
        problems.invalid(&path, "", "field can not be empty.");
    }
    check_size(parameters, &path, problems);
}

fn check_size(map: &BTreeMap<String, String>, path: &Path<'_>, problems: &mut Problems) {
    let bytes: usize = map.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > MAX_PARAMETERS_BYTES {
        problems.too_long(path, MAX_PARAMETERS_BYTES);
    }
}

fn check_topologies(terms: &[TopologySelectorTerm], path: &Path<'_>, problems: &mut Problems) {
    let mut seen: Vec<BTreeMap<&str, BTreeSet<&String>>> = Vec::new();
    for (index, term) in terms.iter().enumerate() {
        let path = path.index(index);
        let list = path.child("matchLabelExpressions");
        let mut requirements = BTreeMap::new();
        let expressions = term.match_label_expressions.as_deref().unwrap_or_default();
        for (index, requirement) in expressions.iter().enumerate() {
            let path = list.index(index);
            let values_path = path.child("values");
            if requirement.values.is_empty() {
                problems.required(&values_path, "");
            }
            let mut values = BTreeSet::new();
            for (index, value) in requirement.values.iter().enumerate() {
                if !values.insert(value) {
                    problems.duplicate(&values_path.index(index), value);
                }
            }
            let key_path = path.child("key");
            selector::check_key(&requirement.key, &key_path, problems);
            if requirements
                .insert(requirement.key.as_str(), values)
                .is_some()
            {
                problems.duplicate(&key_path, &requirement.key);
            }
        }
        if seen.contains(&requirements) {
            problems.duplicate(&list, "");
        }
        seen.push(requirements);
    }
}

pub(super) fn validate_driver(driver: &CSIDriver, problems: &mut Problems) {
    metadata::check(
        &driver.metadata,
        Scope::Cluster,
        NameRule::Subdomain,
        problems,
    );
    check_driver_spec(&driver.spec, problems);
}

pub(super) fn validate_driver_update(new: &CSIDriver, old: &CSIDriver, problems: &mut Problems) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    check_driver_spec(&new.spec, problems);
    let path = Path::new("spec");
    problems.immutable(
        &path.child("attachedRequired"),
        &new.spec.attach_required,
        &old.spec.attach_required,
    );
    problems.immutable(
        &path.child("volumeLifecycleModes"),
        &new.spec.volume_lifecycle_modes,
        &old.spec.volume_lifecycle_modes,
    );
}

fn check_driver_spec(spec: &CSIDriverSpec, problems: &mut Problems) {
    let path = Path::new("spec");
    for (field, flag) in [
        ("attachedRequired", spec.attach_required),
        ("podInfoOnMount", spec.pod_info_on_mount),
        ("storageCapacity", spec.storage_capacity),
    ] {
        if flag.is_none() {
            problems.required(&path.child(field), "");
        }
    }
    if let Some(policy) = &spec.fs_group_policy {
        let known = ["File", "None", "ReadWriteOnceWithFSType"];
        problems.one_of(&path.child("fsGroupPolicy"), policy, &known);
    }
    let tokens = spec.token_requests.as_deref().unwrap_or_default();
    check_tokens(tokens, &path.child("tokenRequests"), problems);
    for mode in spec.volume_lifecycle_modes.iter().flatten() {
        let path = path.child("volumeLifecycleModes");
        problems.one_of(&path, mode, &["Persistent", "Ephemeral"]);
    }
    if spec.se_linux_mount.is_none() {
        problems.required(&path.child("seLinuxMount"), "");
    }
    let period = spec.node_allocatable_update_period_seconds;
    if let Some(seconds) = period.filter(|seconds| *seconds < SHORTEST_UPDATE_SECONDS) {
        let path = path.child("nodeAllocatableUpdatePeriodSeconds");
        let detail = "must be greater than or equal to 10 seconds";
        problems.invalid(&path, seconds, detail);
    }
    if let Some(flag) = spec
        .service_account_token_in_secrets
        .filter(|_| tokens.is_empty())
    {
        let path = path.child("serviceAccountTokenInSecrets");
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        problems.invalid(&path, flag, detail);
    }
}

fn check_tokens(tokens: &[TokenRequest], path: &Path<'_>, problems: &mut Problems) {
    let mut audiences = BTreeSet::new();
    for (index, token) in tokens.iter().enumerate() {
        let path = path.index(index);
        if !audiences.insert(&token.audience) {
            problems.duplicate(&path.child("audience"), &token.audience);
            continue;
        }
        let path = path.child("expirationSeconds");
        match token.expiration_seconds {
            Some(seconds) if seconds < SHORTEST_TOKEN_SECONDS => {
                let detail = "may not specify a duration less than 10 minutes";
                problems.invalid(&path, seconds, detail);
            }
            Some(seconds) if seconds > LONGEST_TOKEN_SECONDS => {
                let detail = "may not specify a duration larger than 2^32 seconds";
                problems.invalid(&path, seconds, detail);
            }
            _ => {}
        }
    }
}

/// The name of a driver in objects that refer to it.
pub(super) fn check_driver_name(name: &str, path: &Path<'_>, problems: &mut Problems) {
    if name.is_empty() {
        return problems.required(path, "");
    }
    if name.len() > MAX_DRIVER_BYTES {
        problems.too_long(path, MAX_DRIVER_BYTES);
    }
    problems.invalid_each(path, name, dns_subdomain(&name.to_lowercase()));
}

pub(super) fn validate_node(node: &CSINode, problems: &mut Problems) {
    metadata::check(
        &node.metadata,
        Scope::Cluster,
        NameRule::Subdomain,
        problems,
    );
    let path = Path::new("spec");
    let path = path.child("drivers");
    let mut names = BTreeSet::new();
    for (index, driver) in node.spec.drivers.iter().enumerate() {
        check_node_driver(driver, &mut names, &path.index(index), problems);
    }
}

pub(super) fn validate_node_update(new: &CSINode, old: &CSINode, problems: &mut Problems) {
    validate_node(new, problems);
    let path = Path::new("spec");
    let path = path.child("drivers");
    for before in &old.spec.drivers {
        for after in new
            .spec
            .drivers
            .iter()
            .filter(|driver| driver.name == before.name)
        {
            let without_limits = |driver: &CSINodeDriver| CSINodeDriver {
                allocatable: None,
                ..driver.clone()
            };
            let (after, before) = (without_limits(after), without_limits(before));
            if after != before {
                let shown = internal::CsiNodeDriver::from(&after);
                problems.invalid(&path, json(&shown), super::problems::FIELD_IS_IMMUTABLE);
            }
        }
    }
}

fn check_node_driver<'a>(
    driver: &'a CSINodeDriver,
    names: &mut BTreeSet<&'a str>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let name_path = path.child("name");
    check_driver_name(&driver.name, &name_path, problems);
    let id_path = path.child("nodeID");
    problems.require_text(&id_path, &driver.node_id);
    if driver.node_id.len() > MAX_NODE_ID_BYTES {
        let detail = format!("must be {MAX_NODE_ID_BYTES} characters or less");
        problems.invalid(&id_path, &driver.node_id, detail);
    }
    if let Some(count) = driver.allocatable.as_ref().and_then(|limits| limits.count) {
        let path = path.child("allocatable");
        problems.nonnegative(&path.child("count"), count);
    }
    if !names.insert(&driver.name) {
        problems.duplicate(&name_path, &driver.name);
    }
    let mut keys = BTreeSet::new();
    for key in driver.topology_keys.iter().flatten() {
        if key.is_empty() {
            problems.required(path, "");
        }
        if !keys.insert(key) {
            problems.duplicate(path, key);
        }
        problems.invalid_each(path, key, check_label_key(key));
    }
}

pub(super) fn validate_capacity(capacity: &CSIStorageCapacity, problems: &mut Problems) {
    let meta = &capacity.metadata;
    metadata::check(meta, Scope::Namespaced, NameRule::Subdomain, problems);
    selector::check(
        capacity.node_topology.as_ref(),
        &Path::new("nodeTopology"),
        problems,
    );
    let class = &capacity.storage_class_name;
    problems.invalid_each(&Path::new("storageClassName"), class, dns_subdomain(class));
    if let Some(amount) = &capacity.capacity {
        problems.nonnegative_quantity(&Path::new("capacity"), &amount.0);
    }
}

pub(super) fn validate_capacity_update(
    new: &CSIStorageCapacity,
    old: &CSIStorageCapacity,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    if new.node_topology != old.node_topology {
        let shown = api("meta.LabelSelector", &new.node_topology);
        let detail = super::problems::FIELD_IS_IMMUTABLE;
        problems.invalid(&Path::new("nodeTopology"), shown, detail);
    }
    problems.immutable(
        &Path::new("storageClassName"),
        &new.storage_class_name,
        &old.storage_class_name,
    );
}

pub(super) fn validate_attachment(attachment: &VolumeAttachment, problems: &mut Problems) {
    let meta = &attachment.metadata;
    metadata::check(meta, Scope::Cluster, NameRule::Subdomain, problems);
    let path = Path::new("spec");
    check_driver_name(&attachment.spec.attacher, &path.child("attacher"), problems);
    let source = &attachment.spec.source;
    let source_path = path.child("source");
    let both = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (&source.inline_volume_spec, &source.persistent_volume_name) {
        (None, None) => problems.required(&source_path, both),
        (Some(_), Some(_)) => problems.forbidden(&source_path, both),
        (None, Some(name)) => {
            if name.is_empty() {
                let detail = "must specify non empty persistentVolumeName";
                problems.required(&source_path.child("persistentVolumeName"), detail);
            }
        }
        (Some(spec), None) => {
            let path = source_path.child("inlineVolumeSpec");
            persistent_volume::check_inline(spec, &path, problems);
        }
    }
    let node = &attachment.spec.node_name;
    problems.invalid_each(&path.child("nodeName"), node, dns_subdomain(node));
    check_attachment_status(attachment, problems);
    if let Some(name) = &source.persistent_volume_name {
        let path = Path::new("spec.source.persistentVolumeName");
        problems.invalid_each(&path, name, dns_subdomain(name));
    }
}

fn check_attachment_status(attachment: &VolumeAttachment, problems: &mut Problems) {
    let Some(status) = &attachment.status else {
        return;
    };
    let path = Path::new("status");
    if let Some(metadata) = &status.attachment_metadata {
        check_size(metadata, &path.child("attachmentMetadata"), problems);
    }
    for (field, error) in [
        ("attachError", &status.attach_error),
        ("detachError", &status.detach_error),
    ] {
        if let Some(error) = error {
            check_error(error, &path.child(field), problems);
        }
    }
}

fn check_error(error: &VolumeError, path: &Path<'_>, problems: &mut Problems) {
    if text(&error.message).len() > MAX_ERROR_BYTES {
        // Upstream names the limit of another field.
        problems.too_long(&path.child("message"), MAX_PARAMETERS_BYTES);
    }
    if let Some(code) = error.error_code.filter(|code| *code < 0) {
        let detail = format!("must be between 0 and {}, inclusive", i32::MAX);
        problems.invalid(&path.child("errorCode"), code, detail);
    }
}

pub(super) fn validate_attachment_update(
    new: &VolumeAttachment,
    old: &VolumeAttachment,
    problems: &mut Problems,
) {
    validate_attachment(new, problems);
    if new.spec != old.spec {
        let shown = json(&internal::VolumeAttachmentSpec::from(&new.spec));
        let detail = super::problems::FIELD_IS_IMMUTABLE;
        problems.invalid(&Path::new("spec"), shown, detail);
    }
}
