//! Volumes of pods.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    CSIVolumeSource, EphemeralVolumeSource, HostPathVolumeSource, KeyToPath, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plimsoll_core::problem::quoted;
use plimsoll_core::quantity::Quantity;

use super::super::claim;
use super::super::file_path::{check_local_non_reserved, check_no_backsteps};
use super::super::metadata::{check_annotations, check_labels};
use super::super::names::{dns_label, dns_subdomain};
use super::super::path::Path;
use super::super::problems::Problems;
use super::super::storage::check_driver_name;
use super::super::text;
use super::containers::check_pull_policy;
use super::mounts::Volumes;
use super::{legacy_volumes, projected};

const HOST_PATH_TYPES: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];
const MODE_RULE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// Validates the volumes and returns those that mounts may refer to.
pub(super) fn check<'a>(
    volumes: &'a [Volume],
    meta: Option<&ObjectMeta>,
    is_pod: bool,
    list: &Path<'_>,
    problems: &mut Problems,
) -> Volumes<'a> {
    let pod_name = meta
        .map(|meta| text(&meta.name))
        .filter(|name| !name.is_empty());
    let created: BTreeSet<String> = volumes
        .iter()
        .filter(|volume| volume.ephemeral.is_some())
        .filter_map(|volume| Some(format!("{}-{}", pod_name?, volume.name)))
        .collect();
    let mut usable = Volumes::new();
    for (index, volume) in volumes.iter().enumerate() {
        let path = list.index(index);
        let known = problems.len();
        check_source(volume, pod_name, is_pod, &path, problems);
        let name_path = path.child("name");
        match volume.name.as_str() {
            "" => problems.required(&name_path, ""),
            name => problems.invalid_each(&name_path, name, dns_label(name)),
        }
        if usable.contains_key(volume.name.as_str()) {
            problems.duplicate(&name_path, &volume.name);
        }
        if problems.len() == known {
            usable.insert(&volume.name, volume);
        }
        let claim = volume
            .persistent_volume_claim
            .as_ref()
            .map(|claim| &claim.claim_name);
        if let Some(claim) = claim.filter(|claim| created.contains(*claim)) {
            let path = path.child("persistentVolumeClaim");
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            problems.invalid(&path.child("claimName"), claim, detail);
        }
    }
    usable
}

/// The check of a source; the path is the volume's.
pub(super) type Check<'a> = Box<dyn Fn(&Path<'_>, &mut Problems) + 'a>;

/// A source that is set, with its name in upstream's errors if it is not the only one.
pub(super) type Found<'a> = (&'static str, Check<'a>);

/// A source, if it is set.
pub(super) type Source<'a> = Option<Found<'a>>;

/// Converts a source to its check.
pub(super) fn source<'a, T>(
    name: &'static str,
    source: Option<&'a T>,
    check: fn(&T, &Path<'_>, &mut Problems),
) -> Source<'a> {
    source_at(name, name, source, check)
}

/// As [`source`], for fields with another name in upstream's errors.
pub(super) fn source_at<'a, T>(
    name: &'static str,
    field: &'static str,
    source: Option<&'a T>,
    check: fn(&T, &Path<'_>, &mut Problems),
) -> Source<'a> {
    let source = source?;
    let check = move |path: &Path<'_>, problems: &mut Problems| {
        check(source, &path.child(field), problems);
    };
    Some((name, Box::new(check)))
}

fn check_source(
    volume: &Volume,
    pod_name: Option<&str>,
    is_pod: bool,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let sources = sources(volume, pod_name, is_pod);
    if check_first(volume, sources, path, problems) == 0 {
        problems.required(path, "must specify a volume type");
    }
}

/// Validates the sources of an object other than a pod and returns their number.
pub(in super::super) fn check_sources(
    volume: &Volume,
    path: &Path<'_>,
    problems: &mut Problems,
) -> usize {
    check_first(volume, sources(volume, None, false), path, problems)
}

