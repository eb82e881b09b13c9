//! Warnings about volumes.

use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, KeyToPath, PodSpec, Volume};
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

/// A file of a volume and its source, which is written out for a warning only.
#[derive(Clone, Copy)]
struct FileOf<'v> {
    path: &'v str,
    source: Source<'v>,
}

/// Where a file of a projected volume comes from; other volumes have one source.
#[derive(Clone, Copy)]
enum Source<'v> {
    Volume,
    ConfigMap(&'v str),
    Secret(&'v str),
    DownwardApi,
    ServiceAccountToken,
}

impl<'v> FileOf<'v> {
    fn new(path: &'v str, source: Source<'v>) -> FileOf<'v> {
        FileOf {
            path: path.trim_end_matches('/'),
            source,
        }
    }

    fn of_items(
        items: Option<&'v Vec<KeyToPath>>,
        source: Source<'v>,
    ) -> impl Iterator<Item = FileOf<'v>> {
        let items = items.into_iter().flatten();
        items.map(move |item| FileOf::new(&item.path, source))
    }

    fn of_fields(
        items: Option<&'v Vec<DownwardAPIVolumeFile>>,
        source: Source<'v>,
    ) -> impl Iterator<Item = FileOf<'v>> {
        let items = items.into_iter().flatten();
        items.map(move |item| FileOf::new(&item.path, source))
    }

    fn shown(&self) -> String {
        let path = quoted(self.path);
        match self.source {
            Source::Volume => path,
            Source::ConfigMap(name) => format!("{path} (ConfigMap {})", quoted(name)),
            Source::Secret(name) => format!("{path} (Secret {})", quoted(name)),
            Source::DownwardApi => format!("{path} (DownwardAPI)"),
            Source::ServiceAccountToken => format!("{path} (ServiceAccountToken)"),
        }
    }

    /// Whether one file is the other, or within it.
    fn overlaps(&self, other: &FileOf<'_>) -> bool {
        let (short, long) = match self.path.len() <= other.path.len() {
            true => (self.path, other.path),
            false => (other.path, self.path),
        };
        let rest = long.strip_prefix(short);
        !short.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

fn overlapping_paths(volume: &Volume, warnings: &mut Vec<String>) {
    let mut report = |description: &dyn Fn() -> String, files: &[FileOf<'_>]| {
        for (index, file) in files.iter().enumerate() {
            for other in files[..index].iter().filter(|other| other.overlaps(file)) {
                warnings.push(format!(
                    "volume {} ({}): overlapping paths: {} with {}",
                    quoted(&volume.name),
                    description(),
                    file.shown(),
                    other.shown()
                ));
            }
        }
    };
    if let Some(map) = &volume.config_map {
        let files: Vec<_> = FileOf::of_items(map.items.as_ref(), Source::Volume).collect();
        report(&|| format!("ConfigMap {}", quoted(&map.name)), &files);
    }
    if let Some(secret) = &volume.secret {
        let files: Vec<_> = FileOf::of_items(secret.items.as_ref(), Source::Volume).collect();
        let name = text(&secret.secret_name);
        report(&|| format!("Secret {}", quoted(name)), &files);
    }
    if let Some(downward) = &volume.downward_api {
        let files: Vec<_> = FileOf::of_fields(downward.items.as_ref(), Source::Volume).collect();
        report(&|| "DownwardAPI".to_owned(), &files);
    }
    let Some(projected) = &volume.projected else {
        return;
    };
    let mut files = Vec::new();
    for source in projected.sources.iter().flatten() {
        if let Some(map) = &source.config_map {
            let origin = Source::ConfigMap(&map.name);
            files.extend(FileOf::of_items(map.items.as_ref(), origin));
        } else if let Some(secret) = &source.secret {
            let origin = Source::Secret(&secret.name);
            files.extend(FileOf::of_items(secret.items.as_ref(), origin));
        } else if let Some(downward) = &source.downward_api {
            let items = downward.items.as_ref();
            files.extend(FileOf::of_fields(items, Source::DownwardApi));
        } else if let Some(token) = &source.service_account_token {
            files.push(FileOf::new(&token.path, Source::ServiceAccountToken));
        }
    }
    report(&|| "Projected".to_owned(), &files);
}
