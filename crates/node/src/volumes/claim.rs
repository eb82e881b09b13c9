//! Storage that a pod claims: paths of the node, directly or as local volumes.
//!
//! Matches v1.36 pkg/kubelet/volumemanager/populator and pkg/volume/local. Storage of other kinds
//! needs drivers that this agent does not have.

use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec};
use plimsoll_runtime::mount_table::MountTable;

use super::ownership::Ownership;
use super::{SetUpError, SourceError, mount_point};

/// While a pod uses it, a claim that is being deleted keeps this.
const PROTECTION: &str = "kubernetes.io/pvc-protection";

/// Where claimed storage is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// A path of the node, used as it is.
    HostPath {
        /// The path.
        path: String,
        /// What it should be.
        kind: String,
    },
    /// A directory of the node, shown in the pod's own directory.
    Local {
        /// The directory.
        path: PathBuf,
    },
}

/// The name of the persistent volume that a claim is bound to.
pub fn bound_volume(claim: &PersistentVolumeClaim) -> Result<&str, &'static str> {
    let meta = &claim.metadata;
    let is_protected = meta
        .finalizers
        .iter()
        .flatten()
        .any(|name| name == PROTECTION);
    if meta.deletion_timestamp.is_some() && !is_protected {
        return Err("PVC is being deleted");
    }
    let phase = claim
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    if phase != Some("Bound") {
        return Err("PVC is not bound");
    }
    let volume = claim
        .spec
        .as_ref()
        .and_then(|spec| spec.volume_name.as_deref());
    let volume = volume.filter(|name| !name.is_empty());
    volume.ok_or("PVC has empty pvc.Spec.VolumeName")
}

/// Checks that the volume is bound to the claim as well.
pub fn check_bound_to(volume: &PersistentVolume, claim_uid: &str) -> Result<(), String> {
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    let claim = volume
        .spec
        .as_ref()
        .and_then(|spec| spec.claim_ref.as_ref());
    let Some(claim) = claim else {
        return Err(format!(
            "found PV object {name} but it has a nil pv.Spec.ClaimRef indicating it is not yet \
             bound to the claim"
        ));
    };
    let uid = claim.uid.as_deref().unwrap_or_default();
    if uid != claim_uid {
        return Err(format!(
            "found PV object {name} but its pv.Spec.ClaimRef.UID {uid} does not point to claim.UID \
             {claim_uid}"
        ));
    }
    Ok(())
}

/// Where the storage of a persistent volume is; the kind it is where that is of no use here.
pub fn locate(spec: &PersistentVolumeSpec) -> Result<Claimed, &'static str> {
    if let Some(source) = &spec.host_path {
        return Ok(Claimed::HostPath {
            path: source.path.clone(),
            kind: source.type_.clone().unwrap_or_default(),
        });
    }
    if let Some(source) = &spec.local {
        return Ok(Claimed::Local {
            path: source.path.clone().into(),
        });
    }
    Err(match spec {
        spec if spec.csi.is_some() => "csi",
        spec if spec.nfs.is_some() => "nfs",
        spec if spec.iscsi.is_some() => "iscsi",
        spec if spec.fc.is_some() => "fc",
        spec if spec.flex_volume.is_some() => "flexVolume",
        _ => "such persistent",
    })
}

/// The message for a claim that cannot be used.
pub fn failure(namespace: &str, claim: &str, why: impl std::fmt::Display) -> SetUpError {
    SetUpError::Claim(format!("error processing PVC {namespace}/{claim}: {why}"))
}

/// The message for an object that cannot be read.
pub fn fetch_failure(what: &str, error: &SourceError) -> String {
    format!("failed to fetch {what} from API server: {error}")
}

