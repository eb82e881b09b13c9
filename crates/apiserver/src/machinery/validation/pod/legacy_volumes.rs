//! Volumes of specific storage systems, most of which kubelets no longer mount. The API still
//! accepts them, so it still validates them.

use k8s_openapi::api::core::v1::{
    AzureDiskVolumeSource, FCVolumeSource, ISCSIVolumeSource, QuobyteVolumeSource, Volume,
};

use super::super::file_path::check_local_descending;
use super::super::names::dns_label;
use super::super::path::Path;
use super::super::problems::{Problems, json};
use super::super::text;
use super::volumes::{Found, source, source_at};

const MAX_TENANT_BYTES: usize = 64;
const MAX_ISCSI_NAME_BYTES: usize = 64;
const HOST_PORT_PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";

/// Reports each field that is empty.
fn require(path: &Path<'_>, fields: &[(&str, bool)], problems: &mut Problems) {
    for (field, _) in fields.iter().filter(|(_, is_empty)| *is_empty) {
        problems.required(&path.child(field), "");
    }
}

pub(super) fn disks(volume: &Volume) -> impl Iterator<Item = Found<'_>> {
    let sources = [
        source(
            "gitRepo",
            volume.git_repo.as_ref(),
            |repo, path, problems| {
                require(
                    path,
                    &[("repository", repo.repository.is_empty())],
                    problems,
                );
                check_local_descending(text(&repo.directory), &path.child("directory"), problems);
            },
        ),
        source_at(
            "gcePersistentDisk",
            "persistentDisk",
            volume.gce_persistent_disk.as_ref(),
            |disk, path, problems| {
                require(path, &[("pdName", disk.pd_name.is_empty())], problems);
                check_partition(disk.partition, path, problems);
            },
        ),
        source(
            "awsElasticBlockStore",
            volume.aws_elastic_block_store.as_ref(),
            |disk, path, problems| {
                require(path, &[("volumeID", disk.volume_id.is_empty())], problems);
                check_partition(disk.partition, path, problems);
            },
        ),
    ];
    sources.into_iter().flatten()
}

pub(super) fn networks(volume: &Volume) -> impl Iterator<Item = Found<'_>> {
    let sources = [
        source("nfs", volume.nfs.as_ref(), |nfs, path, problems| {
            let fields = [
                ("server", nfs.server.is_empty()),
                ("path", nfs.path.is_empty()),
            ];
            require(path, &fields, problems);
            if !nfs.path.starts_with('/') {
                problems.invalid(&path.child("path"), &nfs.path, "must be an absolute path");
            }
        }),
        source("iscsi", volume.iscsi.as_ref(), check_iscsi),
        source(
            "glusterfs",
            volume.glusterfs.as_ref(),
            |gluster, path, problems| {
                let fields = [
                    ("endpoints", gluster.endpoints.is_empty()),
                    ("path", gluster.path.is_empty()),
                ];
                require(path, &fields, problems);
            },
        ),
        source(
            "flocker",
            volume.flocker.as_ref(),
            |flocker, path, problems| {
                let (name, uuid) = (text(&flocker.dataset_name), text(&flocker.dataset_uuid));
                if name.is_empty() && uuid.is_empty() {
                    problems.required(path, "one of datasetName and datasetUUID is required");
                }
                if !name.is_empty() && !uuid.is_empty() {
                    let detail = "datasetName and datasetUUID can not be specified simultaneously";
                    problems.invalid(path, "resource", detail);
                }
                if name.contains('/') {
                    problems.invalid(&path.child("datasetName"), name, "must not contain '/'");
                }
            },
        ),
    ];
    sources.into_iter().flatten()
}

pub(super) fn clusters(volume: &Volume) -> impl Iterator<Item = Found<'_>> {
    let sources = [
        source("rbd", volume.rbd.as_ref(), |rbd, path, problems| {
            let fields = [
                ("monitors", rbd.monitors.is_empty()),
                ("image", rbd.image.is_empty()),
            ];
            require(path, &fields, problems);
        }),
        source(
            "cinder",
            volume.cinder.as_ref(),
            |cinder, path, problems| {
                require(path, &[("volumeID", cinder.volume_id.is_empty())], problems);
                check_secret(
                    cinder.secret_ref.as_ref().map(|s| s.name.as_str()),
                    path,
                    problems,
                );
            },
        ),
        source_at(
            "cephFS",
            "cephfs",
            volume.cephfs.as_ref(),
            |ceph, path, problems| {
                require(path, &[("monitors", ceph.monitors.is_empty())], problems);
            },
        ),
        source("quobyte", volume.quobyte.as_ref(), check_quobyte),
    ];
    sources.into_iter().flatten()
}

