//! The addresses of nodes.

use std::fmt;
use std::net::IpAddr;

use plimsoll_core::problem::quoted;
use serde_json::Value;

use super::error_response::{ErrorResponse, bad_request, unexpected, unreachable};
use crate::http::query::parse_u16;

/// The port of a kubelet that does not report one.
const DEFAULT_PORT: u16 = 10250;

/// The preference among a node's addresses. Upstream's default has `Hostname` before
/// `InternalIP`; addresses come first here, so that no name needs to resolve.
pub const PREFERRED_ADDRESS_TYPES: [&str; 5] = [
    "InternalIP",
    "Hostname",
    "InternalDNS",
    "ExternalDNS",
    "ExternalIP",
];

/// Host and port of a node agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEndpoint {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// As in a URL: IPv6 addresses are in brackets.
impl fmt::Display for NodeEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The endpoint of the agent of `node`: the first address of the most preferred type.
///
/// Matches v1.36 pkg/kubelet/client/kubelet_client.go `GetConnectionInfo`.
pub fn endpoint_of(
    node: &Value,
    preferred: &[impl AsRef<str>],
) -> Result<NodeEndpoint, ErrorResponse> {
    let addresses = node.pointer("/status/addresses").and_then(Value::as_array);
    let addresses = addresses.map_or(&[][..], Vec::as_slice);
    let field = |address: &Value, name: &str| address[name].as_str().unwrap_or_default().to_owned();
    let of_type = |wanted: &str| addresses.iter().find(|address| address["type"] == wanted);
    let found = preferred.iter().find_map(|wanted| of_type(wanted.as_ref()));
    let Some(address) = found else {
        let known = addresses.iter().map(|address| {
            let (sort, address) = (field(address, "type"), field(address, "address"));
            format!("{{{sort} {address}}}")
        });
        let known: Vec<String> = known.collect();
        return Err(unexpected(format!(
            "no preferred addresses found; known addresses: [{}]",
            known.join(" ")
        )));
    };
    let host = field(address, "address");
    let port = node.pointer("/status/daemonEndpoints/kubeletEndpoint/Port");
    let port = match port.and_then(Value::as_i64).unwrap_or_default() {
        ..=0 => DEFAULT_PORT,
        port => u16::try_from(port)
            .map_err(|_| unexpected(format!("dial tcp: address {port}: invalid port")))?,
    };
    Ok(NodeEndpoint { host, port })
}

/// The name in `nodes/NAME/proxy` and `pods/NAME/proxy`, which may carry a scheme and a port:
/// `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`.
///
/// Matches v1.36 apimachinery/pkg/util/net/port_split.go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyTarget<'a> {
    /// `http`, `https` or nothing.
    pub scheme: &'a str,
    /// The node or pod.
    pub name: &'a str,
    /// The port, or nothing for the node agent's own or the first of the pod.
    pub port: &'a str,
}

