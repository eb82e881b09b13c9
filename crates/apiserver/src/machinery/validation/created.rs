//! The rules for new objects, by kind.

use serde_json::Value;

use super::metadata;
use super::names::NameRule;
use super::problems::Problems;
use super::{
    Rules, certificates, claim, config, device, event, job, node, persistent_volume, quota, rbac,
    scope, selector_of, service, small_kinds, storage, with, with_meta, workload,
};
use crate::kinds::Kind;

pub(super) fn check(kind: &Kind, object: &Value, rules: Rules, found: &mut Problems) {
    match kind.group {
        "" => check_core(kind, object, rules, found),
        "apps" | "batch" => check_workload(kind, object, rules, found),
        _ => check_other(kind, object, found),
    }
}

fn check_core(kind: &Kind, object: &Value, rules: Rules, found: &mut Problems) {
    match kind.kind {
        "Node" => with(object, found, node::validate),
        "Namespace" => with(object, found, small_kinds::validate_namespace),
        "LimitRange" => with(object, found, quota::validate_limit_range),
        "ResourceQuota" => with(object, found, quota::validate_quota),
        "ConfigMap" => with(object, found, config::validate_config_map),
        "Secret" => with(object, found, config::validate_secret),
        "Event" => with(object, found, event::validate),
        "PersistentVolumeClaim" => with(object, found, claim::validate),
        "Service" => with(object, found, service::validate),
        "ReplicationController" => with(object, found, |o, p| {
            workload::validate_replication_controller(o, rules, p);
        }),
        "PodTemplate" => with(object, found, |o, p| {
            workload::validate_pod_template(o, rules, p);
        }),
        "PersistentVolume" => with(object, found, persistent_volume::validate),
        _ => check_metadata(kind, object, found),
    }
}

fn check_workload(kind: &Kind, object: &Value, rules: Rules, found: &mut Problems) {
    match kind.kind {
        "Deployment" => with(object, found, |o, p| {
            workload::validate_deployment(o, selector_of(object), rules, p)
        }),
        "ReplicaSet" => with(object, found, |o, p| {
            workload::validate_replica_set(o, selector_of(object), rules, p)
        }),
        "DaemonSet" => with(object, found, |o, p| {
            workload::validate_daemon_set(o, selector_of(object), rules, p)
        }),
        "StatefulSet" => with(object, found, |o, p| {
            workload::validate_stateful_set(o, selector_of(object), rules, p)
        }),
        "ControllerRevision" => with(object, found, small_kinds::validate_revision),
        "Job" => with(object, found, |o, p| job::validate(o, rules, p)),
        "CronJob" => with(object, found, |o, p| job::validate_cron_job(o, rules, p)),
        _ => check_metadata(kind, object, found),
    }
}

fn check_other(kind: &Kind, object: &Value, found: &mut Problems) {
    match (kind.group, kind.kind) {
        ("events.k8s.io", "Event") => with(object, found, event::validate_v1),
        ("storage.k8s.io", "StorageClass") => with(object, found, storage::validate_class),
        ("resource.k8s.io", "DeviceClass") => with(object, found, device::validate_class),
        ("resource.k8s.io", "ResourceClaim") => with(object, found, device::validate_claim),
        ("resource.k8s.io", "ResourceSlice") => with(object, found, device::validate_slice),
        ("storage.k8s.io", "CSIDriver") => with(object, found, storage::validate_driver),
        ("storage.k8s.io", "CSINode") => with(object, found, storage::validate_node),
        ("storage.k8s.io", "CSIStorageCapacity") => {
            with(object, found, storage::validate_capacity);
        }
        ("storage.k8s.io", "VolumeAttachment") => {
            with(object, found, storage::validate_attachment);
        }
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            with(object, found, certificates::validate);
        }
        ("coordination.k8s.io", "Lease") => with(object, found, small_kinds::validate_lease),
        ("node.k8s.io", "RuntimeClass") => with(object, found, small_kinds::validate_runtime_class),
        ("policy", "PodDisruptionBudget") => with(object, found, small_kinds::validate_budget),
        ("scheduling.k8s.io", "PriorityClass") => {
            with(object, found, small_kinds::validate_priority_class)
        }
        ("rbac.authorization.k8s.io", "Role") => with(object, found, rbac::validate_role),
        ("rbac.authorization.k8s.io", "ClusterRole") => {
            with(object, found, rbac::validate_cluster_role)
        }
        ("rbac.authorization.k8s.io", "RoleBinding") => {
            with(object, found, rbac::validate_role_binding)
        }
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => {
            with(object, found, rbac::validate_cluster_role_binding);
        }
        _ => check_metadata(kind, object, found),
    }
}

/// Kinds without rules of their own.
fn check_metadata(kind: &Kind, object: &Value, found: &mut Problems) {
    with_meta(object, found, |meta, problems| {
        metadata::check(meta, scope(kind), NameRule::Subdomain, problems);
    });
}
