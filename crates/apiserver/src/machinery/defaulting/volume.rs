//! Defaults of volumes.

use serde_json::{Value, json};

use super::image::default_pull_policy;
use super::{Object, default, text};

/// Files of volumes that hold API data are readable by all: 0644.
const DEFAULT_MODE: i32 = 0o644;

pub(super) fn of(name: &str) -> Option<fn(&mut Object)> {
    Some(match name {
        "Volume" => volume,
        "SecretVolumeSource"
        | "ConfigMapVolumeSource"
        | "DownwardAPIVolumeSource"
        | "ProjectedVolumeSource" => |source| default(source, "defaultMode", DEFAULT_MODE),
        "ServiceAccountTokenProjection" => |token| default(token, "expirationSeconds", 3600),
        "HostPathVolumeSource" => |source| default(source, "type", ""),
        "ISCSIVolumeSource" | "ISCSIPersistentVolumeSource" => {
            |source| default(source, "iscsiInterface", "default")
        }
        "RBDVolumeSource" | "RBDPersistentVolumeSource" => |source| {
            default(source, "pool", "rbd");
            default(source, "user", "admin");
            default(source, "keyring", "/etc/ceph/keyring");
        },
        "AzureDiskVolumeSource" => |source| {
            default(source, "cachingMode", "ReadWrite");
            default(source, "fsType", "ext4");
            default(source, "readOnly", false);
            default(source, "kind", "Shared");
        },
        "ScaleIOVolumeSource" | "ScaleIOPersistentVolumeSource" => |source| {
            default(source, "storageMode", "ThinProvisioned");
            default(source, "fsType", "xfs");
        },
        _ => return None,
    })
}

/// A volume without a source is an empty directory.
fn volume(object: &mut Object) {
    if object.keys().all(|key| key == "name") {
        object.insert("emptyDir".to_owned(), json!({}));
    }
    if let Some(image) = object.get_mut("image").and_then(Value::as_object_mut) {
        let policy = default_pull_policy(text(image, "reference"));
        default(image, "pullPolicy", policy);
    }
}
