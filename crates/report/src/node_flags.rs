//! The settings of a configuration file that flags of `plimsoll node` decide: the file may only repeat
//! what the flags say. The start of a node compares them with its flags, `plimsoll check` with the
//! defaults of the flags.

use std::net::{Ipv4Addr, SocketAddr};

use plimsoll_core::config::{NodeConfig, Setting};
use plimsoll_core::problem::Problem;

const KUBELET_LISTEN: &str = "--kubelet-listen";
const HEALTHZ_LISTEN: &str = "--healthz-listen";
const RUNTIME: &str = "--runtime";

/// The container runtime that is part of the agent.
const EMBEDDED: &str = "embedded";

/// The values of the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeFlags<'a> {
    /// `--kubelet-listen`.
    pub kubelet_listen: SocketAddr,
    /// `--healthz-listen`; `None` if the health endpoint is off.
    pub healthz_listen: Option<SocketAddr>,
    /// `--runtime`.
    pub runtime: &'a str,
}

impl Default for NodeFlags<'_> {
    fn default() -> Self {
        NodeFlags {
            kubelet_listen: (Ipv4Addr::UNSPECIFIED, 10_250).into(),
            healthz_listen: Some((Ipv4Addr::LOCALHOST, 10_248).into()),
            runtime: EMBEDDED,
        }
    }
}

/// The settings that differ from the flags. A node does not start with them.
pub fn differing(config: &NodeConfig, flags: NodeFlags<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut compare = |is_same: bool, set: Option<(&str, String)>, flag: &str, decided: &str| {
        if let Some((path, value)) = set.filter(|_| !is_same) {
            let detail =
                format!("{value} differs from {flag} {decided}; give {flag} to plimsoll node");
            let place = config.origin_of(path);
            let problem = Problem::refused(place.map_or(path, |origin| &origin.path), detail);
            problems.push(problem.at(place.and_then(|origin| origin.position)));
        }
    };
    let (address, port) = (&config.address, &config.port);
    let listen = flags.kubelet_listen;
    let decided = listen.to_string();
    let is_same = address.value == listen.ip().to_string();
    compare(is_same, set("address", address), KUBELET_LISTEN, &decided);
    let is_same = port.value == i32::from(listen.port());
    compare(is_same, set("port", port), KUBELET_LISTEN, &decided);

    let (address, port) = (&config.healthz_bind_address, &config.healthz_port);
    let listen = flags.healthz_listen;
    let decided = listen.map_or("off".to_owned(), |at| at.to_string());
    let is_same = listen.is_none_or(|at| at.ip().to_string() == address.value);
    let address = set("healthzBindAddress", address);
    compare(is_same, address, HEALTHZ_LISTEN, &decided);
    let is_same = port.value == listen.map_or(0, |at| i32::from(at.port()));
    compare(is_same, set("healthzPort", port), HEALTHZ_LISTEN, &decided);

    let plain = |endpoint: &str| endpoint.trim_start_matches("unix://").to_owned();
    let endpoint = &config.container_runtime_endpoint;
    let is_same = endpoint.is_empty() || plain(endpoint) == plain(flags.runtime);
    let endpoint = set("containerRuntimeEndpoint", endpoint);
    compare(is_same, endpoint, RUNTIME, flags.runtime);
    let images = &config.image_service_endpoint;
    let is_same = images.is_empty() || flags.runtime != EMBEDDED;
    let images = set("imageServiceEndpoint", images);
    compare(is_same, images, RUNTIME, flags.runtime);
    problems
}

/// A setting that was made, with its value.
fn set<'a, T: ToString>(path: &'a str, setting: &Setting<T>) -> Option<(&'a str, String)> {
    setting.is_set().then(|| (path, setting.value.to_string()))
}

#[cfg(test)]
mod tests {
    use plimsoll_core::config::read_file;

    use super::*;

    fn found(file: &str, flags: NodeFlags<'_>) -> Vec<String> {
        let head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
        let config = read_file(format!("{head}{file}").as_bytes(), None).config;
        let problems = differing(&config, flags);
        problems.iter().map(ToString::to_string).collect()
    }

    /// What kubeadm writes is accepted as it is.
    #[test]
    fn settings_that_repeat_flags_are_accepted() {
        let file = "address: 0.0.0.0\nport: 10250\nhealthzBindAddress: 127.0.0.1\n\
                    healthzPort: 10248\ncontainerRuntimeEndpoint: ''\n";
        assert_eq!(found(file, NodeFlags::default()), [""; 0]);
        let containerd = NodeFlags {
            runtime: "/run/containerd/containerd.sock",
            ..NodeFlags::default()
        };
        let file = "containerRuntimeEndpoint: unix:///run/containerd/containerd.sock\n\
                    imageServiceEndpoint: unix:///run/images.sock\n";
        assert_eq!(found(file, containerd), [""; 0]);
        let off = NodeFlags {
            healthz_listen: None,
            ..NodeFlags::default()
        };
        assert_eq!(found("healthzPort: 0\n", off), [""; 0]);
    }

    #[test]
    fn settings_that_differ_name_the_flag_to_give() {
        for (file, expected) in [
            (
                "port: 10260\n",
                "port: 10260 differs from --kubelet-listen 0.0.0.0:10250; give --kubelet-listen to \
                 plimsoll node",
            ),
            (
                "healthzPort: 0\n",
                "healthzPort: 0 differs from --healthz-listen 127.0.0.1:10248; give \
                 --healthz-listen to plimsoll node",
            ),
            (
                "containerRuntimeEndpoint: unix:///run/containerd/containerd.sock\n",
                "containerRuntimeEndpoint: unix:///run/containerd/containerd.sock differs from \
                 --runtime embedded; give --runtime to plimsoll node",
            ),
        ] {
            assert_eq!(found(file, NodeFlags::default()), [expected]);
        }
    }
}
