//! Deployments, ReplicaSets, DaemonSets and StatefulSets.
//!
//! Matches v1.36 pkg/apis/apps/validation/validation.go. API types cannot tell a missing selector
//! from an empty one, so callers say which it is.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{
    DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, Deployment, DeploymentSpec,
    DeploymentStrategy, ReplicaSet, ReplicaSetSpec, StatefulSet, StatefulSetSpec,
};
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaimVolumeSource, PodSpec, PodTemplateSpec, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as ApiLabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use plimsoll_core::object::selector::LabelSelector;

use super::metadata::{self, Scope, check_labels};
use super::names::{NameRule, dns_label, percent};
use super::path::Path;
use super::problems::{FIELD_IS_IMMUTABLE, Problems, api, json};
use super::{Part, Rules, claim, internal, pod, selector, text};

/// Whether the object has a selector at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selector {
    Given,
    Missing,
}

const NO_MATCH: &str = "`selector` does not match template `labels`";
const ABOVE_REPLICAS: &str = "cannot be greater than status.replicas";

pub(super) fn validate_deployment(
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

pub(super) fn validate_deployment_update(
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
            not_supported(path, &shown, &["Recreate", "RollingUpdate"], problems);
        }
    }
}

/// A whole strategy that is none of the supported ones.
fn not_supported(
    path: &Path<'_>,
    shown: &impl serde::Serialize,
    supported: &[&str],
    problems: &mut Problems,
) {
    let problem = plimsoll_core::problem::Problem::not_supported(path.to_string(), "", supported);
    problems.push(problem.with_value(plimsoll_core::problem::json_text(shown)));
}

