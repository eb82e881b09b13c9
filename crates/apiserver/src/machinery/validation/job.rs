//! Jobs and CronJobs.
//!
//! Matches v1.36 pkg/apis/batch/validation/validation.go.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::{
    CronJob, CronJobSpec, Job, JobSpec, JobStatus, PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyRule, SuccessPolicyRule,
};
use k8s_openapi::api::core::v1::{Affinity, PodSpec, PodTemplateSpec};
use plimsoll_core::object::selector::LabelSelector;
use plimsoll_core::object::syntax::check_label_key;
use plimsoll_core::problem::{Problem, quoted};

use super::metadata::{self, Scope};
use super::names::{NameRule, dns_label, dns_subdomain};
use super::path::Path;
use super::problems::{FIELD_IS_IMMUTABLE, Problems, Shown, api, json};
use super::{Part, Rules, pod, schedule, selector, text};

const MAX_INDEXED: i32 = 100_000;
const MANY_COMPLETIONS: i32 = 100_000;
const MAX_WITH_MANY_COMPLETIONS: i32 = 10_000;
const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;
const MAX_MANAGED_BY_BYTES: usize = 63;
const MAX_INDEXES_BYTES: usize = 64 << 10;
const MAX_CRON_JOB_NAME_BYTES: usize = 52;
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

/// Unless the selector is the caller's, it has been made from the job's identity.
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

fn check_failure_rule(
    spec: &JobSpec,
    rule: &PodFailurePolicyRule,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let actions = ["Count", "FailIndex", "FailJob", "Ignore"];
    let action_path = path.child("action");
    match rule.action.as_str() {
        "" => {
            let values: Vec<String> = actions.iter().map(|action| quoted(action)).collect();
            problems.required(
                &action_path,
                format!("valid values: [{}]", values.join(" ")),
            );
        }
        "FailIndex" => {
            if spec.backoff_limit_per_index.is_none() {
                let detail = "requires the backoffLimitPerIndex to be set";
                problems.invalid(&action_path, json(&rule.action), detail);
            }
        }
        action => problems.one_of(&action_path, action, &actions),
    }
    if let Some(codes) = &rule.on_exit_codes {
        check_exit_codes(spec, codes, &path.child("onExitCodes"), problems);
    }
    let conditions = rule.on_pod_conditions.as_deref().unwrap_or_default();
    let list = path.child("onPodConditions");
    problems.too_many(&list, conditions.len(), MAX_RULES);
    for (index, pattern) in conditions.iter().enumerate() {
        let path = list.index(index);
        problems.invalid_each(
            &path.child("type"),
            &pattern.type_,
            check_label_key(&pattern.type_),
        );
        let statuses = ["False", "True", "Unknown"];
        match text(&pattern.status) {
            "" => {
                let detail = "valid values: [\"False\" \"True\" \"Unknown\"]";
                problems.required(&path.child("status"), detail);
            }
            status => problems.one_of(&path.child("status"), status, &statuses),
        }
    }
    let detail = match (rule.on_exit_codes.is_some(), conditions.is_empty()) {
        (true, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, true) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    invalid_without_value(path, detail, problems);
}

/// Upstream shows no value where it would be the whole object.
fn invalid_without_value(path: &Path<'_>, detail: &str, problems: &mut Problems) {
    problems.invalid(path, Shown::bare(""), detail);
}

fn check_exit_codes(
    spec: &JobSpec,
    codes: &PodFailurePolicyOnExitCodesRequirement,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    match codes.operator.as_str() {
        "" => problems.required(&path.child("operator"), "valid values: [\"In\" \"NotIn\"]"),
        operator => problems.one_of(&path.child("operator"), operator, &["In", "NotIn"]),
    }
    if let Some(name) = &codes.container_name {
        let pod = spec.template.spec.clone().unwrap_or_default();
        let init = pod.init_containers.unwrap_or_default();
        if !pod
            .containers
            .iter()
            .chain(&init)
            .any(|container| container.name == *name)
        {
            let detail = "must be one of the container or initContainer names in the pod template";
            problems.invalid(&path.child("containerName"), name, detail);
        }
    }
    let list = path.child("values");
    if codes.values.is_empty() {
        problems.invalid(&list, json(&codes.values), "at least one value is required");
    }
    problems.too_many(&list, codes.values.len(), MAX_EXIT_CODES);
    let mut seen = BTreeSet::new();
    for (index, code) in codes.values.iter().enumerate() {
        let path = list.index(index);
        if codes.operator == "In" && *code == 0 {
            problems.invalid(&path, *code, "must not be 0 for the In operator");
        }
        if !seen.insert(code) {
            let problem = Problem::duplicate(path.to_string(), "");
            problems.push(problem.with_value(code.to_string()));
        }
    }
    if !codes.values.is_sorted() {
        problems.invalid(&list, json(&codes.values), "must be ordered");
    }
}

fn check_success_policy(spec: &JobSpec, path: &Path<'_>, problems: &mut Problems) {
    let Some(policy) = &spec.success_policy else {
        return;
    };
    if !is_indexed(spec) {
        #[derive(serde::Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Shown<'a> {
            rules: Vec<ShownRule<'a>>,
        }
        #[derive(serde::Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct ShownRule<'a> {
            succeeded_indexes: Option<&'a str>,
            succeeded_count: Option<i32>,
        }
        let rules = policy.rules.iter().map(|rule| ShownRule {
            succeeded_indexes: rule.succeeded_indexes.as_deref(),
            succeeded_count: rule.succeeded_count,
        });
        return problems.invalid(
            path,
            json(&Shown {
                rules: rules.collect(),
            }),
            NEEDS_INDEXES,
        );
    }
    let list = path.child("rules");
    if policy.rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        problems.required(&list, detail);
    }
    problems.too_many(&list, policy.rules.len(), MAX_RULES);
    for (index, rule) in policy.rules.iter().enumerate() {
        check_success_rule(
            rule,
            spec.completions.unwrap_or_default(),
            &list.index(index),
            problems,
        );
    }
}

