//! What the API has against new and changed objects.
//!
//! Rules are typed and follow upstream's order, so that the problems of an object read as upstream
//! lists them. Objects come decoded, defaulted and prepared by their strategy. Relaxations that
//! upstream grants to objects stored by older releases are left out: no object here is older than
//! its rules.
//!
//! Reading order: [`path`] and [`problems`] (how problems are said), `names`, `metadata`,
//! `selector`, `address`, `file_path`, `signer` (what texts may look like), then one file per kind or
//! family: `pod` and `workload`, `job`, `node`, `quota`, `config`, `rbac`, `event`, `small_kinds`.

mod address;
mod claim;
mod config;
mod event;
mod file_path;
mod internal;
mod job;
mod metadata;
mod names;
mod node;
pub mod path;
mod pod;
pub mod problems;
mod quota;
mod rbac;
mod schedule;
mod selector;
mod signer;
mod small_kinds;
mod warnings;
mod workload;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plimsoll_core::problem::Problem;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::kinds::Kind;

use metadata::Scope;
use names::NameRule;
use path::Path;
use problems::Problems;

pub use warnings::{warnings_on_create, warnings_on_update};

/// What a cluster allows beyond what the API means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether containers may be privileged (`--allow-privileged`).
    pub allows_privileged: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            allows_privileged: true,
        }
    }
}

/// Which part of an object a request is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// All but the status.
    #[default]
    Main,
    /// The status.
    Status,
    /// The resources of a pod's containers.
    Resize,
    /// The ephemeral containers of a pod.
    EphemeralContainers,
    /// The finalizers of a namespace.
    Finalize,
    /// The number of replicas, which is sent as a kind of its own.
    Scale,
}

impl Part {
    /// Its name in paths, empty for the object itself.
    pub fn subresource(self) -> &'static str {
        match self {
            Part::Main => "",
            Part::Status => "status",
            Part::Resize => "resize",
            Part::EphemeralContainers => "ephemeralcontainers",
            Part::Finalize => "finalize",
            Part::Scale => "scale",
        }
    }
}

/// The text, empty where there is none, as Go has it.
fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}

/// What is wrong with a new object.
pub fn validate_create(kind: &Kind, object: &Value, rules: Rules) -> Vec<Problem> {
    let mut problems = Problems::default();
    let found = &mut problems;
    match (kind.group, kind.kind) {
        ("", "Pod") => with(object, found, |o, p| pod::validate(o, rules, p)),
        ("", "Node") => with(object, found, node::validate),
        ("", "Namespace") => with(object, found, small_kinds::validate_namespace),
        ("", "LimitRange") => with(object, found, quota::validate_limit_range),
        ("", "ResourceQuota") => with(object, found, quota::validate_quota),
        ("", "ConfigMap") => with(object, found, config::validate_config_map),
        ("", "Secret") => with(object, found, config::validate_secret),
        ("", "Event") => with(object, found, event::validate),
        ("events.k8s.io", "Event") => with(object, found, event::validate_v1),
        ("", "PersistentVolumeClaim") => with(object, found, claim::validate),
        ("apps", "Deployment") => with(object, found, |o, p| {
            workload::validate_deployment(o, selector_of(object), rules, p)
        }),
        ("apps", "ReplicaSet") => with(object, found, |o, p| {
            workload::validate_replica_set(o, selector_of(object), rules, p)
        }),
        ("apps", "DaemonSet") => with(object, found, |o, p| {
            workload::validate_daemon_set(o, selector_of(object), rules, p)
        }),
        ("apps", "StatefulSet") => with(object, found, |o, p| {
            workload::validate_stateful_set(o, selector_of(object), rules, p)
        }),
        ("apps", "ControllerRevision") => with(object, found, small_kinds::validate_revision),
        ("batch", "Job") => with(object, found, |o, p| job::validate(o, rules, p)),
        ("batch", "CronJob") => with(object, found, |o, p| job::validate_cron_job(o, rules, p)),
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
        _ => with_meta(object, found, |meta, p| {
            metadata::check(meta, scope(kind), NameRule::Subdomain, p);
        }),
    }
    if problems.is_empty() {
        // Whatever its kind says, a name must be able to stand in a path.
        with_meta(object, &mut problems, |meta, p| {
            metadata::check_common(meta, scope(kind), p);
        });
    }
    problems.into_vec()
}

