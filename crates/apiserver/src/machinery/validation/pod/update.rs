//! Pod updates: few fields are mutable.

use k8s_openapi::api::core::v1::{Affinity, Container, Pod, PodSchedulingGate, PodSpec};
use plimsoll_core::problem::quoted;
use serde_json::Value;

use super::super::metadata;
use super::super::path::Path;
use super::super::problems::{Problems, json};
use super::super::text;
use super::{Rules, affinity, annotations, check_metadata_and_spec, tolerations};

const UPDATABLE: &str = "pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(in super::super) fn validate_update(
    new: &Pod,
    old: &Pod,
    rules: Rules,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    check_metadata_and_spec(new, rules, problems);
    let meta = Path::new("metadata");
    annotations::check_update(new, old, &meta.child("annotations"), problems);
    let empty = PodSpec::default();
    let new = new.spec.as_ref().unwrap_or(&empty);
    let old = old.spec.as_ref().unwrap_or(&empty);
    let path = Path::new("spec");
    let (new_init, old_init) = (init_containers(new), init_containers(old));
    let is_same_shape =
        check_containers(
            &new.containers,
            &old.containers,
            &path.child("containers"),
            problems,
        ) && check_containers(new_init, old_init, &path.child("initContainers"), problems);
    if !is_same_shape || !check_deadline(new, old, &path, problems) {
        return;
    }
    let (new_tolerations, old_tolerations) =
        (new.tolerations.as_deref(), old.tolerations.as_deref());
    tolerations::check_only_added(
        new_tolerations.unwrap_or_default(),
        old_tolerations.unwrap_or_default(),
        &path.child("tolerations"),
        problems,
    );
    check_gates(new, old, &path.child("schedulingGates"), problems);
    if new != old {
        check_rest(new, old, &path, problems);
    }
}

fn init_containers(spec: &PodSpec) -> &[Container] {
    spec.init_containers.as_deref().unwrap_or_default()
}

/// Whether the number of containers is unchanged, without which nothing else can be compared.
fn check_containers(
    new: &[Container],
    old: &[Container],
    list: &Path<'_>,
    problems: &mut Problems,
) -> bool {
    if new.len() != old.len() {
        problems.forbidden(list, "pod updates may not add or remove containers");
        return false;
    }
    for (index, container) in new.iter().enumerate() {
        let path = list.index(index);
        let image = text(&container.image);
        problems.require_text(&path.child("image"), image);
        super::containers::check_only_for_pod(container, &path, problems);
    }
    true
}

/// A deadline may be reduced, but not removed. Returns whether to check the rest.
fn check_deadline(new: &PodSpec, old: &PodSpec, path: &Path<'_>, problems: &mut Problems) -> bool {
    let path = path.child("activeDeadlineSeconds");
    match (new.active_deadline_seconds, old.active_deadline_seconds) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            problems.in_range(&path, new, 0, i32::MAX.into());
            false
        }
        (Some(new), Some(old)) if old < new => {
            problems.invalid(&path, new, "must be less than or equal to previous value");
            false
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            problems.invalid(&path, json(&()), detail);
            true
        }
        _ => true,
    }
}

fn check_gates(new: &PodSpec, old: &PodSpec, list: &Path<'_>, problems: &mut Problems) {
    let gates = |spec: &PodSpec| -> Vec<PodSchedulingGate> {
        spec.scheduling_gates.clone().unwrap_or_default()
    };
    let old = gates(old);
    for (index, gate) in gates(new)
        .iter()
        .enumerate()
        .filter(|(_, gate)| !old.contains(gate))
    {
        let name = &gate.name;
        let path = list.index(index);
        let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
        problems.forbidden(&path.child("name"), detail);
    }
}

