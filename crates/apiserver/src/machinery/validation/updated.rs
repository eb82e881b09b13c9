//! The rules for updated objects, by kind.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::metadata::{self, Scope};
use super::names::NameRule;
use super::problems::Problems;
use super::{
    Part, Rules, certificates, claim, config, device, event, job, node, persistent_volume, pod,
    quota, rbac, selector_of, service, small_kinds, storage, with, with_both, workload,
};
use crate::kinds::Kind;

/// An updated object and the one before.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) kind: &'a Kind,
    pub(super) part: Part,
    pub(super) new: &'a Value,
    pub(super) old: &'a Value,
    /// The metadata of both.
    pub(super) metas: (&'a ObjectMeta, &'a ObjectMeta),
    pub(super) rules: Rules,
}

pub(super) fn check(change: Change<'_>, found: &mut Problems) {
    match change.kind.group {
        "" => check_core(change, found),
        "apps" | "batch" => check_workload(change, found),
        _ => check_other(change, found),
    }
}

fn check_core(change: Change<'_>, found: &mut Problems) {
    let Change {
        new,
        old,
        metas,
        rules,
        ..
    } = change;
    match (change.kind.kind, change.part) {
        ("Pod", Part::Status) => with_both(new, old, found, pod::validate_status_update),
        ("Pod", Part::Resize) => {
            with_both(new, old, found, |n, o, p| {
                pod::validate_resize(n, o, rules, p)
            });
        }
        ("Pod", Part::EphemeralContainers) => with_both(new, old, found, |n, o, p| {
            pod::validate_ephemeral_containers_update(n, o, rules, p);
        }),
        ("Pod", _) => with_both(new, old, found, |n, o, p| {
            pod::validate_update(n, o, rules, p)
        }),
        ("Node", part) => {
            with_both(new, old, found, |n, o, p| {
                node::validate_update(n, o, part, p)
            });
        }
        ("Namespace", part) => {
            with_both(new, old, found, |n, o, p| {
                small_kinds::validate_namespace_update(n, o, part, p)
            });
        }
        ("LimitRange", _) => with_both(new, old, found, quota::validate_limit_range_update),
        ("ResourceQuota", part) => {
            with_both(new, old, found, |n, o, p| {
                quota::validate_quota_update(n, o, part, p)
            });
        }
        ("ConfigMap", _) => with_both(new, old, found, config::validate_config_map_update),
        ("Secret", _) => with_both(new, old, found, config::validate_secret_update),
        ("ServiceAccount", _) => {
            metadata::check_update(metas.0, metas.1, found);
            metadata::check(metas.0, Scope::Namespaced, NameRule::Subdomain, found);
        }
        ("Event", _) => with(new, found, event::validate),
        ("Service", Part::Status) => {
            with_both(new, old, found, service::validate_status_update);
        }
        ("Service", _) => with_both(new, old, found, service::validate_update),
        ("ReplicationController", part) => with_both(new, old, found, |n, o, p| {
            workload::validate_replication_controller_update(n, o, part, rules, p);
        }),
        ("PodTemplate", _) => with_both(new, old, found, |n, o, p| {
            workload::validate_pod_template_update(n, o, rules, p);
        }),
        ("PersistentVolumeClaim", Part::Status) => {
            with_both(new, old, found, claim::validate_status_update);
        }
        ("PersistentVolumeClaim", _) => with_both(new, old, found, claim::validate_update),
        ("PersistentVolume", part) if part != Part::Status => {
            with_both(new, old, found, persistent_volume::validate_update);
        }
        _ => metadata::check_update(metas.0, metas.1, found),
    }
}

