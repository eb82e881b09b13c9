//! Joining: from a token to a certificate.

use http::Uri;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::config::{AuthInfo, Kubeconfig};
use kube::{Api, Client, Config};

use super::discovery::stranger;
use super::kubeconfig::Kept;
use super::pin::{Pin, PinError};
use super::request::{RequestError, client_request, user_of_node};
use super::signing::{SigningError, sign_client};

/// What a machine needs to know to join a cluster.
#[derive(Clone, Debug)]
pub struct Invitation {
    /// Where the API server is, `https://HOST:PORT`.
    pub server: Uri,
    /// The token, `abcdef.0123456789abcdef`.
    pub token: String,
    /// Pins of trusted certificate authorities. Without any, any authority is trusted.
    pub pins: Vec<Pin>,
}

/// Joining failed.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The server does not return the cluster information.
    #[error("cannot read cluster information from {server}")]
    Discover {
        /// Which server.
        server: Uri,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The cluster information is incomplete.
    #[error("cluster information at {server} has no certificate authority")]
    NoAuthority {
        /// Which server.
        server: Uri,
    },
    /// The authority cannot be read.
    #[error(transparent)]
    Authority(#[from] PinError),
    /// It is another cluster.
    #[error(
        "the certificate authority of {server} has pin {found}, which is not among those given; if the cluster is the right one, give --discovery-token-ca-cert-hash {found}"
    )]
    WrongAuthority {
        /// Which server.
        server: Uri,
        /// What it has.
        found: String,
    },
    /// No client can be made of it.
    #[error("cannot connect to {server}")]
    Connect {
        /// Which server.
        server: Uri,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The key cannot be made.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// No certificate was to be had.
    #[error("cannot get a certificate for the node")]
    Sign(#[from] SigningError),
}

/// Asks to be a node of that name; returns the kubeconfig that it acts with from then on.
pub async fn join(invitation: &Invitation, node: &str) -> Result<String, JoinError> {
    let ca_pem = discover(invitation).await?;
    let client = trusting_client(invitation, &ca_pem)?;
    let request = client_request(node)?;
    let certificate = sign_client(&client, &request).await?;
    let server = invitation.server.to_string();
    let server = server.trim_end_matches('/');
    let kept = Kept {
        server: server.to_owned(),
        ca_pem,
        user: user_of_node(node),
        client: certificate,
    };
    Ok(kept.render())
}

/// The cluster's authority, checked against the pins.
async fn discover(invitation: &Invitation) -> Result<String, JoinError> {
    let server = &invitation.server;
    let failed = |source| JoinError::Discover {
        server: server.clone(),
        source: Box::new(source),
    };
    // The pins are what makes this safe: what is read here is believed only if it matches.
    let maps: Api<ConfigMap> = Api::namespaced(stranger(server), "kube-public");
    let information = maps.get("cluster-info").await.map_err(failed)?;
    let ca_pem = authority_of(&information).ok_or_else(|| JoinError::NoAuthority {
        server: server.clone(),
    })?;
    let found = Pin::of_certificates(&ca_pem)?;
    if invitation.pins.is_empty() || found.iter().any(|pin| invitation.pins.contains(pin)) {
        return Ok(ca_pem);
    }
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    Err(JoinError::WrongAuthority {
        server: server.clone(),
        found: found.join(","),
    })
}

fn authority_of(information: &ConfigMap) -> Option<String> {
    use base64::Engine;
    let text = information.data.as_ref()?.get("kubeconfig")?;
    let config: Kubeconfig = Kubeconfig::from_yaml(text).ok()?;
    let cluster = config.clusters.into_iter().next()?.cluster?;
    let encoded = cluster.certificate_authority_data?;
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(encoded)
        .ok()?;
    String::from_utf8(bytes).ok()
}

fn trusting_client(invitation: &Invitation, ca_pem: &str) -> Result<Client, JoinError> {
    let mut config = Config::new(invitation.server.clone());
    let blocks = x509_parser::pem::Pem::iter_from_buffer(ca_pem.as_bytes());
    let blocks = blocks.filter_map(Result::ok).map(|block| block.contents);
    config.root_cert = Some(blocks.collect());
    config.auth_info = AuthInfo {
        token: Some(invitation.token.clone().into()),
        ..AuthInfo::default()
    };
    Client::try_from(config).map_err(|source| JoinError::Connect {
        server: invitation.server.clone(),
        source: Box::new(source),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn kubeconfig_without_users_has_the_certificate_authority() {
        let kubeconfig = "apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster:\n    certificate-authority-data: YWJj\n    server: https://1.2.3.4\n";
        let data = BTreeMap::from([("kubeconfig".to_owned(), kubeconfig.to_owned())]);
        let information = ConfigMap {
            data: Some(data),
            ..ConfigMap::default()
        };
        assert_eq!(authority_of(&information).as_deref(), Some("abc"));
        assert_eq!(authority_of(&ConfigMap::default()), None);
    }
}
