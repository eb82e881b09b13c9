//! The strategy of services.
//!
//! No addresses or ports are allocated: there is no service network. Families are those of a
//! cluster with IPv4 only, which is upstream's default.
//!
//! Matches v1.36 pkg/registry/core/service/strategy.go and storage/{alloc,storage}.go.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use serde::Deserialize;
use serde_json::Value;

pub(super) fn prepare_for_create(object: &mut Value) {
    edit(object, |spec| {
        let address = spec
            .cluster_ip
            .clone()
            .filter(|address| !address.is_empty());
        if let (Some(address), true) = (address, is_empty(&spec.cluster_ips)) {
            spec.cluster_ips = Some(vec![address]);
        }
        set_families(spec, None);
    });
}

pub(super) fn prepare_for_update(object: &mut Value, old: &Value) {
    let old = Service::deserialize(old)
        .ok()
        .and_then(|service| service.spec);
    let old = old.unwrap_or_default();
    edit(object, |spec| {
        keep_allocated(spec, &old);
        match_addresses(spec, &old);
        set_families(spec, Some(&old));
        drop_fields_of_other_types(spec, &old);
    });
}

fn edit(object: &mut Value, change: impl FnOnce(&mut ServiceSpec)) {
    let Ok(mut spec) = ServiceSpec::deserialize(&object["spec"]) else {
        return;
    };
    change(&mut spec);
    if let Ok(changed) = serde_json::to_value(spec) {
        object["spec"] = changed;
    }
}

fn is_empty<T>(list: &Option<Vec<T>>) -> bool {
    list.as_ref().is_none_or(Vec::is_empty)
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}

fn is(spec: &ServiceSpec, service_type: &str) -> bool {
    text(&spec.type_) == service_type
}

fn has_addresses(spec: &ServiceSpec) -> bool {
    !is(spec, "ExternalName")
}

fn has_node_ports(spec: &ServiceSpec) -> bool {
    is(spec, "NodePort") || is(spec, "LoadBalancer")
}

fn has_health_check(spec: &ServiceSpec) -> bool {
    is(spec, "LoadBalancer") && text(&spec.external_traffic_policy) == "Local"
}

fn is_reached_from_outside(spec: &ServiceSpec) -> bool {
    has_node_ports(spec) || is(spec, "ClusterIP") && !is_empty(&spec.external_ips)
}

fn ports(spec: &ServiceSpec) -> &[ServicePort] {
    spec.ports.as_deref().unwrap_or_default()
}

fn node_ports(spec: &ServiceSpec) -> Vec<i32> {
    let given = ports(spec).iter().filter_map(|port| port.node_port);
    given.filter(|port| *port != 0).collect()
}

/// Clients that update with their original object do not have to know the allocated fields.
fn keep_allocated(spec: &mut ServiceSpec, old: &ServiceSpec) {
    if has_addresses(old) && has_addresses(spec) {
        if text(&spec.cluster_ip).is_empty() {
            spec.cluster_ip.clone_from(&old.cluster_ip);
        }
        if is_empty(&spec.cluster_ips) && !is_empty(&old.cluster_ips) {
            spec.cluster_ips.clone_from(&old.cluster_ips);
        }
    }
    if has_node_ports(old) && has_node_ports(spec) {
        let (before, after) = (node_ports(old), node_ports(spec));
        for port in spec.ports.iter_mut().flatten() {
            let same_name = |other: &&ServicePort| text(&other.name) == text(&port.name);
            let known = ports(old).iter().rfind(same_name);
            let known = known.and_then(|port| port.node_port).unwrap_or_default();
            let is_used = before.contains(&known) && after.contains(&known);
            if port.node_port.unwrap_or_default() == 0 && known != 0 && !is_used {
                port.node_port = Some(known);
            }
        }
    }
    let unset = spec.health_check_node_port.unwrap_or_default() == 0;
    if has_health_check(old) && has_health_check(spec) && unset {
        spec.health_check_node_port = old.health_check_node_port;
    }
}

/// `clusterIP` and `clusterIPs` are equivalent; clients may know only one of them.
fn match_addresses(spec: &mut ServiceSpec, old: &ServiceSpec) {
    let is_same = text(&spec.cluster_ip) == text(&old.cluster_ip);
    if !is_empty(&old.cluster_ips) && is_empty(&spec.cluster_ips) && is_same {
        spec.cluster_ips.clone_from(&old.cluster_ips);
    }
    // Upstream compares both fields here, of which one is known to differ, so nothing more
    // is done.
}

