//! Environment variables.

use k8s_openapi::api::core::v1::{
    Container, EnvFromSource, EnvVar, FileKeySelector, ObjectFieldSelector, ResourceFieldSelector,
};
use plimsoll_core::quantity::Quantity;

use super::super::file_path::check_no_backsteps;
use super::super::names::{NameRule, config_map_key, dns_label, dns_subdomain, env_var_name};
use super::super::path::Path;
use super::super::problems::Problems;
use super::super::selector::check_key;
use super::super::text;

const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCE_FIELDS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const BYTE_DIVISORS: [&str; 13] = [
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
];
const MORE_THAN_ONE: &str = "may not have more than one field specified at a time";

pub(super) fn check(container: &Container, path: &Path<'_>, problems: &mut Problems) {
    let env = path.child("env");
    for (index, variable) in container.env.iter().flatten().enumerate() {
        let path = env.index(index);
        match variable.name.as_str() {
            "" => problems.required(&path.child("name"), ""),
            name => problems.invalid_each(&path.child("name"), name, env_var_name(name)),
        }
        check_value_from(variable, &path.child("valueFrom"), problems);
    }
    let env_from = path.child("envFrom");
    for (index, source) in container.env_from.iter().flatten().enumerate() {
        check_env_from(source, &env_from, index, problems);
    }
}

fn check_value_from(variable: &EnvVar, path: &Path<'_>, problems: &mut Problems) {
    let Some(from) = &variable.value_from else {
        return;
    };
    let mut sources = 0;
    if let Some(field) = &from.field_ref {
        sources += 1;
        check_field_ref(field, &ENV_FIELDS, &path.child("fieldRef"), problems);
    }
    if let Some(resource) = &from.resource_field_ref {
        sources += 1;
        let path = path.child("resourceFieldRef");
        check_resource_field_ref(resource, ContainerScope::Own, &path, problems);
    }
    if let Some(key) = &from.config_map_key_ref {
        sources += 1;
        check_key_ref(
            &key.name,
            &key.key,
            &path.child("configMapKeyRef"),
            problems,
        );
    }
    if let Some(key) = &from.secret_key_ref {
        sources += 1;
        check_key_ref(&key.name, &key.key, &path.child("secretKeyRef"), problems);
    }
    if let Some(key) = &from.file_key_ref {
        sources += 1;
        check_file_key_ref(key, &path.child("fileKeyRef"), problems);
    }
    let detail = match sources {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
             `secretKeyRef` or `fileKeyRef`"
        }
        _ if !text(&variable.value).is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => MORE_THAN_ONE,
    };
    problems.invalid(path, "", detail);
}

fn check_key_ref(name: &str, key: &str, path: &Path<'_>, problems: &mut Problems) {
    problems.invalid_each(&path.child("name"), name, dns_subdomain(name));
    match key {
        "" => problems.required(&path.child("key"), ""),
        key => problems.invalid_each(&path.child("key"), key, config_map_key(key)),
    }
}

fn check_file_key_ref(key: &FileKeySelector, path: &Path<'_>, problems: &mut Problems) {
    match key.key.as_str() {
        "" => problems.required(&path.child("key"), ""),
        name => problems.invalid_each(&path.child("key"), name, env_var_name(name)),
    }
    match key.volume_name.as_str() {
        "" => problems.required(&path.child("volumeName"), ""),
        name => problems.invalid_each(&path.child("volumeName"), name, dns_label(name)),
    }
    match key.path.as_str() {
        "" => problems.required(&path.child("path"), ""),
        target => check_no_backsteps(target, &path.child("path"), problems),
    }
}

/// Both sources of one entry are checked, and errors about their number are reported for the
/// list as a whole.
fn check_env_from(source: &EnvFromSource, list: &Path<'_>, index: usize, problems: &mut Problems) {
    let path = list.index(index);
    let prefix = text(&source.prefix);
    if !prefix.is_empty() {
        problems.invalid_each(&path.child("prefix"), prefix, env_var_name(prefix));
    }
    let mut sources = 0;
    for (field, name) in [
        (
            "configMapRef",
            source.config_map_ref.as_ref().map(|r| &r.name),
        ),
        ("secretRef", source.secret_ref.as_ref().map(|r| &r.name)),
    ] {
        let Some(name) = name else { continue };
        sources += 1;
        let path = path.child(field);
        match name.as_str() {
            "" => problems.required(&path.child("name"), ""),
            name => {
                let broken = NameRule::Subdomain.check_prefix(name);
                problems.invalid_each(&path.child("name"), name, broken);
            }
        }
    }
    match sources {
        0 => problems.invalid(
            list,
            "",
            "must specify one of: `configMapRef` or `secretRef`",
        ),
        1 => {}
        _ => problems.invalid(list, "", MORE_THAN_ONE),
    }
}

