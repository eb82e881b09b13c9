//! Pods, and the pod specs in templates.
//!
//! Matches v1.36 pkg/apis/core/validation/validation.go, `ValidatePodSpec` and the functions around
//! it, in its order. Reading order: this file (the spec as a whole), `containers` and their parts
//! (`env`, `mounts`, `probes`, `security`, `windows`), `volumes` (`projected`, `legacy_volumes`),
//! `affinity`, `tolerations`, `dns`, `annotations`, then `update`, `resize` and `status`.

mod affinity;
mod annotations;
mod containers;
mod dns;
mod env;
mod legacy_volumes;
mod mounts;
mod probes;
mod projected;
mod resize;
mod security;
mod status;
pub(super) mod tolerations;
mod update;
mod volumes;
mod windows;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, Pod, PodResourceClaim, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plimsoll_core::admission::pod_validation::{validate_overhead, validate_pod_resources};
use plimsoll_core::object::pod::{PodView, as_container};
use plimsoll_core::object::syntax::check_label_key;

use super::metadata::{self, Scope, check_annotations, check_labels};
use super::names::{NameRule, dns_label, dns_subdomain};
use super::path::Path;
use super::problems::{Problems, json};
use super::{Rules, internal, text};

use mounts::Volumes;

pub(super) use affinity::check_node_selector;
pub(super) use resize::validate_resize;
pub(super) use status::validate_status_update;
pub(super) use update::{validate_ephemeral_containers_update, validate_update};
pub(super) use volumes::check_sources;

/// A new pod.
pub(super) fn validate(pod: &Pod, rules: Rules, problems: &mut Problems) {
    check_metadata_and_spec(pod, rules, problems);
    let Some(spec) = &pod.spec else { return };
    let path = Path::new("spec");
    if spec
        .ephemeral_containers
        .as_ref()
        .is_some_and(|list| !list.is_empty())
    {
        problems.forbidden(
            &path.child("ephemeralContainers"),
            "cannot be set on create",
        );
    }
    let is_gated = spec
        .scheduling_gates
        .as_ref()
        .is_some_and(|gates| !gates.is_empty());
    if is_gated && !text(&spec.node_name).is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        problems.forbidden(&path.child("nodeName"), detail);
    }
    annotations::check_against_fields(Some(&pod.metadata), spec, &path, problems);
}

/// The rules for new and updated pods.
fn check_metadata_and_spec(pod: &Pod, rules: Rules, problems: &mut Problems) {
    metadata::check(
        &pod.metadata,
        Scope::Namespaced,
        NameRule::Subdomain,
        problems,
    );
    let Some(spec) = &pod.spec else { return };
    let meta_path = Path::new("metadata");
    let annotations = pod.metadata.annotations.as_ref();
    annotations::check(annotations, spec, &meta_path.child("annotations"), problems);
    let path = Path::new("spec");
    check_spec(spec, Some(&pod.metadata), rules, &path, problems);
    if text(&spec.service_account_name).is_empty() {
        check_no_tokens(spec, &path, problems);
    }
    let init = spec.init_containers.as_deref().unwrap_or_default();
    for (field, list) in [
        ("containers", spec.containers.as_slice()),
        ("initContainers", init),
    ] {
        let path = path.child(field);
        for (index, container) in list.iter().enumerate() {
            containers::check_only_for_pod(container, &path.index(index), problems);
        }
    }
}

/// A pod without a service account has no token.
fn check_no_tokens(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let volumes = path.child("volumes");
    for (index, volume) in spec.volumes.iter().flatten().enumerate() {
        let volume_path = volumes.index(index);
        let projected = volume_path.child("projected");
        let sources = projected.child("sources");
        let given = volume
            .projected
            .iter()
            .flat_map(|p| p.sources.iter().flatten());
        for (index, source) in given.enumerate() {
            let path = sources.index(index);
            let detail = "must not be specified when serviceAccountName is not set";
            let is_set = source.service_account_token.is_some();
            problems.forbid_if(is_set, &path.child("serviceAccountToken"), detail);
        }
    }
}

