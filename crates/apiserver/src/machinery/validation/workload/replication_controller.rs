//! ReplicationControllers.

use k8s_openapi::api::core::v1::{ReplicationController, ReplicationControllerSpec};
use plimsoll_core::object::selector::LabelSelector;

use super::{check_counts, check_labels_match, check_not_above, check_runs_always};
use crate::machinery::validation::metadata::{self, Scope};
use crate::machinery::validation::names::NameRule;
use crate::machinery::validation::path::Path;
use crate::machinery::validation::problems::Problems;
use crate::machinery::validation::{Part, Rules, pod};

pub(in super::super) fn validate_replication_controller(
    controller: &ReplicationController,
    rules: Rules,
    problems: &mut Problems,
) {
    let meta = &controller.metadata;
    metadata::check(meta, Scope::Namespaced, NameRule::Subdomain, problems);
    check_spec(
        &controller.spec.clone().unwrap_or_default(),
        rules,
        problems,
    );
}

pub(in super::super) fn validate_replication_controller_update(
    new: &ReplicationController,
    old: &ReplicationController,
    part: Part,
    rules: Rules,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    if part != Part::Status {
        check_spec(&new.spec.clone().unwrap_or_default(), rules, problems);
        return;
    }
    let status = new.status.clone().unwrap_or_default();
    let path = Path::new("status");
    let fields = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    let counts = [
        status.fully_labeled_replicas,
        status.ready_replicas,
        status.available_replicas,
    ];
    check_counts(&[("replicas", Some(status.replicas))], &path, problems);
    for (field, count) in fields.iter().zip(counts) {
        check_counts(&[(*field, count)], &path, problems);
    }
    problems.nonnegative(
        &path.child("observedGeneration"),
        status.observed_generation.unwrap_or_default(),
    );
    let detail = "cannot be greater than readyReplicas";
    check_not_above(
        &fields,
        &counts,
        Some(status.replicas),
        detail,
        &path,
        problems,
    );
}

fn check_spec(spec: &ReplicationControllerSpec, rules: Rules, problems: &mut Problems) {
    let path = Path::new("spec");
    problems.nonnegative(
        &path.child("minReadySeconds"),
        spec.min_ready_seconds.unwrap_or_default(),
    );
    let labels = spec.selector.clone().unwrap_or_default();
    if labels.is_empty() {
        problems.required(&path.child("selector"), "");
    }
    match spec.replicas {
        None => problems.required(&path.child("replicas"), ""),
        Some(replicas) => problems.nonnegative(&path.child("replicas"), replicas),
    }
    let path = path.child("template");
    let Some(template) = &spec.template else {
        return problems.required(&path, "");
    };
    let selector = LabelSelector::from_set(&labels);
    check_labels_match(&selector, template, &path, problems);
    pod::check_template(template, rules, &path, problems);
    check_runs_always(template, "ReplicationController", &path, problems);
}