/// Shows a directory of the node in the pod's own, unless it is shown there already.
pub fn set_up_local(
    source: &Path,
    at: &Path,
    is_read_only: bool,
    ownership: Option<Ownership>,
    only_on_mismatch: bool,
    mounts: &MountTable,
) -> Result<(), SetUpError> {
    if mounts.at(at).is_some() {
        return Ok(());
    }
    if !fs::metadata(source).is_ok_and(|metadata| metadata.is_dir()) {
        return Err(SetUpError::NoLocalPath(source.to_owned()));
    }
    mount_point::make_dirs(at, 0o750).map_err(SetUpError::write(at))?;
    let mounted = mount_point::bind(source, at).and_then(|()| match is_read_only {
        true => mount_point::make_read_only(at),
        false => Ok(()),
    });
    mounted.map_err(|error| SetUpError::Mount {
        what: "local volume",
        path: at.to_owned(),
        source: error,
    })?;
    match ownership {
        Some(ownership) if !is_read_only => {
            if only_on_mismatch && ownership.is_applied(at) {
                return Ok(());
            }
            ownership.apply(at).map_err(SetUpError::write(at))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn claim(object: Value) -> PersistentVolumeClaim {
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_claim_must_be_bound_and_stay() {
        let bound = json!({"phase": "Bound"});
        for (object, want) in [
            (
                json!({"spec": {"volumeName": "pv"}, "status": bound}),
                Ok("pv"),
            ),
            (
                json!({"spec": {"volumeName": "pv"}}),
                Err("PVC is not bound"),
            ),
            (
                json!({"spec": {}, "status": bound}),
                Err("PVC has empty pvc.Spec.VolumeName"),
            ),
            (
                json!({
                    "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
                    "spec": {"volumeName": "pv"}, "status": bound,
                }),
                Err("PVC is being deleted"),
            ),
            (
                json!({
                    "metadata": {
                        "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [PROTECTION],
                    },
                    "spec": {"volumeName": "pv"}, "status": bound,
                }),
                Ok("pv"),
            ),
        ] {
            assert_eq!(bound_volume(&claim(object)), want);
        }
    }

    #[test]
    fn only_paths_of_the_node_can_be_had() {
        let spec =
            |source: Value| -> PersistentVolumeSpec { serde_json::from_value(source).unwrap() };
        assert_eq!(
            locate(&spec(json!({"local": {"path": "/disk"}}))),
            Ok(Claimed::Local {
                path: "/disk".into()
            })
        );
        assert_eq!(
            locate(&spec(
                json!({"hostPath": {"path": "/d", "type": "Directory"}})
            )),
            Ok(Claimed::HostPath {
                path: "/d".to_owned(),
                kind: "Directory".to_owned()
            })
        );
        let nfs = spec(json!({"nfs": {"server": "s", "path": "/"}}));
        assert_eq!(locate(&nfs), Err("nfs"));
    }

    #[test]
    fn a_volume_of_another_claim_is_refused() {
        let volume = |spec: Value| -> PersistentVolume {
            serde_json::from_value(json!({"metadata": {"name": "pv"}, "spec": spec})).unwrap()
        };
        assert_eq!(
            check_bound_to(&volume(json!({})), "u").unwrap_err(),
            "found PV object pv but it has a nil pv.Spec.ClaimRef indicating it is not yet bound \
             to the claim"
        );
        assert_eq!(
            check_bound_to(&volume(json!({"claimRef": {"uid": "x"}})), "u").unwrap_err(),
            "found PV object pv but its pv.Spec.ClaimRef.UID x does not point to claim.UID u"
        );
        assert!(check_bound_to(&volume(json!({"claimRef": {"uid": "u"}})), "u").is_ok());
    }

    #[test]
    #[ignore = "tier: root"]
    fn a_local_directory_is_shown_once_and_can_be_read_only() {
        let dir = tempfile::tempdir().unwrap();
        let (disk, at) = (dir.path().join("disk"), dir.path().join("pod/volume"));
        fs::create_dir(&disk).unwrap();
        fs::write(disk.join("file"), "x").unwrap();
        let set_up = |is_read_only| {
            let mounts = MountTable::read().unwrap();
            set_up_local(&disk, &at, is_read_only, None, false, &mounts)
        };
        set_up(true).unwrap();
        set_up(true).unwrap();
        assert_eq!(MountTable::read().unwrap().below(&at).len(), 1);
        assert_eq!(fs::read_to_string(at.join("file")).unwrap(), "x");
        assert!(fs::write(at.join("other"), "").is_err());
        mount_point::unmount(&at).unwrap();
        set_up(false).unwrap();
        fs::write(at.join("other"), "").unwrap();
        mount_point::unmount(&at).unwrap();
    }
}
