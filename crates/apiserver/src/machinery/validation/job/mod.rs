//! Jobs and CronJobs.
//!
//! Matches v1.36 pkg/apis/batch/validation/validation.go.

mod cron_job;
mod policy;
mod status;
mod update;

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use plimsoll_core::object::selector::LabelSelector;

use super::metadata::{self, Scope};
use super::names::{NameRule, dns_label, dns_subdomain};
use super::path::Path;
use super::problems::{Problems, Shown, api, json};
use super::{Rules, pod, selector, text};

use policy::{MAX_RULES, check_failure_rule, check_success_policy};

pub(super) use cron_job::{validate_cron_job, validate_cron_job_update};
pub(super) use update::validate_update;

const MAX_INDEXED: i32 = 100_000;

const MANY_COMPLETIONS: i32 = 100_000;

const MAX_WITH_MANY_COMPLETIONS: i32 = 10_000;

const MAX_MANAGED_BY_BYTES: usize = 63;

const NEEDS_INDEXES: &str = "requires indexed completion mode";

pub(super) fn validate(job: &Job, rules: Rules, problems: &mut Problems) {
    metadata::check(
        &job.metadata,
        Scope::Namespaced,
        NameRule::Subdomain,
        problems,
    );
    let spec = job.spec.clone().unwrap_or_default();
    check_generated_selector(job, &spec, problems);
    check_spec_with_selector(&spec, rules, problems);
    let completions = spec.completions.filter(|completions| *completions > 0);
    if let Some(completions) = completions.filter(|_| is_indexed(&spec)) {
        let name = text(&job.metadata.name);
        let hostname = format!("{name}-{}", completions - 1);
        if !dns_label(&hostname).is_empty() {
            let meta = Path::new("metadata");
            let detail = format!("will not able to create pod with invalid DNS label: {hostname}");
            problems.invalid(&meta.child("name"), name, detail);
        }
    }
}

fn is_indexed(spec: &JobSpec) -> bool {
    text(&spec.completion_mode) == "Indexed"
}

/// Unless the selector is manual, it was generated from the job's uid.
fn check_generated_selector(job: &Job, spec: &JobSpec, problems: &mut Problems) {
    let Some(labels) = spec
        .selector
        .as_ref()
        .filter(|_| spec.manual_selector != Some(true))
    else {
        return;
    };
    let (uid, name) = (text(&job.metadata.uid), text(&job.metadata.name));
    let meta = Path::new("metadata");
    problems.require_text(&meta.child("uid"), uid);
    let spec_path = Path::new("spec");
    let template = spec_path.child("template");
    let template_meta = template.child("metadata");
    let labels_path = template_meta.child("labels");
    let expected = [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ];
    let given = spec
        .template
        .metadata
        .as_ref()
        .and_then(|meta| meta.labels.as_ref());
    for (key, value) in expected {
        let detail = format!("must be '{value}'");
        match given.and_then(|given| given.get(key)) {
            None => problems.required(&labels_path.key(key), detail),
            Some(found) if found != value => {
                problems.invalid(&labels_path.key(key), json(&given), detail);
            }
            Some(_) => {}
        }
    }
    let expected: BTreeMap<String, String> = expected
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    if let Ok(parsed) = LabelSelector::from_api(Some(labels))
        && !parsed.matches(&expected)
    {
        let shown = api("meta.LabelSelector", labels);
        problems.invalid(
            &spec_path.child("selector"),
            shown,
            "`selector` not auto-generated",
        );
    }
}

fn check_spec_with_selector(spec: &JobSpec, rules: Rules, problems: &mut Problems) {
    let path = Path::new("spec");
    check_spec(spec, rules, &path, problems);
    let Some(labels) = &spec.selector else {
        problems.required(&path.child("selector"), "");
        return show_mismatch(spec, &path, problems);
    };
    selector::check(Some(labels), &path.child("selector"), problems);
    let given = spec
        .template
        .metadata
        .as_ref()
        .and_then(|meta| meta.labels.clone());
    let matches =
        LabelSelector::from_api(Some(labels)).map(|s| s.matches(&given.unwrap_or_default()));
    if matches.is_ok_and(|matches| !matches) {
        show_mismatch(spec, &path, problems);
    }
}

fn show_mismatch(spec: &JobSpec, path: &Path<'_>, problems: &mut Problems) {
    let template = path.child("template");
    let meta = template.child("metadata");
    let labels = spec
        .template
        .metadata
        .as_ref()
        .and_then(|meta| meta.labels.as_ref());
    let detail = "`selector` does not match template `labels`";
    problems.invalid(&meta.child("labels"), json(&labels), detail);
}

