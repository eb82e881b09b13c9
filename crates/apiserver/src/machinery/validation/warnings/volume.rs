//! Warnings about volumes.

use k8s_openapi::api::core::v1::{PodSpec, Volume};
use plimsoll_core::problem::quoted;

use super::super::path::Path;
use super::super::text;

pub(super) fn volumes(spec: &PodSpec, path: &Path<'_>, warnings: &mut Vec<String>) {
    let list = path.child("volumes");
    for (index, volume) in spec.volumes.iter().flatten().enumerate() {
        let path = list.index(index);
        for (field, is_given, message) in [
            (
                "photonPersistentDisk",
                volume.photon_persistent_disk.is_some(),
                "deprecated in v1.11, non-functional in v1.16+",
            ),
            (
                "gitRepo",
                volume.git_repo.is_some(),
                "deprecated in v1.11, and disabled by default in v1.33+",
            ),
            (
                "scaleIO",
                volume.scale_io.is_some(),
                "deprecated in v1.16, non-functional in v1.22+",
            ),
            (
                "flocker",
                volume.flocker.is_some(),
                "deprecated in v1.22, non-functional in v1.25+",
            ),
            (
                "storageOS",
                volume.storageos.is_some(),
                "deprecated in v1.22, non-functional in v1.25+",
            ),
            (
                "quobyte",
                volume.quobyte.is_some(),
                "deprecated in v1.22, non-functional in v1.25+",
            ),
            (
                "glusterfs",
                volume.glusterfs.is_some(),
                "deprecated in v1.25, non-functional in v1.26+",
            ),
            (
                "cephfs",
                volume.cephfs.is_some(),
                "deprecated in v1.28, non-functional in v1.31+",
            ),
            (
                "rbd",
                volume.rbd.is_some(),
                "deprecated in v1.28, non-functional in v1.31+",
            ),
        ] {
            if is_given {
                warnings.push(format!("{}: {message}", path.child(field)));
            }
        }
    }
    for volume in spec.volumes.iter().flatten() {
        overlapping_paths(volume, warnings);
    }
}

/// A file of a volume and its source.
#[derive(Clone, PartialEq, Eq)]
struct FileOf {
    path: String,
    source: String,
}

impl FileOf {
    fn new(path: &str, source: &str) -> FileOf {
        FileOf {
            path: path.trim_end_matches('/').to_owned(),
            source: source.to_owned(),
        }
    }

    fn shown(&self) -> String {
        let path = quoted(&self.path);
        if self.source.is_empty() {
            path
        } else {
            format!("{path} ({})", self.source)
        }
    }

    fn overlaps(&self, other: &FileOf) -> bool {
        let (a, b) = (format!("{}/", self.path), format!("{}/", other.path));
        !self.path.is_empty() && !other.path.is_empty() && (a.starts_with(&b) || b.starts_with(&a))
    }
}

fn overlapping_paths(volume: &Volume, warnings: &mut Vec<String>) {
    let name = quoted(&volume.name);
    let mut report = |description: &str, files: Vec<FileOf>| {
        for (index, file) in files.iter().enumerate() {
            for other in files[..index].iter().filter(|other| other.overlaps(file)) {
                warnings.push(format!(
                    "volume {name} ({description}): overlapping paths: {} with {}",
                    file.shown(),
                    other.shown()
                ));
            }
        }
    };
    if let Some(map) = &volume.config_map {
        let files = map
            .items
            .iter()
            .flatten()
            .map(|item| FileOf::new(&item.path, ""));
        report(&format!("ConfigMap {}", quoted(&map.name)), files.collect());
    }
    if let Some(secret) = &volume.secret {
        let files = secret
            .items
            .iter()
            .flatten()
            .map(|item| FileOf::new(&item.path, ""));
        report(
            &format!("Secret {}", quoted(text(&secret.secret_name))),
            files.collect(),
        );
    }
    if let Some(downward) = &volume.downward_api {
        let files = downward
            .items
            .iter()
            .flatten()
            .map(|item| FileOf::new(&item.path, ""));
        report("DownwardAPI", files.collect());
    }
    let Some(projected) = &volume.projected else {
        return;
    };
    let mut files = Vec::new();
    for source in projected.sources.iter().flatten() {
        if let Some(map) = &source.config_map {
            let origin = format!("ConfigMap {}", quoted(&map.name));
            files.extend(
                map.items
                    .iter()
                    .flatten()
                    .map(|item| FileOf::new(&item.path, &origin)),
            );
        } else if let Some(secret) = &source.secret {
            let origin = format!("Secret {}", quoted(&secret.name));
            files.extend(
                secret
                    .items
                    .iter()
                    .flatten()
                    .map(|item| FileOf::new(&item.path, &origin)),
            );
        } else if let Some(downward) = &source.downward_api {
            let items = downward.items.iter().flatten();
            files.extend(items.map(|item| FileOf::new(&item.path, "DownwardAPI")));
        } else if let Some(token) = &source.service_account_token {
            files.push(FileOf::new(&token.path, "ServiceAccountToken"));
        }
    }
    report("Projected", files);
}
