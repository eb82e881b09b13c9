//! `storage.k8s.io/v1`: what schedulers and node agents list and watch.

use super::Group;
use super::kind::{Kind, Subresource};
use super::strategy::Generation;

const V1: (&str, &str) = ("storage.k8s.io", "v1");

pub(super) const GROUP: Group = Group {
    name: V1.0,
    version: V1.1,
    kinds: &[
        Kind::cluster(V1, "CSIDriver", "csidrivers", "csidriver")
            .inert("CSI drivers are not called")
            .generation(Generation::CountsFromZero(&["/spec"]))
            .put_needs_version()
            .returns_deleted(),
        Kind::cluster(V1, "CSINode", "csinodes", "csinode")
            .inert("CSI drivers are not called")
            .put_needs_version()
            .returns_deleted(),
        Kind::namespaced(
            V1,
            "CSIStorageCapacity",
            "csistoragecapacities",
            "csistoragecapacity",
        )
        .inert("the scheduler does not place volumes")
        .put_needs_version(),
        Kind::cluster(V1, "StorageClass", "storageclasses", "storageclass")
            .inert("no controller provisions volumes")
            .short(&["sc"])
            .returns_deleted(),
        Kind::cluster(
            V1,
            "VolumeAttachment",
            "volumeattachments",
            "volumeattachment",
        )
        .inert("no controller attaches volumes")
        .with(&[Subresource::view("status", "VolumeAttachment")])
        .put_needs_version()
        .returns_deleted(),
    ],
};
