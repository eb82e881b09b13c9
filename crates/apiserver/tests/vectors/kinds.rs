//! The kinds that occur in the cases.

use plimsoll_apiserver::machinery::kind::Kind;
use serde_json::Value;

const KINDS: &[(&str, &str, &str)] = &[
    ("", "ConfigMap", "configmaps"),
    ("", "Event", "events"),
    ("", "LimitRange", "limitranges"),
    ("", "Namespace", "namespaces"),
    ("", "Node", "nodes"),
    ("", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("", "PersistentVolume", "persistentvolumes"),
    ("", "Pod", "pods"),
    ("", "PodTemplate", "podtemplates"),
    ("", "ReplicationController", "replicationcontrollers"),
    ("", "ResourceQuota", "resourcequotas"),
    ("", "Secret", "secrets"),
    ("", "Service", "services"),
    ("", "ServiceAccount", "serviceaccounts"),
    ("apps", "ControllerRevision", "controllerrevisions"),
    ("apps", "DaemonSet", "daemonsets"),
    ("apps", "Deployment", "deployments"),
    ("apps", "ReplicaSet", "replicasets"),
    ("apps", "StatefulSet", "statefulsets"),
    ("batch", "CronJob", "cronjobs"),
    ("batch", "Job", "jobs"),
    (
        "certificates.k8s.io",
        "CertificateSigningRequest",
        "certificatesigningrequests",
    ),
    ("coordination.k8s.io", "Lease", "leases"),
    ("node.k8s.io", "RuntimeClass", "runtimeclasses"),
    ("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
    ("rbac.authorization.k8s.io", "ClusterRole", "clusterroles"),
    (
        "rbac.authorization.k8s.io",
        "ClusterRoleBinding",
        "clusterrolebindings",
    ),
    ("rbac.authorization.k8s.io", "Role", "roles"),
    ("rbac.authorization.k8s.io", "RoleBinding", "rolebindings"),
    ("scheduling.k8s.io", "PriorityClass", "priorityclasses"),
];

const CLUSTER_SCOPED: &[&str] = &[
    "CertificateSigningRequest",
    "ClusterRole",
    "ClusterRoleBinding",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "RuntimeClass",
];

/// The kind of an object of a case.
pub(crate) fn kind_of(object: &Value) -> Kind {
    let api_version = object["apiVersion"].as_str().unwrap();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let found = KINDS
        .iter()
        .find(|(g, kind, _)| *g == group && object["kind"] == *kind);
    let (group, kind, resource) = *found.unwrap();
    Kind {
        group,
        version: "v1",
        kind,
        resource,
        is_namespaced: !CLUSTER_SCOPED.contains(&kind),
    }
}
