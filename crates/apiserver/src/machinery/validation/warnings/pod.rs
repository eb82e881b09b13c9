//! Warnings about pods and templates of pods.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    Container, ContainerPort, NodeSelectorTerm, PodSpec, PodTemplateSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use plimsoll_core::object::syntax::check_label_value;
use plimsoll_core::problem::quoted;
use plimsoll_core::quantity::Quantity;

use super::super::address::warning_for_ip;
use super::super::path::Path;
use super::super::pod::visit_containers;
use super::super::text;
use super::volume::volumes;

const SECCOMP_FIELD: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";

const NULL_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// Deprecated node labels, with upstream's messages.
const DEPRECATED_LABELS: [(&str, &str); 8] = [
    (
        "beta.kubernetes.io/arch",
        "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
    ),
    (
        "beta.kubernetes.io/os",
        "deprecated since v1.14; use \"kubernetes.io/os\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    (
        "node-role.kubernetes.io/master",
        "use \"node-role.kubernetes.io/control-plane\" instead",
    ),
];

const DEPRECATED_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Whether the spec is a pod's own or a template's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpecOwner {
    Pod,
    Template,
}

/// Warnings about a template at `path`.
pub(super) fn template_warnings(template: &PodTemplateSpec, path: &Path<'_>) -> Vec<String> {
    let spec = template.spec.clone().unwrap_or_default();
    warnings(&spec, template.metadata.as_ref(), SpecOwner::Template, path)
}

/// Warnings about the spec of the pod or template at `root`.
pub(super) fn warnings(
    spec: &PodSpec,
    meta: Option<&ObjectMeta>,
    of: SpecOwner,
    root: &Path<'_>,
) -> Vec<String> {
    let path = root.child("spec");
    let mut warnings = Vec::new();
    placement(spec, &path, &mut warnings);
    let meta_path = root.child("metadata");
    let annotations_path = meta_path.child("annotations");
    let empty = BTreeMap::new();
    let annotations = meta
        .and_then(|meta| meta.annotations.as_ref())
        .unwrap_or(&empty);
    for (key, message) in DEPRECATED_ANNOTATIONS {
        if annotations.contains_key(key) {
            warnings.push(format!("{}: {message}", annotations_path.key(key)));
        }
    }
    volumes(spec, &path, &mut warnings);
    duplicates(spec, &path, &mut warnings);
    for name in ["memory", "ephemeral-storage"] {
        let amount = spec
            .overhead
            .as_ref()
            .and_then(|overhead| overhead.get(name));
        fractional(
            amount.map(|q| q.0.as_str()),
            &path.child("overhead").key(name),
            &mut warnings,
        );
    }
    let seccomp = spec
        .security_context
        .as_ref()
        .and_then(|c| c.seccomp_profile.as_ref());
    let key = "seccomp.security.alpha.kubernetes.io/pod";
    if seccomp.is_none() && annotations.contains_key(key) {
        warnings.push(format!("{}: {SECCOMP_FIELD}", annotations_path.key(key)));
    }
    visit_containers(spec, &path, |container, path| {
        container_annotations(
            spec,
            container,
            annotations,
            of,
            &annotations_path,
            &mut warnings,
        );
        container_amounts(container, path, &mut warnings);
        hidden_variables(container, path, &mut warnings);
    });
    ports(spec, &path, &mut warnings);
    if spec
        .termination_grace_period_seconds
        .is_some_and(|seconds| seconds < 0)
    {
        warnings.push(format!(
            "{}: must be >= 0; negative values are invalid and will be treated as 1",
            path.child("terminationGracePeriodSeconds")
        ));
    }
    pod_affinity(spec, &path, &mut warnings);
    addresses(spec, &path, &mut warnings);
    warnings
}

fn deprecated_label(key: &str) -> Option<&'static str> {
    DEPRECATED_LABELS
        .iter()
        .find(|(label, _)| *label == key)
        .map(|(_, message)| *message)
}

fn placement(spec: &PodSpec, path: &Path<'_>, warnings: &mut Vec<String>) {
    let selector = path.child("nodeSelector");
    for key in spec.node_selector.iter().flatten().map(|(key, _)| key) {
        if let Some(message) = deprecated_label(key) {
            warnings.push(format!("{}: {message}", selector.key(key)));
        }
    }
    if let Some(node) = spec
        .affinity
        .as_ref()
        .and_then(|a| a.node_affinity.as_ref())
    {
        let affinity = path.child("affinity");
        let node_path = affinity.child("nodeAffinity");
        if let Some(required) = &node.required_during_scheduling_ignored_during_execution {
            let required_path = node_path.child("requiredDuringSchedulingIgnoredDuringExecution");
            let list = required_path.child("nodeSelectorTerms");
            for (index, term) in required.node_selector_terms.iter().enumerate() {
                node_term(term, false, &list.index(index), warnings);
            }
        }
        let list = node_path.child("preferredDuringSchedulingIgnoredDuringExecution");
        let terms = node
            .preferred_during_scheduling_ignored_during_execution
            .iter()
            .flatten();
        for (index, term) in terms.enumerate() {
            let path = list.index(index);
            node_term(&term.preference, true, &path.child("preference"), warnings);
        }
    }
    let list = path.child("topologySpreadConstraints");
    for (index, constraint) in spec
        .topology_spread_constraints
        .iter()
        .flatten()
        .enumerate()
    {
        let path = list.index(index);
        let key = &constraint.topology_key;
        if let Some(message) = deprecated_label(key) {
            warnings.push(format!("{}: {key} is {message}", path.child("topologyKey")));
        }
        if constraint.label_selector.is_none() {
            warnings.push(format!("{}: {NULL_SELECTOR}", path.child("labelSelector")));
        }
    }
}

