//! Annotations of pods that the API defines.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodSpec, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plimsoll_core::problem::quoted;

use super::super::file_path::check_local_descending;
use super::super::path::Path;
use super::super::problems::Problems;
use super::super::text;
use super::{security, tolerations, visit_containers};

pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER_PREFIX: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR_PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";

type Annotations = BTreeMap<String, String>;

/// `path` is that of the annotations.
pub(super) fn check(
    annotations: Option<&Annotations>,
    spec: &PodSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let Some(annotations) = annotations else {
        return;
    };
    if let Some(value) = annotations.get(MIRROR)
        && text(&spec.node_name).is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        problems.invalid(&path.key(MIRROR), value, detail);
    }
    if let Some(value) = annotations
        .get(TOLERATIONS)
        .filter(|value| !value.is_empty())
    {
        match serde_json::from_str::<Vec<Toleration>>(value) {
            Ok(list) => tolerations::check(&list, &path.child(TOLERATIONS), problems),
            Err(error) => problems.invalid(path, TOLERATIONS, error.to_string()),
        }
    }
    if let Some(cost) = annotations
        .get(DELETION_COST)
        .filter(|cost| !is_deletion_cost(cost))
    {
        problems.invalid(&path.key(DELETION_COST), cost, "must be a 32bit integer");
    }
    if let Some(profile) = annotations.get(SECCOMP_POD) {
        check_seccomp(profile, &path.child(SECCOMP_POD), problems);
    }
    for (key, profile) in annotations {
        if key.starts_with(SECCOMP_CONTAINER_PREFIX) {
            check_seccomp(profile, &path.child(key), problems);
        }
    }
    for (key, profile) in annotations {
        if let Some(name) = key.strip_prefix(APP_ARMOR_PREFIX) {
            check_app_armor(name, profile, spec, &path.key(key), problems);
        }
    }
}

/// A number in upstream's strict format: no plus, no leading zeros.
fn is_deletion_cost(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let has_odd_start = text.starts_with('+') || (digits.len() > 1 && digits.starts_with('0'));
    !has_odd_start && text.parse::<i32>().is_ok()
}

fn check_seccomp(profile: &str, path: &Path<'_>, problems: &mut Problems) {
    match profile {
        "runtime/default" | "docker/default" | "unconfined" => {}
        _ => match profile.strip_prefix("localhost/") {
            Some(file) => check_local_descending(file, path, problems),
            None => problems.invalid(path, profile, "must be a valid seccomp profile"),
        },
    }
}

fn check_app_armor(
    name: &str,
    profile: &str,
    spec: &PodSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let mut is_there = false;
    visit_containers(spec, &Path::ROOT, |container, _| {
        is_there |= container.name == name
    });
    if !is_there {
        problems.invalid(path, name, "container not found");
    }
    let is_known = matches!(profile, "" | "runtime/default" | "unconfined")
        || profile.starts_with("localhost/");
    if !is_known {
        let detail = format!("invalid AppArmor profile name: {}", quoted(profile));
        problems.invalid(path, profile, detail);
    }
}

/// Some annotations are immutable.
pub(super) fn check_update(new: &Pod, old: &Pod, path: &Path<'_>, problems: &mut Problems) {
    let empty = Annotations::new();
    let before = old.metadata.annotations.as_ref().unwrap_or(&empty);
    let after = new.metadata.annotations.as_ref().unwrap_or(&empty);
    for key in before
        .iter()
        .filter(|(key, value)| after.get(*key) != Some(value))
        .map(|(k, _)| k)
    {
        if key.starts_with(APP_ARMOR_PREFIX) {
            problems.forbidden(
                &path.key(key),
                "may not remove or update AppArmor annotations",
            );
        }
        if key == MIRROR {
            problems.forbidden(
                &path.key(key),
                "may not remove or update mirror pod annotation",
            );
        }
    }
    for key in after.keys().filter(|key| !before.contains_key(*key)) {
        if key.starts_with(APP_ARMOR_PREFIX) {
            problems.forbidden(&path.key(key), "may not add AppArmor annotations");
        }
        if key == MIRROR {
            problems.forbidden(&path.key(key), "may not add mirror pod annotation");
        }
    }
    if let Some(spec) = &new.spec {
        check(Some(after), spec, path, problems);
    }
}

/// Annotations and fields for seccomp and AppArmor must agree.
pub(super) fn check_against_fields(
    meta: Option<&ObjectMeta>,
    spec: &PodSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let Some(annotations) = meta.and_then(|meta| meta.annotations.as_ref()) else {
        return;
    };
    let context = spec.security_context.as_ref();
    let context_path = path.child("securityContext");
    if let Some(profile) = context.and_then(|context| context.seccomp_profile.as_ref())
        && let Some(annotation) = annotations.get(SECCOMP_POD)
    {
        let path = context_path.child("seccompProfile");
        security::check_seccomp_match(annotation, profile, &path, problems);
    }
    visit_containers(spec, path, |container, path| {
        let profile = container
            .security_context
            .as_ref()
            .and_then(|c| c.seccomp_profile.as_ref());
        let annotation = annotations.get(&format!("{SECCOMP_CONTAINER_PREFIX}{}", container.name));
        if let (Some(profile), Some(annotation)) = (profile, annotation) {
            let context = path.child("securityContext");
            let path = context.child("seccompProfile");
            security::check_seccomp_match(annotation, profile, &path, problems);
        }
    });
    if spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return;
    }
    let pod_profile = context.and_then(|context| context.app_armor_profile.as_ref());
    visit_containers(spec, path, |container, path| {
        let own = container
            .security_context
            .as_ref()
            .and_then(|c| c.app_armor_profile.as_ref());
        let annotation = annotations.get(&format!("{APP_ARMOR_PREFIX}{}", container.name));
        if let (Some(profile), Some(annotation)) = (own.or(pod_profile), annotation) {
            let context = path.child("securityContext");
            let path = context.child("appArmorProfile");
            security::check_app_armor_match(annotation, profile, &path, problems);
        }
    });
}
