//! Projected volumes, and files with fields of the pod.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    ClusterTrustBundleProjection, DownwardAPIVolumeFile, PodCertificateProjection,
    ProjectedVolumeSource, ServiceAccountTokenProjection, VolumeProjection,
};

use super::super::file_path::check_local_non_reserved;
use super::super::path::Path;
use super::super::problems::{Problems, json};
use super::super::signer::{self, check_signer_name};
use super::super::{selector, text};
use super::env::{ContainerScope, check_field_ref, check_resource_field_ref};
use super::volumes::{check_key_to_path, check_mode};

const VOLUME_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
const MIN_TOKEN_SECONDS: i64 = 600;
const MAX_TOKEN_SECONDS: i64 = 1 << 32;
const KEY_TYPES: [&str; 6] = [
    "RSA3072",
    "RSA4096",
    "ECDSAP256",
    "ECDSAP384",
    "ECDSAP521",
    "ED25519",
];
const MIN_CERTIFICATE_SECONDS: i32 = 3600;

pub(super) fn check_downward_file(
    file: &DownwardAPIVolumeFile,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    problems.require_text(&path.child("path"), &file.path);
    check_local_non_reserved(&file.path, &path.child("path"), problems);
    match (&file.field_ref, &file.resource_field_ref) {
        (Some(field), resource) => {
            check_field_ref(field, &VOLUME_FIELDS, &path.child("fieldRef"), problems);
            if resource.is_some() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                problems.invalid(path, "resource", detail);
            }
        }
        (None, Some(resource)) => {
            let path = path.child("resourceFieldRef");
            check_resource_field_ref(resource, ContainerScope::Named, &path, problems);
        }
        (None, None) => {
            problems.required(path, "one of fieldRef and resourceFieldRef is required");
        }
    }
    check_mode(file.mode, &path.child("mode"), problems);
}

pub(super) fn check(projected: &ProjectedVolumeSource, path: &Path<'_>, problems: &mut Problems) {
    check_mode(projected.default_mode, &path.child("defaultMode"), problems);
    let mut paths = TakenPaths {
        taken: BTreeSet::new(),
        volume: path,
    };
    let list = path.child("sources");
    for (index, source) in projected.sources.iter().flatten().enumerate() {
        check_source(source, &mut paths, &list.index(index), problems);
    }
}

/// The files of earlier sources. Conflicts are reported for the volume as a whole.
struct TakenPaths<'a> {
    taken: BTreeSet<&'a str>,
    volume: &'a Path<'a>,
}

impl<'a> TakenPaths<'a> {
    /// `shown` is the value in upstream's error: the path, or the object that provides it.
    fn take(&mut self, file: &'a str, shown: &str, problems: &mut Problems) {
        if !self.taken.insert(file) {
            problems.invalid(self.volume, shown, "conflicting duplicate paths");
        }
    }
}

fn check_source<'a>(
    source: &'a VolumeProjection,
    paths: &mut TakenPaths<'a>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let mut kinds = 0;
    let secret = source
        .secret
        .as_ref()
        .map(|s| ("secret", &s.name, &s.items));
    let map = source
        .config_map
        .as_ref()
        .map(|m| ("configMap", &m.name, &m.items));
    for (field, name, items) in [secret, map].into_iter().flatten() {
        kinds += 1;
        let path = path.child(field);
        problems.require_text(&path.child("name"), name);
        let list = path.child("items");
        for (index, item) in items.iter().flatten().enumerate() {
            check_key_to_path(item, &list.index(index), problems);
            if !item.path.is_empty() {
                paths.take(&item.path, name, problems);
            }
        }
    }
    if let Some(downward) = &source.downward_api {
        kinds += 1;
        let path = path.child("downwardAPI");
        for file in downward.items.iter().flatten() {
            check_downward_file(file, &path, problems);
            if !file.path.is_empty() {
                paths.take(&file.path, &file.path, problems);
            }
        }
    }
    if let Some(token) = &source.service_account_token {
        kinds += 1;
        check_token(
            token,
            paths.volume,
            &path.child("serviceAccountToken"),
            problems,
        );
    }
    if let Some(bundle) = &source.cluster_trust_bundle {
        kinds += 1;
        check_trust_bundle(bundle, &path.child("clusterTrustBundle"), problems);
        paths.take(&bundle.path, &bundle.path, problems);
    }
    if let Some(certificate) = &source.pod_certificate {
        kinds += 1;
        check_certificate(certificate, paths, &path.child("podCertificate"), problems);
    }
    if kinds > 1 {
        problems.forbidden(path, "may not specify more than 1 volume type per source");
    }
}

