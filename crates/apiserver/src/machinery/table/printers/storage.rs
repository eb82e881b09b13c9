//! Volumes, claims and storage classes.

use super::super::column::{AGE, Column, NAME};
use super::super::printer::{Printer, Row, row};
use super::super::view::{NONE, UNSET, View, or};

const VOLUME_SPEC: &str = "api.core.v1.PersistentVolumeSpec";
const VOLUME_STATUS: &str = "api.core.v1.PersistentVolumeStatus";

pub(super) const PERSISTENT_VOLUME: Printer = Printer {
    columns: &[
        NAME,
        Column::field("Capacity", VOLUME_SPEC, "capacity"),
        Column::field("Access Modes", VOLUME_SPEC, "accessModes"),
        Column::field(
            "Reclaim Policy",
            VOLUME_SPEC,
            "persistentVolumeReclaimPolicy",
        ),
        Column::field("Status", VOLUME_STATUS, "phase"),
        Column::field("Claim", VOLUME_SPEC, "claimRef"),
        Column::text("StorageClass", "StorageClass of the pv"),
        Column::text("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
        Column::field("Reason", VOLUME_STATUS, "reason"),
        AGE,
        Column::field("VolumeMode", VOLUME_SPEC, "volumeMode").wide(),
    ],
    row: persistent_volume,
};

fn persistent_volume(volume: View<'_>) -> Row {
    let claim = volume.at("/spec/claimRef");
    let claim = claim.map(|claim| format!("{}/{}", claim.text("/namespace"), claim.text("/name")));
    row![
        volume.name(),
        volume.quantity("/spec/capacity", "storage"),
        access_modes(&volume.texts("/spec/accessModes")),
        volume.text_or("/spec/persistentVolumeReclaimPolicy", "Retain"),
        phase(volume),
        claim.unwrap_or_default(),
        storage_class(volume),
        attributes_class(volume),
        volume.text("/status/reason"),
        volume.age(),
        volume.text_or("/spec/volumeMode", "Filesystem"),
    ]
}

const CLAIM_SPEC: &str = "api.core.v1.PersistentVolumeClaimSpec";
const CLAIM_STATUS: &str = "api.core.v1.PersistentVolumeClaimStatus";

pub(super) const PERSISTENT_VOLUME_CLAIM: Printer = Printer {
    columns: &[
        NAME,
        Column::field("Status", CLAIM_STATUS, "phase"),
        Column::field("Volume", CLAIM_SPEC, "volumeName"),
        Column::field("Capacity", CLAIM_STATUS, "capacity"),
        Column::field("Access Modes", CLAIM_STATUS, "accessModes"),
        Column::text("StorageClass", "StorageClass of the pvc"),
        Column::text("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
        AGE,
        Column::field("VolumeMode", CLAIM_SPEC, "volumeMode").wide(),
    ],
    row: persistent_volume_claim,
};

fn persistent_volume_claim(claim: View<'_>) -> Row {
    let volume = claim.text("/spec/volumeName");
    // The capacity of an unbound claim is unknown.
    let (capacity, modes) = match volume {
        "" => Default::default(),
        _ => (
            claim.quantity("/status/capacity", "storage"),
            access_modes(&claim.texts("/status/accessModes")),
        ),
    };
    row![
        claim.name(),
        phase(claim),
        volume,
        capacity,
        modes,
        storage_class(claim),
        attributes_class(claim),
        claim.age(),
        claim.text_or("/spec/volumeMode", "Filesystem"),
    ]
}

fn phase<'a>(object: View<'a>) -> &'a str {
    if object.is_being_deleted() {
        "Terminating"
    } else {
        object.text_or("/status/phase", "Pending")
    }
}

/// The annotation is older than the field and wins, even when it is empty.
fn storage_class<'a>(object: View<'a>) -> &'a str {
    let annotation = object.at("/metadata/annotations/volume.beta.kubernetes.io~1storage-class");
    annotation.map_or_else(
        || object.text("/spec/storageClassName"),
        |class| class.text(""),
    )
}

fn attributes_class<'a>(object: View<'a>) -> &'a str {
    let class = object.at("/spec/volumeAttributesClassName");
    class.map_or(UNSET, |class| class.text(""))
}