pub(super) fn validate_replica_set(
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

pub(super) fn validate_replica_set_update(
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

fn check_selector(
    labels: &ApiLabelSelector,
    given: Selector,
    kind: &str,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let path = path.child("selector");
    if given == Selector::Missing {
        return problems.required(&path, "");
    }
    selector::check(Some(labels), &path, problems);
    if selector::is_empty(labels) {
        let shown = api("meta.LabelSelector", labels);
        problems.invalid(
            &path,
            shown,
            format!("empty selector is invalid for {kind}"),
        );
    }
}

fn parsed(labels: &ApiLabelSelector, given: Selector) -> Option<LabelSelector> {
    LabelSelector::from_api((given == Selector::Given).then_some(labels)).ok()
}

fn template_labels(template: &PodTemplateSpec) -> BTreeMap<String, String> {
    template
        .metadata
        .as_ref()
        .and_then(|meta| meta.labels.clone())
        .unwrap_or_default()
}

fn check_labels_match(
    parsed: &LabelSelector,
    template: &PodTemplateSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let labels = template_labels(template);
    if !parsed.is_empty() && !parsed.matches(&labels) {
        show_mismatch(template, path, problems);
    }
}

fn show_mismatch(template: &PodTemplateSpec, path: &Path<'_>, problems: &mut Problems) {
    let labels = template
        .metadata
        .as_ref()
        .and_then(|meta| meta.labels.as_ref());
    let meta = path.child("metadata");
    problems.invalid(&meta.child("labels"), json(&labels), NO_MATCH);
}

fn check_runs_always(
    template: &PodTemplateSpec,
    kind: &str,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let empty = PodSpec::default();
    let spec = template.spec.as_ref().unwrap_or(&empty);
    let path = path.child("spec");
    problems.one_of(
        &path.child("restartPolicy"),
        text(&spec.restart_policy),
        &["Always"],
    );
    if spec.active_deadline_seconds.is_some() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        problems.forbidden(&path.child("activeDeadlineSeconds"), detail);
    }
}

fn check_selector_unchanged(
    new: &ApiLabelSelector,
    old: &ApiLabelSelector,
    problems: &mut Problems,
) {
    if new != old {
        let path = Path::new("spec");
        let shown = api("meta.LabelSelector", new);
        problems.invalid(&path.child("selector"), shown, FIELD_IS_IMMUTABLE);
    }
}

pub(super) fn validate_daemon_set(
    set: &DaemonSet,
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
    check_daemon_set_spec(
        &set.spec.clone().unwrap_or_default(),
        given,
        rules,
        problems,
    );
}

pub(super) fn validate_daemon_set_update(
    new: &DaemonSet,
    old: &DaemonSet,
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
        check_counts(
            &[
                (
                    "currentNumberScheduled",
                    Some(status.current_number_scheduled),
                ),
                ("numberMisscheduled", Some(status.number_misscheduled)),
                (
                    "desiredNumberScheduled",
                    Some(status.desired_number_scheduled),
                ),
                ("numberReady", Some(status.number_ready)),
            ],
            &path,
            problems,
        );
        problems.nonnegative(
            &path.child("observedGeneration"),
            status.observed_generation.unwrap_or_default(),
        );
        check_counts(
            &[
                ("updatedNumberScheduled", status.updated_number_scheduled),
                ("numberAvailable", status.number_available),
                ("numberUnavailable", status.number_unavailable),
                ("collisionCount", status.collision_count),
            ],
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
    check_selector_unchanged(&spec.selector, &old.selector, problems);
    check_daemon_set_spec(&spec, given, rules, problems);
}

fn check_daemon_set_spec(
    spec: &DaemonSetSpec,
    given: Selector,
    rules: Rules,
    problems: &mut Problems,
) {
    let path = Path::new("spec");
    let (selector_path, template_path) = (path.child("selector"), path.child("template"));
    if given == Selector::Given {
        selector::check(Some(&spec.selector), &selector_path, problems);
    }
    let matches =
        parsed(&spec.selector, given).map(|s| s.matches(&template_labels(&spec.template)));
    if matches == Some(false) {
        show_mismatch(&spec.template, &template_path, problems);
    }
    if given == Selector::Given && selector::is_empty(&spec.selector) {
        let shown = api("meta.LabelSelector", &spec.selector);
        problems.invalid(
            &selector_path,
            shown,
            "empty selector is invalid for daemonset",
        );
    }
    pod::check_template(&spec.template, rules, &template_path, problems);
    check_runs_always(&spec.template, "DaemonSet", &template_path, problems);
    problems.nonnegative(
        &path.child("minReadySeconds"),
        spec.min_ready_seconds.unwrap_or_default(),
    );
    let strategy = spec.update_strategy.clone().unwrap_or_default();
    check_daemon_strategy(&strategy, &path.child("updateStrategy"), problems);
    if let Some(limit) = spec.revision_history_limit {
        problems.nonnegative(&path.child("revisionHistoryLimit"), limit);
    }
}

fn check_daemon_strategy(
    strategy: &DaemonSetUpdateStrategy,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let zero = IntOrString::Int(0);
    let values = strategy.rolling_update.as_ref().map(|rolling| {
        (
            rolling.max_unavailable.as_ref().unwrap_or(&zero),
            rolling.max_surge.as_ref().unwrap_or(&zero),
        )
    });
    let rolling_path = path.child("rollingUpdate");
    match (text(&strategy.type_), values) {
        ("OnDelete", _) => {}
        ("RollingUpdate", None) => problems.required(&rolling_path, ""),
        ("RollingUpdate", Some((unavailable, surge))) => {
            let unavailable_path = rolling_path.child("maxUnavailable");
            let surge_path = rolling_path.child("maxSurge");
            check_int_or_percent(unavailable, &unavailable_path, problems);
            check_int_or_percent(surge, &surge_path, problems);
            check_at_most_100_percent(unavailable, &unavailable_path, problems);
            check_at_most_100_percent(surge, &surge_path, problems);
            match (amount(unavailable) != 0, amount(surge) != 0) {
                (true, true) => {
                    let detail = "may not be set when maxUnavailable is non-zero";
                    problems.invalid(&surge_path, json(surge), detail);
                }
                (false, false) => {
                    problems.required(&unavailable_path, "cannot be 0 when maxSurge is 0");
                }
                _ => {}
            }
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
            not_supported(path, &shown, &["RollingUpdate", "OnDelete"], problems);
        }
    }
}

pub(super) fn validate_stateful_set(
    set: &StatefulSet,
    given: Selector,
    rules: Rules,
    problems: &mut Problems,
) {
    metadata::check(&set.metadata, Scope::Namespaced, NameRule::Label, problems);
    let spec = set.spec.clone().unwrap_or_default();
    let path = Path::new("spec");
    check_stateful_set_spec(&spec, given, IsNew::Yes, rules, &path, problems);
}

/// Whether parts that cannot change are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IsNew {
    Yes,
    No,
}

pub(super) fn validate_stateful_set_update(
    new: &StatefulSet,
    old: &StatefulSet,
    part: Part,
    given: Selector,
    rules: Rules,
    problems: &mut Problems,
) {
    if part == Part::Status {
        check_stateful_set_status(new, old, problems);
        return metadata::check_update(&new.metadata, &old.metadata, problems);
    }
    metadata::check_update(&new.metadata, &old.metadata, problems);
    let (spec, old) = (
        new.spec.clone().unwrap_or_default(),
        old.spec.clone().unwrap_or_default(),
    );
    let path = Path::new("spec");
    check_stateful_set_spec(&spec, given, IsNew::No, rules, &path, problems);
    let allowed = StatefulSetSpec {
        replicas: old.replicas,
        template: old.template.clone(),
        update_strategy: old.update_strategy.clone(),
        min_ready_seconds: old.min_ready_seconds,
        ordinals: old.ordinals.clone(),
        revision_history_limit: old.revision_history_limit,
        persistent_volume_claim_retention_policy: old
            .persistent_volume_claim_retention_policy
            .clone(),
        ..spec
    };
    if allowed != old {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
                      'template', 'updateStrategy', 'revisionHistoryLimit', \
                      'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        problems.forbidden(&path, detail);
    }
}

fn check_stateful_set_spec(
    spec: &StatefulSetSpec,
    given: Selector,
    is_new: IsNew,
    rules: Rules,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let policy_path = path.child("podManagementPolicy");
    match text(&spec.pod_management_policy) {
        "" => problems.required(&policy_path, ""),
        "OrderedReady" | "Parallel" => {}
        other => {
            problems.invalid(
                &policy_path,
                json(&other),
                "must be 'OrderedReady' or 'Parallel'",
            );
        }
    }
    check_stateful_strategy(spec, &path.child("updateStrategy"), problems);
    let retention_path = path.child("persistentVolumeClaimRetentionPolicy");
    if let Some(policy) = &spec.persistent_volume_claim_retention_policy {
        for (field, value) in [
            ("whenDeleted", &policy.when_deleted),
            ("whenScaled", &policy.when_scaled),
        ] {
            problems.one_of(
                &retention_path.child(field),
                text(value),
                &["Retain", "Delete"],
            );
        }
    }
    let claims = spec.volume_claim_templates.as_deref().unwrap_or_default();
    if is_new == IsNew::Yes {
        let list = path.child("volumeClaimTemplates");
        for (index, template) in claims.iter().enumerate() {
            let path = list.index(index);
            let spec = template.spec.clone().unwrap_or_default();
            claim::check_spec(&spec, &path.child("spec"), problems);
        }
    }
    problems.nonnegative(&path.child("replicas"), spec.replicas.unwrap_or_default());
    problems.nonnegative(
        &path.child("minReadySeconds"),
        spec.min_ready_seconds.unwrap_or_default(),
    );
    if let Some(ordinals) = &spec.ordinals {
        problems.nonnegative(
            &path.child("ordinals.start"),
            ordinals.start.unwrap_or_default(),
        );
    }
    let service = text(&spec.service_name);
    if is_new == IsNew::Yes && !service.is_empty() {
        problems.invalid_each(&path.child("serviceName"), service, dns_label(service));
    }
    check_selector(&spec.selector, given, "statefulset", path, problems);
    let template_path = path.child("template");
    match parsed(&spec.selector, given) {
        None => {
            problems.invalid(
                &path.child("selector"),
                api("meta.LabelSelector", &spec.selector),
                "",
            );
        }
        Some(parsed) => {
            let template = effective_template(spec);
            check_labels_match(&parsed, &template, &template_path, problems);
            pod::check_template(&template, rules, &template_path, problems);
            let labels = template
                .metadata
                .as_ref()
                .and_then(|meta| meta.labels.as_ref());
            check_labels(labels, &template_path.child("labels"), problems);
            pod::check_template_annotations(&template, &template_path, problems);
        }
    }
    check_runs_always(&spec.template, "StatefulSet", &template_path, problems);
}

fn check_stateful_strategy(spec: &StatefulSetSpec, path: &Path<'_>, problems: &mut Problems) {
    let strategy = spec.update_strategy.clone().unwrap_or_default();
    let rolling = strategy.rolling_update.as_ref();
    let shown = rolling.map(|rolling| internal::StatefulSetRollingUpdate {
        partition: rolling.partition.unwrap_or_default(),
        max_unavailable: rolling.max_unavailable.as_ref(),
    });
    let rolling_path = path.child("rollingUpdate");
    match text(&strategy.type_) {
        "" => problems.required(path, ""),
        "OnDelete" => {
            if let Some(shown) = shown {
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                problems.invalid(&rolling_path, json(&shown), detail);
            }
        }
        "RollingUpdate" => {
            let Some(rolling) = rolling else { return };
            let partition = rolling.partition.unwrap_or_default();
            problems.nonnegative(&rolling_path.child("partition"), partition);
            if let Some(unavailable) = &rolling.max_unavailable {
                let path = rolling_path.child("maxUnavailable");
                check_int_or_percent(unavailable, &path, problems);
                if amount(unavailable) == 0 {
                    problems.invalid(&path, json(unavailable), "cannot be 0");
                }
                check_at_most_100_percent(unavailable, &path, problems);
            }
        }
        other => {
            let shown = internal::Strategy {
                r#type: other,
                rolling_update: shown,
            };
            problems.invalid(path, json(&shown), "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

/// The template as the controller will use it: with the claims as volumes, and names of its own.
fn effective_template(spec: &StatefulSetSpec) -> PodTemplateSpec {
    let mut template = spec.template.clone();
    let pod = template.spec.get_or_insert_default();
    pod.subdomain = None;
    pod.hostname = None;
    let claims = spec.volume_claim_templates.as_deref().unwrap_or_default();
    if !claims.is_empty() {
        let names: BTreeMap<&str, ()> = claims
            .iter()
            .map(|c| (text(&c.metadata.name), ()))
            .collect();
        let from_claims = names.keys().map(|name| Volume {
            name: (*name).to_owned(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: (*name).to_owned(),
                read_only: None,
            }),
            ..Volume::default()
        });
        let mut volumes: Vec<Volume> = from_claims.collect();
        let own = pod.volumes.take().unwrap_or_default();
        volumes.extend(
            own.into_iter()
                .filter(|v| !names.contains_key(v.name.as_str())),
        );
        pod.volumes = Some(volumes);
    }
    template
}

fn check_stateful_set_status(new: &StatefulSet, old: &StatefulSet, problems: &mut Problems) {
    let (status, old) = (
        new.status.clone().unwrap_or_default(),
        old.status.clone().unwrap_or_default(),
    );
    let path = Path::new("status");
    check_counts(
        &[
            ("replicas", Some(status.replicas)),
            ("readyReplicas", status.ready_replicas),
            ("currentReplicas", status.current_replicas),
            ("updatedReplicas", status.updated_replicas),
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
        &[("collisionCount", status.collision_count)],
        &path,
        problems,
    );
    let replicas = status.replicas;
    for (field, count) in [
        ("readyReplicas", status.ready_replicas),
        ("currentReplicas", status.current_replicas),
        ("updatedReplicas", status.updated_replicas),
        ("availableReplicas", status.available_replicas),
    ] {
        let count = count.unwrap_or_default();
        if count > replicas {
            problems.invalid(&path.child(field), count, ABOVE_REPLICAS);
        }
    }
    let available = status.available_replicas.unwrap_or_default();
    if available > status.ready_replicas.unwrap_or_default() {
        let detail = "cannot be greater than status.readyReplicas";
        problems.invalid(&path.child("availableReplicas"), available, detail);
    }
    check_collisions(status.collision_count, old.collision_count, &path, problems);
}

fn check_counts(counts: &[(&str, Option<i32>)], path: &Path<'_>, problems: &mut Problems) {
    for (field, count) in counts {
        problems.nonnegative(&path.child(field), count.unwrap_or_default());
    }
}

/// The last of the counts is the available ones, the one before it the ready ones.
fn check_not_above(
    fields: &[&str; 3],
    counts: &[Option<i32>; 3],
    replicas: Option<i32>,
    above_ready: &str,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let replicas = replicas.unwrap_or_default();
    let counts = counts.map(Option::unwrap_or_default);
    for (field, count) in fields.iter().zip(counts) {
        if count > replicas {
            problems.invalid(&path.child(field), count, ABOVE_REPLICAS);
        }
    }
    let [_, ready, available] = counts;
    if available > ready {
        problems.invalid(&path.child(fields[2]), available, above_ready);
    }
}

fn check_collisions(new: Option<i32>, old: Option<i32>, path: &Path<'_>, problems: &mut Problems) {
    let new_count = new.unwrap_or_default();
    if old.is_some_and(|old| new.is_none_or(|new| new < old)) {
        problems.invalid(
            &path.child("collisionCount"),
            new_count,
            "cannot be decremented",
        );
    }
}

pub(super) fn check_int_or_percent(value: &IntOrString, path: &Path<'_>, problems: &mut Problems) {
    match value {
        IntOrString::String(text) => {
            for rule in percent(text) {
                problems.invalid(path, json(value), rule);
            }
        }
        IntOrString::Int(number) => problems.nonnegative(path, *number),
    }
}

pub(super) fn check_at_most_100_percent(
    value: &IntOrString,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if percentage(value).is_some_and(|percentage| percentage > 100) {
        problems.invalid(path, json(value), "must not be greater than 100%");
    }
}

fn percentage(value: &IntOrString) -> Option<i64> {
    match value {
        IntOrString::String(text) if percent(text).is_empty() => {
            // Go's conversion of digits that do not fit gives the largest number.
            Some(text.trim_end_matches('%').parse().unwrap_or(i64::MAX))
        }
        _ => None,
    }
}

/// The number, of a percentage or by itself; a text that is neither counts as what it begins with.
fn amount(value: &IntOrString) -> i64 {
    match (percentage(value), value) {
        (Some(percentage), _) => percentage,
        (None, IntOrString::Int(number)) => i64::from(*number),
        (None, IntOrString::String(text)) => text.parse().unwrap_or_default(),
    }
}