/// The template of a workload's pods, at `path`.
pub(super) fn check_template(
    template: &PodTemplateSpec,
    rules: Rules,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let empty = PodSpec::default();
    let spec = template.spec.as_ref().unwrap_or(&empty);
    let meta = template.metadata.as_ref();
    check_labels(
        meta.and_then(|m| m.labels.as_ref()),
        &path.child("labels"),
        problems,
    );
    check_template_annotations(template, path, problems);
    let spec_path = path.child("spec");
    check_spec(spec, None, rules, &spec_path, problems);
    annotations::check_against_fields(meta, spec, &spec_path, problems);
    if spec
        .ephemeral_containers
        .as_ref()
        .is_some_and(|list| !list.is_empty())
    {
        let detail = "ephemeral containers not allowed in pod template";
        problems.forbidden(&spec_path.child("ephemeralContainers"), detail);
    }
}

/// The annotations of a template, which StatefulSets check twice.
pub(super) fn check_template_annotations(
    template: &PodTemplateSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let empty = PodSpec::default();
    let spec = template.spec.as_ref().unwrap_or(&empty);
    let given = template
        .metadata
        .as_ref()
        .and_then(|meta| meta.annotations.as_ref());
    let path = path.child("annotations");
    check_annotations(given, &path, problems);
    annotations::check(given, spec, &path, problems);
}

/// A spec under validation, with values that several parts need.
struct SpecCheck<'a> {
    spec: &'a PodSpec,
    /// The parsed form of the spec.
    view: PodView,
    volumes: Volumes<'a>,
    claim_names: BTreeSet<&'a str>,
    rules: Rules,
}

impl SpecCheck<'_> {
    fn uses_host_users(&self) -> bool {
        self.spec.host_users != Some(false)
    }
}

/// `meta` is the pod's, absent for templates.
fn check_spec(
    spec: &PodSpec,
    meta: Option<&ObjectMeta>,
    rules: Rules,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if spec.termination_grace_period_seconds.is_none() {
        problems.required(&path.child("terminationGracePeriodSeconds"), "");
    }
    let is_pod = meta.is_some();
    let given = spec.volumes.as_deref().unwrap_or_default();
    let volumes = volumes::check(given, meta, is_pod, &path.child("volumes"), problems);
    let claims = spec.resource_claims.as_deref().unwrap_or_default();
    let check = SpecCheck {
        spec,
        // Malformed quantities have been rejected by the decoder.
        view: PodView::from_spec(spec).unwrap_or_default(),
        volumes,
        claim_names: claims
            .iter()
            .map(|c| c.name.as_str())
            .filter(|n| !n.is_empty())
            .collect(),
        rules,
    };
    check_claims(claims, meta, &path.child("resourceClaims"), problems);
    check.check_containers(path, problems);
    check.check_init_containers(path, problems);
    check.check_ephemeral_containers(path, problems);
    let mut found = Vec::new();
    validate_pod_resources(
        spec,
        &check.view,
        &path.child("resources").to_string(),
        &mut found,
    );
    problems.extend(found);
    if spec.host_network == Some(true) {
        check_host_network_ports(spec, is_pod, path, problems);
    }
    check_placement(spec, path, problems);
    windows::check_host_process(spec, rules, path, problems);
    security::check_host_users(spec, path, problems);
    dns::check_hostname_override(spec, path, problems);
    check_names(spec, path, problems);
    let mut found = Vec::new();
    validate_overhead(
        &check.view.overhead,
        &path.child("overhead").to_string(),
        &mut found,
    );
    problems.extend(found);
    check_os(spec, path, problems);
    check_scheduling_group(spec, &path.child("schedulingGroup"), problems);
    check_env_files(spec, path, problems);
}

