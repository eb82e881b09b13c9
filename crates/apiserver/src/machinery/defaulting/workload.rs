//! Defaults of the apps and batch groups.

use serde_json::{Value, json};

use super::{Object, child, default, text};

pub(super) fn of(name: &str) -> Option<fn(&mut Object)> {
    Some(match name {
        "Deployment" => |object| deployment(child(object, "spec")),
        "DaemonSet" => |object| daemon_set(child(object, "spec")),
        "StatefulSet" => |object| stateful_set(child(object, "spec")),
        "ReplicaSet" => |object| default(child(object, "spec"), "replicas", 1),
        "Job" => job,
        "CronJob" => |object| {
            let spec = child(object, "spec");
            default(spec, "concurrencyPolicy", "Allow");
            default(spec, "suspend", false);
            default(spec, "successfulJobsHistoryLimit", 3);
            default(spec, "failedJobsHistoryLimit", 1);
        },
        "PodFailurePolicyOnPodConditionsPattern" => |pattern| {
            if text(pattern, "status").is_empty() {
                pattern.insert("status".to_owned(), Value::from("True"));
            }
        },
        _ => return None,
    })
}

fn deployment(spec: &mut Object) {
    default(spec, "replicas", 1);
    let strategy = child(spec, "strategy");
    default(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        default(rolling, "maxUnavailable", "25%");
        default(rolling, "maxSurge", "25%");
    }
    default(spec, "revisionHistoryLimit", 10);
    default(spec, "progressDeadlineSeconds", 600);
}

fn daemon_set(spec: &mut Object) {
    let strategy = child(spec, "updateStrategy");
    default(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        default(rolling, "maxUnavailable", 1);
        default(rolling, "maxSurge", 0);
    }
    default(spec, "revisionHistoryLimit", 10);
}

fn stateful_set(spec: &mut Object) {
    default(spec, "podManagementPolicy", "OrderedReady");
    let strategy = child(spec, "updateStrategy");
    if !strategy.contains_key("type") {
        default(strategy, "type", "RollingUpdate");
        default(strategy, "rollingUpdate", json!({}));
    }
    if text(strategy, "type") == "RollingUpdate" && strategy.contains_key("rollingUpdate") {
        default(child(strategy, "rollingUpdate"), "partition", 0);
    }
    let retention = child(spec, "persistentVolumeClaimRetentionPolicy");
    default(retention, "whenDeleted", "Retain");
    default(retention, "whenScaled", "Retain");
    default(spec, "replicas", 1);
    default(spec, "revisionHistoryLimit", 10);
}

fn job(object: &mut Object) {
    let spec = child(object, "spec");
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        default(spec, "completions", 1);
    }
    default(spec, "parallelism", 1);
    let is_indexed = spec.contains_key("backoffLimitPerIndex");
    default(spec, "backoffLimit", if is_indexed { i32::MAX } else { 6 });
    default(spec, "completionMode", "NonIndexed");
    default(spec, "suspend", false);
    let has_failure_policy = spec.contains_key("podFailurePolicy");
    let replacement = if has_failure_policy {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    default(spec, "podReplacementPolicy", replacement);
    default(spec, "manualSelector", false);
    let labels = child(child(spec, "template"), "metadata")
        .get("labels")
        .cloned();
    if let Some(labels) = labels {
        default(child(object, "metadata"), "labels", labels);
    }
}
