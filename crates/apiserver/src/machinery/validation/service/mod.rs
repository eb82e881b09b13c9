//! Services.
//!
//! Matches v1.36 pkg/apis/core/validation/validation.go, `ValidateService*`. A port for health
//! checks is not required, because none is allocated.

mod addresses;
mod traffic;

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use plimsoll_core::object::syntax::check_label_key;

use super::address::{check_ip, is_ip};
use super::metadata::{self, Scope};
use super::names::{NameRule, dns_label, dns_subdomain, port_name, port_number};
use super::path::Path;
use super::problems::{Problems, Shown};
use super::text;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

pub(super) fn validate(service: &Service, problems: &mut Problems) {
    let spec = service.spec.clone().unwrap_or_default();
    if !addresses::check_before_allocation(&spec, None, problems) {
        return;
    }
    metadata::check(
        &service.metadata,
        Scope::Namespaced,
        NameRule::Label,
        problems,
    );
    check(service, &spec, None, problems);
}

pub(super) fn validate_update(new: &Service, old: &Service, problems: &mut Problems) {
    let (spec, old_spec) = (
        new.spec.clone().unwrap_or_default(),
        old.spec.clone().unwrap_or_default(),
    );
    metadata::check_update(&new.metadata, &old.metadata, problems);
    addresses::check_update(&spec, &old_spec, problems);
    let class_path = Path::new("spec");
    let class_path = class_path.child("loadBalancerClass");
    if is(&spec, "LoadBalancer")
        && is(&old_spec, "LoadBalancer")
        && spec.load_balancer_class != old_spec.load_balancer_class
    {
        let shown = super::problems::json(&spec.load_balancer_class);
        problems.invalid(&class_path, shown, "may not change once set");
    }
    traffic::check_class(&spec, problems);
    traffic::check_update(&spec, &old_spec, problems);
    check(new, &spec, Some(old), problems);
}

pub(super) fn validate_status_update(new: &Service, old: &Service, problems: &mut Problems) {
    metadata::check_update(&new.metadata, &old.metadata, problems);
    let ingress = |service: &Service| {
        let status = service.status.clone().unwrap_or_default();
        status
            .load_balancer
            .unwrap_or_default()
            .ingress
            .unwrap_or_default()
    };
    let path = Path::new("status");
    let path = path.child("loadBalancer");
    let path = path.child("ingress");
    let entries = ingress(new);
    if !is(&new.spec.clone().unwrap_or_default(), "LoadBalancer") {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        problems.forbid_if(!entries.is_empty(), &path, detail);
        return;
    }
    let known: Vec<String> = ingress(old)
        .into_iter()
        .filter_map(|entry| entry.ip)
        .collect();
    for (index, entry) in entries.iter().enumerate() {
        let path = path.index(index);
        let (ip, hostname) = (text(&entry.ip), text(&entry.hostname));
        if !ip.is_empty() {
            check_ip(ip, &known, &path.child("ip"), problems);
        }
        let mode_path = path.child("ipMode");
        match &entry.ip_mode {
            None if ip.is_empty() => {}
            None => problems.required(&mode_path, "must be specified when `ip` is set"),
            Some(_) if ip.is_empty() => {
                problems.forbidden(&mode_path, "may not be specified when `ip` is not set");
            }
            Some(mode) => problems.one_of(&mode_path, mode, &["Proxy", "VIP"]),
        }
        if !hostname.is_empty() {
            let path = path.child("hostname");
            problems.invalid_each(&path, hostname, dns_subdomain(hostname));
            if is_ip(hostname) {
                problems.invalid(&path, hostname, "must be a DNS name, not an IP address");
            }
        }
    }
}

fn is(spec: &ServiceSpec, service_type: &str) -> bool {
    text(&spec.type_) == service_type
}

/// Whether the service is headless.
fn is_headless(spec: &ServiceSpec) -> bool {
    spec.cluster_ips
        .as_deref()
        .is_some_and(|ips| ips == ["None"])
}

fn check(service: &Service, spec: &ServiceSpec, old: Option<&Service>, problems: &mut Problems) {
    check_topology(service, problems);
    let path = Path::new("spec");
    let ports = spec.ports.as_deref().unwrap_or_default();
    let ports_path = path.child("ports");
    if ports.is_empty() && !is_headless(spec) && !is(spec, "ExternalName") {
        problems.required(&ports_path, "");
    }
    check_type(spec, &path, problems);
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = ports_path.index(index);
        check_port(port, ports.len() > 1, &mut names, &path, problems);
    }
    metadata::check_labels(spec.selector.as_ref(), &path.child("selector"), problems);
    traffic::check_affinity(spec, &path, problems);
    let old_spec = old.and_then(|old| old.spec.as_ref());
    addresses::check(spec, old_spec, problems);
    addresses::check_external(spec, old_spec, &path, problems);
    problems.required_one_of(&path.child("type"), text(&spec.type_), &TYPES);
    check_port_numbers(spec, ports, &ports_path, problems);
    traffic::check(service, spec, old, &path, problems);
}