/// Policies and scheduling constraints.
fn check_placement(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    problems.required_one_of(
        &path.child("restartPolicy"),
        text(&spec.restart_policy),
        &["Always", "OnFailure", "Never"],
    );
    problems.required_one_of(
        &path.child("dnsPolicy"),
        text(&spec.dns_policy),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
    );
    check_labels(
        spec.node_selector.as_ref(),
        &path.child("nodeSelector"),
        problems,
    );
    security::check_pod(spec, &path.child("securityContext"), problems);
    if let Some(affinity) = &spec.affinity {
        affinity::check(affinity, &path.child("affinity"), problems);
    }
    dns::check(spec, &path.child("dnsConfig"), problems);
    let gates = path.child("readinessGates");
    for (index, gate) in spec.readiness_gates.iter().flatten().enumerate() {
        let path = gates.index(index);
        let name = &gate.condition_type;
        problems.invalid_each(&path.child("conditionType"), name, check_label_key(name));
    }
    let gates = path.child("schedulingGates");
    let mut seen = BTreeSet::new();
    for (index, gate) in spec.scheduling_gates.iter().flatten().enumerate() {
        let path = gates.index(index);
        problems.invalid_each(&path, &gate.name, check_label_key(&gate.name));
        if !seen.insert(&gate.name) {
            problems.duplicate(&path, &gate.name);
        }
    }
    let constraints = spec
        .topology_spread_constraints
        .as_deref()
        .unwrap_or_default();
    affinity::check_spread(
        constraints,
        &path.child("topologySpreadConstraints"),
        problems,
    );
}

fn check_names(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let check = |field: &str,
                 name: &Option<String>,
                 rule: fn(&str) -> Vec<String>,
                 problems: &mut Problems| {
        let name = text(name);
        if !name.is_empty() {
            problems.invalid_each(&path.child(field), name, rule(name));
        }
    };
    check(
        "serviceAccountName",
        &spec.service_account_name,
        dns_subdomain,
        problems,
    );
    check("nodeName", &spec.node_name, dns_subdomain, problems);
    if let Some(seconds) = spec.active_deadline_seconds {
        problems.in_range(
            &path.child("activeDeadlineSeconds"),
            seconds,
            1,
            i32::MAX.into(),
        );
    }
    check("hostname", &spec.hostname, dns_label, problems);
    check("subdomain", &spec.subdomain, dns_label, problems);
    let list = spec.tolerations.as_deref().unwrap_or_default();
    tolerations::check(list, &path.child("tolerations"), problems);
    let aliases = spec.host_aliases.as_deref().unwrap_or_default();
    dns::check_host_aliases(aliases, &path.child("hostAliases"), problems);
    check(
        "priorityClassName",
        &spec.priority_class_name,
        dns_subdomain,
        problems,
    );
    if let Some(name) = &spec.runtime_class_name {
        problems.invalid_each(&path.child("runtimeClassName"), name, dns_subdomain(name));
    }
    if let Some(policy) = &spec.preemption_policy {
        check_preemption_policy(policy, &path.child("preemptionPolicy"), problems);
    }
}

pub(super) fn check_preemption_policy(policy: &str, path: &Path<'_>, problems: &mut Problems) {
    problems.required_one_of(path, policy, &["PreemptLowerPriority", "Never"]);
}

fn check_os(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let Some(os) = &spec.os else { return };
    let os_path = path.child("os");
    match os.name.as_str() {
        "" => problems.required(&os_path.child("name"), ""),
        "linux" => security::check_linux(spec, path, problems),
        "windows" => windows::check_windows(spec, path, problems),
        other => problems.not_supported(&os_path, other, &["linux", "windows"]),
    }
}

fn check_scheduling_group(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let Some(group) = &spec.scheduling_group else {
        return;
    };
    let path = path.child("podGroupName");
    match &group.pod_group_name {
        None => problems.invalid(&path, json(&()), "must specify one of: `podGroupName`"),
        Some(name) => problems.invalid_each(&path, name, dns_subdomain(name)),
    }
}

