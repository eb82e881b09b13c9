//! Job updates.

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{Affinity, PodSpec, PodTemplateSpec};

use super::super::metadata;
use super::super::path::Path;
use super::super::problems::{FIELD_IS_IMMUTABLE, Problems, api, json};
use super::super::{Part, Rules};
use super::status::{check_status, is_true};
use super::{check_spec_with_selector, is_indexed, validate};

pub(in super::super) fn validate_update(
    new: &Job,
    old: &Job,
    part: Part,
    rules: Rules,
    problems: &mut Problems,
) {
    if part == Part::Status {
        metadata::check_update(&new.metadata, &old.metadata, problems);
        return check_status(new, old, problems);
    }
    validate(new, rules, problems);
    metadata::check_update(&new.metadata, &old.metadata, problems);
    let (spec, old_spec) = (
        new.spec.clone().unwrap_or_default(),
        old.spec.clone().unwrap_or_default(),
    );
    check_spec_with_selector(&spec, rules, problems);
    let path = Path::new("spec");
    check_completions(&spec, &old_spec, &path.child("completions"), problems);
    if spec.selector != old_spec.selector {
        let shown = api("meta.LabelSelector", &spec.selector);
        problems.invalid(&path.child("selector"), shown, FIELD_IS_IMMUTABLE);
    }
    check_template_update(&spec, &old_spec, old, &path, problems);
    problems.immutable(
        &path.child("completionMode"),
        &spec.completion_mode,
        &old_spec.completion_mode,
    );
    problems.immutable(
        &path.child("podFailurePolicy"),
        &spec.pod_failure_policy,
        &old_spec.pod_failure_policy,
    );
    problems.immutable(
        &path.child("backoffLimitPerIndex"),
        &spec.backoff_limit_per_index,
        &old_spec.backoff_limit_per_index,
    );
    problems.immutable(
        &path.child("managedBy"),
        &spec.managed_by,
        &old_spec.managed_by,
    );
    problems.immutable(
        &path.child("successPolicy"),
        &spec.success_policy,
        &old_spec.success_policy,
    );
}

fn check_completions(spec: &JobSpec, old: &JobSpec, path: &Path<'_>, problems: &mut Problems) {
    if !is_indexed(spec) {
        return problems.immutable(path, &spec.completions, &old.completions);
    }
    let is_changed = spec.completions != old.completions;
    if let Some(completions) = spec.completions.filter(|_| is_changed)
        && Some(completions) != spec.parallelism
    {
        let detail = "can only be modified in tandem with spec.parallelism";
        problems.invalid(path, json(&completions), detail);
    }
}

/// The scheduling constraints and resources of a suspended job may still change.
fn check_template_update(
    spec: &JobSpec,
    old_spec: &JobSpec,
    old: &Job,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let status = old.status.clone().unwrap_or_default();
    let is_suspended = old_spec.suspend == Some(true);
    let is_idle = is_suspended && (is_true(&status, "Suspended") || status.start_time.is_none());
    let mut expected = old_spec.template.clone();
    if is_idle {
        allow_scheduling_directives(&mut expected, &spec.template);
        allow_resources(&mut expected, &spec.template);
    }
    if spec.template != expected {
        let shown = api("core.PodTemplateSpec", &spec.template);
        problems.invalid(&path.child("template"), shown, FIELD_IS_IMMUTABLE);
    }
}

fn allow_scheduling_directives(expected: &mut PodTemplateSpec, new: &PodTemplateSpec) {
    let (pod, new_pod) = (
        expected.spec.get_or_insert_default(),
        new.spec.clone().unwrap_or_default(),
    );
    let node_affinity = new_pod
        .affinity
        .as_ref()
        .and_then(|a| a.node_affinity.clone());
    let restored = Affinity {
        node_affinity,
        ..pod.affinity.take().unwrap_or_default()
    };
    let is_empty = restored == Affinity::default();
    pod.affinity = (!is_empty || new_pod.affinity.is_some()).then_some(restored);
    pod.node_selector = new_pod.node_selector;
    pod.tolerations = new_pod.tolerations;
    pod.scheduling_gates = new_pod.scheduling_gates;
    let meta = expected.metadata.get_or_insert_default();
    let new_meta = new.metadata.clone().unwrap_or_default();
    meta.annotations = new_meta.annotations;
    meta.labels = new_meta.labels;
}

fn allow_resources(expected: &mut PodTemplateSpec, new: &PodTemplateSpec) {
    let empty = PodSpec::default();
    let new = new.spec.as_ref().unwrap_or(&empty);
    let pod = expected.spec.get_or_insert_default();
    let init = pod.init_containers.iter_mut().flatten();
    let new_init = new.init_containers.iter().flatten();
    let pairs = pod
        .containers
        .iter_mut()
        .zip(&new.containers)
        .chain(init.zip(new_init));
    for (container, new) in pairs.filter(|(container, new)| container.name == new.name) {
        container.resources.clone_from(&new.resources);
    }
}
