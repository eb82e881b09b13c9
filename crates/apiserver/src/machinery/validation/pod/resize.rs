//! Pod resize: the cpu and memory of its containers.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use plimsoll_core::object::pod::PodView;

use super::super::metadata;
use super::super::path::Path;
use super::super::problems::{Problems, json};
use super::containers::is_sidecar;
use super::{Rules, annotations, check_metadata_and_spec};

type List = BTreeMap<String, Quantity>;

const ONLY_CPU_AND_MEMORY: &str = "only cpu and memory resources are mutable";

pub(in super::super) fn validate_resize(
    new: &Pod,
    old: &Pod,
    rules: Rules,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    check_metadata_and_spec(new, rules, problems);
    let empty = PodSpec::default();
    let new_spec = new.spec.as_ref().unwrap_or(&empty);
    let old_spec = old.spec.as_ref().unwrap_or(&empty);
    if let Some(refusal) = refused_as_a_whole(old, old_spec) {
        problems.truncate_to(0);
        return problems.forbidden(&Path::ROOT, refusal);
    }
    let path = Path::new("spec");
    check_qos(new, old, &path, problems);
    if !is_supported_by_node(old) {
        problems.forbidden(&path, "Pod running on node without support for resize");
    }
    let mut munged = new_spec.clone();
    if has_resources(old_spec) || has_resources(new_spec) {
        check_pod_level(new_spec, old_spec, &mut munged, &path, problems);
    }
    if !check_order(new_spec, old_spec, &path, problems) {
        return;
    }
    check_nothing_removed(new_spec, old_spec, &path, problems);
    restore_containers(&mut munged, old_spec, &path, problems);
    if problems.is_empty() && munged != *old_spec {
        problems.forbidden(&path, ONLY_CPU_AND_MEMORY);
    }
}

fn refused_as_a_whole(old: &Pod, spec: &PodSpec) -> Option<&'static str> {
    let annotations = old.metadata.annotations.as_ref();
    if annotations.is_some_and(|a| a.contains_key(annotations::MIRROR)) {
        return Some("static pods cannot be resized");
    }
    let is_windows = spec.os.as_ref().is_some_and(|os| os.name == "windows");
    is_windows.then_some("windows pods cannot be resized")
}

fn check_qos(new: &Pod, old: &Pod, path: &Path<'_>, problems: &mut Problems) {
    let (Ok(before), Ok(after)) = (PodView::from_api(old), PodView::from_api(new)) else {
        return;
    };
    if before.qos_class() != after.compute_qos_class() {
        // The error shows the class in the status, which a resize does not change.
        let shown = new
            .status
            .as_ref()
            .and_then(|status| status.qos_class.as_deref());
        let detail = "Pod QOS Class may not change as a result of resizing";
        problems.invalid(path, json(&shown.unwrap_or_default()), detail);
    }
}

/// The first running container shows whether its node reports resources.
fn is_supported_by_node(old: &Pod) -> bool {
    let statuses = old
        .status
        .iter()
        .flat_map(|s| s.container_statuses.iter().flatten());
    let mut running = statuses.filter(|s| {
        s.state
            .as_ref()
            .is_some_and(|state| state.running.is_some())
    });
    running
        .next()
        .is_none_or(|status| status.resources.is_some())
}

fn has_resources(spec: &PodSpec) -> bool {
    let count = |list: &Option<List>| list.as_ref().map_or(0, BTreeMap::len);
    spec.resources
        .as_ref()
        .is_some_and(|r| count(&r.requests) + count(&r.limits) > 0)
}

fn check_pod_level(
    new: &PodSpec,
    old: &PodSpec,
    munged: &mut PodSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let resources = path.child("resources");
    if let Some(before) = &old.resources {
        let Some(after) = &new.resources else {
            return problems.forbidden(&resources, "pod-level resources cannot be removed");
        };
        if is_any_removed(&after.requests, &before.requests) {
            let detail = "pod-level resource requests cannot be removed";
            problems.forbidden(&resources.child("requests"), detail);
        }
        if is_any_removed(&after.limits, &before.limits) {
            let detail = "pod-level resource limits cannot be removed";
            problems.forbidden(&resources.child("limits"), detail);
        }
    }
    munged.resources = munged.resources.take().and_then(|mut after| {
        let before = old.resources.clone().unwrap_or_default();
        restore_lists(&mut after, &before);
        let is_empty = after == ResourceRequirements::default();
        (old.resources.is_some() || !is_empty).then_some(after)
    });
    if munged.resources != old.resources {
        let detail = "only cpu and memory resources are mutable at pod-level";
        problems.forbidden(path, detail);
    }
}