/// With the host network a container's port is the host's port.
fn check_host_network_ports(
    spec: &PodSpec,
    is_pod: bool,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let list = path.child("containers");
    for (index, container) in spec.containers.iter().enumerate() {
        let container_path = list.index(index);
        let ports = container_path.child("ports");
        for (index, port) in container.ports.iter().flatten().enumerate() {
            let host_port = port.host_port.unwrap_or_default();
            if (is_pod || host_port != 0) && host_port != port.container_port {
                let path = ports.index(index);
                let detail = "must match `containerPort` when `hostNetwork` is true";
                problems.invalid(&path.child("hostPort"), host_port, detail);
            }
        }
    }
}

fn check_claims(
    claims: &[PodResourceClaim],
    meta: Option<&ObjectMeta>,
    list: &Path<'_>,
    problems: &mut Problems,
) {
    let annotations = meta.and_then(|meta| meta.annotations.as_ref());
    let is_mirror = annotations.is_some_and(|a| a.contains_key(annotations::MIRROR));
    let mut names = BTreeSet::new();
    for (index, claim) in claims.iter().enumerate() {
        if is_mirror {
            problems.forbidden(&Path::ROOT, "static pods do not support resource claims");
            continue;
        }
        let path = list.index(index);
        let name_path = path.child("name");
        let name = claim.name.as_str();
        if name.is_empty() {
            problems.required(&name_path, "");
        } else if names.contains(name) {
            problems.duplicate(&name_path, name);
        } else {
            problems.invalid_each(&name_path, name, dns_label(name));
            names.insert(name);
        }
        check_claim_source(claim, &path, problems);
    }
}

fn check_claim_source(claim: &PodResourceClaim, path: &Path<'_>, problems: &mut Problems) {
    let shown = || {
        json(&internal::PodResourceClaim {
            name: &claim.name,
            resource_claim_name: claim.resource_claim_name.as_deref(),
            resource_claim_template_name: claim.resource_claim_template_name.as_deref(),
        })
    };
    match (
        &claim.resource_claim_name,
        &claim.resource_claim_template_name,
    ) {
        (Some(_), Some(_)) => {
            let detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
            problems.invalid(path, shown(), detail);
        }
        (None, None) => {
            let detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
            problems.invalid(path, shown(), detail);
        }
        _ => {}
    }
    for (field, name) in [
        ("resourceClaimName", &claim.resource_claim_name),
        (
            "resourceClaimTemplateName",
            &claim.resource_claim_template_name,
        ),
    ] {
        if let Some(name) = name {
            problems.invalid_each(&path.child(field), name, dns_subdomain(name));
        }
    }
}

/// Environment files need a volume that is an empty directory.
fn check_env_files(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    visit_containers(spec, path, |container, path| {
        let env = path.child("env");
        for (index, variable) in container.env.iter().flatten().enumerate() {
            let source = variable.value_from.as_ref();
            let Some(file) = source.and_then(|source| source.file_key_ref.as_ref()) else {
                continue;
            };
            let variable_path = env.index(index);
            let from = variable_path.child("valueFrom");
            let reference = from.child("fileKeyRef");
            let path = reference.child("volumeName");
            let name = &file.volume_name;
            let volume = spec
                .volumes
                .iter()
                .flatten()
                .rfind(|volume| volume.name == *name);
            match volume {
                None => problems.not_found(&path, name),
                Some(volume) if volume.empty_dir.is_none() => {
                    problems.invalid(&path, name, "referenced volume must be of type emptyDir");
                }
                Some(_) => {}
            }
        }
    });
}

/// Calls `visit` with each container and its path: init containers, containers, ephemeral ones.
pub(super) fn visit_containers(
    spec: &PodSpec,
    path: &Path<'_>,
    mut visit: impl FnMut(&Container, &Path<'_>),
) {
    let list = path.child("initContainers");
    for (index, container) in spec.init_containers.iter().flatten().enumerate() {
        visit(container, &list.index(index));
    }
    let list = path.child("containers");
    for (index, container) in spec.containers.iter().enumerate() {
        visit(container, &list.index(index));
    }
    let list = path.child("ephemeralContainers");
    for (index, container) in spec.ephemeral_containers.iter().flatten().enumerate() {
        visit(&as_container(container), &list.index(index));
    }
}