pub(super) fn plugins(volume: &Volume) -> impl Iterator<Item = Found<'_>> {
    let sources = [
        source("fc", volume.fc.as_ref(), check_fibre_channel),
        source(
            "flexVolume",
            volume.flex_volume.as_ref(),
            |flex, path, problems| {
                require(path, &[("driver", flex.driver.is_empty())], problems);
                let path = path.child("options");
                for key in flex.options.iter().flatten().map(|(key, _)| key) {
                    let namespace = key.split_once('/').map_or(key.as_str(), |(first, _)| first);
                    let domain = format!(".{}", namespace.to_lowercase());
                    if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
                        let detail = "kubernetes.io and k8s.io namespaces are reserved";
                        problems.invalid(&path.key(key), key, detail);
                    }
                }
            },
        ),
    ];
    sources.into_iter().flatten()
}

pub(super) fn clouds(volume: &Volume) -> impl Iterator<Item = Found<'_>> {
    let sources = [
        source(
            "azureFile",
            volume.azure_file.as_ref(),
            |azure, path, problems| {
                let fields = [
                    ("secretName", azure.secret_name.is_empty()),
                    ("shareName", azure.share_name.is_empty()),
                ];
                require(path, &fields, problems);
            },
        ),
        source(
            "vsphereVolume",
            volume.vsphere_volume.as_ref(),
            |disk, path, problems| {
                require(
                    path,
                    &[("volumePath", disk.volume_path.is_empty())],
                    problems,
                );
            },
        ),
        source(
            "photonPersistentDisk",
            volume.photon_persistent_disk.as_ref(),
            |disk, path, problems| require(path, &[("pdID", disk.pd_id.is_empty())], problems),
        ),
        source(
            "portworxVolume",
            volume.portworx_volume.as_ref(),
            |disk, path, problems| {
                require(path, &[("volumeID", disk.volume_id.is_empty())], problems);
            },
        ),
        source("azureDisk", volume.azure_disk.as_ref(), check_azure_disk),
        source(
            "storageos",
            volume.storageos.as_ref(),
            |storage, path, problems| {
                match text(&storage.volume_name) {
                    "" => problems.required(&path.child("volumeName"), ""),
                    name => problems.invalid_each(&path.child("volumeName"), name, dns_label(name)),
                }
                let namespace = text(&storage.volume_namespace);
                if !namespace.is_empty() {
                    let path = path.child("volumeNamespace");
                    problems.invalid_each(&path, namespace, dns_label(namespace));
                }
                check_secret(
                    storage.secret_ref.as_ref().map(|s| s.name.as_str()),
                    path,
                    problems,
                );
            },
        ),
    ];
    sources.into_iter().flatten()
}

pub(super) fn scale_io(volume: &Volume) -> impl Iterator<Item = Found<'_>> {
    let sources = [source(
        "scaleIO",
        volume.scale_io.as_ref(),
        |disk, path, problems| {
            let fields = [
                ("gateway", disk.gateway.is_empty()),
                ("system", disk.system.is_empty()),
                ("volumeName", text(&disk.volume_name).is_empty()),
            ];
            require(path, &fields, problems);
        },
    )];
    sources.into_iter().flatten()
}

fn check_partition(partition: Option<i32>, path: &Path<'_>, problems: &mut Problems) {
    if let Some(partition) = partition.filter(|partition| !(0..=255).contains(partition)) {
        // Upstream names a range that it does not enforce: zero means the whole disk.
        let detail = "must be between 1 and 255, inclusive";
        problems.invalid(&path.child("partition"), partition, detail);
    }
}

fn check_secret(name: Option<&str>, path: &Path<'_>, problems: &mut Problems) {
    if name == Some("") {
        let path = path.child("secretRef");
        problems.required(&path.child("name"), "");
    }
}

fn check_iscsi(iscsi: &ISCSIVolumeSource, path: &Path<'_>, problems: &mut Problems) {
    let fields = [
        ("targetPortal", iscsi.target_portal.is_empty()),
        ("iqn", iscsi.iqn.is_empty()),
    ];
    require(path, &fields, problems);
    if !iscsi.iqn.is_empty() {
        check_initiator(&iscsi.iqn, &path.child("iqn"), problems);
    }
    problems.in_range(&path.child("lun"), iscsi.lun.into(), 0, 255);
    let uses_chap =
        iscsi.chap_auth_discovery == Some(true) || iscsi.chap_auth_session == Some(true);
    if uses_chap && iscsi.secret_ref.is_none() {
        problems.required(&path.child("secretRef"), "");
    }
    if let Some(name) = &iscsi.initiator_name {
        check_initiator(name, &path.child("initiatorname"), problems);
    }
}

/// Checked whether or not the volume has another source too.
pub(super) fn check_iscsi_name(volume: &Volume, path: &Path<'_>, problems: &mut Problems) {
    let Some(iscsi) = &volume.iscsi else { return };
    let bytes = volume.name.len() + 1 + iscsi.target_portal.len();
    if iscsi.initiator_name.is_some() && bytes > MAX_ISCSI_NAME_BYTES {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 \
                      characters if iscsi.initiatorName is specified.";
        problems.invalid(&path.child("name"), &volume.name, detail);
    }
}