/// Validates the first source and rejects the others; returns their number.
fn check_first(
    volume: &Volume,
    sources: Vec<Found<'_>>,
    path: &Path<'_>,
    problems: &mut Problems,
) -> usize {
    let mut count = 0;
    for (name, check) in sources {
        if count == 0 {
            check(path, problems);
        } else {
            problems.forbidden(&path.child(name), "may not specify more than 1 volume type");
        }
        count += 1;
        if name == "iscsi" {
            legacy_volumes::check_iscsi_name(volume, path, problems);
        }
    }
    count
}

/// All sources that are set, in upstream's order.
fn sources<'a>(volume: &'a Volume, pod_name: Option<&'a str>, is_pod: bool) -> Vec<Found<'a>> {
    let mut sources = Vec::new();
    sources.extend(source(
        "emptyDir",
        volume.empty_dir.as_ref(),
        |empty_dir, path, problems| {
            let limit = empty_dir
                .size_limit
                .as_ref()
                .and_then(|q| q.0.parse::<Quantity>().ok());
            if limit.is_some_and(|limit| limit.signum() < 0) {
                let detail = "SizeLimit field must be a valid resource quantity";
                problems.forbidden(&path.child("sizeLimit"), detail);
            }
        },
    ));
    let host_path = volume.host_path.as_ref();
    sources.extend(source("hostPath", host_path, check_host_path));
    sources.extend(legacy_volumes::disks(volume));
    sources.extend(source(
        "secret",
        volume.secret.as_ref(),
        |secret, path, problems| {
            problems.require_text(&path.child("secretName"), text(&secret.secret_name));
            check_mode(secret.default_mode, &path.child("defaultMode"), problems);
            check_items(secret.items.as_deref(), path, problems);
        },
    ));
    sources.extend(legacy_volumes::networks(volume));
    let claim = volume.persistent_volume_claim.as_ref();
    sources.extend(source(
        "persistentVolumeClaim",
        claim,
        |claim, path, problems| {
            problems.require_text(&path.child("claimName"), &claim.claim_name);
        },
    ));
    sources.extend(legacy_volumes::clusters(volume));
    let downward = volume.downward_api.as_ref();
    sources.extend(source_at(
        "downwarAPI",
        "downwardAPI",
        downward,
        |downward, path, problems| {
            check_mode(downward.default_mode, &path.child("defaultMode"), problems);
            for file in downward.items.iter().flatten() {
                projected::check_downward_file(file, path, problems);
            }
        },
    ));
    sources.extend(legacy_volumes::plugins(volume));
    sources.extend(source(
        "configMap",
        volume.config_map.as_ref(),
        |map, path, problems| {
            problems.require_text(&path.child("name"), &map.name);
            check_mode(map.default_mode, &path.child("defaultMode"), problems);
            check_items(map.items.as_deref(), path, problems);
        },
    ));
    sources.extend(legacy_volumes::clouds(volume));
    sources.extend(source(
        "projected",
        volume.projected.as_ref(),
        projected::check,
    ));
    sources.extend(legacy_volumes::scale_io(volume));
    sources.extend(source("csi", volume.csi.as_ref(), check_csi));
    sources.extend(ephemeral(volume, pod_name));
    sources.extend(
        volume
            .image
            .as_ref()
            .map(|image| -> (&'static str, Check<'a>) {
                let check = move |path: &Path<'_>, problems: &mut Problems| {
                    let path = path.child("image");
                    if is_pod {
                        problems.require_text(&path.child("reference"), text(&image.reference));
                    }
                    check_pull_policy(
                        text(&image.pull_policy),
                        &path.child("pullPolicy"),
                        problems,
                    );
                };
                ("image", Box::new(check))
            }),
    );
    sources
}

fn check_host_path(source: &HostPathVolumeSource, path: &Path<'_>, problems: &mut Problems) {
    if source.path.is_empty() {
        return problems.required(&path.child("path"), "");
    }
    check_no_backsteps(&source.path, &path.child("path"), problems);
    if let Some(kind) = &source.type_ {
        problems.one_of(&path.child("type"), kind, &HOST_PATH_TYPES);
    }
}

