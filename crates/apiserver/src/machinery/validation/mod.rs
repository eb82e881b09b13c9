//! Validation of new and updated objects.
//!
//! Rules are typed and follow upstream's order, so that the problems of an object are in upstream's
//! order. Objects are decoded, defaulted and prepared by their strategy. Relaxations that upstream
//! grants to objects stored by older releases are left out: no object here is older than its rules.
//!
//! Reading order: [`path`] and [`problems`] (how problems are reported), `names`, `metadata`,
//! `selector`, `address`, `file_path`, `signer` (formats), then one file per kind or family: `pod`
//! and `workload`, `job`, `node`, `service`, `quota`, `config`, `persistent_volume`, `claim`,
//! `storage`, `device`, `rbac`, `event`, `certificates`, `small_kinds`; finally `created` and
//! `updated`, which select the rules of each kind.

mod address;
mod certificates;
mod claim;
mod config;
mod created;
mod device;
mod event;
mod file_path;
mod internal;
mod job;
mod metadata;
mod names;
mod node;
pub mod path;
mod persistent_volume;
mod pod;
pub mod problems;
mod quota;
mod rbac;
mod selector;
mod service;
mod signer;
mod small_kinds;
mod storage;
mod updated;
mod warnings;
mod workload;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plimsoll_core::problem::Problem;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::kinds::Kind;

use metadata::Scope;
use names::NameRule;
use path::Path;
use problems::Problems;

use updated::Change;
use warnings::warnings_on_create;

pub use warnings::warnings_on_update;

/// Capabilities of the cluster that affect validation.
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

/// The part of an object that a request updates.
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
    /// The number of replicas, which is sent as a Scale.
    Scale,
    /// The approval of a certificate signing request.
    Approval,
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
            Part::Approval => "approval",
        }
    }
}

/// The text, empty if it is absent, as in Go.
fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}

/// The result of validation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The errors.
    pub problems: Vec<Problem>,
    /// The warnings; not computed if there are errors.
    pub warnings: Vec<String>,
}

/// Validates a new object. Pods are decoded once for errors and warnings: they are the
/// objects that are created most.
pub fn check_create(kind: &Kind, object: &Value, rules: Rules) -> Verdict {
    if (kind.group, kind.kind) == ("", "Pod")
        && let Ok(pod) = Pod::deserialize(object)
    {
        let mut problems = Problems::default();
        pod::validate(&pod, rules, &mut problems);
        if problems.is_empty() {
            metadata::check_common(&pod.metadata, scope(kind), &mut problems);
        }
        let warnings = if problems.is_empty() {
            warnings::pod_warnings(&pod)
        } else {
            Vec::new()
        };
        return Verdict {
            problems: problems.into_vec(),
            warnings,
        };
    }
    let problems = validate_create(kind, object, rules);
    let warnings = if problems.is_empty() {
        warnings_on_create(kind, object)
    } else {
        Vec::new()
    };
    Verdict { problems, warnings }
}

/// The errors of a new object.
fn validate_create(kind: &Kind, object: &Value, rules: Rules) -> Vec<Problem> {
    let mut problems = Problems::default();
    let found = &mut problems;
    created::check(kind, object, rules, found);
    if problems.is_empty() {
        // For every kind, a name must be valid in a path.
        with_meta(object, &mut problems, |meta, p| {
            metadata::check_common(meta, scope(kind), p);
        });
    }
    problems.into_vec()
}

/// The errors of an updated object.
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
    let change = Change {
        kind,
        part,
        new,
        old,
        metas: (&metas.0, &metas.1),
        rules,
    };
    updated::check(change, found);
    problems.into_vec()
}

/// The errors of the scale of an object.
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

/// Decodes the object by its type. After decoding the body this succeeds.
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
    ObjectMeta::deserialize(&object["metadata"]).unwrap_or_default()
}
