//! The core group, `v1`.

use super::kind::{Kind, Subresource, Verb};
use super::selectable::{Read, Selectable};
use super::strategy::{Cascade, Generation};
use super::{Group, events};

const V1: (&str, &str) = ("", "v1");

pub(super) const GROUP: Group = Group {
    name: V1.0,
    version: V1.1,
    kinds: &[
        Kind::namespaced(V1, "Binding", "bindings", "binding").not_stored(&[Verb::Create]),
        Kind::namespaced(V1, "ConfigMap", "configmaps", "configmap").short(&["cm"]),
        events::CORE_EVENT,
        Kind::namespaced(V1, "LimitRange", "limitranges", "limitrange")
            .short(&["limits"])
            .put_creates(),
        NAMESPACE,
        NODE,
        Kind::namespaced(
            V1,
            "PersistentVolumeClaim",
            "persistentvolumeclaims",
            "persistentvolumeclaim",
        )
        .short(&["pvc"])
        .with(&[Subresource::view("status", "PersistentVolumeClaim")])
        .inert("no controller binds claims or provisions volumes")
        .returns_deleted(),
        Kind::cluster(
            V1,
            "PersistentVolume",
            "persistentvolumes",
            "persistentvolume",
        )
        .short(&["pv"])
        .with(&[Subresource::view("status", "PersistentVolume")])
        .inert("no controller binds volumes to claims")
        .returns_deleted(),
        POD,
        Kind::namespaced(V1, "PodTemplate", "podtemplates", "podtemplate")
            .generation(Generation::Counts(&["/template"]))
            .returns_deleted(),
        REPLICATION_CONTROLLER,
        Kind::namespaced(V1, "ResourceQuota", "resourcequotas", "resourcequota")
            .short(&["quota"])
            .with(&[Subresource::view("status", "ResourceQuota")])
            .returns_deleted(),
        Kind::namespaced(V1, "Secret", "secrets", "secret")
            .selectable(Selectable::fields(&[("type", Read::Text("/type"))])),
        Kind::namespaced(V1, "ServiceAccount", "serviceaccounts", "serviceaccount")
            .short(&["sa"])
            .with(&[Subresource::action("token", "TokenRequest").of("authentication.k8s.io", "v1")])
            .returns_deleted(),
        SERVICE,
    ],
};

const NAMESPACE: Kind = Kind::cluster(V1, "Namespace", "namespaces", "namespace")
    .short(&["ns"])
    // The namespace controller empties a namespace; a collection of them cannot be deleted.
    .verbs(&[
        Verb::Create,
        Verb::Delete,
        Verb::Get,
        Verb::List,
        Verb::Patch,
        Verb::Update,
        Verb::Watch,
    ])
    .with(&[
        Subresource::view("finalize", "Namespace").verbs(&[Verb::Update]),
        Subresource::view("status", "Namespace"),
    ])
    .selectable(
        Selectable::fields(&[("status.phase", Read::Text("/status/phase"))]).without_namespace(),
    )
    .returns_deleted();

const NODE: Kind = Kind::cluster(V1, "Node", "nodes", "node")
    .short(&["no"])
    .with(&[
        Subresource::view("proxy", "NodeProxyOptions").verbs(PROXY),
        Subresource::view("status", "Node"),
    ])
    .selectable(
        Selectable::fields(&[("spec.unschedulable", Read::Flag("/spec/unschedulable"))])
            .without_namespace(),
    )
    .stored_as("minions");

/// Requests of any method are passed on.
const PROXY: &[Verb] = &[
    Verb::Create,
    Verb::Delete,
    Verb::Get,
    Verb::Patch,
    Verb::Update,
];

/// Both verbs: WebSockets begin with GET, SPDY with POST.
const STREAM: &[Verb] = &[Verb::Create, Verb::Get];

const POD: Kind = Kind::namespaced(V1, "Pod", "pods", "pod")
    .short(&["po"])
    .in_all()
    .with(&[
        Subresource::view("attach", "PodAttachOptions").verbs(STREAM),
        Subresource::action("binding", "Binding"),
        Subresource::view("ephemeralcontainers", "Pod"),
        Subresource::action("eviction", "Eviction").of("policy", "v1"),
        Subresource::view("exec", "PodExecOptions").verbs(STREAM),
        Subresource::view("log", "Pod").verbs(&[Verb::Get]),
        Subresource::view("portforward", "PodPortForwardOptions").verbs(STREAM),
        Subresource::view("proxy", "PodProxyOptions").verbs(PROXY),
        Subresource::view("resize", "Pod"),
        Subresource::view("status", "Pod"),
    ])
    .selectable(
        Selectable::fields(&[
            ("spec.nodeName", Read::Text("/spec/nodeName")),
            ("spec.restartPolicy", Read::Text("/spec/restartPolicy")),
            ("spec.schedulerName", Read::Text("/spec/schedulerName")),
            (
                "spec.serviceAccountName",
                Read::Text("/spec/serviceAccountName"),
            ),
            ("spec.hostNetwork", Read::Flag("/spec/hostNetwork")),
            ("status.phase", Read::Text("/status/phase")),
            // `podIP` is authoritative where both are given and differ.
            (
                "status.podIP",
                Read::First(&["/status/podIP", "/status/podIPs/0/ip"]),
            ),
            ("status.podIPs", Read::Nothing),
            (
                "status.nominatedNodeName",
                Read::Text("/status/nominatedNodeName"),
            ),
        ])
        .aliases(&[("spec.host", "spec.nodeName")]),
    )
    .generation(Generation::SPEC)
    .returns_deleted();

const REPLICATION_CONTROLLER: Kind = Kind::namespaced(
    V1,
    "ReplicationController",
    "replicationcontrollers",
    "replicationcontroller",
)
.short(&["rc"])
.in_all()
.with(&[
    Subresource::scale(),
    Subresource::view("status", "ReplicationController"),
])
.selectable(Selectable::fields(&[(
    "status.replicas",
    Read::Count("/status/replicas"),
)]))
.generation(Generation::SPEC)
.cascade(Cascade::Orphan)
.stored_as("controllers");

const SERVICE: Kind = Kind::namespaced(V1, "Service", "services", "service")
    .short(&["svc"])
    .in_all()
    .with(&[Subresource::view("status", "Service")])
    .selectable(Selectable::fields(&[
        ("spec.clusterIP", Read::Text("/spec/clusterIP")),
        ("spec.type", Read::Text("/spec/type")),
    ]))
    .put_creates()
    .returns_deleted()
    .inert("there is no service proxy: it gets no address, and no traffic is routed to its pods")
    .stored_as("services/specs");
