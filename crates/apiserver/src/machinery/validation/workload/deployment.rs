//! Deployments and ReplicaSets.

use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentSpec, DeploymentStrategy, ReplicaSet, ReplicaSetSpec,
};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as ApiLabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::metadata::{self, Scope};
use super::super::names::NameRule;
use super::super::path::Path;
use super::super::problems::{Problems, api, json};
use super::super::{Part, Rules, internal, pod, text};
use super::{
    Selector, amount, check_at_most_100_percent, check_collisions, check_counts,
    check_int_or_percent, check_labels_match, check_not_above, check_runs_always, check_selector,
    check_selector_unchanged, parsed,
};

pub(in super::super) fn validate_deployment(
    deployment: &Deployment,
    given: Selector,
    rules: Rules,
    problems: &mut Problems,
) {
    metadata::check(
        &deployment.metadata,
        Scope::Namespaced,
        NameRule::Subdomain,
        problems,
    );
    let spec = deployment.spec.clone().unwrap_or_default();
    check_deployment_spec(&spec, given, rules, problems);
}

pub(in super::super) fn validate_deployment_update(
    new: &Deployment,
    old: &Deployment,
    part: Part,
    given: Selector,
    rules: Rules,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    if part == Part::Status {
        let (status, old) = (
            new.status.clone().unwrap_or_default(),
            old.status.clone().unwrap_or_default(),
        );
        let path = Path::new("status");
        problems.nonnegative(
            &path.child("observedGeneration"),
            status.observed_generation.unwrap_or_default(),
        );
        check_counts(
            &[
                ("replicas", status.replicas),
                ("updatedReplicas", status.updated_replicas),
                ("readyReplicas", status.ready_replicas),
                ("availableReplicas", status.available_replicas),
                ("unavailableReplicas", status.unavailable_replicas),
                ("terminatingReplicas", status.terminating_replicas),
                ("collisionCount", status.collision_count),
            ],
            &path,
            problems,
        );
        let counts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
        let values = [
            status.updated_replicas,
            status.ready_replicas,
            status.available_replicas,
        ];
        check_not_above(
            &counts,
            &values,
            status.replicas,
            "cannot be greater than readyReplicas",
            &path,
            problems,
        );
        check_collisions(status.collision_count, old.collision_count, &path, problems);
        return;
    }
    let (spec, old) = (
        new.spec.clone().unwrap_or_default(),
        old.spec.clone().unwrap_or_default(),
    );
    check_deployment_spec(&spec, given, rules, problems);
    check_selector_unchanged(&spec.selector, &old.selector, problems);
}

fn check_deployment_spec(
    spec: &DeploymentSpec,
    given: Selector,
    rules: Rules,
    problems: &mut Problems,
) {
    let path = Path::new("spec");
    problems.nonnegative(&path.child("replicas"), spec.replicas.unwrap_or_default());
    check_replicated(
        &spec.selector,
        given,
        &spec.template,
        rules,
        &path,
        problems,
    );
    let strategy = spec.strategy.clone().unwrap_or_default();
    check_deployment_strategy(&strategy, &path.child("strategy"), problems);
    let ready = spec.min_ready_seconds.unwrap_or_default();
    problems.nonnegative(&path.child("minReadySeconds"), ready);
    if let Some(limit) = spec.revision_history_limit {
        problems.nonnegative(&path.child("revisionHistoryLimit"), limit);
    }
    if let Some(deadline) = spec.progress_deadline_seconds {
        let path = path.child("progressDeadlineSeconds");
        problems.nonnegative(&path, deadline);
        if deadline <= ready {
            problems.invalid(
                &path,
                json(&deadline),
                "must be greater than minReadySeconds",
            );
        }
    }
}