impl<'a> ProxyTarget<'a> {
    /// Parses the part of the path after `nodes/` or `pods/`; `kind` is `node` or `pod`.
    pub fn parse(text: &'a str, kind: &str) -> Result<ProxyTarget<'a>, ErrorResponse> {
        let parts: Vec<&str> = text.split(':').collect();
        let target = match parts[..] {
            [name] => Some(("", name, "")),
            [name, port] => Some(("", name, port)),
            [scheme, name, port] => Some((scheme, name, port)),
            _ => None,
        };
        let target = target.filter(|(scheme, name, _)| {
            !name.is_empty() && matches!(*scheme, "" | "http" | "https")
        });
        let (scheme, name, port) = target
            .ok_or_else(|| bad_request(format!("invalid {kind} request {}", quoted(text))))?;
        Ok(ProxyTarget { scheme, name, port })
    }
}

/// The endpoint of a server in a pod: the port that the caller names, or the first that a container
/// lists.
///
/// Matches v1.36 pkg/registry/core/pod/strategy.go `ResourceLocation`.
pub(super) fn pod_endpoint(
    pod: &Value,
    target: &ProxyTarget<'_>,
) -> Result<NodeEndpoint, ErrorResponse> {
    let host = pod["status"]["podIP"].as_str().unwrap_or_default();
    let is_proxied = host.parse().is_ok_and(is_global_unicast);
    if !is_proxied {
        return Err(bad_request("address not allowed"));
    }
    let listed = || {
        let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
        let mut ports =
            containers.filter_map(|container| container["ports"][0]["containerPort"].as_u64());
        ports.find_map(|port| u16::try_from(port).ok())
    };
    let port = match (target.port, target.scheme) {
        ("", "https") => listed().unwrap_or(443),
        ("", _) => listed().unwrap_or(80),
        (port, _) => parse_u16(port)
            .map_err(|_| unreachable(&format!("dial tcp: address {port}: invalid port")))?,
    };
    let host = host.to_owned();
    Ok(NodeEndpoint { host, port })
}

/// Whether requests may be proxied to the address. Loopback and link-local addresses are the API
/// server's own, which a node object must not open.
///
/// Matches Go's `net.IP.IsGlobalUnicast`.
pub(super) fn is_global_unicast(address: IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => return is_global_unicast(v4.into()),
            None => v6.is_unicast_link_local(),
        },
    };
    let is_special = address.is_unspecified() || address.is_loopback() || address.is_multicast();
    !is_special && !is_link_local
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn most_preferred_address_type_wins_in_any_order() {
        let node = json!({"status": {
            "addresses": [
                {"type": "Hostname", "address": "n1"},
                {"type": "InternalIP", "address": "fd00::1"},
                {"type": "InternalIP", "address": "10.0.0.1"},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 4194}},
        }});
        let endpoint = endpoint_of(&node, &PREFERRED_ADDRESS_TYPES).unwrap();
        assert_eq!(endpoint.to_string(), "[fd00::1]:4194");
        let endpoint = endpoint_of(&node, &["Hostname"]).unwrap();
        assert_eq!(endpoint.to_string(), "n1:4194");
    }

    #[test]
    fn node_without_a_port_uses_the_default() {
        let node =
            json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}});
        assert_eq!(
            endpoint_of(&node, &PREFERRED_ADDRESS_TYPES).unwrap().port,
            10250
        );
    }

    #[test]
    fn error_lists_addresses_without_a_preferred_type() {
        let node = json!({"status": {"addresses": [
            {"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "n1"},
        ]}});
        let refused = endpoint_of(&node, &["ExternalIP"]).unwrap_err();
        assert_eq!(refused.code, 500);
        assert_eq!(
            refused.message,
            "no preferred addresses found; known addresses: [{InternalIP 10.0.0.1} {Hostname n1}]"
        );
    }

    #[test]
    fn a_target_may_have_a_scheme_and_a_port() {
        let target = |scheme, name, port| ProxyTarget { scheme, name, port };
        assert_eq!(
            ProxyTarget::parse("n1", "node").unwrap(),
            target("", "n1", "")
        );
        assert_eq!(
            ProxyTarget::parse("https:n1:10250", "node").unwrap(),
            target("https", "n1", "10250")
        );
        for wrong in ["", ":1", "ftp:n1:1", "a:b:c:d"] {
            let refused = ProxyTarget::parse(wrong, "node").unwrap_err();
            assert_eq!(refused.message, format!("invalid node request {wrong:?}"));
        }
    }

    #[test]
    fn proxy_rejects_loopback_and_link_local_addresses() {
        for good in ["10.0.0.1", "8.8.8.8", "fd00::1", "::ffff:10.0.0.1"] {
            assert!(is_global_unicast(good.parse().unwrap()), "{good}");
        }
        for bad in [
            "127.0.0.1",
            "0.0.0.0",
            "169.254.169.254",
            "255.255.255.255",
            "224.0.0.1",
            "::1",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
        ] {
            assert!(!is_global_unicast(bad.parse().unwrap()), "{bad}");
        }
    }

    #[test]
    fn a_pod_is_reached_at_the_named_port_or_its_first() {
        let pod = json!({
            "spec": {"containers": [{"name": "a"}, {"name": "b", "ports": [{"containerPort": 8080}]}]},
            "status": {"podIP": "10.88.0.5"},
        });
        let endpoint = |text| {
            let target = ProxyTarget::parse(text, "pod").unwrap();
            pod_endpoint(&pod, &target).map(|endpoint| endpoint.to_string())
        };
        assert_eq!(endpoint("web").unwrap(), "10.88.0.5:8080");
        assert_eq!(endpoint("http:web:81").unwrap(), "10.88.0.5:81");
        assert_eq!(endpoint("web:http").unwrap_err().code, 503);
        let bare = json!({"status": {"podIP": "fd00::5"}});
        for (text, expected) in [("web", "[fd00::5]:80"), ("https:web:", "[fd00::5]:443")] {
            let target = ProxyTarget::parse(text, "pod").unwrap();
            assert_eq!(pod_endpoint(&bare, &target).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn pods_with_addresses_of_the_api_server_are_not_reached() {
        let target = ProxyTarget::parse("web:80", "pod").unwrap();
        for address in ["", "127.0.0.1", "169.254.169.254", "::1", "localhost"] {
            let refused = pod_endpoint(&json!({"status": {"podIP": address}}), &target);
            assert_eq!(
                refused.unwrap_err().message,
                "address not allowed",
                "{address}"
            );
        }
    }
}
