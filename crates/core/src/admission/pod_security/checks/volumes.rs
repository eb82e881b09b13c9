//! Where volumes come from.

use k8s_openapi::api::core::v1::Volume;

use super::super::subject::Subject;
use super::CheckFailure;
use super::wording::{Names, plural, quoted_list};

/// hostPath.
pub(super) fn host_path(subject: &Subject<'_>) -> Option<CheckFailure> {
    let volumes = subject.spec.volumes.iter().flatten();
    let bad = volumes.filter(|volume| volume.host_path.is_some());
    let bad: Vec<&str> = bad.map(|volume| volume.name.as_str()).collect();
    (!bad.is_empty()).then(|| CheckFailure {
        reason: "hostPath volumes",
        detail: format!(
            "{} {}",
            plural(bad.len(), "volume", "volumes"),
            quoted_list(&bad)
        ),
    })
}

/// Only what the cluster hands out.
pub(super) fn restricted(subject: &Subject<'_>) -> Option<CheckFailure> {
    let mut bad = Vec::new();
    let mut sources = Names::new();
    for volume in subject.spec.volumes.iter().flatten() {
        if !is_unrestricted(volume) {
            bad.push(volume.name.as_str());
            sources.insert(restricted_source(volume));
        }
    }
    (!bad.is_empty()).then(|| CheckFailure {
        reason: "restricted volume types",
        detail: format!(
            "{} {} {} {} {}",
            plural(bad.len(), "volume", "volumes"),
            quoted_list(&bad),
            plural(bad.len(), "uses", "use"),
            plural(
                sources.len(),
                "restricted volume type",
                "restricted volume types"
            ),
            quoted_list(&sources),
        ),
    })
}

fn is_unrestricted(volume: &Volume) -> bool {
    volume.config_map.is_some()
        || volume.csi.is_some()
        || volume.downward_api.is_some()
        || volume.empty_dir.is_some()
        || volume.ephemeral.is_some()
        || volume.image.is_some()
        || volume.persistent_volume_claim.is_some()
        || volume.projected.is_some()
        || volume.secret.is_some()
}

/// The name of a source that is restricted.
fn restricted_source(volume: &Volume) -> &'static str {
    let sources = [
        (volume.host_path.is_some(), "hostPath"),
        (volume.gce_persistent_disk.is_some(), "gcePersistentDisk"),
        (
            volume.aws_elastic_block_store.is_some(),
            "awsElasticBlockStore",
        ),
        (volume.git_repo.is_some(), "gitRepo"),
        (volume.nfs.is_some(), "nfs"),
        (volume.iscsi.is_some(), "iscsi"),
        (volume.glusterfs.is_some(), "glusterfs"),
        (volume.rbd.is_some(), "rbd"),
        (volume.flex_volume.is_some(), "flexVolume"),
        (volume.cinder.is_some(), "cinder"),
        (volume.cephfs.is_some(), "cephfs"),
        (volume.flocker.is_some(), "flocker"),
        (volume.fc.is_some(), "fc"),
        (volume.azure_file.is_some(), "azureFile"),
        (volume.vsphere_volume.is_some(), "vsphereVolume"),
        (volume.quobyte.is_some(), "quobyte"),
        (volume.azure_disk.is_some(), "azureDisk"),
        (
            volume.photon_persistent_disk.is_some(),
            "photonPersistentDisk",
        ),
        (volume.portworx_volume.is_some(), "portworxVolume"),
        (volume.scale_io.is_some(), "scaleIO"),
        (volume.storageos.is_some(), "storageos"),
    ];
    let found = sources.into_iter().find(|(is_set, _)| *is_set);
    found.map_or("unknown", |(_, name)| name)
}
