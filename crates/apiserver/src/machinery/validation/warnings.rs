//! Warnings: problems that the API reports without rejecting the object.
//!
//! Matches v1.36 pkg/api/pod/warnings.go and the strategies' `WarningsOnCreate`.

mod pod;
mod volume;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job, JobSpec};
use k8s_openapi::api::core::v1::{Node, Pod, PodTemplate, ReplicationController, ResourceQuota};
use plimsoll_core::quantity::Quantity;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::kinds::Kind;

use super::names::dns_label;
use super::path::Path;
use super::text;

/// Warnings about a new pod, in upstream's order.
pub(super) fn pod_warnings(pod: &Pod) -> Vec<String> {
    let name = text(&pod.metadata.name);
    let mut warnings = hostname_warning(name, "this is used in the Pod's hostname");
    if let Some(spec) = &pod.spec {
        let meta = Some(&pod.metadata);
        warnings.extend(pod::warnings(spec, meta, pod::SpecOwner::Pod, &Path::ROOT));
    }
    warnings
}

/// Warnings about a new object of another kind, in upstream's order.
pub(super) fn warnings_on_create(kind: &Kind, object: &Value) -> Vec<String> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let mut warnings = match (kind.group, kind.kind) {
        ("", "ReplicationController")
        | ("apps", "Deployment" | "ReplicaSet")
        | ("batch", "Job" | "CronJob") => {
            hostname_warning(name, "this is used in Pod names and hostnames")
        }
        _ => Vec::new(),
    };
    warnings.extend(body_warnings(kind, object));
    if (kind.group, kind.kind) == ("", "ResourceQuota") {
        warnings.extend(read(object).iter().flat_map(quota_warnings));
    }
    warnings
}

/// Warnings about an updated object.
pub fn warnings_on_update(kind: &Kind, new: &Value, old: &Value) -> Vec<String> {
    let generation = |object: &Value| object["metadata"]["generation"].clone();
    match (kind.group, kind.kind) {
        ("", "Node") => body_warnings(kind, new),
        ("apps" | "batch", _) | ("", "ReplicationController" | "PodTemplate")
            if generation(new) != generation(old) =>
        {
            body_warnings(kind, new)
        }
        _ => Vec::new(),
    }
}

fn body_warnings(kind: &Kind, object: &Value) -> Vec<String> {
    let spec = Path::new("spec");
    let template = spec.child("template");
    match (kind.group, kind.kind) {
        ("", "Node") => read(object).map(|node| node_warnings(&node)),
        ("", "PodTemplate") => read::<PodTemplate>(object)
            .and_then(|t| Some(pod::template_warnings(&t.template?, &Path::new("template")))),
        ("", "ReplicationController") => read::<ReplicationController>(object)
            .and_then(|r| Some(pod::template_warnings(&r.spec?.template?, &template))),
        ("apps", "Deployment") => read::<Deployment>(object)
            .and_then(|d| Some(pod::template_warnings(&d.spec?.template, &template))),
        ("apps", "DaemonSet") => read::<DaemonSet>(object)
            .and_then(|d| Some(pod::template_warnings(&d.spec?.template, &template))),
        ("apps", "ReplicaSet") => read::<ReplicaSet>(object)
            .and_then(|r| Some(pod::template_warnings(&r.spec?.template?, &template))),
        ("apps", "StatefulSet") => read::<StatefulSet>(object).and_then(|set| {
            let spec = set.spec?;
            let mut warnings = pod::template_warnings(&spec.template, &template);
            if spec.revision_history_limit.is_some_and(|limit| limit < 0) {
                let text = "spec.revisionHistoryLimit: a negative value retains all historical \
                            revisions; a value >= 0 is recommended";
                warnings.push(text.to_owned());
            }
            Some(warnings)
        }),
        ("batch", "Job") => {
            read::<Job>(object).and_then(|job| Some(job_warnings(&job.spec?, &spec)))
        }
        ("batch", "CronJob") => read::<CronJob>(object).and_then(|job| {
            let template = spec.child("jobTemplate");
            Some(job_warnings(
                &job.spec.job_template.spec?,
                &template.child("spec"),
            ))
        }),
        _ => None,
    }
    .unwrap_or_default()
}

fn read<T: DeserializeOwned>(object: &Value) -> Option<T> {
    T::deserialize(object).ok()
}

fn hostname_warning(name: &str, used: &str) -> Vec<String> {
    let broken = dns_label(name);
    if broken.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: {used}, which can result in surprising behavior; a DNS label is \
         recommended: [{}]",
        broken.join(" ")
    )]
}

fn node_warnings(node: &Node) -> Vec<String> {
    let spec = node.spec.clone().unwrap_or_default();
    let mut warnings = Vec::new();
    if spec.config_source.is_some() {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if !text(&spec.external_id).is_empty() {
        let warning = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
        warnings.push(warning.to_owned());
    }
    warnings
}

fn job_warnings(spec: &JobSpec, path: &Path<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let is_indexed = text(&spec.completion_mode) == "Indexed";
    let (completions, parallelism) = (
        spec.completions.unwrap_or_default(),
        spec.parallelism.unwrap_or_default(),
    );
    if is_indexed && completions > 100_000 && parallelism > 10_000 {
        warnings.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a \
             parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes \
             when a big number of indexes fail"
        ));
    }
    warnings.extend(pod::template_warnings(
        &spec.template,
        &path.child("template"),
    ));
    warnings
}

/// Requests that may be larger than limits cannot be used in full.
fn quota_warnings(quota: &ResourceQuota) -> Vec<String> {
    let hard = quota
        .spec
        .as_ref()
        .and_then(|spec| spec.hard.clone())
        .unwrap_or_default();
    let get = |name: String| {
        let quantity = hard.get(&name)?.0.parse::<Quantity>().ok()?;
        Some((name, quantity))
    };
    let mut warnings = Vec::new();
    for resource in ["cpu", "memory", "ephemeral-storage"] {
        let bare = || (resource != "ephemeral-storage").then(|| get(resource.to_owned()))?;
        let request = get(format!("requests.{resource}")).or_else(bare);
        if let (Some((request_name, request)), Some((limit_name, limit))) =
            (request, get(format!("limits.{resource}")))
            && request > limit
        {
            warnings.push(format!(
                "ResourceQuota {request_name} ({request}) should be less than {limit_name} ({limit})"
            ));
        }
    }
    warnings
}