fn check_spec(spec: &JobSpec, rules: Rules, path: &Path<'_>, problems: &mut Problems) {
    for (field, value) in [
        ("parallelism", spec.parallelism.map(i64::from)),
        ("completions", spec.completions.map(i64::from)),
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("backoffLimit", spec.backoff_limit.map(i64::from)),
        (
            "ttlSecondsAfterFinished",
            spec.ttl_seconds_after_finished.map(i64::from),
        ),
        (
            "backoffLimitPerIndex",
            spec.backoff_limit_per_index.map(i64::from),
        ),
        ("maxFailedIndexes", spec.max_failed_indexes.map(i64::from)),
    ] {
        problems.nonnegative(&path.child(field), value.unwrap_or_default());
    }
    if spec.max_failed_indexes.is_some() && spec.backoff_limit_per_index.is_none() {
        let detail = "when maxFailedIndexes is specified";
        problems.required(&path.child("backoffLimitPerIndex"), detail);
    }
    if let Some(manager) = &spec.managed_by {
        check_managed_by(manager, &path.child("managedBy"), problems);
    }
    check_indexed(spec, path, problems);
    if let Some(policy) = &spec.pod_failure_policy {
        let failure_path = path.child("podFailurePolicy");
        let list = failure_path.child("rules");
        problems.too_many(&list, policy.rules.len(), MAX_RULES);
        for (index, rule) in policy.rules.iter().enumerate() {
            check_failure_rule(spec, rule, &list.index(index), problems);
        }
    }
    check_success_policy(spec, &path.child("successPolicy"), problems);
    if let Some(policy) = &spec.pod_replacement_policy {
        let supported: &[&str] = match &spec.pod_failure_policy {
            Some(_) => &["Failed"],
            None => &["Failed", "TerminatingOrFailed"],
        };
        problems.one_of(&path.child("podReplacementPolicy"), policy, supported);
    }
    let template_path = path.child("template");
    pod::check_template(&spec.template, rules, &template_path, problems);
    check_restart_policy(spec, &template_path, problems);
}

fn check_restart_policy(spec: &JobSpec, path: &Path<'_>, problems: &mut Problems) {
    let path = path.child("spec");
    let path = path.child("restartPolicy");
    let pod = spec.template.spec.as_ref();
    match pod.map(|pod| text(&pod.restart_policy)).unwrap_or_default() {
        "Always" | "" => problems.required(&path, "valid values: \"OnFailure\", \"Never\""),
        "Never" => {}
        "OnFailure" => {
            if spec.pod_failure_policy.is_some() {
                let detail = "only \"Never\" is supported when podFailurePolicy is specified";
                problems.invalid(&path, json(&"OnFailure"), detail);
            }
        }
        other => problems.not_supported(&path, other, &["OnFailure", "Never"]),
    }
}

fn check_managed_by(manager: &str, path: &Path<'_>, problems: &mut Problems) {
    match manager.split_once('/') {
        _ if manager.is_empty() => problems.required(path, ""),
        Some((domain, rest)) if !domain.is_empty() && !rest.is_empty() => {
            problems.invalid_each(path, domain, dns_subdomain(domain));
            let is_path = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
            if !rest.chars().all(is_path) {
                let detail = "Invalid path (regex used for validation is \
                              '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
                problems.invalid(path, rest, detail);
            }
        }
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            problems.invalid(path, manager, detail);
        }
    }
    if manager.len() > MAX_MANAGED_BY_BYTES {
        problems.too_long(path, MAX_MANAGED_BY_BYTES);
    }
}

fn check_indexed(spec: &JobSpec, path: &Path<'_>, problems: &mut Problems) {
    if let Some(mode) = &spec.completion_mode {
        problems.one_of(
            &path.child("completionMode"),
            mode,
            &["NonIndexed", "Indexed"],
        );
    }
    if is_indexed(spec) {
        check_indexed_limits(spec, path, problems);
    } else if matches!(spec.completion_mode.as_deref(), None | Some("NonIndexed")) {
        for (field, value) in [
            ("backoffLimitPerIndex", spec.backoff_limit_per_index),
            ("maxFailedIndexes", spec.max_failed_indexes),
        ] {
            if let Some(value) = value {
                problems.invalid(&path.child(field), value, NEEDS_INDEXES);
            }
        }
    }
}

fn check_indexed_limits(spec: &JobSpec, path: &Path<'_>, problems: &mut Problems) {
    let (parallelism_path, failed_path) =
        (path.child("parallelism"), path.child("maxFailedIndexes"));
    let parallelism = spec.parallelism.unwrap_or_default();
    if spec.completions.is_none() {
        problems.required(
            &path.child("completions"),
            "when completion mode is Indexed",
        );
    }
    if parallelism > MAX_INDEXED {
        let detail =
            format!("must be less than or equal to {MAX_INDEXED} when completion mode is Indexed");
        problems.invalid(&parallelism_path, parallelism, detail);
    }
    if let (Some(completions), Some(failed)) = (spec.completions, spec.max_failed_indexes)
        && failed > completions
    {
        problems.invalid(
            &failed_path,
            failed,
            "must be less than or equal to completions",
        );
    }
    if let Some(failed) = spec
        .max_failed_indexes
        .filter(|failed| *failed > MAX_INDEXED)
    {
        let detail = format!("must be less than or equal to {MAX_INDEXED}");
        problems.invalid(&failed_path, failed, detail);
    }
    let has_many = spec
        .completions
        .is_some_and(|completions| completions > MANY_COMPLETIONS);
    if !has_many || spec.backoff_limit_per_index.is_none() {
        return;
    }
    if spec.max_failed_indexes.is_none() {
        let detail = format!("must be specified when completions is above {MANY_COMPLETIONS}");
        problems.required(&failed_path, detail);
    }
    let detail = format!(
        "must be less than or equal to {MAX_WITH_MANY_COMPLETIONS} when completions are above \
         {MANY_COMPLETIONS} and used with backoff limit per index"
    );
    if parallelism > MAX_WITH_MANY_COMPLETIONS {
        problems.invalid(&parallelism_path, parallelism, detail.clone());
    }
    if let Some(failed) = spec
        .max_failed_indexes
        .filter(|f| *f > MAX_WITH_MANY_COMPLETIONS)
    {
        problems.invalid(&failed_path, failed, detail);
    }
}

/// Upstream shows no value where it would be the whole object.
fn invalid_without_value(path: &Path<'_>, detail: &str, problems: &mut Problems) {
    problems.invalid(path, Shown::bare(""), detail);
}