/// Mutable fields are restored; everything else must be unchanged.
fn check_rest(new: &PodSpec, old: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let mut munged = new.clone();
    let init = munged
        .init_containers
        .iter_mut()
        .flatten()
        .zip(init_containers(old));
    for (container, old) in munged
        .containers
        .iter_mut()
        .zip(&old.containers)
        .chain(init)
    {
        container.image.clone_from(&old.image);
    }
    munged.active_deadline_seconds = old.active_deadline_seconds;
    munged.scheduling_gates.clone_from(&old.scheduling_gates);
    munged.tolerations.clone_from(&old.tolerations);
    if old
        .termination_grace_period_seconds
        .is_some_and(|seconds| seconds < 0)
        && munged.termination_grace_period_seconds == Some(1)
    {
        munged.termination_grace_period_seconds = old.termination_grace_period_seconds;
    }
    if old
        .scheduling_gates
        .as_ref()
        .is_some_and(|gates| !gates.is_empty())
    {
        restore_scheduling(&mut munged, old, path, problems);
    }
    if munged != *old {
        let changed = changed_fields(&munged, old);
        problems.forbidden(path, format!("{UPDATABLE}\n{changed}"));
    }
}

/// The scheduling constraints of a gated pod may still be narrowed.
fn restore_scheduling(
    munged: &mut PodSpec,
    old: &PodSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if munged.node_selector != old.node_selector {
        affinity::check_node_selector_additions(
            munged.node_selector.as_ref(),
            old.node_selector.as_ref(),
            &path.child("nodeSelector"),
            problems,
        );
        munged.node_selector.clone_from(&old.node_selector);
    }
    let old_affinity = old.affinity.as_ref().and_then(|a| a.node_affinity.clone());
    let new_affinity = munged
        .affinity
        .as_ref()
        .and_then(|a| a.node_affinity.clone());
    if old_affinity == new_affinity {
        return;
    }
    let affinity_path = path.child("affinity");
    affinity::check_node_affinity_additions(
        new_affinity.as_ref(),
        old_affinity.as_ref(),
        &affinity_path.child("nodeAffinity"),
        problems,
    );
    let restored = Affinity {
        node_affinity: old_affinity,
        ..munged.affinity.take().unwrap_or_default()
    };
    let is_empty = restored == Affinity::default();
    munged.affinity = (!is_empty || old.affinity.is_some()).then_some(restored);
}

/// The paths of the differences, one per line, for people.
fn changed_fields(new: &PodSpec, old: &PodSpec) -> String {
    let as_value = |spec: &PodSpec| serde_json::to_value(spec).unwrap_or_default();
    let mut lines = Vec::new();
    collect_changes("spec", &as_value(old), &as_value(new), &mut lines);
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn collect_changes(path: &str, old: &Value, new: &Value, lines: &mut Vec<String>) {
    match (old, new) {
        _ if old == new => {}
        (Value::Object(before), Value::Object(after)) => {
            let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let path = format!("{path}.{key}");
                collect_changes(&path, &old[key], &new[key], lines);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (index, (old, new)) in before.iter().zip(after).enumerate() {
                collect_changes(&format!("{path}[{index}]"), old, new, lines);
            }
        }
        _ => lines.push(format!(" {path}: {old} -> {new}")),
    }
}

/// Ephemeral containers can only be added.
pub(in super::super) fn validate_ephemeral_containers_update(
    new: &Pod,
    old: &Pod,
    rules: Rules,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    check_metadata_and_spec(new, rules, problems);
    let meta = Path::new("metadata");
    annotations::check_update(new, old, &meta.child("annotations"), problems);
    let before = old.metadata.annotations.as_ref();
    if before.is_some_and(|before| before.contains_key(annotations::MIRROR)) {
        problems.truncate_to(0);
        return problems.forbidden(
            &Path::ROOT,
            "static pods do not support ephemeral containers",
        );
    }
    let list = |pod: &Pod| {
        let spec = pod.spec.clone().unwrap_or_default();
        spec.ephemeral_containers.unwrap_or_default()
    };
    let spec = Path::new("spec");
    let path = spec.child("ephemeralContainers");
    let new = list(new);
    for old in list(old) {
        let name = quoted(&old.name);
        match new.iter().rfind(|new| new.name == old.name) {
            None => {
                let detail = format!("existing ephemeral containers {name} may not be removed\n");
                problems.forbidden(&path, detail);
            }
            Some(new) if *new != old => {
                let detail = format!("existing ephemeral containers {name} may not be changed\n");
                problems.forbidden(&path, detail);
            }
            Some(_) => {}
        }
    }
}
