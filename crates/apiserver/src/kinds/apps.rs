//! `apps/v1`.

use super::Group;
use super::kind::{Kind, Subresource};
use super::strategy::Generation;

const V1: (&str, &str) = ("apps", "v1");

pub(super) const GROUP: Group = Group {
    name: V1.0,
    version: V1.1,
    kinds: &[
        Kind::namespaced(
            V1,
            "ControllerRevision",
            "controllerrevisions",
            "controllerrevision",
        ),
        Kind::namespaced(V1, "DaemonSet", "daemonsets", "daemonset")
            .short(&["ds"])
            .in_all()
            .with(&[Subresource::view("status", "DaemonSet")])
            .generation(Generation::SPEC),
        Kind::namespaced(V1, "Deployment", "deployments", "deployment")
            .short(&["deploy"])
            .in_all()
            .with(&[
                Subresource::scale(),
                Subresource::view("status", "Deployment"),
            ])
            // Annotations are copied to the ReplicaSets, hence a change of them counts too.
            .generation(Generation::Counts(&["/spec", "/metadata/annotations"])),
        Kind::namespaced(V1, "ReplicaSet", "replicasets", "replicaset")
            .short(&["rs"])
            .in_all()
            .with(&[
                Subresource::scale(),
                Subresource::view("status", "ReplicaSet"),
            ])
            .generation(Generation::SPEC),
        Kind::namespaced(V1, "StatefulSet", "statefulsets", "statefulset")
            .short(&["sts"])
            .in_all()
            .with(&[
                Subresource::scale(),
                Subresource::view("status", "StatefulSet"),
            ])
            .generation(Generation::SPEC),
    ],
};