fn node_term(
    term: &NodeSelectorTerm,
    checks_values: bool,
    path: &Path<'_>,
    warnings: &mut Vec<String>,
) {
    let list = path.child("matchExpressions");
    for (index, expression) in term.match_expressions.iter().flatten().enumerate() {
        let path = list.index(index);
        if let Some(message) = deprecated_label(&expression.key) {
            warnings.push(format!(
                "{}: {} is {message}",
                path.child("key"),
                expression.key
            ));
        }
        if !checks_values {
            continue;
        }
        let values = path.child("values");
        for (index, value) in expression.values.iter().flatten().enumerate() {
            for rule in check_label_value(value) {
                warnings.push(format!(
                    "{}: {value} is invalid, {rule}",
                    values.index(index)
                ));
            }
        }
    }
}

fn duplicates(spec: &PodSpec, path: &Path<'_>, warnings: &mut Vec<String>) {
    let list = path.child("hostAliases");
    let mut seen = BTreeSet::new();
    for (index, alias) in spec.host_aliases.iter().flatten().enumerate() {
        if !seen.insert(&alias.ip) {
            let path = list.index(index);
            warnings.push(format!(
                "{}: duplicate ip {}",
                path.child("ip"),
                quoted(&alias.ip)
            ));
        }
    }
    let list = path.child("imagePullSecrets");
    let secrets = spec.image_pull_secrets.as_deref().unwrap_or_default();
    let mut seen = BTreeSet::new();
    for (index, secret) in secrets.iter().enumerate() {
        if !seen.insert(&secret.name) {
            let path = list.index(index);
            warnings.push(format!(
                "{}: duplicate name {}",
                path.child("name"),
                quoted(&secret.name)
            ));
        }
    }
    for (index, _) in secrets
        .iter()
        .enumerate()
        .filter(|(_, secret)| secret.name.is_empty())
    {
        let path = list.index(index);
        warnings.push(format!("{}: invalid empty name \"\"", path.child("name")));
    }
}

fn fractional(amount: Option<&str>, path: &Path<'_>, warnings: &mut Vec<String>) {
    let quantity = amount.and_then(|amount| amount.parse::<Quantity>().ok());
    if let Some(quantity) = quantity.filter(|quantity| quantity.milli_value() % 1000 != 0) {
        let shown = quoted(&quantity.to_string());
        warnings.push(format!(
            "{path}: fractional byte value {shown} is invalid, must be an integer"
        ));
    }
}

fn container_annotations(
    spec: &PodSpec,
    container: &Container,
    annotations: &BTreeMap<String, String>,
    of: SpecOwner,
    path: &Path<'_>,
    warnings: &mut Vec<String>,
) {
    if annotations.is_empty() {
        return;
    }
    let context = container.security_context.as_ref();
    let key = format!(
        "container.seccomp.security.alpha.kubernetes.io/{}",
        container.name
    );
    if context.and_then(|c| c.seccomp_profile.as_ref()).is_none() && annotations.contains_key(&key)
    {
        warnings.push(format!("{}: {SECCOMP_FIELD}", path.key(&key)));
    }
    let own = context.and_then(|context| context.app_armor_profile.as_ref());
    let pod = spec
        .security_context
        .as_ref()
        .and_then(|c| c.app_armor_profile.as_ref());
    let key = format!(
        "container.apparmor.security.beta.kubernetes.io/{}",
        container.name
    );
    if of == SpecOwner::Template
        && own.is_none()
        && let Some(annotation) = annotations.get(&key)
    {
        let says_the_same = pod.is_some_and(|profile| match profile.type_.as_str() {
            "Unconfined" => annotation == "unconfined",
            "RuntimeDefault" => annotation == "runtime/default",
            _ => annotation.strip_prefix("localhost/") == profile.localhost_profile.as_deref(),
        });
        if !says_the_same {
            let message = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
            warnings.push(format!("{}: {message}", path.key(&key)));
        }
    }
}

fn container_amounts(container: &Container, path: &Path<'_>, warnings: &mut Vec<String>) {
    let Some(resources) = &container.resources else {
        return;
    };
    let resources_path = path.child("resources");
    for name in ["memory", "ephemeral-storage"] {
        for (field, list) in [
            ("limits", &resources.limits),
            ("requests", &resources.requests),
        ] {
            let amount = list
                .as_ref()
                .and_then(|list| list.get(name))
                .map(|q| q.0.as_str());
            fractional(amount, &resources_path.child(field).key(name), warnings);
        }
    }
}

