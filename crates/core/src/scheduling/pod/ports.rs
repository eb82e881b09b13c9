//! Ports that a pod takes on its node.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, PodSpec};

/// The address that stands for all addresses of a node.
const ANY_IP: &str = "0.0.0.0";

/// A port on an address of the node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// The number.
    pub port: i32,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// The address; `0.0.0.0` is all of them.
    pub ip: String,
}

impl HostPort {
    /// The ports of sidecars and regular containers; ordinary init containers are gone by the time
    /// it matters. Matches v1.36 pkg/scheduler/util/utils.go, `GetHostPorts`.
    pub(super) fn of_pod(spec: &PodSpec) -> Vec<HostPort> {
        let init = spec.init_containers.iter().flatten();
        let sidecars = init.filter(|c| c.restart_policy.as_deref() == Some("Always"));
        sidecars
            .chain(&spec.containers)
            .flat_map(HostPort::of_container)
            .collect()
    }

    fn of_container(container: &Container) -> impl Iterator<Item = HostPort> {
        let ports = container.ports.iter().flatten();
        ports.filter_map(|port| {
            let or = |text: &Option<String>, otherwise: &str| match text.as_deref() {
                None | Some("") => otherwise.to_owned(),
                Some(text) => text.to_owned(),
            };
            Some(HostPort {
                port: port.host_port.filter(|number| *number > 0)?,
                protocol: or(&port.protocol, "TCP"),
                ip: or(&port.host_ip, ANY_IP),
            })
        })
    }

    fn conflicts_with(&self, other: &HostPort) -> bool {
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || self.ip == ANY_IP || other.ip == ANY_IP)
    }
}

/// The ports taken on a node.
///
/// A set as upstream's, which does not count: of two pods that hold the same port, the first to
/// leave frees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsedPorts(BTreeSet<HostPort>);

impl UsedPorts {
    /// Takes the ports.
    pub fn add(&mut self, ports: &[HostPort]) {
        self.0.extend(ports.iter().cloned());
    }

    /// Frees the ports.
    pub fn remove(&mut self, ports: &[HostPort]) {
        for port in ports {
            self.0.remove(port);
        }
    }

    /// Whether any of the ports is taken already.
    pub fn conflicts_with(&self, ports: &[HostPort]) -> bool {
        let mut pairs = ports.iter().flat_map(|wanted| {
            let lowest = HostPort {
                port: wanted.port,
                protocol: String::new(),
                ip: String::new(),
            };
            let same_number = self.0.range(lowest..);
            same_number
                .take_while(|used| used.port == wanted.port)
                .map(move |used| (wanted, used))
        });
        pairs.any(|(wanted, used)| wanted.conflicts_with(used))
    }

    /// The ports in order.
    pub fn iter(&self) -> impl Iterator<Item = &HostPort> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(ip: &str, protocol: &str, port: i32) -> HostPort {
        HostPort {
            port,
            protocol: protocol.to_owned(),
            ip: ip.to_owned(),
        }
    }

    #[test]
    fn the_any_address_conflicts_with_every_address() {
        let mut used = UsedPorts::default();
        used.add(&[port("127.0.0.1", "TCP", 80), port(ANY_IP, "UDP", 53)]);
        assert!(used.conflicts_with(&[port(ANY_IP, "TCP", 80)]));
        assert!(used.conflicts_with(&[port("127.0.0.1", "TCP", 80)]));
        assert!(!used.conflicts_with(&[port("10.0.0.1", "TCP", 80)]));
        assert!(!used.conflicts_with(&[port(ANY_IP, "UDP", 80)]));
        assert!(used.conflicts_with(&[port("10.0.0.1", "UDP", 53)]));
    }

    #[test]
    fn the_first_of_two_holders_to_leave_frees_the_port() {
        let mut used = UsedPorts::default();
        let held = [port(ANY_IP, "TCP", 80)];
        used.add(&held);
        used.add(&held);
        used.remove(&held);
        assert!(!used.conflicts_with(&held));
    }
}
