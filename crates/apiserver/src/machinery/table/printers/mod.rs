//! The printers, by topic. A missing field that upstream would have defaulted is
//! printed as the default.

mod access;
mod batch;
mod certificates;
mod cluster;
mod configuration;
mod event;
mod node;
mod pod;
mod resource;
mod service;
mod storage;
mod workload;

use serde_json::json;

use super::column::{CREATED_AT, NAME};
use super::printer::{Printer, Row};
use super::view::View;

/// The printer of a kind.
pub(super) fn printer(group: &str, kind: &str) -> Printer {
    match (group, kind) {
        ("", "Pod") => pod::POD,
        ("", "Node") => node::NODE,
        ("", "Namespace") => cluster::NAMESPACE,
        ("", "ResourceQuota") => cluster::RESOURCE_QUOTA,
        ("" | "events.k8s.io", "Event") => event::EVENT,
        ("", "ConfigMap") => configuration::CONFIG_MAP,
        ("", "Secret") => configuration::SECRET,
        ("", "ServiceAccount") => access::SERVICE_ACCOUNT,
        ("", "Service") => service::SERVICE,
        ("", "PersistentVolume") => storage::PERSISTENT_VOLUME,
        ("", "PersistentVolumeClaim") => storage::PERSISTENT_VOLUME_CLAIM,
        ("", "PodTemplate") => workload::POD_TEMPLATE,
        ("", "ReplicationController") => workload::REPLICATION_CONTROLLER,
        ("apps", "ControllerRevision") => workload::CONTROLLER_REVISION,
        ("apps", "DaemonSet") => workload::DAEMON_SET,
        ("apps", "Deployment") => workload::DEPLOYMENT,
        ("apps", "ReplicaSet") => workload::REPLICA_SET,
        ("apps", "StatefulSet") => workload::STATEFUL_SET,
        ("autoscaling", "Scale") => workload::SCALE,
        ("batch", "CronJob") => batch::CRON_JOB,
        ("batch", "Job") => batch::JOB,
        ("certificates.k8s.io", "CertificateSigningRequest") => certificates::SIGNING_REQUEST,
        ("coordination.k8s.io", "Lease") => cluster::LEASE,
        ("node.k8s.io", "RuntimeClass") => cluster::RUNTIME_CLASS,
        ("policy", "PodDisruptionBudget") => cluster::POD_DISRUPTION_BUDGET,
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => access::CLUSTER_ROLE_BINDING,
        ("rbac.authorization.k8s.io", "RoleBinding") => access::ROLE_BINDING,
        ("resource.k8s.io", "DeviceClass") => resource::DEVICE_CLASS,
        ("resource.k8s.io", "ResourceClaim") => resource::RESOURCE_CLAIM,
        ("resource.k8s.io", "ResourceSlice") => resource::RESOURCE_SLICE,
        ("scheduling.k8s.io", "PriorityClass") => cluster::PRIORITY_CLASS,
        ("storage.k8s.io", "CSIDriver") => storage::CSI_DRIVER,
        ("storage.k8s.io", "CSINode") => storage::CSI_NODE,
        ("storage.k8s.io", "StorageClass") => storage::STORAGE_CLASS,
        ("storage.k8s.io", "VolumeAttachment") => storage::VOLUME_ATTACHMENT,
        _ => DEFAULT,
    }
}

/// For kinds without a printer of their own: LimitRange, Role, CSIStorageCapacity and others.
const DEFAULT: Printer = Printer {
    columns: &[NAME, CREATED_AT],
    row: default_row,
};

fn default_row(object: View<'_>) -> Row {
    let created = object.text_or("/metadata/creationTimestamp", "0001-01-01T00:00:00Z");
    Row {
        cells: vec![json!(object.name()), json!(created)],
        conditions: Vec::new(),
    }
}