/// The families of addresses, if the service has any.
fn set_families(spec: &mut ServiceSpec, old: Option<&ServiceSpec>) {
    if !has_addresses(spec) {
        return;
    }
    let has_selector = spec.selector.as_ref().is_some_and(|map| !map.is_empty());
    let is_open = text(&spec.cluster_ip) == "None" && !has_selector;
    if spec.ip_family_policy.is_none() {
        let before = old.and_then(|old| old.ip_family_policy.clone());
        let inferred = if is_open {
            "RequireDualStack"
        } else {
            "SingleStack"
        };
        spec.ip_family_policy = Some(before.unwrap_or_else(|| inferred.to_owned()));
    }
    let mut families = spec.ip_families.take().unwrap_or_default();
    let addresses = spec.cluster_ips.as_deref().unwrap_or_default();
    for address in addresses.iter().skip(families.len()) {
        if address != "None" {
            families.push(
                if address.contains(':') {
                    "IPv6"
                } else {
                    "IPv4"
                }
                .to_owned(),
            );
        }
    }
    if families.is_empty() {
        families.push("IPv4".to_owned());
    }
    if is_open && families.len() < 2 && text(&spec.ip_family_policy) != "SingleStack" {
        let other = if families[0] == "IPv4" {
            "IPv6"
        } else {
            "IPv4"
        };
        families.push(other.to_owned());
    }
    spec.ip_families = Some(families);
}

/// Fields of another type are removed, unless the caller has changed them as well.
fn drop_fields_of_other_types(spec: &mut ServiceSpec, old: &ServiceSpec) {
    if has_addresses(old) && !has_addresses(spec) {
        if text(&spec.cluster_ip) == text(&old.cluster_ip) && spec.cluster_ips == old.cluster_ips {
            spec.cluster_ip = None;
            spec.cluster_ips = None;
        }
        if spec.ip_families == old.ip_families {
            spec.ip_families = None;
        }
        if spec.ip_family_policy == old.ip_family_policy {
            spec.ip_family_policy = None;
        }
    }
    let before = node_ports(old);
    let is_known = node_ports(spec).iter().all(|port| before.contains(port));
    if has_node_ports(old) && !has_node_ports(spec) && is_known {
        for port in spec.ports.iter_mut().flatten() {
            port.node_port = None;
        }
    }
    let is_same = spec.health_check_node_port == old.health_check_node_port;
    if has_health_check(old) && !has_health_check(spec) && is_same {
        spec.health_check_node_port = None;
    }
    if is(old, "LoadBalancer") && !is(spec, "LoadBalancer") {
        if spec.allocate_load_balancer_node_ports == old.allocate_load_balancer_node_ports {
            spec.allocate_load_balancer_node_ports = None;
        }
        if spec.load_balancer_class == old.load_balancer_class {
            spec.load_balancer_class = None;
        }
    }
    let is_same = text(&spec.external_traffic_policy) == text(&old.external_traffic_policy);
    if is_reached_from_outside(old) && !is_reached_from_outside(spec) && is_same {
        spec.external_traffic_policy = None;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn new_service_gets_ip_families_of_its_addresses() {
        let mut service = json!({"spec": {"type": "ClusterIP", "selector": {"a": "b"}}});
        prepare_for_create(&mut service);
        assert_eq!(service["spec"]["ipFamilies"], json!(["IPv4"]));
        assert_eq!(service["spec"]["ipFamilyPolicy"], "SingleStack");
        let mut service = json!({"spec": {"type": "ClusterIP", "clusterIP": "None"}});
        prepare_for_create(&mut service);
        assert_eq!(service["spec"]["clusterIPs"], json!(["None"]));
        assert_eq!(service["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
        assert_eq!(service["spec"]["ipFamilyPolicy"], "RequireDualStack");
    }

    #[test]
    fn external_name_service_loses_allocated_fields() {
        let mut old = json!({"spec": {"type": "NodePort", "selector": {"a": "b"},
            "externalTrafficPolicy": "Cluster", "ports": [{"port": 80, "nodePort": 30000}]}});
        prepare_for_create(&mut old);
        let mut new = old.clone();
        new["spec"]["type"] = json!("ExternalName");
        prepare_for_update(&mut new, &old);
        assert_eq!(
            new["spec"],
            json!({"type": "ExternalName", "selector": {"a": "b"}, "ports": [{"port": 80}]})
        );
    }
}