fn check_deployment_strategy(
    strategy: &DeploymentStrategy,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let rolling_path = path.child("rollingUpdate");
    let rolling = strategy.rolling_update.as_ref();
    let zero = IntOrString::Int(0);
    let values = rolling.map(|rolling| {
        (
            rolling.max_unavailable.as_ref().unwrap_or(&zero),
            rolling.max_surge.as_ref().unwrap_or(&zero),
        )
    });
    match (text(&strategy.type_), values) {
        ("Recreate", Some(_)) => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            problems.forbidden(&rolling_path, detail);
        }
        ("Recreate", None) => {}
        ("RollingUpdate", None) => {
            problems.required(&rolling_path, "this should be defaulted and never be nil");
        }
        ("RollingUpdate", Some((unavailable, surge))) => {
            let unavailable_path = rolling_path.child("maxUnavailable");
            check_int_or_percent(unavailable, &unavailable_path, problems);
            check_int_or_percent(surge, &rolling_path.child("maxSurge"), problems);
            if amount(unavailable) == 0 && amount(surge) == 0 {
                let detail = "may not be 0 when `maxSurge` is 0";
                problems.invalid(&unavailable_path, json(unavailable), detail);
            }
            check_at_most_100_percent(unavailable, &unavailable_path, problems);
        }
        (other, values) => {
            let shown = internal::Strategy {
                r#type: other,
                rolling_update: values.map(|(max_unavailable, max_surge)| {
                    internal::RollingUpdate {
                        max_unavailable,
                        max_surge,
                    }
                }),
            };
            problems.not_supported_value(path, json(&shown), &["Recreate", "RollingUpdate"]);
        }
    }
}

pub(in super::super) fn validate_replica_set(
    set: &ReplicaSet,
    given: Selector,
    rules: Rules,
    problems: &mut Problems,
) {
    metadata::check(
        &set.metadata,
        Scope::Namespaced,
        NameRule::Subdomain,
        problems,
    );
    check_replica_set_spec(
        &set.spec.clone().unwrap_or_default(),
        given,
        rules,
        problems,
    );
}

pub(in super::super) fn validate_replica_set_update(
    new: &ReplicaSet,
    old: &ReplicaSet,
    part: Part,
    given: Selector,
    rules: Rules,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    if part == Part::Status {
        let status = new.status.clone().unwrap_or_default();
        let path = Path::new("status");
        check_counts(
            &[
                ("replicas", Some(status.replicas)),
                ("fullyLabeledReplicas", status.fully_labeled_replicas),
                ("readyReplicas", status.ready_replicas),
                ("availableReplicas", status.available_replicas),
            ],
            &path,
            problems,
        );
        problems.nonnegative(
            &path.child("observedGeneration"),
            status.observed_generation.unwrap_or_default(),
        );
        check_counts(
            &[("terminatingReplicas", status.terminating_replicas)],
            &path,
            problems,
        );
        let counts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
        let values = [
            status.fully_labeled_replicas,
            status.ready_replicas,
            status.available_replicas,
        ];
        let detail = "cannot be greater than readyReplicas";
        check_not_above(
            &counts,
            &values,
            Some(status.replicas),
            detail,
            &path,
            problems,
        );
        return;
    }
    let (spec, old) = (
        new.spec.clone().unwrap_or_default(),
        old.spec.clone().unwrap_or_default(),
    );
    check_replica_set_spec(&spec, given, rules, problems);
    check_selector_unchanged(&spec.selector, &old.selector, problems);
}

fn check_replica_set_spec(
    spec: &ReplicaSetSpec,
    given: Selector,
    rules: Rules,
    problems: &mut Problems,
) {
    let path = Path::new("spec");
    problems.nonnegative(&path.child("replicas"), spec.replicas.unwrap_or_default());
    problems.nonnegative(
        &path.child("minReadySeconds"),
        spec.min_ready_seconds.unwrap_or_default(),
    );
    let template = spec.template.clone().unwrap_or_default();
    check_replicated(&spec.selector, given, &template, rules, &path, problems);
}

/// The selector and template of a Deployment or ReplicaSet.
fn check_replicated(
    labels: &ApiLabelSelector,
    given: Selector,
    template: &PodTemplateSpec,
    rules: Rules,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    check_selector(labels, given, "deployment", path, problems);
    let template_path = path.child("template");
    match parsed(labels, given) {
        None => {
            let shown = api("meta.LabelSelector", labels);
            problems.invalid(&path.child("selector"), shown, "invalid label selector");
        }
        Some(parsed) => {
            check_labels_match(&parsed, template, &template_path, problems);
            pod::check_template(template, rules, &template_path, problems);
            check_runs_always(template, "ReplicaSet", &template_path, problems);
        }
    }
}
