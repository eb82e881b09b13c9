//! Events: one set of objects in two encodings, `v1` and `events.k8s.io/v1`.

use super::Group;
use super::kind::Kind;
use super::selectable::{Read, Selectable};
use super::strategy::Cascade;

/// The encoding that is stored.
pub(super) const CORE_EVENT: Kind = event(("", "v1")).selectable(Selectable::fields(&[
    ("involvedObject.kind", Read::Text("/involvedObject/kind")),
    (
        "involvedObject.namespace",
        Read::Text("/involvedObject/namespace"),
    ),
    ("involvedObject.name", Read::Text("/involvedObject/name")),
    ("involvedObject.uid", Read::Text("/involvedObject/uid")),
    (
        "involvedObject.apiVersion",
        Read::Text("/involvedObject/apiVersion"),
    ),
    (
        "involvedObject.resourceVersion",
        Read::Text("/involvedObject/resourceVersion"),
    ),
    (
        "involvedObject.fieldPath",
        Read::Text("/involvedObject/fieldPath"),
    ),
    ("reason", Read::Text("/reason")),
    ("reportingComponent", Read::Text("/reportingComponent")),
    (
        "source",
        Read::First(&["/source/component", "/reportingComponent"]),
    ),
    ("type", Read::Text("/type")),
]));

/// Its fields are read from either encoding, so that stored objects need not be converted first.
pub(super) const GROUP: Group = Group {
    name: "events.k8s.io",
    version: "v1",
    kinds: &[
        event(("events.k8s.io", "v1")).selectable(Selectable::fields(&[
            ("reason", Read::Text("/reason")),
            (
                "regarding.kind",
                Read::First(&["/regarding/kind", "/involvedObject/kind"]),
            ),
            (
                "regarding.namespace",
                Read::First(&["/regarding/namespace", "/involvedObject/namespace"]),
            ),
            (
                "regarding.name",
                Read::First(&["/regarding/name", "/involvedObject/name"]),
            ),
            (
                "regarding.uid",
                Read::First(&["/regarding/uid", "/involvedObject/uid"]),
            ),
            (
                "regarding.apiVersion",
                Read::First(&["/regarding/apiVersion", "/involvedObject/apiVersion"]),
            ),
            (
                "regarding.resourceVersion",
                Read::First(&[
                    "/regarding/resourceVersion",
                    "/involvedObject/resourceVersion",
                ]),
            ),
            (
                "regarding.fieldPath",
                Read::First(&["/regarding/fieldPath", "/involvedObject/fieldPath"]),
            ),
            (
                "reportingController",
                Read::First(&["/reportingController", "/reportingComponent"]),
            ),
            ("type", Read::Text("/type")),
        ])),
    ],
};

const fn event(group_version: (&'static str, &'static str)) -> Kind {
    Kind::namespaced(group_version, "Event", "events", "event")
        .short(&["ev"])
        .put_creates()
        .cascade(Cascade::Unsupported)
}
