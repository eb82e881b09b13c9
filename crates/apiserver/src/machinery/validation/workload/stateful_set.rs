//! StatefulSets.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaimVolumeSource, PodTemplateSpec, Volume};

use super::super::metadata::{self, Scope, check_labels};
use super::super::names::{NameRule, dns_label};
use super::super::path::Path;
use super::super::problems::{Problems, api, json};
use super::super::{Part, Rules, claim, internal, pod, text};
use super::{
    ABOVE_REPLICAS, Selector, amount, check_at_most_100_percent, check_collisions, check_counts,
    check_int_or_percent, check_labels_match, check_runs_always, check_selector, parsed,
};

pub(in super::super) fn validate_stateful_set(
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

/// Whether immutable fields are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IsNew {
    Yes,
    No,
}

pub(in super::super) fn validate_stateful_set_update(
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

/// The template as the controller will use it: with the claims as volumes, and generated names.
fn effective_template(spec: &StatefulSetSpec) -> PodTemplateSpec {
    let mut template = spec.template.clone();
    let pod = template.spec.get_or_insert_default();
    pod.subdomain = None;
    pod.hostname = None;
    let claims = spec.volume_claim_templates.as_deref().unwrap_or_default();
    if !claims.is_empty() {
        let names: BTreeSet<&str> = claims.iter().map(|c| text(&c.metadata.name)).collect();
        let from_claims = names.iter().map(|name| Volume {
            name: (*name).to_owned(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: (*name).to_owned(),
                read_only: None,
            }),
            ..Volume::default()
        });
        let mut volumes: Vec<Volume> = from_claims.collect();
        let own = pod.volumes.take().unwrap_or_default();
        volumes.extend(own.into_iter().filter(|v| !names.contains(v.name.as_str())));
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
