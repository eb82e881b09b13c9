//! Traffic policies and load balancer settings of a service.

use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use plimsoll_core::object::syntax::check_label_key;

use super::super::address::check_cidr;
use super::super::names::port_number;
use super::super::path::Path;
use super::super::problems::Problems;
use super::super::text;
use super::is;

const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const LOAD_BALANCERS_ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
const POLICIES: [&str; 2] = ["Cluster", "Local"];
const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];
const MAX_AFFINITY_SECONDS: i32 = 86_400;

/// The session affinity.
pub(super) fn check_affinity(spec: &ServiceSpec, path: &Path<'_>, problems: &mut Problems) {
    let affinity = text(&spec.session_affinity);
    let affinity_path = path.child("sessionAffinity");
    problems.required_one_of(&affinity_path, affinity, &["ClientIP", "None"]);
    let path = path.child("sessionAffinityConfig");
    let config = spec.session_affinity_config.as_ref();
    if affinity == "None" {
        let detail = "must not be set when session affinity is None";
        problems.forbid_if(config.is_some(), &path, detail);
    }
    if affinity != "ClientIP" {
        return;
    }
    let needed = "when session affinity type is ClientIP";
    let Some(config) = config else {
        return problems.required(&path, needed);
    };
    let path = path.child("clientIP");
    let Some(client) = &config.client_ip else {
        return problems.required(&path, needed);
    };
    let path = path.child("timeoutSeconds");
    match client.timeout_seconds {
        None => problems.required(&path, needed),
        Some(seconds) if seconds <= 0 || seconds > MAX_AFFINITY_SECONDS => {
            let detail = format!("must be greater than 0 and less than {MAX_AFFINITY_SECONDS}");
            problems.invalid(&path, seconds, detail);
        }
        Some(_) => {}
    }
}

pub(super) fn check(
    service: &Service,
    spec: &ServiceSpec,
    old: Option<&Service>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    check_source_ranges(service, spec, old, path, problems);
    let allocate = spec.allocate_load_balancer_node_ports;
    let allocate_path = path.child("allocateLoadBalancerNodePorts");
    let is_balanced = is(spec, "LoadBalancer");
    let is_misplaced = allocate.is_some() && !is_balanced;
    problems.forbid_if(is_misplaced, &allocate_path, LOAD_BALANCERS_ONLY);
    if is_balanced && allocate.is_none() {
        problems.required(&Path::new("allocateLoadBalancerNodePorts"), "");
    }
    check_class(spec, problems);
    check_external_policy(spec, path, problems);
    check_internal_policy(spec, path, problems);
    if let Some(distribution) = &spec.traffic_distribution {
        let path = path.child("trafficDistribution");
        problems.one_of(&path, distribution, &DISTRIBUTIONS);
    }
}

fn check_source_ranges(
    service: &Service,
    spec: &ServiceSpec,
    old: Option<&Service>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let annotation = |service: &Service| {
        let annotations = service.metadata.annotations.as_ref();
        annotations.and_then(|annotations| annotations.get(SOURCE_RANGES).cloned())
    };
    let is_misplaced = !is(spec, "LoadBalancer");
    let ranges = spec
        .load_balancer_source_ranges
        .as_deref()
        .unwrap_or_default();
    if !ranges.is_empty() {
        let path = path.child("LoadBalancerSourceRanges");
        problems.forbid_if(is_misplaced, &path, LOAD_BALANCERS_ONLY);
        let known = old.and_then(|old| old.spec.as_ref()?.load_balancer_source_ranges.as_deref());
        let known: Vec<&str> = known
            .unwrap_or_default()
            .iter()
            .map(|range| range.trim())
            .collect();
        for (index, range) in ranges.iter().map(|range| range.trim()).enumerate() {
            if !known.contains(&range) {
                check_cidr(range, &path.index(index), problems);
            }
        }
    } else if let Some(ranges) = annotation(service) {
        let path = Path::new("metadata");
        let path = path.child("annotations");
        let path = path.key(SOURCE_RANGES);
        problems.forbid_if(is_misplaced, &path, LOAD_BALANCERS_ONLY);
        let is_known = old.and_then(annotation).as_ref() == Some(&ranges);
        if !is_known && !ranges.trim().is_empty() {
            for range in ranges.trim().split(',') {
                check_cidr(range.trim(), &path, problems);
            }
        }
    }
}

/// The load balancer class.
pub(super) fn check_class(spec: &ServiceSpec, problems: &mut Problems) {
    let Some(class) = &spec.load_balancer_class else {
        return;
    };
    let path = Path::new("spec");
    let path = path.child("loadBalancerClass");
    if is(spec, "LoadBalancer") {
        problems.invalid_each(&path, class, check_label_key(class));
    } else {
        problems.forbidden(&path, LOAD_BALANCERS_ONLY);
    }
}

/// The health check port is immutable as long as health checks are needed.
pub(super) fn check_update(spec: &ServiceSpec, old: &ServiceSpec, problems: &mut Problems) {
    let is_changed = spec.health_check_node_port != old.health_check_node_port;
    if has_health_check(spec) && has_health_check(old) && is_changed {
        let path = Path::new("spec");
        problems.forbidden(&path.child("healthCheckNodePort"), "field is immutable");
    }
}

fn has_health_check(spec: &ServiceSpec) -> bool {
    is(spec, "LoadBalancer") && text(&spec.external_traffic_policy) == "Local"
}

fn check_external_policy(spec: &ServiceSpec, path: &Path<'_>, problems: &mut Problems) {
    let has_external_ips = spec
        .external_ips
        .as_ref()
        .is_some_and(|ips| !ips.is_empty());
    let is_reached_from_outside = match text(&spec.type_) {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => has_external_ips,
        _ => false,
    };
    let policy = text(&spec.external_traffic_policy);
    let policy_path = path.child("externalTrafficPolicy");
    if is_reached_from_outside {
        problems.required_one_of(&policy_path, policy, &POLICIES);
    } else if !policy.is_empty() {
        let detail = "may only be set for externally-accessible services";
        problems.invalid(&policy_path, policy, detail);
    }
    let port = spec.health_check_node_port.unwrap_or_default();
    if port == 0 {
        return;
    }
    let path = path.child("healthCheckNodePort");
    if has_health_check(spec) {
        for rule in port_number(port) {
            problems.invalid(&path, port, rule);
        }
    } else {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is \
                      'Local'";
        problems.invalid(&path, port, detail);
    }
}

fn check_internal_policy(spec: &ServiceSpec, path: &Path<'_>, problems: &mut Problems) {
    let path = path.child("internalTrafficPolicy");
    match &spec.internal_traffic_policy {
        Some(policy) => problems.one_of(&path, policy, &POLICIES),
        None if ["NodePort", "LoadBalancer", "ClusterIP"].contains(&text(&spec.type_)) => {
            problems.required(&path, "");
        }
        None => {}
    }
}