/// What is wrong with a changed object.
pub fn validate_update(
    kind: &Kind,
    part: Part,
    new: &Value,
    old: &Value,
    rules: Rules,
) -> Vec<Problem> {
    let mut problems = Problems::default();
    let found = &mut problems;
    let metas = (meta_of(new), meta_of(old));
    metadata::check_common(&metas.0, scope(kind), found);
    metadata::check_common_update(&metas.0, &metas.1, found);
    match (kind.group, kind.kind, part) {
        ("", "Pod", Part::Status) => with_both(new, old, found, pod::validate_status_update),
        ("", "Pod", Part::Resize) => {
            with_both(new, old, found, |n, o, p| {
                pod::validate_resize(n, o, rules, p)
            });
        }
        ("", "Pod", Part::EphemeralContainers) => with_both(new, old, found, |n, o, p| {
            pod::validate_ephemeral_containers_update(n, o, rules, p);
        }),
        ("", "Pod", _) => with_both(new, old, found, |n, o, p| {
            pod::validate_update(n, o, rules, p)
        }),
        ("", "Node", part) => {
            with_both(new, old, found, |n, o, p| {
                node::validate_update(n, o, part, p)
            });
        }
        ("", "Namespace", part) => {
            with_both(new, old, found, |n, o, p| {
                small_kinds::validate_namespace_update(n, o, part, p)
            });
        }
        ("", "LimitRange", _) => with_both(new, old, found, quota::validate_limit_range_update),
        ("", "ResourceQuota", part) => {
            with_both(new, old, found, |n, o, p| {
                quota::validate_quota_update(n, o, part, p)
            });
        }
        ("", "ConfigMap", _) => with_both(new, old, found, config::validate_config_map_update),
        ("", "Secret", _) => with_both(new, old, found, config::validate_secret_update),
        ("", "ServiceAccount", _) => {
            metadata::check_update(&metas.0, &metas.1, found);
            metadata::check(&metas.0, Scope::Namespaced, NameRule::Subdomain, found);
        }
        ("", "Event", _) => with(new, found, event::validate),
        ("events.k8s.io", "Event", _) => with_both(new, old, found, event::validate_v1_update),
        ("apps", "Deployment", part) => with_both(new, old, found, |n, o, p| {
            workload::validate_deployment_update(n, o, part, selector_of(new), rules, p);
        }),
        ("apps", "ReplicaSet", part) => with_both(new, old, found, |n, o, p| {
            workload::validate_replica_set_update(n, o, part, selector_of(new), rules, p);
        }),
        ("apps", "DaemonSet", part) => with_both(new, old, found, |n, o, p| {
            workload::validate_daemon_set_update(n, o, part, selector_of(new), rules, p);
        }),
        ("apps", "StatefulSet", part) => with_both(new, old, found, |n, o, p| {
            workload::validate_stateful_set_update(n, o, part, selector_of(new), rules, p);
        }),
        ("apps", "ControllerRevision", _) => {
            with_both(new, old, found, small_kinds::validate_revision_update);
        }
        ("batch", "Job", part) => {
            with_both(new, old, found, |n, o, p| {
                job::validate_update(n, o, part, rules, p)
            });
        }
        ("batch", "CronJob", Part::Status) => {}
        ("batch", "CronJob", _) => {
            with_both(new, old, found, |n, o, p| {
                job::validate_cron_job_update(n, o, rules, p)
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
        _ => metadata::check_update(&metas.0, &metas.1, found),
    }
    problems.into_vec()
}

/// What is wrong with the scale of an object.
pub fn validate_scale(scale: &Value) -> Vec<Problem> {
    let mut problems = Problems::default();
    let meta = meta_of(scale);
    metadata::check(&meta, Scope::Namespaced, NameRule::Subdomain, &mut problems);
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or_default();
    let path = Path::new("spec");
    problems.nonnegative(&path.child("replicas"), replicas);
    problems.into_vec()
}

fn scope(kind: &Kind) -> Scope {
    if kind.is_namespaced() {
        Scope::Namespaced
    } else {
        Scope::Cluster
    }
}

/// Reads the object by its type. The decoder has made sure that this succeeds.
fn with<T: DeserializeOwned>(
    object: &Value,
    problems: &mut Problems,
    check: impl FnOnce(&T, &mut Problems),
) {
    match T::deserialize(object) {
        Ok(typed) => check(&typed, problems),
        Err(error) => problems.internal(&Path::ROOT, error.to_string()),
    }
}

fn with_both<T: DeserializeOwned>(
    new: &Value,
    old: &Value,
    problems: &mut Problems,
    check: impl FnOnce(&T, &T, &mut Problems),
) {
    match (T::deserialize(new), T::deserialize(old)) {
        (Ok(new), Ok(old)) => check(&new, &old, problems),
        (Err(error), _) | (_, Err(error)) => problems.internal(&Path::ROOT, error.to_string()),
    }
}

fn with_meta(
    object: &Value,
    problems: &mut Problems,
    check: impl FnOnce(&ObjectMeta, &mut Problems),
) {
    check(&meta_of(object), problems);
}

fn selector_of(object: &Value) -> workload::Selector {
    if object["spec"]["selector"].is_object() {
        workload::Selector::Given
    } else {
        workload::Selector::Missing
    }
}

fn meta_of(object: &Value) -> ObjectMeta {
    serde::Deserialize::deserialize(&object["metadata"]).unwrap_or_default()
}