fn check_initiator(name: &str, path: &Path<'_>, problems: &mut Problems) {
    let is_alphanumeric = |text: &str, count: usize| {
        text.len() == count && text.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    let behind_dot = |text: &str, count: usize| {
        let mut rest = text.chars();
        rest.next();
        is_alphanumeric(rest.as_str(), count)
    };
    let is_right = if name.starts_with("iqn") {
        is_iqn(name)
    } else if let Some(rest) = name.strip_prefix("eui") {
        behind_dot(rest, 16)
    } else if let Some(rest) = name.strip_prefix("naa") {
        behind_dot(rest, 32)
    } else {
        let detail = "must be valid format starting with iqn, eui, or naa";
        return problems.invalid(path, name, detail);
    };
    if !is_right {
        problems.invalid(path, name, "must be valid format");
    }
}

/// `iqn.yyyy-mm.<authority>:<name>`, anywhere at the end of the text.
fn is_iqn(name: &str) -> bool {
    name.match_indices("iqn.").any(|(at, _)| {
        let rest = name[at..].strip_prefix("iqn.").unwrap_or_default();
        let Some((date, rest)) = rest.split_once('.') else {
            return false;
        };
        let is_digits = |text: &str, count: usize| {
            text.len() == count && text.bytes().all(|b| b.is_ascii_digit())
        };
        let is_date = date
            .split_once('-')
            .is_some_and(|(y, m)| is_digits(y, 4) && is_digits(m, 2));
        let Some((authority, target)) = rest.split_once(':') else {
            return false;
        };
        let is_authority = !authority.is_empty()
            && authority
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
        let is_target = !target.is_empty()
            && !target.contains(|c: char| ",;*&$|".contains(c) || c.is_ascii_whitespace());
        is_date && is_authority && is_target
    })
}

fn check_quobyte(quobyte: &QuobyteVolumeSource, path: &Path<'_>, problems: &mut Problems) {
    if quobyte.registry.is_empty() {
        problems.required(&path.child("registry"), HOST_PORT_PAIRS);
    } else if text(&quobyte.tenant).len() > MAX_TENANT_BYTES {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        problems.required(&path.child("tenant"), detail);
    } else {
        for pair in quobyte.registry.split(',') {
            if !is_host_and_port(pair) {
                problems.invalid(&path.child("registry"), &quobyte.registry, HOST_PORT_PAIRS);
            }
        }
    }
    require(path, &[("volume", quobyte.volume.is_empty())], problems);
}

/// Matches Go's `net.SplitHostPort`.
fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let is_bare = |text: &str| !text.contains(['[', ']']);
    match host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        Some(address) => is_bare(address) && is_bare(port),
        None => !host.contains(':') && is_bare(host) && is_bare(port),
    }
}

fn check_fibre_channel(fc: &FCVolumeSource, path: &Path<'_>, problems: &mut Problems) {
    let names = fc.target_wwns.as_deref().unwrap_or_default();
    let ids = fc.wwids.as_deref().unwrap_or_default();
    let names_path = path.child("targetWWNs");
    if names.is_empty() && ids.is_empty() {
        let detail = "must specify either targetWWNs or wwids, but not both";
        problems.required(&names_path, detail);
    }
    if !names.is_empty() && !ids.is_empty() {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        problems.invalid(&names_path, json(&names), detail);
    }
    if !names.is_empty() {
        match fc.lun {
            None => {
                let detail = "lun is required if targetWWNs is specified";
                problems.required(&path.child("lun"), detail);
            }
            Some(lun) => problems.in_range(&path.child("lun"), lun.into(), 0, 255),
        }
    }
}

fn check_azure_disk(azure: &AzureDiskVolumeSource, path: &Path<'_>, problems: &mut Problems) {
    let fields = [
        ("diskName", azure.disk_name.is_empty()),
        ("diskURI", azure.disk_uri.is_empty()),
    ];
    require(path, &fields, problems);
    if let Some(mode) = &azure.caching_mode {
        problems.one_of(
            &path.child("cachingMode"),
            mode,
            &["None", "ReadOnly", "ReadWrite"],
        );
    }
    let Some(kind) = azure.kind.as_deref() else {
        return;
    };
    problems.one_of(
        &path.child("kind"),
        kind,
        &["Dedicated", "Managed", "Shared"],
    );
    let (prefix, example) = if kind == "Managed" {
        (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/\
             disks/{disk-id}",
        )
    } else {
        (
            "https://",
            "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
        )
    };
    if !azure.disk_uri.starts_with(prefix) {
        problems.not_supported(&path.child("diskURI"), &azure.disk_uri, &[example]);
    }
}
