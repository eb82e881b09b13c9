//! The settings of a configuration file that decide whether a node starts: those that it cannot
//! follow, those that a flag decides, and files that they name.

use std::path::Path;

use anyhow::{Context, Result};
use plimsoll_core::config::NodeConfig;
use plimsoll_core::config::effect::unsupported;
use plimsoll_core::problem::Problem;
use plimsoll_node::agent::Serving;
use plimsoll_node::identity::request::KeyedCertificate;
use plimsoll_report::node_flags::{NodeFlags, differing};
use tokio::sync::watch;

/// Every setting that the node cannot follow. `plimsoll check` reports the same ones.
pub(super) fn problems(config: &NodeConfig, flags: NodeFlags<'_>) -> Vec<Problem> {
    let mut problems = unsupported(config);
    problems.extend(differing(config, flags));
    problems
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

    fn configured(file: &str) -> NodeConfig {
        let head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
        read_file(format!("{head}{file}").as_bytes(), None).config
    }

    #[test]
    fn settings_that_the_node_cannot_follow_are_refused() {
        let file = "readOnlyPort: 10255\nport: 10260\ncpuManagerPolicy: none\n";
        let problems = problems(&configured(file), NodeFlags::default());
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "readOnlyPort: \"10255\" is not supported: everything is served with TLS and \
                 authorization; supported: \"0\"",
                "port: 10260 differs from --kubelet-listen 0.0.0.0:10250; give --kubelet-listen to \
                 plimsoll node",
            ]
        );
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