fn check_success_rule(
    rule: &SuccessPolicyRule,
    completions: i32,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if rule.succeeded_count.is_none() && rule.succeeded_indexes.is_none() {
        let detail = "at least one of succeededCount or succeededIndexes must be specified";
        problems.required(path, detail);
    }
    let mut total = 0;
    if let Some(indexes) = &rule.succeeded_indexes {
        let path = path.child("succeededIndexes");
        if indexes.len() > MAX_INDEXES_BYTES {
            problems.too_long(&path, MAX_INDEXES_BYTES);
        }
        match count_indexes(indexes, completions) {
            Ok(count) => total = count,
            Err(reason) => {
                let detail = format!("error parsing succeededIndexes: {reason}");
                problems.invalid(&path, indexes, detail);
            }
        }
    }
    let Some(count) = rule.succeeded_count else {
        return;
    };
    let path = path.child("succeededCount");
    problems.nonnegative(&path, count);
    if count > completions {
        let detail = format!(
            "must be less than or equal to {completions} (the number of specified completions)"
        );
        problems.invalid(&path, count, detail);
    }
    if rule.succeeded_indexes.is_some() && i64::from(count) > total {
        let detail = format!(
            "must be less than or equal to {total} (the number of indexes in the specified \
             succeededIndexes field)"
        );
        problems.invalid(&path, count, detail);
    }
}

/// How many indexes a text such as `0,2-4` names.
fn count_indexes(text: &str, completions: i32) -> Result<i64, String> {
    let mut last: Option<i64> = None;
    let mut total = 0;
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        let (low, high) = parse_interval(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= low) {
            return Err(format!(
                "non-increasing order, previous: {last}, current: {low}"
            ));
        }
        total += high - low + 1;
        last = Some(high);
    }
    Ok(total)
}

