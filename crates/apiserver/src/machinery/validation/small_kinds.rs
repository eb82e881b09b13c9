//! Kinds with few rules of their own.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use plimsoll_core::admission::pod_validation::validate_overhead;
use plimsoll_core::admission::priority::system_priority_classes;
use plimsoll_core::object::parse_resource_list;
use plimsoll_core::object::syntax::check_label_key;
use serde_json::Value;

use super::metadata::{self, Scope, check_kube_finalizer, check_labels};
use super::names::{NameRule, dns_label};
use super::path::Path;
use super::problems::{Problems, json};
use super::workload::{check_at_most_100_percent, check_int_or_percent};
use super::{Part, pod, selector, text};

/// The highest value of a user-defined priority class.
const HIGHEST_USER_PRIORITY: i32 = 1_000_000_000;

pub(super) fn validate_namespace(namespace: &Namespace, problems: &mut Problems) {
    metadata::check(
        &namespace.metadata,
        Scope::Cluster,
        NameRule::Label,
        problems,
    );
    let path = Path::new("spec");
    let path = path.child("finalizers");
    for finalizer in finalizers(namespace) {
        check_finalizer(finalizer, &path, problems);
    }
}

fn finalizers(namespace: &Namespace) -> impl Iterator<Item = &String> {
    namespace
        .spec
        .iter()
        .flat_map(|spec| spec.finalizers.iter().flatten())
}

fn check_finalizer(finalizer: &str, path: &Path<'_>, problems: &mut Problems) {
    problems.invalid_each(path, finalizer, check_label_key(finalizer));
    check_kube_finalizer(finalizer, path, problems);
}

pub(super) fn validate_namespace_update(
    new: &Namespace,
    old: &Namespace,
    part: Part,
    problems: &mut Problems,
) {
    if part == Part::Main {
        validate_namespace(new, problems);
    }
    metadata::check_update(&new.metadata, &old.metadata, problems);
    match part {
        Part::Status => {
            let phase = new
                .status
                .as_ref()
                .map(|status| text(&status.phase))
                .unwrap_or_default();
            let (expected, detail) = if new.metadata.deletion_timestamp.is_none() {
                (
                    "Active",
                    "may only be 'Active' if `deletionTimestamp` is empty",
                )
            } else {
                (
                    "Terminating",
                    "may only be 'Terminating' if `deletionTimestamp` is not empty",
                )
            };
            if phase != expected {
                let path = Path::new("status");
                problems.invalid(&path.child("Phase"), json(&phase), detail);
            }
        }
        Part::Finalize => {
            let path = Path::new("spec");
            let list = path.child("finalizers");
            for (index, finalizer) in finalizers(new).enumerate() {
                check_finalizer(finalizer, &list.index(index), problems);
            }
        }
        _ => {}
    }
}

pub(super) fn validate_lease(lease: &Lease, problems: &mut Problems) {
    metadata::check(
        &lease.metadata,
        Scope::Namespaced,
        NameRule::Subdomain,
        problems,
    );
    check_lease_spec(lease, problems);
}

pub(super) fn validate_lease_update(new: &Lease, old: &Lease, problems: &mut Problems) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    check_lease_spec(new, problems);
}

fn check_lease_spec(lease: &Lease, problems: &mut Problems) {
    let Some(spec) = &lease.spec else { return };
    let path = Path::new("spec");
    if let Some(seconds) = spec.lease_duration_seconds.filter(|seconds| *seconds <= 0) {
        problems.invalid(
            &path.child("leaseDurationSeconds"),
            seconds,
            "must be greater than 0",
        );
    }
    if let Some(transitions) = spec.lease_transitions {
        problems.nonnegative(&path.child("leaseTransitions"), transitions);
    }
}

