//! Volume mounts and devices.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, Volume, VolumeDevice, VolumeMount};

use super::super::file_path::{check_local_descending, has_backsteps};
use super::super::path::Path;
use super::super::problems::Problems;
use super::super::text;

/// The volumes that mounts may refer to.
pub(super) type Volumes<'a> = BTreeMap<&'a str, &'a Volume>;

pub(super) fn check(
    container: &Container,
    volumes: &Volumes<'_>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let mounts = container.volume_mounts.as_deref().unwrap_or_default();
    let devices = container.volume_devices.as_deref().unwrap_or_default();
    check_mounts(
        container,
        mounts,
        devices,
        volumes,
        &path.child("volumeMounts"),
        problems,
    );
    check_devices(
        devices,
        mounts,
        volumes,
        &path.child("volumeDevices"),
        problems,
    );
}

fn check_mounts(
    container: &Container,
    mounts: &[VolumeMount],
    devices: &[VolumeDevice],
    volumes: &Volumes<'_>,
    list: &Path<'_>,
    problems: &mut Problems,
) {
    let mut mount_paths = BTreeSet::new();
    for (index, mount) in mounts.iter().enumerate() {
        let path = list.index(index);
        let (name, target) = (mount.name.as_str(), mount.mount_path.as_str());
        problems.require_text(&path.child("name"), name);
        if !volumes.contains_key(name) {
            problems.not_found(&path.child("name"), name);
        }
        problems.require_text(&path.child("mountPath"), target);
        if !mount_paths.insert(target) {
            problems.invalid(&path.child("mountPath"), target, "must be unique");
        }
        if devices.iter().any(|device| device.name == name) {
            let detail = "must not already exist in volumeDevices";
            problems.invalid(&path.child("name"), name, detail);
        }
        if devices.iter().any(|device| device.device_path == target) {
            let detail = "must not already exist as a path in volumeDevices";
            problems.invalid(&path.child("mountPath"), target, detail);
        }
        check_sub_paths(mount, list, &path, problems);
        check_propagation(mount, container, &list.child("mountPropagation"), problems);
        check_recursive_read_only(mount, &list.child("recursiveReadOnly"), problems);
    }
}

/// Upstream reports some problems for the list, some for the item.
fn check_sub_paths(mount: &VolumeMount, list: &Path<'_>, item: &Path<'_>, problems: &mut Problems) {
    let (sub_path, expression) = (text(&mount.sub_path), text(&mount.sub_path_expr));
    if !sub_path.is_empty() {
        check_local_descending(sub_path, &list.child("subPath"), problems);
    }
    if !expression.is_empty() {
        if !sub_path.is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            problems.invalid(&item.child("subPathExpr"), expression, detail);
        }
        check_local_descending(expression, &list.child("subPathExpr"), problems);
    }
}

fn check_propagation(
    mount: &VolumeMount,
    container: &Container,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let Some(propagation) = mount.mount_propagation.as_deref() else {
        return;
    };
    problems.one_of(
        path,
        propagation,
        &["Bidirectional", "HostToContainer", "None"],
    );
    let context = container.security_context.as_ref();
    let is_privileged = context.is_some_and(|context| context.privileged == Some(true));
    if propagation == "Bidirectional" && !is_privileged {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        problems.forbidden(path, detail);
    }
}

fn check_recursive_read_only(mount: &VolumeMount, path: &Path<'_>, problems: &mut Problems) {
    match mount.recursive_read_only.as_deref() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if mount.read_only != Some(true) {
                problems.forbidden(path, "may only be specified when readOnly is true");
            }
            if !matches!(mount.mount_propagation.as_deref(), None | Some("None")) {
                let detail = "may only be specified when mountPropagation is None or not specified";
                problems.forbidden(path, detail);
            }
        }
        Some(other) => {
            problems.not_supported(path, other, &["Disabled", "Enabled", "IfPossible"]);
        }
    }
}

fn check_devices(
    devices: &[VolumeDevice],
    mounts: &[VolumeMount],
    volumes: &Volumes<'_>,
    list: &Path<'_>,
    problems: &mut Problems,
) {
    let (mut names, mut device_paths) = (BTreeSet::new(), BTreeSet::new());
    for (index, device) in devices.iter().enumerate() {
        let path = list.index(index);
        let (name, target) = (device.name.as_str(), device.device_path.as_str());
        let (name_path, target_path) = (path.child("name"), path.child("devicePath"));
        problems.require_text(&name_path, name);
        if names.contains(name) {
            problems.invalid(&name_path, name, "must be unique");
        }
        match volumes.get(name) {
            Some(volume) if !is_claim(volume) => problems.invalid(
                &name_path,
                name,
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block \
                 mode",
            ),
            Some(_) => {}
            None => problems.not_found(&name_path, name),
        }
        problems.require_text(&target_path, target);
        if device_paths.contains(target) {
            problems.invalid(&target_path, target, "must be unique");
        }
        if has_backsteps(target) {
            problems.invalid(&target_path, target, "can not contain backsteps ('..')");
        } else {
            device_paths.insert(target);
        }
        if mounts.iter().any(|mount| mount.name == name) {
            problems.invalid(&name_path, name, "must not already exist in volumeMounts");
        }
        if mounts.iter().any(|mount| mount.mount_path == target) {
            let detail = "must not already exist as a path in volumeMounts";
            problems.invalid(&target_path, target, detail);
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
}

fn is_claim(volume: &Volume) -> bool {
    volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some()
}
