//! The settings of a configuration file that decide whether a node starts: those that it cannot
//! follow, those that a flag decides, and files that they name.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};
use plimsoll_core::config::effect::unsupported;
use plimsoll_core::config::{NodeConfig, Setting};
use plimsoll_core::problem::Problem;
use plimsoll_node::agent::Serving;
use plimsoll_node::identity::request::KeyedCertificate;
use tokio::sync::watch;

/// What flags say that settings may only repeat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decided<'a> {
    pub(super) kubelet: SocketAddr,
    /// `None` if the health endpoint is off.
    pub(super) healthz: Option<SocketAddr>,
    pub(super) runtime: &'a str,
}

/// Every setting that the node cannot follow.
pub(super) fn problems(config: &NodeConfig, decided: Decided<'_>) -> Vec<Problem> {
    let mut problems = unsupported(config);
    let mut compare = |is_same: bool, set: Option<(&str, String)>, flag: &str| {
        if let Some((path, value)) = set.filter(|_| !is_same) {
            let detail = format!("{value} differs from {flag}; give {flag} to plimsoll node");
            let place = config.origin_of(path);
            let problem = Problem::refused(place.map_or(path, |origin| &origin.path), detail);
            problems.push(problem.at(place.and_then(|origin| origin.position)));
        }
    };
    let flag = "--kubelet-listen";
    let (address, port) = (&config.address, &config.port);
    let is_same = address.value == decided.kubelet.ip().to_string();
    compare(is_same, set("address", address), flag);
    let is_same = port.value == i32::from(decided.kubelet.port());
    compare(is_same, set("port", port), flag);
    let flag = "--healthz-listen";
    let healthz = (&config.healthz_bind_address, &config.healthz_port);
    let is_same = decided
        .healthz
        .is_none_or(|at| at.ip().to_string() == healthz.0.value);
    compare(is_same, set("healthzBindAddress", healthz.0), flag);
    let port = decided.healthz.map_or(0, |at| i32::from(at.port()));
    compare(healthz.1.value == port, set("healthzPort", healthz.1), flag);
    let plain = |endpoint: &str| endpoint.trim_start_matches("unix://").to_owned();
    let endpoint = &config.container_runtime_endpoint;
    let is_same = endpoint.is_empty() || plain(endpoint) == plain(decided.runtime);
    compare(
        is_same,
        set("containerRuntimeEndpoint", endpoint),
        "--runtime",
    );
    let images = &config.image_service_endpoint;
    let is_same = images.is_empty() || decided.runtime != "embedded";
    compare(is_same, set("imageServiceEndpoint", images), "--runtime");
    problems
}

/// A setting that was made, with its value.
fn set<'a, T: ToString>(path: &'a str, setting: &Setting<T>) -> Option<(&'a str, String)> {
    setting.is_set().then(|| (path, setting.value.to_string()))
}

/// Makes the paths of a file absolute: they are relative to its directory. Matches v1.36
/// pkg/kubelet/apis/config/helpers.go, as far as the files are read here.
pub(super) fn resolve_paths(config: &mut NodeConfig, file: &Path) {
    let Some(directory) = file.parent() else {
        return;
    };
    for path in [
        &mut config.static_pod_path,
        &mut config.client_ca_file,
        &mut config.tls_cert_file,
        &mut config.tls_private_key_file,
        &mut config.resolv_conf,
    ] {
        if path.is_set() && !path.is_empty() {
            path.value = directory.join(path.as_str()).display().to_string();
        }
    }
}

/// The authority of clients, if the configuration names one.
pub(super) fn client_authority(config: &NodeConfig) -> Result<Option<String>> {
    let path = config.client_ca_file.as_str();
    (!path.is_empty()).then(|| read(path)).transpose()
}

/// The serving certificate, if the configuration names one.
pub(super) fn serving(config: &NodeConfig) -> Result<Option<Serving>> {
    let (certificate, key) = (&config.tls_cert_file, &config.tls_private_key_file);
    if certificate.is_empty() || key.is_empty() {
        return Ok(None);
    }
    let (given, _) = watch::channel(KeyedCertificate {
        certificate_pem: read(certificate)?,
        key_pem: read(key)?,
    });
    Ok(Some(Serving::Given(given.subscribe())))
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))
}

#[cfg(test)]
mod tests {
    use plimsoll_core::config::read_file;

    use super::*;

    const DECIDED: Decided<'static> = Decided {
        kubelet: SocketAddr::V4(std::net::SocketAddrV4::new(
            std::net::Ipv4Addr::UNSPECIFIED,
            10_250,
        )),
        healthz: Some(SocketAddr::V4(std::net::SocketAddrV4::new(
            std::net::Ipv4Addr::LOCALHOST,
            10_248,
        ))),
        runtime: "embedded",
    };

    fn configured(file: &str) -> NodeConfig {
        let head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
        read_file(format!("{head}{file}").as_bytes(), None).config
    }

    fn refused(file: &str, decided: Decided<'_>) -> Vec<String> {
        let problems = problems(&configured(file), decided);
        problems.iter().map(ToString::to_string).collect()
    }

    /// What kubeadm writes is accepted as it is.
    #[test]
    fn settings_that_say_what_flags_say_are_accepted() {
        let file = "address: 0.0.0.0\nport: 10250\nhealthzBindAddress: 127.0.0.1\n\
                    healthzPort: 10248\ncontainerRuntimeEndpoint: ''\ncpuManagerPolicy: none\n\
                    authorization: {mode: Webhook}\n";
        assert_eq!(refused(file, DECIDED), [""; 0]);
        let containerd = Decided {
            runtime: "/run/containerd/containerd.sock",
            ..DECIDED
        };
        let file = "containerRuntimeEndpoint: unix:///run/containerd/containerd.sock\n";
        assert_eq!(refused(file, containerd), [""; 0]);
    }

    #[test]
    fn settings_that_say_otherwise_are_refused_with_the_flag_to_give() {
        for (file, expected) in [
            (
                "port: 10260\n",
                "port: 10260 differs from --kubelet-listen; give --kubelet-listen to plimsoll node",
            ),
            (
                "healthzPort: 0\n",
                "healthzPort: 0 differs from --healthz-listen; give --healthz-listen to plimsoll node",
            ),
            (
                "containerRuntimeEndpoint: unix:///run/containerd/containerd.sock\n",
                "containerRuntimeEndpoint: unix:///run/containerd/containerd.sock differs from \
                 --runtime; give --runtime to plimsoll node",
            ),
            (
                "readOnlyPort: 10255\n",
                "readOnlyPort: \"10255\" is not supported: everything is served with TLS and \
                 authorization; supported: \"0\"",
            ),
        ] {
            assert_eq!(refused(file, DECIDED), [expected]);
        }
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let mut config = configured(
            "staticPodPath: manifests\ntlsCertFile: /etc/tls.crt\n\
             authentication: {x509: {clientCAFile: ca.crt}}\n",
        );
        resolve_paths(&mut config, Path::new("/etc/node/kubelet.yaml"));
        assert_eq!(*config.static_pod_path, "/etc/node/manifests");
        assert_eq!(*config.client_ca_file, "/etc/node/ca.crt");
        assert_eq!(*config.tls_cert_file, "/etc/tls.crt");
        assert_eq!(*config.resolv_conf, "/etc/resolv.conf");
    }
}