fn check_workload(change: Change<'_>, found: &mut Problems) {
    let Change {
        new,
        old,
        metas,
        rules,
        ..
    } = change;
    match (change.kind.kind, change.part) {
        ("Deployment", part) => with_both(new, old, found, |n, o, p| {
            workload::validate_deployment_update(n, o, part, selector_of(new), rules, p);
        }),
        ("ReplicaSet", part) => with_both(new, old, found, |n, o, p| {
            workload::validate_replica_set_update(n, o, part, selector_of(new), rules, p);
        }),
        ("DaemonSet", part) => with_both(new, old, found, |n, o, p| {
            workload::validate_daemon_set_update(n, o, part, selector_of(new), rules, p);
        }),
        ("StatefulSet", part) => with_both(new, old, found, |n, o, p| {
            workload::validate_stateful_set_update(n, o, part, selector_of(new), rules, p);
        }),
        ("ControllerRevision", _) => {
            with_both(new, old, found, small_kinds::validate_revision_update);
        }
        ("Job", part) => {
            with_both(new, old, found, |n, o, p| {
                job::validate_update(n, o, part, rules, p)
            });
        }
        ("CronJob", Part::Status) => {}
        ("CronJob", _) => {
            with_both(new, old, found, |n, o, p| {
                job::validate_cron_job_update(n, o, rules, p)
            });
        }
        _ => metadata::check_update(metas.0, metas.1, found),
    }
}

fn check_other(change: Change<'_>, found: &mut Problems) {
    let Change {
        new, old, metas, ..
    } = change;
    match (change.kind.group, change.kind.kind, change.part) {
        ("events.k8s.io", "Event", _) => with_both(new, old, found, event::validate_v1_update),
        ("resource.k8s.io", "DeviceClass", _) => {
            with_both(new, old, found, device::validate_class_update);
        }
        ("resource.k8s.io", "ResourceClaim", Part::Status) => {
            with_both(new, old, found, device::validate_claim_status_update);
        }
        ("resource.k8s.io", "ResourceClaim", _) => {
            with_both(new, old, found, device::validate_claim_update);
        }
        ("resource.k8s.io", "ResourceSlice", _) => {
            with_both(new, old, found, device::validate_slice_update);
        }
        ("storage.k8s.io", "StorageClass", _) => {
            with_both(new, old, found, storage::validate_class_update);
        }
        ("storage.k8s.io", "CSIDriver", _) => {
            with_both(new, old, found, storage::validate_driver_update);
        }
        ("storage.k8s.io", "CSINode", _) => {
            with_both(new, old, found, storage::validate_node_update);
        }
        ("storage.k8s.io", "CSIStorageCapacity", _) => {
            with_both(new, old, found, storage::validate_capacity_update);
        }
        ("storage.k8s.io", "VolumeAttachment", _) => {
            with_both(new, old, found, storage::validate_attachment_update);
        }
        ("certificates.k8s.io", "CertificateSigningRequest", part) => {
            with_both(new, old, found, |n, o, p| {
                certificates::validate_update(n, o, part, p);
            });
        }
        ("coordination.k8s.io", "Lease", _) => {
            with_both(new, old, found, small_kinds::validate_lease_update)
        }
        ("node.k8s.io", "RuntimeClass", _) => {
            with_both(new, old, found, small_kinds::validate_runtime_class_update);
        }
        ("policy", "PodDisruptionBudget", part) => {
            with_both(new, old, found, |n, o, p| {
                small_kinds::validate_budget_update(n, o, part, p)
            });
        }
        ("scheduling.k8s.io", "PriorityClass", _) => {
            with_both(new, old, found, small_kinds::validate_priority_class_update);
        }
        ("rbac.authorization.k8s.io", "Role", _) => {
            with_both(new, old, found, rbac::validate_role_update)
        }
        ("rbac.authorization.k8s.io", "ClusterRole", _) => {
            with_both(new, old, found, rbac::validate_cluster_role_update);
        }
        ("rbac.authorization.k8s.io", "RoleBinding", _) => {
            with_both(new, old, found, rbac::validate_role_binding_update);
        }
        ("rbac.authorization.k8s.io", "ClusterRoleBinding", _) => {
            with_both(new, old, found, rbac::validate_cluster_role_binding_update);
        }
        _ => metadata::check_update(metas.0, metas.1, found),
    }
}