/// Two annotations with the same meaning must agree.
fn check_topology(service: &Service, problems: &mut Problems) {
    let annotation = |key: &str| service.metadata.annotations.as_ref()?.get(key);
    if let (Some(hints), Some(mode)) = (annotation(TOPOLOGY_HINTS), annotation(TOPOLOGY_MODE))
        && hints != mode
    {
        let path = Path::new("metadata");
        let path = path.child("annotations");
        let detail = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
        problems.invalid(&path.key(TOPOLOGY_MODE), mode, detail);
    }
}

fn check_type(spec: &ServiceSpec, path: &Path<'_>, problems: &mut Problems) {
    let ips_path = path.child("clusterIPs");
    match text(&spec.type_) {
        name @ ("LoadBalancer" | "NodePort") if is_headless(spec) => {
            let detail = format!("may not be set to 'None' for {name} services");
            problems.invalid(&ips_path.index(0), "None", detail);
        }
        "ExternalName" => {
            let detail = "may not be set for ExternalName services";
            let has_ips = spec.cluster_ips.as_ref().is_some_and(|ips| !ips.is_empty());
            problems.forbid_if(has_ips, &ips_path, detail);
            let families = spec.ip_families.as_ref();
            let has_families = families.is_some_and(|families| !families.is_empty());
            problems.forbid_if(has_families, &path.child("ipFamilies"), detail);
            let has_policy = spec.ip_family_policy.is_some();
            problems.forbid_if(has_policy, &path.child("ipFamilyPolicy"), detail);
            let name = text(&spec.external_name);
            let name = name.strip_suffix('.').unwrap_or(name);
            let path = path.child("externalName");
            if name.is_empty() {
                problems.required(&path, "");
            } else {
                problems.invalid_each(&path, name, dns_subdomain(name));
            }
        }
        _ => {}
    }
}

fn check_port<'a>(
    port: &'a ServicePort,
    needs_name: bool,
    names: &mut BTreeSet<&'a str>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let name_path = path.child("name");
    match text(&port.name) {
        "" if needs_name => problems.required(&name_path, ""),
        "" => {}
        name => {
            problems.invalid_each(&name_path, name, dns_label(name));
            if !names.insert(name) {
                problems.duplicate(&name_path, name);
            }
        }
    }
    for rule in port_number(port.port) {
        problems.invalid(&path.child("port"), port.port, rule);
    }
    let protocol = text(&port.protocol);
    problems.required_one_of(&path.child("protocol"), protocol, &PROTOCOLS);
    let target_path = path.child("targetPort");
    match &port.target_port {
        Some(IntOrString::String(name)) => {
            problems.invalid_each(&target_path, name, port_name(name));
        }
        number => {
            let number = match number {
                Some(IntOrString::Int(number)) => *number,
                _ => 0,
            };
            for rule in port_number(number) {
                problems.invalid(&target_path, number, rule);
            }
        }
    }
    if let Some(protocol) = &port.app_protocol {
        let path = path.child("appProtocol");
        problems.invalid_each(&path, protocol, check_label_key(protocol));
    }
}

/// Node ports are for some types only, and must be unique.
fn check_port_numbers(
    spec: &ServiceSpec,
    ports: &[ServicePort],
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let node_port = |port: &ServicePort| port.node_port.unwrap_or_default();
    let with_node_port = || {
        let ports = ports.iter().enumerate();
        ports.filter(|(_, port)| node_port(port) != 0)
    };
    if is(spec, "ClusterIP") {
        for (index, _) in with_node_port() {
            let detail = "may not be used when `type` is 'ClusterIP'";
            let path = path.index(index);
            problems.forbidden(&path.child("nodePort"), detail);
        }
    }
    let mut seen = BTreeSet::new();
    for (index, port) in with_node_port() {
        if !seen.insert((text(&port.protocol), node_port(port))) {
            let path = path.index(index);
            problems.duplicate_bare(&path.child("nodePort"), Shown::from(node_port(port)));
        }
    }
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let protocol = text(&port.protocol);
        if !seen.insert((protocol, port.port)) {
            // Upstream shows its internal form of a port with nothing else set.
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":\"{protocol}\",\"AppProtocol\":null,\"Port\":{},\
                 \"TargetPort\":0,\"NodePort\":0}}",
                port.port
            );
            problems.duplicate_bare(&path.index(index), Shown::bare(shown));
        }
    }
}