/// The permissions of files.
pub(super) fn check_mode(mode: Option<i32>, path: &Path<'_>, problems: &mut Problems) {
    if let Some(mode) = mode.filter(|mode| !(0..=0o777).contains(mode)) {
        problems.invalid(path, mode, MODE_RULE);
    }
}

fn check_items(items: Option<&[KeyToPath]>, path: &Path<'_>, problems: &mut Problems) {
    let path = path.child("items");
    for (index, item) in items.unwrap_or_default().iter().enumerate() {
        check_key_to_path(item, &path.index(index), problems);
    }
}

pub(super) fn check_key_to_path(item: &KeyToPath, path: &Path<'_>, problems: &mut Problems) {
    problems.require_text(&path.child("key"), &item.key);
    problems.require_text(&path.child("path"), &item.path);
    check_local_non_reserved(&item.path, &path.child("path"), problems);
    check_mode(item.mode, &path.child("mode"), problems);
}

fn check_csi(source: &CSIVolumeSource, path: &Path<'_>, problems: &mut Problems) {
    check_driver_name(&source.driver, &path.child("driver"), problems);
    let secret = source
        .node_publish_secret_ref
        .as_ref()
        .map(|secret| secret.name.as_str());
    match secret {
        Some("") => {
            let path = path.child("nodePublishSecretRef");
            problems.required(&path.child("name"), "");
        }
        Some(name) => problems.invalid_each(&path.child("name"), name, dns_subdomain(name)),
        None => {}
    }
}

fn ephemeral<'a>(volume: &'a Volume, pod_name: Option<&'a str>) -> Source<'a> {
    let source = volume.ephemeral.as_ref()?;
    let check = move |path: &Path<'_>, problems: &mut Problems| {
        check_claim_template(source, &path.child("ephemeral"), problems);
        let (Some(pod), false) = (pod_name, volume.name.is_empty()) else {
            return;
        };
        let claim = format!("{pod}-{}", volume.name);
        for rule in dns_subdomain(&claim) {
            let detail = format!("PVC name {}: {rule}", quoted(&claim));
            problems.invalid(&path.child("name"), &volume.name, detail);
        }
    };
    Some(("ephemeral", Box::new(check)))
}

fn check_claim_template(source: &EphemeralVolumeSource, path: &Path<'_>, problems: &mut Problems) {
    let path = path.child("volumeClaimTemplate");
    let Some(template) = &source.volume_claim_template else {
        return problems.required(&path, "");
    };
    if let Some(meta) = &template.metadata {
        let path = path.child("metadata");
        check_annotations(
            meta.annotations.as_ref(),
            &path.child("annotations"),
            problems,
        );
        check_labels(meta.labels.as_ref(), &path.child("labels"), problems);
        check_only_labels_and_annotations(meta, &path, problems);
    }
    claim::check_spec(&template.spec, &path.child("spec"), problems);
}

/// The controller validates the rest of the claim.
fn check_only_labels_and_annotations(meta: &ObjectMeta, path: &Path<'_>, problems: &mut Problems) {
    for (field, is_set) in [
        ("name", meta.name.is_some()),
        ("generateName", meta.generate_name.is_some()),
        ("namespace", meta.namespace.is_some()),
        ("selfLink", meta.self_link.is_some()),
        ("uID", meta.uid.is_some()),
        ("resourceVersion", meta.resource_version.is_some()),
        ("generation", meta.generation.is_some()),
        ("creationTimestamp", meta.creation_timestamp.is_some()),
        ("deletionTimestamp", meta.deletion_timestamp.is_some()),
        (
            "deletionGracePeriodSeconds",
            meta.deletion_grace_period_seconds.is_some(),
        ),
        ("ownerReferences", meta.owner_references.is_some()),
        ("finalizers", meta.finalizers.is_some()),
        ("managedFields", meta.managed_fields.is_some()),
    ] {
        problems.forbid_if(is_set, &path.child(field), "cannot be set");
    }
}
