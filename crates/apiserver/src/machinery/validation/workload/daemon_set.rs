//! DaemonSets.

use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::metadata::{self, Scope};
use super::super::names::NameRule;
use super::super::path::Path;
use super::super::problems::{Problems, api, json};
use super::super::{Part, Rules, internal, pod, selector, text};
use super::{
    Selector, amount, check_at_most_100_percent, check_collisions, check_counts,
    check_int_or_percent, check_runs_always, check_selector_unchanged, parsed, show_mismatch,
    template_labels,
};

pub(in super::super) fn validate_daemon_set(
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

pub(in super::super) fn validate_daemon_set_update(
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
            problems.not_supported_value(path, json(&shown), &["RollingUpdate", "OnDelete"]);
        }
    }
}
