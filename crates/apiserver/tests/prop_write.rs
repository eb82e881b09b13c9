//! Nothing that can be sent makes the way into the store panic.

use plimsoll_apiserver::http::status::Status;
use plimsoll_apiserver::machinery::admission::Cluster;
use plimsoll_apiserver::machinery::decoding::{BodyFormat, FieldValidation};
use plimsoll_apiserver::machinery::kind::Kind;
use plimsoll_apiserver::machinery::validation::{Part, Rules};
use plimsoll_apiserver::machinery::write::{Body, Identity, Target, create, update};
use proptest::prelude::*;
use serde_json::{Value, json};

const KINDS: [(&str, &str, &str); 23] = [
    ("", "Pod", "pods"),
    ("", "Node", "nodes"),
    ("", "Namespace", "namespaces"),
    ("", "LimitRange", "limitranges"),
    ("", "ResourceQuota", "resourcequotas"),
    ("", "ConfigMap", "configmaps"),
    ("", "Secret", "secrets"),
    ("", "ServiceAccount", "serviceaccounts"),
    ("", "Event", "events"),
    ("", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("apps", "Deployment", "deployments"),
    ("apps", "ReplicaSet", "replicasets"),
    ("apps", "DaemonSet", "daemonsets"),
    ("apps", "StatefulSet", "statefulsets"),
    ("batch", "Job", "jobs"),
    ("batch", "CronJob", "cronjobs"),
    (
        "certificates.k8s.io",
        "CertificateSigningRequest",
        "certificatesigningrequests",
    ),
    ("coordination.k8s.io", "Lease", "leases"),
    ("events.k8s.io", "Event", "events"),
    ("node.k8s.io", "RuntimeClass", "runtimeclasses"),
    ("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
    ("rbac.authorization.k8s.io", "ClusterRole", "clusterroles"),
    ("scheduling.k8s.io", "PriorityClass", "priorityclasses"),
];

/// Field names that lead somewhere, so that random objects reach the rules.
const FIELDS: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "template",
    "containers",
    "initContainers",
    "name",
    "image",
    "resources",
    "limits",
    "requests",
    "cpu",
    "memory",
    "ports",
    "containerPort",
    "hostPort",
    "volumes",
    "emptyDir",
    "projected",
    "sources",
    "affinity",
    "nodeAffinity",
    "podAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "tolerations",
    "selector",
    "matchLabels",
    "labels",
    "hard",
    "annotations",
    "strategy",
    "type",
    "rollingUpdate",
    "maxUnavailable",
    "jobTemplate",
    "schedule",
    "livenessProbe",
    "httpGet",
    "port",
    "env",
    "value",
    "valueFrom",
    "fieldRef",
    "fieldPath",
    "securityContext",
    "topologySpreadConstraints",
    "schedulingGates",
    "priorityClassName",
    "limits",
    "completions",
    "podFailurePolicy",
    "rules",
    "onExitCodes",
    "data",
    "taints",
    "podCIDR",
    "capacity",
    "creationTimestamp",
    "ownerReferences",
    "finalizers",
    "conditions",
    "podIPs",
    "ip",
];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-5_i64..70_000).prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        "[a-zA-Z0-9./=%:_-]{0,12}".prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        prop::sample::select(vec![
            "100m",
            "1Gi",
            "25%",
            "In",
            "Always",
            "Never",
            "2026-01-01T00:00:00Z"
        ])
        .prop_map(Value::from),
    ]
}

fn object() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(7, 60, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(FIELDS), inner), 0..5).prop_map(
                |members| {
                    members
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect()
                }
            ),
        ]
    })
}

fn write(
    body: &[u8],
    old: &Value,
    (group, kind, resource): (&'static str, &'static str, &'static str),
) {
    let is_namespaced = ![
        "CertificateSigningRequest",
        "Node",
        "Namespace",
        "ClusterRole",
        "PriorityClass",
        "RuntimeClass",
    ]
    .contains(&kind);
    let kind = Kind {
        group,
        version: "v1",
        kind,
        resource,
        is_namespaced,
    };
    let identity = Identity {
        uid: "u",
        now: "2026-01-01T00:00:00Z",
        name_suffix: "bcdfg",
    };
    for format in [BodyFormat::Json, BodyFormat::Yaml] {
        let body = Body {
            bytes: body,
            format,
            validation: FieldValidation::Warn,
        };
        let created = create(
            &kind,
            "n",
            body,
            identity,
            &Cluster::default(),
            Rules::default(),
        );
        if let Err(refusal) = created {
            assert!(Status::of_refusal(&kind, &refusal).to_json().is_object());
        }
        for part in [
            Part::Main,
            Part::Status,
            Part::Resize,
            Part::EphemeralContainers,
            Part::Finalize,
            Part::Approval,
        ] {
            let target = Target {
                namespace: "n",
                name: "",
                part,
            };
            let _ = update(
                &kind,
                target,
                body,
                old,
                &Cluster::default(),
                Rules::default(),
            );
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_answered(
        bytes in prop::collection::vec(any::<u8>(), 0..80),
        kind in prop::sample::select(&KINDS[..]),
    ) {
        write(&bytes, &json!({}), kind);
    }

    #[test]
    fn any_object_is_answered(
        (new, old) in (object(), object()),
        kind in prop::sample::select(&KINDS[..]),
    ) {
        write(new.to_string().as_bytes(), &old, kind);
        write(old.to_string().as_bytes(), &new, kind);
    }
}
