//! Defaults of volumes.

use serde_json::{Value, json};

use super::image::default_pull_policy;
use super::{Object, default, text};

/// Files of volumes that hold API data are readable by all: 0644.
const DEFAULT_MODE: i32 = 0o644;

pub(super) fn apply(name: &str, object: &mut Object) {
    match name {
        "Volume" => volume(object),
        "SecretVolumeSource"
        | "ConfigMapVolumeSource"
        | "DownwardAPIVolumeSource"
        | "ProjectedVolumeSource" => default(object, "defaultMode", DEFAULT_MODE),
        "ServiceAccountTokenProjection" => default(object, "expirationSeconds", 3600),
        "HostPathVolumeSource" => default(object, "type", ""),
        "ISCSIVolumeSource" | "ISCSIPersistentVolumeSource" => {
            default(object, "iscsiInterface", "default");
        }
        "RBDVolumeSource" | "RBDPersistentVolumeSource" => {
            default(object, "pool", "rbd");
            default(object, "user", "admin");
            default(object, "keyring", "/etc/ceph/keyring");
        }
        "AzureDiskVolumeSource" => {
            default(object, "cachingMode", "ReadWrite");
            default(object, "fsType", "ext4");
            default(object, "readOnly", false);
            default(object, "kind", "Shared");
        }
        "ScaleIOVolumeSource" | "ScaleIOPersistentVolumeSource" => {
            default(object, "storageMode", "ThinProvisioned");
            default(object, "fsType", "xfs");
        }
        _ => {}
    }
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