pub(super) fn validate_runtime_class(class: &RuntimeClass, problems: &mut Problems) {
    metadata::check(
        &class.metadata,
        Scope::Cluster,
        NameRule::Subdomain,
        problems,
    );
    let path = Path::new("handler");
    match class.handler.as_str() {
        "" => problems.required(&path, ""),
        handler => problems.invalid_each(&path, handler, dns_label(handler)),
    }
    if let Some(overhead) = &class.overhead {
        let mut found = Vec::new();
        let list = parse_resource_list("overhead", overhead.pod_fixed.as_ref(), &mut found);
        validate_overhead(&list, "overhead", &mut found);
        problems.extend(found);
    }
    let Some(scheduling) = &class.scheduling else {
        return;
    };
    let path = Path::new("scheduling");
    check_labels(
        scheduling.node_selector.as_ref(),
        &path.child("nodeSelector"),
        problems,
    );
    let tolerations = scheduling.tolerations.as_deref().unwrap_or_default();
    let list = path.child("tolerations");
    pod::tolerations::check(tolerations, &list, problems);
    let mut seen = BTreeSet::new();
    for (index, toleration) in tolerations.iter().enumerate() {
        let key = [
            &toleration.key,
            &toleration.operator,
            &toleration.value,
            &toleration.effect,
        ];
        if !seen.insert(key.map(text)) {
            #[derive(serde::Serialize)]
            #[serde(rename_all = "PascalCase")]
            struct Shown<'a> {
                key: &'a str,
                operator: &'a str,
                value: &'a str,
                effect: &'a str,
                toleration_seconds: Option<i64>,
            }
            let [key, operator, value, effect] = key.map(text);
            let toleration_seconds = toleration.toleration_seconds;
            let shown = Shown {
                key,
                operator,
                value,
                effect,
                toleration_seconds,
            };
            let problem =
                plimsoll_core::problem::Problem::duplicate(list.index(index).to_string(), "");
            problems.push(problem.with_value(plimsoll_core::problem::json_text(&shown)));
        }
    }
}

pub(super) fn validate_runtime_class_update(
    new: &RuntimeClass,
    old: &RuntimeClass,
    problems: &mut Problems,
) {
    validate_runtime_class(new, problems);
    metadata::check_update(&new.metadata, &old.metadata, problems);
    problems.immutable(&Path::new("handler"), &new.handler, &old.handler);
}

/// Upstream does not validate the metadata of budgets separately.
pub(super) fn validate_budget(budget: &PodDisruptionBudget, problems: &mut Problems) {
    check_budget_spec(&budget.spec.clone().unwrap_or_default(), problems);
}

pub(super) fn validate_budget_update(
    new: &PodDisruptionBudget,
    _old: &PodDisruptionBudget,
    part: Part,
    problems: &mut Problems,
) {
    if part != Part::Status {
        return check_budget_spec(&new.spec.clone().unwrap_or_default(), problems);
    }
    let Some(status) = &new.status else { return };
    let path = Path::new("status");
    for (field, count) in [
        ("disruptionsAllowed", status.disruptions_allowed),
        ("currentHealthy", status.current_healthy),
        ("desiredHealthy", status.desired_healthy),
        ("expectedPods", status.expected_pods),
    ] {
        problems.nonnegative(&path.child(field), count.unwrap_or_default());
    }
}