fn access_modes(modes: &[&str]) -> String {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let short = known.iter().filter(|(mode, _)| modes.contains(mode));
    short
        .map(|(_, short)| *short)
        .collect::<Vec<&str>>()
        .join(",")
}

const STORAGE_CLASS_TYPE: &str = "api.storage.v1.StorageClass";

pub(super) const STORAGE_CLASS: Printer = Printer {
    columns: &[
        NAME,
        Column::field("Provisioner", STORAGE_CLASS_TYPE, "provisioner"),
        Column::field("ReclaimPolicy", STORAGE_CLASS_TYPE, "reclaimPolicy"),
        Column::field("VolumeBindingMode", STORAGE_CLASS_TYPE, "volumeBindingMode"),
        Column::field(
            "AllowVolumeExpansion",
            STORAGE_CLASS_TYPE,
            "allowVolumeExpansion",
        ),
        AGE,
    ],
    row: |class| {
        let is_default = ["storageclass", "storageclass.beta"].iter().any(|prefix| {
            let pointer = format!("/metadata/annotations/{prefix}.kubernetes.io~1is-default-class");
            class.text(&pointer) == "true"
        });
        let mark = if is_default { " (default)" } else { "" };
        row![
            format!("{}{mark}", class.name()),
            class.text("/provisioner"),
            class.text_or("/reclaimPolicy", "Delete"),
            class.text_or("/volumeBindingMode", "Immediate"),
            class.flag("/allowVolumeExpansion"),
            class.age(),
        ]
    },
};

const ATTACHMENT_SPEC: &str = "api.storage.v1.VolumeAttachmentSpec";

pub(super) const VOLUME_ATTACHMENT: Printer = Printer {
    columns: &[
        NAME,
        Column::field("Attacher", ATTACHMENT_SPEC, "attacher").names(),
        Column::field(
            "PV",
            "api.storage.v1.VolumeAttachmentSource",
            "persistentVolumeName",
        ),
        Column::field("Node", ATTACHMENT_SPEC, "nodeName"),
        Column::field(
            "Attached",
            "api.storage.v1.VolumeAttachmentStatus",
            "attached",
        )
        .boolean(),
        AGE,
    ],
    row: |object| {
        row![
            object.name(),
            object.text("/spec/attacher"),
            object.text("/spec/source/persistentVolumeName"),
            object.text("/spec/nodeName"),
            object.flag("/status/attached"),
            object.age(),
        ]
    },
};

pub(super) const CSI_NODE: Printer = Printer {
    columns: &[
        NAME,
        Column::text(
            "Drivers",
            "Drivers indicates the number of CSI drivers registered on the node",
        )
        .integer(),
        AGE,
    ],
    row: |object| {
        row![
            object.name(),
            object.items("/spec/drivers").len(),
            object.age()
        ]
    },
};

const DRIVER_SPEC: &str = "api.storage.v1.CSIDriverSpec";

pub(super) const CSI_DRIVER: Printer = Printer {
    columns: &[
        NAME,
        Column::field("AttachRequired", DRIVER_SPEC, "attachRequired").boolean(),
        Column::field("PodInfoOnMount", DRIVER_SPEC, "podInfoOnMount").boolean(),
        Column::field("StorageCapacity", DRIVER_SPEC, "storageCapacity").boolean(),
        Column::field("TokenRequests", DRIVER_SPEC, "tokenRequests"),
        Column::field("RequiresRepublish", DRIVER_SPEC, "requiresRepublish").boolean(),
        Column::field("Modes", DRIVER_SPEC, "volumeLifecycleModes"),
        AGE,
    ],
    row: csi_driver,
};

fn csi_driver(driver: View<'_>) -> Row {
    let tokens = driver
        .items("/spec/tokenRequests")
        .map(|token| token.text("/audience"));
    let tokens = tokens.collect::<Vec<&str>>().join(",");
    let has_tokens = driver.has("/spec/tokenRequests");
    row![
        driver.name(),
        driver.flag_or("/spec/attachRequired", true),
        driver.flag("/spec/podInfoOnMount"),
        driver.flag("/spec/storageCapacity"),
        if has_tokens { &tokens } else { UNSET },
        driver.flag("/spec/requiresRepublish"),
        or(&driver.texts("/spec/volumeLifecycleModes").join(","), NONE),
        driver.age(),
    ]
}