/// Upstream reports errors of the token's path for the volume.
fn check_token(
    token: &ServiceAccountTokenProjection,
    volume: &Path<'_>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let seconds = token.expiration_seconds.unwrap_or_default();
    let seconds_path = path.child("expirationSeconds");
    if seconds < MIN_TOKEN_SECONDS {
        let detail = "may not specify a duration less than 10 minutes";
        problems.invalid(&seconds_path, seconds, detail);
    }
    if seconds > MAX_TOKEN_SECONDS {
        let detail = "may not specify a duration larger than 2^32 seconds";
        problems.invalid(&seconds_path, seconds, detail);
    }
    match token.path.as_str() {
        "" => problems.required(&volume.child("path"), ""),
        file => check_local_non_reserved(file, &volume.child("path"), problems),
    }
}

fn check_trust_bundle(
    bundle: &ClusterTrustBundleProjection,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    match (&bundle.name, &bundle.signer_name) {
        (Some(_), Some(_)) => {
            let detail = "only one of name and signerName may be used";
            problems.invalid(path, json(&shown_bundle(bundle)), detail);
        }
        (Some(name), None) => {
            if name.is_empty() {
                problems.required(&path.child("name"), "must be a valid object name");
            }
            for rule in signer::check_trust_bundle_name(name) {
                let detail = format!("not a valid clustertrustbundlename: {rule}");
                problems.invalid(&path.child("name"), name, detail);
            }
            if let Some(found) = &bundle.label_selector {
                let shown = super::super::problems::api("meta.LabelSelector", found);
                let detail = "labelSelector must be unset if name is specified";
                problems.invalid(&path.child("labelSelector"), shown, detail);
            }
        }
        (None, Some(name)) => {
            if name.is_empty() {
                problems.required(&path.child("signerName"), "must be a valid signer name");
            }
            check_signer_name(name, &path.child("signerName"), problems);
            let labels = bundle.label_selector.as_ref();
            selector::check(labels, &path.child("labelSelector"), problems);
        }
        (None, None) => problems.required(path, "either name or signerName must be specified"),
    }
    problems.require_text(&path.child("path"), &bundle.path);
    check_local_non_reserved(&bundle.path, &path.child("path"), problems);
}

fn shown_bundle(bundle: &ClusterTrustBundleProjection) -> impl serde::Serialize + '_ {
    #[derive(serde::Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Shown<'a> {
        name: Option<&'a str>,
        signer_name: Option<&'a str>,
        label_selector: Option<serde_json::Value>,
        optional: Option<bool>,
        path: &'a str,
    }
    Shown {
        name: bundle.name.as_deref(),
        signer_name: bundle.signer_name.as_deref(),
        label_selector: bundle
            .label_selector
            .as_ref()
            .and_then(|s| serde_json::to_value(s).ok()),
        optional: bundle.optional,
        path: &bundle.path,
    }
}

fn check_certificate<'a>(
    certificate: &'a PodCertificateProjection,
    paths: &mut TakenPaths<'a>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    check_signer_name(
        &certificate.signer_name,
        &path.child("signerName"),
        problems,
    );
    if let Some(annotations) = &certificate.user_annotations {
        signer::check_user_annotations(annotations, &path.child("userAnnotations"), problems);
    }
    problems.one_of(&path.child("keyType"), &certificate.key_type, &KEY_TYPES);
    if let Some(seconds) = certificate.max_expiration_seconds {
        let path = path.child("maxExpirationSeconds");
        if seconds < MIN_CERTIFICATE_SECONDS {
            let detail = "if provided, maxExpirationSeconds must be >= 3600";
            problems.invalid(&path, seconds, detail);
        }
        let most = signer::max_certificate_seconds(&certificate.signer_name);
        if seconds > most {
            let detail = format!("if provided, maxExpirationSeconds must be <= {most}");
            problems.invalid(&path, seconds, detail);
        }
    }
    let mut files = 0;
    for (field, file) in [
        ("credentialBundlePath", &certificate.credential_bundle_path),
        ("keyPath", &certificate.key_path),
        ("certificateChainPath", &certificate.certificate_chain_path),
    ] {
        let file = text(file);
        if file.is_empty() {
            continue;
        }
        files += 1;
        check_local_non_reserved(file, &path.child(field), problems);
        paths.take(file, file, problems);
    }
    if files == 0 {
        let detail =
            "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        problems.required(path, detail);
    }
}
