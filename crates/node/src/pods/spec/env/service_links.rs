//! Environment variables with the addresses of Services.
//!
//! Matches v1.36 pkg/kubelet/envvars.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;

/// The Service of the API server; every container gets its variables.
const API_SERVER: (&str, &str) = ("default", "kubernetes");

/// The variables for a pod in the namespace. Without links it gets only those of the API server.
pub fn service_variables(
    services: &[Arc<Service>],
    namespace: &str,
    wants_links: bool,
) -> BTreeMap<String, Vec<u8>> {
    let mut shown: BTreeMap<&str, &Service> = BTreeMap::new();
    for service in services {
        let meta = &service.metadata;
        let name = meta.name.as_deref().unwrap_or_default();
        let of = meta.namespace.as_deref().unwrap_or_default();
        if cluster_ip(service).is_none() {
            continue;
        }
        if (of, name) == API_SERVER {
            shown.entry(name).or_insert(service);
        } else if of == namespace && wants_links {
            shown.insert(name, service);
        }
    }
    let variables = shown.values().flat_map(|service| variables_of(service));
    variables
        .map(|(name, value)| (name, value.into_bytes()))
        .collect()
}

/// The address of a Service that has one.
fn cluster_ip(service: &Service) -> Option<&str> {
    let ip = service.spec.as_ref()?.cluster_ip.as_deref()?;
    (!ip.is_empty() && ip != "None").then_some(ip)
}

fn variables_of(service: &Service) -> Vec<(String, String)> {
    let (Some(spec), Some(ip)) = (&service.spec, cluster_ip(service)) else {
        return Vec::new();
    };
    let ports = spec.ports.as_deref().unwrap_or_default();
    let Some(first) = ports.first() else {
        return Vec::new();
    };
    let prefix = variable_name(service.metadata.name.as_deref().unwrap_or_default());
    let mut variables = vec![
        (format!("{prefix}_SERVICE_HOST"), ip.to_owned()),
        (format!("{prefix}_SERVICE_PORT"), first.port.to_string()),
    ];
    for port in ports {
        if let Some(name) = port.name.as_deref().filter(|name| !name.is_empty()) {
            let name = format!("{prefix}_SERVICE_PORT_{}", variable_name(name));
            variables.push((name, port.port.to_string()));
        }
    }
    for (i, port) in ports.iter().enumerate() {
        let protocol = port.protocol.as_deref().filter(|name| !name.is_empty());
        let protocol = protocol.unwrap_or("TCP");
        let scheme = protocol.to_lowercase();
        let url = format!("{scheme}://{}", join_host_port(ip, port.port));
        if i == 0 {
            variables.push((format!("{prefix}_PORT"), url.clone()));
        }
        let prefix = format!("{prefix}_PORT_{}_{}", port.port, protocol.to_uppercase());
        variables.push((format!("{prefix}_PROTO"), scheme));
        variables.push((format!("{prefix}_PORT"), port.port.to_string()));
        variables.push((format!("{prefix}_ADDR"), ip.to_owned()));
        variables.push((prefix, url));
    }
    variables
}

fn join_host_port(host: &str, port: i32) -> String {
    match host.parse() {
        Ok(IpAddr::V6(_)) => format!("[{host}]:{port}"),
        _ => format!("{host}:{port}"),
    }
}

fn variable_name(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(namespace: &str, name: &str, ip: &str, ports: serde_json::Value) -> Arc<Service> {
        let object = json!({
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"clusterIP": ip, "ports": ports},
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn check(services: &[Arc<Service>], wants_links: bool, want: &[(&str, &str)]) {
        let got = service_variables(services, "test", wants_links);
        let want = want.iter();
        let want = want.map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
        assert_eq!(got, want.collect());
    }

    #[test]
    fn each_service_port_has_variables_in_both_styles() {
        let ports = json!([
            {"name": "u-d-p", "port": 8081, "protocol": "UDP"},
            {"name": "t-c-p", "port": 8081},
        ]);
        check(
            &[service("test", "foo-bar", "1.2.3.4", ports)],
            true,
            &[
                ("FOO_BAR_PORT", "udp://1.2.3.4:8081"),
                ("FOO_BAR_PORT_8081_TCP", "tcp://1.2.3.4:8081"),
                ("FOO_BAR_PORT_8081_TCP_ADDR", "1.2.3.4"),
                ("FOO_BAR_PORT_8081_TCP_PORT", "8081"),
                ("FOO_BAR_PORT_8081_TCP_PROTO", "tcp"),
                ("FOO_BAR_PORT_8081_UDP", "udp://1.2.3.4:8081"),
                ("FOO_BAR_PORT_8081_UDP_ADDR", "1.2.3.4"),
                ("FOO_BAR_PORT_8081_UDP_PORT", "8081"),
                ("FOO_BAR_PORT_8081_UDP_PROTO", "udp"),
                ("FOO_BAR_SERVICE_HOST", "1.2.3.4"),
                ("FOO_BAR_SERVICE_PORT", "8081"),
                ("FOO_BAR_SERVICE_PORT_T_C_P", "8081"),
                ("FOO_BAR_SERVICE_PORT_U_D_P", "8081"),
            ],
        );
    }

    #[test]
    fn addresses_of_version_six_are_bracketed_in_urls() {
        let services = [service("test", "v6", "2001:db8::1", json!([{"port": 80}]))];
        let got = service_variables(&services, "test", true);
        assert_eq!(got["V6_PORT"], b"tcp://[2001:db8::1]:80");
        assert_eq!(got["V6_PORT_80_TCP_ADDR"], b"2001:db8::1");
    }

    #[test]
    fn without_service_links_only_the_api_server_has_variables() {
        let port = || json!([{"port": 443}]);
        let services = [
            service("default", "kubernetes", "10.0.0.1", port()),
            service("test", "web", "10.0.0.2", port()),
            service("test", "headless", "None", port()),
            service("test", "pending", "", port()),
            service("default", "other", "10.0.0.3", port()),
        ];
        let hosts = |wants_links| -> Vec<String> {
            let variables = service_variables(&services, "test", wants_links);
            let names = variables.into_keys();
            names.filter(|name| name.ends_with("_HOST")).collect()
        };
        assert_eq!(hosts(false), ["KUBERNETES_SERVICE_HOST"]);
        assert_eq!(hosts(true), ["KUBERNETES_SERVICE_HOST", "WEB_SERVICE_HOST"]);
    }
}