fn parse_interval(interval: &str, completions: i32) -> Result<(i64, i64), String> {
    let shown = quoted(interval);
    let index = |text: &str| -> Result<i64, String> {
        let number: i64 = text.parse().map_err(|_| {
            format!(
                "cannot convert string to integer for index: {}",
                quoted(text)
            )
        })?;
        if number >= i64::from(completions) {
            return Err(format!("too large index: {}", quoted(text)));
        }
        Ok(number)
    };
    match interval.split('-').collect::<Vec<_>>().as_slice() {
        [only] => index(only).map(|number| (number, number)),
        [low, high] => {
            let (low, high) = (index(low)?, index(high)?);
            if low >= high {
                return Err(format!(
                    "non-increasing order, previous: {low}, current: {high}"
                ));
            }
            Ok((low, high))
        }
        _ => Err(format!(
            "the fragment {shown} violates the requirement that an index interval can have at most \
             two parts separated by '-'"
        )),
    }
}

pub(super) fn validate_update(
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

/// A job that is suspended may still be told where its pods go and what they need.
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

fn is_true(status: &JobStatus, condition: &str) -> bool {
    status
        .conditions
        .iter()
        .flatten()
        .any(|c| c.type_ == condition && c.status == "True")
}

/// What a controller may say about a job.
fn check_status(new: &Job, old: &Job, problems: &mut Problems) {
    let spec = new.spec.clone().unwrap_or_default();
    let (status, old) = (
        new.status.clone().unwrap_or_default(),
        old.status.clone().unwrap_or_default(),
    );
    let path = Path::new("status");
    for (field, count) in [
        ("active", status.active),
        ("succeeded", status.succeeded),
        ("failed", status.failed),
        ("ready", status.ready),
        ("terminating", status.terminating),
    ] {
        problems.nonnegative(&path.child(field), count.unwrap_or_default());
    }
    check_uncounted(&status, &path.child("uncountedTerminatedPods"), problems);
    check_terminal_conditions(&spec, &status, &old, &path, problems);
    check_indexes(&spec, &status, &old, &path, problems);
    let count = |value: Option<i32>| value.unwrap_or_default();
    if count(status.ready) > count(status.active)
        && (status.ready, status.active) != (old.ready, old.active)
    {
        let detail = "cannot set more ready pods than active";
        problems.invalid(&path.child("ready"), count(status.ready), detail);
    }
    if count(status.failed) < count(old.failed) {
        let detail = "cannot decrease the failed counter";
        problems.invalid(&path.child("failed"), count(status.failed), detail);
    }
    let may_shrink = is_indexed(&spec) && spec.completions == spec.parallelism;
    if !may_shrink && count(status.succeeded) < count(old.succeeded) {
        let detail = "cannot decrease the succeeded counter";
        problems.invalid(&path.child("succeeded"), count(status.succeeded), detail);
    }
    if status.completion_time.is_some()
        && old.completion_time.is_some()
        && status.completion_time != old.completion_time
    {
        problems.invalid(
            &path.child("completionTime"),
            json(&status.completion_time),
            FIELD_IS_IMMUTABLE,
        );
    }
    let is_resuming = is_true(&old, "Suspended")
        && status
            .conditions
            .iter()
            .flatten()
            .any(|c| c.type_ == "Suspended" && c.status == "False");
    let is_start_changed = old.start_time.is_some() && old.start_time != status.start_time;
    if is_start_changed && !is_resuming && spec.suspend != Some(true) {
        let detail = "field is immutable for unsuspended job once set";
        problems.invalid(&path.child("startTime"), json(&status.start_time), detail);
    }
}

fn check_uncounted(status: &JobStatus, path: &Path<'_>, problems: &mut Problems) {
    let Some(uncounted) = &status.uncounted_terminated_pods else {
        return;
    };
    let mut seen = BTreeSet::new();
    for (field, uids) in [
        ("succeeded", &uncounted.succeeded),
        ("failed", &uncounted.failed),
    ] {
        let list = path.child(field);
        for (index, uid) in uids.iter().flatten().enumerate() {
            if uid.is_empty() {
                problems.invalid(&list.index(index), json(uid), "must not be empty");
            } else if !seen.insert(uid) {
                problems.duplicate(&list.index(index), uid);
            }
        }
    }
}

fn check_terminal_conditions(
    spec: &JobSpec,
    status: &JobStatus,
    old: &JobStatus,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let [complete, failed, failing, succeeding] =
        ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"].map(|c| is_true(status, c));
    let [was_complete, was_failed, _, was_succeeding] =
        ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"].map(|c| is_true(old, c));
    let is_finished = complete || failed;
    let conditions = path.child("conditions");
    let refuse = |is_wrong: bool, detail: &str, problems: &mut Problems| {
        if is_wrong {
            invalid_without_value(&conditions, detail, problems);
        }
    };
    refuse(
        complete && failed,
        "cannot set Complete=True and Failed=true conditions",
        problems,
    );
    refuse(
        complete && failing,
        "cannot set Complete=True and FailureTarget=true conditions",
        problems,
    );
    let completion = path.child("completionTime");
    match &status.completion_time {
        Some(time) if !complete => {
            let detail = "cannot set completionTime when there is no Complete=True condition";
            problems.invalid(&completion, json(time), detail);
        }
        None if complete && !was_complete => {
            problems.required(&completion, "completionTime is required for Complete jobs");
        }
        _ => {}
    }
    if let (Some(start), Some(end)) = (&status.start_time, &status.completion_time)
        && end < start
    {
        problems.invalid(
            &completion,
            json(end),
            "must be equal to or after `startTime`",
        );
    }
    refuse(
        failed && !failing && !was_failed,
        "cannot set Failed=True condition without the FailureTarget=true condition",
        problems,
    );
    refuse(
        complete && !succeeding && !was_complete,
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        problems,
    );
    let active = status.active.unwrap_or_default();
    if active > 0 && is_finished {
        problems.invalid(
            &path.child("active"),
            active,
            "active>0 is invalid for finished job",
        );
    }
    let is_empty_and_suspended = spec.suspend == Some(true) && spec.completions == Some(0);
    if is_finished && status.start_time.is_none() && !is_empty_and_suspended {
        problems.required(
            &path.child("startTime"),
            "startTime is required for finished job",
        );
    }
    refuse(
        succeeding && failed,
        "cannot set SuccessCriteriaMet=True and Failed=true conditions",
        problems,
    );
    refuse(
        succeeding && failing,
        "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        problems,
    );
    for condition in ["Failed", "Complete", "FailureTarget"] {
        if is_true(old, condition) && !is_true(status, condition) {
            let detail = format!("cannot disable the terminal {condition}=True condition");
            refuse(true, &detail, problems);
        }
    }
    refuse(
        was_succeeding && !succeeding,
        "cannot disable the SuccessCriteriaMet=True condition",
        problems,
    );
    refuse(
        was_complete && !was_succeeding && succeeding,
        "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
        problems,
    );
}

fn check_indexes(
    spec: &JobSpec,
    status: &JobStatus,
    old: &JobStatus,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let completed = text(&status.completed_indexes);
    let completed_path = path.child("completedIndexes");
    if completed != text(&old.completed_indexes) {
        if let Some(Err(reason)) = spec.completions.map(|c| count_indexes(completed, c)) {
            let detail = format!("error parsing completedIndexes: {reason}");
            problems.invalid(&completed_path, completed, detail);
        }
        if !completed.is_empty() && !is_indexed(spec) {
            let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
            problems.invalid(&completed_path, completed, detail);
        }
    }
    if let Some(failed) = status
        .failed_indexes
        .as_ref()
        .filter(|_| status.failed_indexes != old.failed_indexes)
    {
        let failed_path = path.child("failedIndexes");
        if spec.backoff_limit_per_index.is_none() {
            let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            problems.invalid(&failed_path, failed, detail);
        } else if let Some(Err(reason)) = spec.completions.map(|c| count_indexes(failed, c)) {
            let detail = format!("error parsing failedIndexes: {reason}");
            problems.invalid(&failed_path, json(failed), detail);
        }
    }
}

pub(super) fn validate_cron_job(job: &CronJob, rules: Rules, problems: &mut Problems) {
    metadata::check(
        &job.metadata,
        Scope::Namespaced,
        NameRule::Subdomain,
        problems,
    );
    check_cron_spec(&job.spec, None, rules, problems);
    let name = text(&job.metadata.name);
    if name.len() > MAX_CRON_JOB_NAME_BYTES {
        let meta = Path::new("metadata");
        problems.invalid(
            &meta.child("name"),
            name,
            "must be no more than 52 characters",
        );
    }
}

pub(super) fn validate_cron_job_update(
    new: &CronJob,
    old: &CronJob,
    rules: Rules,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    check_cron_spec(&new.spec, Some(&old.spec), rules, problems);
}

fn check_cron_spec(
    spec: &CronJobSpec,
    old: Option<&CronJobSpec>,
    rules: Rules,
    problems: &mut Problems,
) {
    let path = Path::new("spec");
    let schedule_path = path.child("schedule");
    match spec.schedule.as_str() {
        "" => problems.required(&schedule_path, ""),
        given => {
            if let Err(reason) = schedule::check(given) {
                problems.invalid(&schedule_path, given, reason);
            }
            let had_zone = old.is_some_and(|old| old.schedule.contains("TZ"));
            if given.contains("TZ") && !had_zone {
                let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
                problems.invalid(&schedule_path, given, detail);
            } else if given.contains("TZ") && spec.time_zone.is_some() {
                let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
                problems.invalid(&schedule_path, given, detail);
            }
        }
    }
    if let Some(seconds) = spec.starting_deadline_seconds {
        problems.nonnegative(&path.child("startingDeadlineSeconds"), seconds);
    }
    if old.is_none_or(|old| old.time_zone != spec.time_zone) {
        check_time_zone(spec.time_zone.as_deref(), &path.child("timeZone"), problems);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    let policy = text(&spec.concurrency_policy);
    problems.required_one_of(&path.child("concurrencyPolicy"), policy, &policies);
    let job = spec.job_template.spec.clone().unwrap_or_default();
    let template = path.child("jobTemplate");
    let job_path = template.child("spec");
    check_spec(&job, rules, &job_path, problems);
    if let Some(labels) = &job.selector {
        let shown = api("meta.LabelSelector", labels);
        problems.invalid(
            &job_path.child("selector"),
            shown,
            "`selector` will be auto-generated",
        );
    }
    if job.manual_selector == Some(true) {
        let path = job_path.child("manualSelector").to_string();
        let problem = Problem::not_supported(path, "", &["nil", "false"]);
        problems.push(problem.with_value("true"));
    }
    for (field, limit) in [
        (
            "successfulJobsHistoryLimit",
            spec.successful_jobs_history_limit,
        ),
        ("failedJobsHistoryLimit", spec.failed_jobs_history_limit),
    ] {
        problems.nonnegative(&path.child(field), limit.unwrap_or_default());
    }
}

fn check_time_zone(zone: Option<&str>, path: &Path<'_>, problems: &mut Problems) {
    let Some(zone) = zone else { return };
    if zone.is_empty() {
        let detail = "timeZone must be nil or non-empty string";
        return problems.invalid(path, json(&zone), detail);
    }
    let is_part = |part: &str| {
        (1..=14).contains(&part.len())
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-+".contains(&b))
            && !part.starts_with('-')
            && part != "."
            && part != ".."
    };
    if !zone.split('/').all(is_part) {
        return problems.invalid(path, json(&zone), format!("unknown time zone {zone}"));
    }
    if zone.eq_ignore_ascii_case("local") {
        let detail = "timeZone must be an explicit time zone as defined in \
                      https://www.iana.org/time-zones";
        problems.invalid(path, json(&zone), detail);
    }
}