/// A field of the pod; `supported` are those without a subscript.
pub(super) fn check_field_ref(
    field: &ObjectFieldSelector,
    supported: &[&str],
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let version = text(&field.api_version);
    let label = field.field_path.as_str();
    if version.is_empty() {
        return problems.required(&path.child("apiVersion"), "");
    }
    if label.is_empty() {
        return problems.required(&path.child("fieldPath"), "");
    }
    let label = match convert_field_label(version, label) {
        Ok(label) => label,
        Err(reason) => {
            let detail = format!("error converting fieldPath: {reason}");
            return problems.invalid(&path.child("fieldPath"), label, detail);
        }
    };
    match split_subscript(label) {
        Some(("metadata.annotations", key)) => check_key(&key.to_lowercase(), path, problems),
        Some((_, key)) => check_key(key, path, problems),
        None if !supported.contains(&label) => {
            problems.not_supported(&path.child("fieldPath"), label, supported);
        }
        None => {}
    }
}

/// Matches v1.36 pkg/apis/core/pods/helpers.go, `ConvertDownwardAPIFieldLabel`.
fn convert_field_label<'a>(version: &str, label: &'a str) -> Result<&'a str, String> {
    if version != "v1" {
        return Err(format!("unsupported pod version: {version}"));
    }
    if let Some((field, _)) = split_subscript(label) {
        return match field {
            "metadata.annotations" | "metadata.labels" => Ok(label),
            _ => Err(format!("field label does not support subscript: {label}")),
        };
    }
    match label {
        "metadata.annotations"
        | "metadata.labels"
        | "metadata.name"
        | "metadata.namespace"
        | "metadata.uid"
        | "spec.nodeName"
        | "spec.restartPolicy"
        | "spec.serviceAccountName"
        | "spec.schedulerName"
        | "status.phase"
        | "status.hostIP"
        | "status.hostIPs"
        | "status.podIP"
        | "status.podIPs" => Ok(label),
        "spec.host" => Ok("spec.nodeName"),
        _ => Err(format!("field label not supported: {label}")),
    }
}

/// `metadata.labels['x']` in its two parts.
fn split_subscript(label: &str) -> Option<(&str, &str)> {
    let (field, key) = label.strip_suffix("']")?.split_once("['")?;
    (!field.is_empty()).then_some((field, key))
}

/// The container whose resources a reference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainerScope {
    /// The container itself.
    Own,
    /// A container that has to be named.
    Named,
}

pub(super) fn check_resource_field_ref(
    field: &ResourceFieldSelector,
    whose: ContainerScope,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let resource = field.resource.as_str();
    let is_huge_pages =
        resource.starts_with("requests.hugepages-") || resource.starts_with("limits.hugepages-");
    if whose == ContainerScope::Named && text(&field.container_name).is_empty() {
        problems.required(&path.child("containerName"), "");
    } else if resource.is_empty() {
        problems.required(&path.child("resource"), "");
    } else if !is_huge_pages {
        problems.one_of(&path.child("resource"), resource, &RESOURCE_FIELDS);
    }
    let divisor = field
        .divisor
        .as_ref()
        .and_then(|divisor| divisor.0.parse::<Quantity>().ok());
    let Some(divisor) = divisor.filter(|divisor| !divisor.is_zero()) else {
        return;
    };
    let (supported, name): (&[&str], &str) = match resource {
        "limits.cpu" | "requests.cpu" => (&["1m", "1"], "cpu"),
        "limits.memory" | "requests.memory" => (&BYTE_DIVISORS, "memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => {
            (&BYTE_DIVISORS, "local ephemeral storage")
        }
        _ if is_huge_pages => (&BYTE_DIVISORS, "hugepages"),
        _ => return,
    };
    if !supported.contains(&divisor.to_string().as_str()) {
        let values = if name == "cpu" {
            "1m and 1".to_owned()
        } else {
            supported.join(", ")
        };
        let detail =
            format!("only divisor's values {values} are supported with the {name} resource");
        problems.invalid(&path.child("divisor"), resource, detail);
    }
}
