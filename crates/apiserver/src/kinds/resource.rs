//! `resource.k8s.io/v1`: what schedulers list and watch.

use super::Group;
use super::kind::{Kind, Subresource};
use super::selectable::{Read, Selectable};
use super::strategy::Generation;

const V1: (&str, &str) = ("resource.k8s.io", "v1");

pub(super) const GROUP: Group = Group {
    name: V1.0,
    version: V1.1,
    kinds: &[
        Kind::cluster(V1, "DeviceClass", "deviceclasses", "deviceclass")
            .inert("the scheduler allocates no devices")
            .generation(Generation::SPEC)
            .returns_deleted(),
        Kind::namespaced(V1, "ResourceClaim", "resourceclaims", "resourceclaim")
            .inert("the scheduler allocates no devices")
            .with(&[Subresource::view("status", "ResourceClaim")])
            .returns_deleted(),
        Kind::cluster(V1, "ResourceSlice", "resourceslices", "resourceslice")
            .inert("the scheduler allocates no devices")
            .selectable(
                Selectable::fields(&[
                    ("spec.nodeName", Read::Text("/spec/nodeName")),
                    ("spec.driver", Read::Text("/spec/driver")),
                ])
                .without_namespace()
                .refused_for_gvk("resource.k8s.io/v1, Kind=ResourceSlice"),
            )
            .generation(Generation::SPEC)
            .returns_deleted(),
    ],
};
