//! The kinds that the double serves.

use serde_json::{Value, json};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) group: &'static str,
    pub(super) plural: &'static str,
    pub(super) name: &'static str,
    pub(super) is_namespaced: bool,
}

const fn kind(group: &'static str, plural: &'static str, name: &'static str) -> Kind {
    Kind {
        group,
        plural,
        name,
        is_namespaced: true,
    }
}

const fn of_cluster(plural: &'static str, name: &'static str) -> Kind {
    Kind {
        is_namespaced: false,
        ..kind("", plural, name)
    }
}

/// All of them have version `v1`.
pub(super) static KINDS: [Kind; 20] = [
    of_cluster("nodes", "Node"),
    of_cluster("namespaces", "Namespace"),
    kind("", "pods", "Pod"),
    kind("", "events", "Event"),
    kind("", "configmaps", "ConfigMap"),
    kind("", "secrets", "Secret"),
    kind("", "serviceaccounts", "ServiceAccount"),
    kind("", "services", "Service"),
    kind("", "persistentvolumeclaims", "PersistentVolumeClaim"),
    kind("", "resourcequotas", "ResourceQuota"),
    kind("", "replicationcontrollers", "ReplicationController"),
    kind("apps", "replicasets", "ReplicaSet"),
    kind("apps", "deployments", "Deployment"),
    kind("apps", "daemonsets", "DaemonSet"),
    kind("apps", "statefulsets", "StatefulSet"),
    kind("apps", "controllerrevisions", "ControllerRevision"),
    kind("batch", "jobs", "Job"),
    kind("batch", "cronjobs", "CronJob"),
    kind("policy", "poddisruptionbudgets", "PodDisruptionBudget"),
    kind("coordination.k8s.io", "leases", "Lease"),
];

impl Kind {
    pub(super) fn api_version(&self) -> String {
        match self.group {
            "" => "v1".to_owned(),
            group => format!("{group}/v1"),
        }
    }
}

pub(super) fn of_plural(plural: &str) -> &'static Kind {
    let mut kinds = KINDS.iter();
    let found = kinds.find(|kind| kind.plural == plural);
    found.unwrap_or_else(|| panic!("the double serves no {plural}"))
}

pub(super) fn of_object(object: &Value) -> &'static Kind {
    let mut kinds = KINDS.iter();
    let found = kinds.find(|k| object["kind"] == k.name && object["apiVersion"] == k.api_version());
    found.unwrap_or_else(|| panic!("the double does not serve {object}"))
}

/// The answer to `/api` or `/apis` in the aggregated form.
pub(super) fn discovery(is_core: bool) -> Value {
    let mut groups: Vec<&str> = KINDS.iter().map(|kind| kind.group).collect();
    groups.dedup();
    let groups = groups.into_iter().filter(|g| g.is_empty() == is_core);
    let items: Vec<Value> = groups
        .map(|group| {
            let kinds = KINDS.iter().filter(|kind| kind.group == group);
            let resources: Vec<Value> = kinds.map(discovered).collect();
            json!({
                "metadata": {"name": group},
                "versions": [{"version": "v1", "freshness": "Current", "resources": resources}],
            })
        })
        .collect();
    json!({
        "apiVersion": "apidiscovery.k8s.io/v2",
        "kind": "APIGroupDiscoveryList",
        "items": items,
    })
}

fn discovered(kind: &Kind) -> Value {
    json!({
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": "v1", "kind": kind.name},
        "scope": if kind.is_namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.name.to_lowercase(),
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    })
}