/// Whether the containers are the same ones in the same order.
fn check_order(new: &PodSpec, old: &PodSpec, path: &Path<'_>, problems: &mut Problems) -> bool {
    let known = problems.len();
    let init = |spec: &PodSpec| spec.init_containers.clone().unwrap_or_default();
    for (field, new, old) in [
        ("containers", new.containers.clone(), &old.containers),
        ("initContainers", init(new), &init(old)),
    ] {
        let list = path.child(field);
        if new.len() != old.len() {
            problems.forbidden(
                &list,
                format!("{field} may not be added or removed on resize"),
            );
            continue;
        }
        for (index, _) in new
            .iter()
            .zip(old)
            .enumerate()
            .filter(|(_, (n, o))| n.name != o.name)
        {
            let path = list.index(index);
            let detail = format!("{field} may not be renamed or reordered on resize");
            problems.forbidden(&path.child("name"), detail);
        }
    }
    problems.len() == known
}

fn check_nothing_removed(new: &PodSpec, old: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let init = |spec: &PodSpec| spec.init_containers.clone().unwrap_or_default();
    for (field, new, old) in [
        ("initContainers", init(new), init(old)),
        ("containers", new.containers.clone(), old.containers.clone()),
    ] {
        let list = path.child(field);
        for (index, (new, old)) in new.iter().zip(&old).enumerate() {
            let (new, old) = (requirements(new), requirements(old));
            let container = list.index(index);
            let path = container.child("resources");
            if is_any_removed(&new.requests, &old.requests) {
                problems.forbidden(
                    &path.child("requests"),
                    "resource requests cannot be removed",
                );
            }
            if is_any_removed(&new.limits, &old.limits) {
                problems.forbidden(&path.child("limits"), "resource limits cannot be removed");
            }
        }
    }
}

fn requirements(container: &Container) -> ResourceRequirements {
    container.resources.clone().unwrap_or_default()
}

fn is_any_removed(new: &Option<List>, old: &Option<List>) -> bool {
    let has = |name: &String| new.as_ref().is_some_and(|new| new.contains_key(name));
    !old.iter().flatten().all(|(name, _)| has(name))
}

/// Restores the cpu and memory of all containers; everything else must be unchanged.
fn restore_containers(
    munged: &mut PodSpec,
    old: &PodSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    for (container, old) in munged.containers.iter_mut().zip(&old.containers) {
        restore(container, old);
        if container != old {
            problems.forbidden(path, ONLY_CPU_AND_MEMORY);
        }
    }
    let list = path.child("initContainers");
    let old_init = old.init_containers.as_deref().unwrap_or_default();
    let init = munged
        .init_containers
        .iter_mut()
        .flatten()
        .zip(old_init)
        .enumerate();
    for (index, (container, old)) in init {
        let is_changed = container != old;
        restore(container, old);
        let path = list.index(index);
        if container != old {
            let detail = "only cpu and memory resources for init or sidecar containers are mutable";
            problems.forbidden(&path, detail);
        }
        let policies = container.resize_policy.iter().flatten();
        let restarts = policies.filter(|policy| policy.restart_policy == "RestartContainer");
        if is_changed && !is_sidecar(container) {
            for _ in restarts {
                let detail = "non-sidecar init containers with a resize policy of RestartContainer \
                              cannot be resized";
                problems.forbidden(&path, detail);
            }
        }
    }
}

fn restore(container: &mut Container, old: &Container) {
    let before = requirements(old);
    let mut after = requirements(container);
    restore_lists(&mut after, &before);
    // Upstream loses the claims here, so pods with claims cannot be resized.
    after.claims = None;
    let is_absent = old.resources.is_none() && after == ResourceRequirements::default();
    container.resources = (!is_absent).then_some(after);
}

fn restore_lists(resources: &mut ResourceRequirements, old: &ResourceRequirements) {
    for (list, old) in [
        (&mut resources.requests, &old.requests),
        (&mut resources.limits, &old.limits),
    ] {
        let mut restored = list.take().unwrap_or_default();
        for name in ["cpu", "memory"] {
            restored.remove(name);
            if let Some(quantity) = old.as_ref().and_then(|old| old.get(name)) {
                restored.insert(name.to_owned(), quantity.clone());
            }
        }
        *list = (!restored.is_empty()).then_some(restored);
    }
}