/// A duplicate variable hides the first one unless the second refers to it.
fn hidden_variables(container: &Container, path: &Path<'_>, warnings: &mut Vec<String>) {
    let list = path.child("env");
    let mut seen = BTreeSet::new();
    for (index, variable) in container.env.iter().flatten().enumerate() {
        if seen.insert(&variable.name) {
            continue;
        }
        let reference = format!("$({})", variable.name);
        let value = text(&variable.value);
        let builds_on_it =
            variable.value_from.is_none() && value != reference && value.contains(&reference);
        if !builds_on_it {
            warnings.push(format!(
                "{}: hides previous definition of {}, which may be dropped when using apply",
                list.index(index),
                quoted(&variable.name)
            ));
        }
    }
}

fn ports(spec: &PodSpec, path: &Path<'_>, warnings: &mut Vec<String>) {
    let mut known: Vec<(String, ContainerPort)> = Vec::new();
    visit_containers(spec, path, |container, path| {
        let list = path.child("ports");
        for (index, port) in container.ports.iter().flatten().enumerate() {
            let path = list.index(index).to_string();
            let host_port = port.host_port.unwrap_or_default();
            if !text(&port.host_ip).is_empty() && host_port == 0 {
                warnings.push(format!(
                    "{path}: hostIP set without hostPort: {}",
                    shown_port(port)
                ));
            }
            for (other_path, other) in &known {
                let is_same = (port.container_port, &port.protocol)
                    == (other.container_port, &other.protocol);
                if let Some(relation) = is_same.then(|| port_relation(port, other)).flatten() {
                    warnings.push(format!(
                        "{path}: {relation} port definition with {other_path}"
                    ));
                }
            }
            known.push((path, port.clone()));
        }
    });
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for (path, port) in &known {
        let name = text(&port.name);
        if name.is_empty() {
            continue;
        }
        match names.get(name) {
            Some(other) => warnings.push(format!(
                "{path}: duplicate port name {} with {other}, services and probes that select ports \
                 by name will use {other}",
                quoted(name)
            )),
            None => {
                names.insert(name, path);
            }
        }
    }
}

/// A port in the format of Go's structs.
fn shown_port(port: &ContainerPort) -> String {
    format!(
        "{{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
        text(&port.name),
        port.host_port.unwrap_or_default(),
        port.container_port,
        text(&port.protocol),
        text(&port.host_ip)
    )
}

/// The relation of two entries for the same container port, if it is worth a warning.
fn port_relation(port: &ContainerPort, other: &ContainerPort) -> Option<&'static str> {
    let (a, b) = (
        port.host_port.unwrap_or_default(),
        other.host_port.unwrap_or_default(),
    );
    let (ip, other_ip) = (text(&port.host_ip), text(&other.host_ip));
    if ip == other_ip && a == b {
        Some("duplicate")
    } else if a == 0 || b == 0 {
        Some("overlapping")
    } else if a == b && ip.is_empty() != other_ip.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

fn pod_affinity(spec: &PodSpec, path: &Path<'_>, warnings: &mut Vec<String>) {
    let Some(affinity) = &spec.affinity else {
        return;
    };
    let pods = affinity.pod_affinity.as_ref().map(|a| {
        (
            &a.required_during_scheduling_ignored_during_execution,
            &a.preferred_during_scheduling_ignored_during_execution,
        )
    });
    let anti = affinity.pod_anti_affinity.as_ref().map(|a| {
        (
            &a.required_during_scheduling_ignored_during_execution,
            &a.preferred_during_scheduling_ignored_during_execution,
        )
    });
    let affinity_path = path.child("affinity");
    for (field, terms) in [("podAffinity", pods), ("podAntiAffinity", anti)] {
        let Some((required, preferred)) = terms else {
            continue;
        };
        let path = affinity_path.child(field);
        let list = path.child("requiredDuringSchedulingIgnoredDuringExecution");
        for (index, term) in required.iter().flatten().enumerate() {
            if term.label_selector.is_none() {
                let path = list.index(index);
                warnings.push(format!("{}: {NULL_SELECTOR}", path.child("labelSelector")));
            }
        }
        let list = path.child("preferredDuringSchedulingIgnoredDuringExecution");
        for (index, term) in preferred.iter().flatten().enumerate() {
            if term.pod_affinity_term.label_selector.is_none() {
                let path = list.index(index);
                let path = path.child("podAffinityTerm");
                warnings.push(format!("{}: {NULL_SELECTOR}", path.child("labelSelector")));
            }
        }
    }
}

fn addresses(spec: &PodSpec, path: &Path<'_>, warnings: &mut Vec<String>) {
    let config = path.child("dnsConfig");
    let list = config.child("nameservers");
    let servers = spec
        .dns_config
        .iter()
        .flat_map(|config| config.nameservers.iter().flatten());
    for (index, server) in servers.enumerate() {
        warnings.extend(warning_for_ip(server, &list.index(index)));
    }
    let list = path.child("hostAliases");
    for (index, alias) in spec.host_aliases.iter().flatten().enumerate() {
        let path = list.index(index);
        warnings.extend(warning_for_ip(&alias.ip, &path.child("ip")));
    }
}