fn check_budget_spec(spec: &PodDisruptionBudgetSpec, problems: &mut Problems) {
    let path = Path::new("spec");
    if spec.min_available.is_some() && spec.max_unavailable.is_some() {
        #[derive(serde::Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Shown<'a, T: serde::Serialize> {
            min_available: &'a T,
            selector: Option<Value>,
            max_unavailable: &'a T,
            unhealthy_pod_eviction_policy: &'a Option<String>,
        }
        let shown = Shown {
            min_available: &spec.min_available,
            selector: spec
                .selector
                .as_ref()
                .and_then(|s| serde_json::to_value(s).ok()),
            max_unavailable: &spec.max_unavailable,
            unhealthy_pod_eviction_policy: &spec.unhealthy_pod_eviction_policy,
        };
        let detail = "minAvailable and maxUnavailable cannot be both set";
        problems.invalid(&path, json(&shown), detail);
    }
    for (field, value) in [
        ("minAvailable", &spec.min_available),
        ("maxUnavailable", &spec.max_unavailable),
    ] {
        if let Some(value) = value {
            check_int_or_percent(value, &path.child(field), problems);
            check_at_most_100_percent(value, &path.child(field), problems);
        }
    }
    selector::check(spec.selector.as_ref(), &path.child("selector"), problems);
    if let Some(policy) = &spec.unhealthy_pod_eviction_policy {
        let path = path.child("unhealthyPodEvictionPolicy");
        problems.one_of(&path, policy, &["AlwaysAllow", "IfHealthyBudget"]);
    }
}

pub(super) fn validate_priority_class(class: &PriorityClass, problems: &mut Problems) {
    metadata::check(
        &class.metadata,
        Scope::Cluster,
        NameRule::Subdomain,
        problems,
    );
    let name = text(&class.metadata.name);
    if name.starts_with("system-") {
        if let Some(reason) = unknown_system_class(class, name) {
            let meta = Path::new("metadata");
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. \
                 error: {reason}"
            );
            problems.forbidden(&meta.child("name"), detail);
        }
    } else if class.value > Some(HIGHEST_USER_PRIORITY) {
        let detail =
            format!("maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}");
        problems.forbidden(&Path::new("value"), detail);
    }
    if let Some(policy) = &class.preemption_policy {
        pod::check_preemption_policy(policy, &Path::new("preemptionPolicy"), problems);
    }
}

/// Why a class with the system's prefix is not one of its classes.
fn unknown_system_class(class: &PriorityClass, name: &str) -> Option<String> {
    let known = system_priority_classes();
    let Some(known) = known
        .iter()
        .find(|known| text(&known.metadata.name) == name)
    else {
        return Some(format!("{name} is not a known system priority class"));
    };
    let value = |class: &PriorityClass| class.value.unwrap_or_default();
    if value(class) != value(known) {
        return Some(format!(
            "value of {name} PriorityClass must be {}",
            value(known)
        ));
    }
    let is_default = |class: &PriorityClass| class.global_default.unwrap_or_default();
    (is_default(class) != is_default(known)).then(|| {
        format!(
            "globalDefault of {name} PriorityClass must be {}",
            is_default(known)
        )
    })
}

pub(super) fn validate_priority_class_update(
    new: &PriorityClass,
    old: &PriorityClass,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    if new.value.unwrap_or_default() != old.value.unwrap_or_default() {
        problems.forbidden(&Path::new("value"), "may not be changed in an update.");
    }
    let (new, old) = (&new.preemption_policy, &old.preemption_policy);
    problems.immutable(&Path::new("preemptionPolicy"), new, old);
}

pub(super) fn validate_revision(revision: &ControllerRevision, problems: &mut Problems) {
    check_revision(revision, problems);
    let path = Path::new("data");
    match revision.data.as_ref().map(|data| &data.0) {
        None | Some(Value::Null) => problems.required(&path, "data is mandatory"),
        Some(Value::Object(_)) => {}
        Some(_) => problems.required(&path, "data must be a valid JSON object"),
    }
}

fn check_revision(revision: &ControllerRevision, problems: &mut Problems) {
    metadata::check(
        &revision.metadata,
        Scope::Namespaced,
        NameRule::Subdomain,
        problems,
    );
    problems.nonnegative(&Path::new("revision"), revision.revision);
}

pub(super) fn validate_revision_update(
    new: &ControllerRevision,
    old: &ControllerRevision,
    problems: &mut Problems,
) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    check_revision(new, problems);
    problems.immutable(&Path::new("data"), &new.data, &old.data);
}
