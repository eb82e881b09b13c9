//! Connections to nodes: client certificate, verification, timeouts.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::skip_verification::SkipVerification;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::endpoint::{NodeEndpoint, PREFERRED_ADDRESS_TYPES, endpoint_of, is_global_unicast};
use super::error_response::ErrorResponse;
use crate::auth::authority::Certificate;

/// A dead peer is noticed after a few of these.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Connects to node agents. Cheap to clone.
#[derive(Clone, Debug)]
pub struct NodeConnector {
    tls: Arc<ClientConfig>,
    /// For callers that request logs without verification of the node's certificate.
    unverified: Arc<ClientConfig>,
    /// For ports of a node other than its agent's: verified like the agent, but without the API
    /// server's client certificate.
    nameless: Arc<ClientConfig>,
    /// Without a certificate, and without verifying the server's.
    pods: Arc<ClientConfig>,
    preferred_address_types: Vec<String>,
    allows_local_addresses: bool,
    pub(super) timeouts: Timeouts,
}

/// The timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// A connection, including name resolution; upstream's `--kubelet-timeout`.
    pub dial: Duration,
    /// The TLS handshake.
    pub handshake: Duration,
    /// The node's response to an upgrade.
    pub upgrade: Duration,
    /// The rest of an error response, or the last data before a connection is closed.
    pub closing: Duration,
    /// A stream without data in either direction; the kubelet's
    /// `streamingConnectionIdleTimeout`.
    pub idle: Duration,
    /// A whole `/stats/summary`.
    pub summary: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            dial: Duration::from_secs(5),
            handshake: Duration::from_secs(10),
            upgrade: Duration::from_secs(60),
            closing: Duration::from_secs(10),
            idle: Duration::from_secs(4 * 60 * 60),
            summary: Duration::from_secs(10),
        }
    }
}

/// A connector cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ConnectorError {
    /// No client certificate.
    #[error("the kubelet client certificate is not a certificate in PEM form")]
    Certificate(#[source] rustls::pki_types::pem::Error),
    /// No private key.
    #[error("the kubelet client key is not a private key in PEM form")]
    Key(#[source] rustls::pki_types::pem::Error),
    /// No CA to verify nodes with.
    #[error("the kubelet certificate authority is not a certificate in PEM form")]
    Authority,
    /// The certificate and the key do not belong together.
    #[error("the kubelet client certificate cannot be used")]
    Tls(#[from] rustls::Error),
}

/// How the peer is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// A node agent whose certificate the authority has signed.
    Agent,
    /// Not at all; only when the caller has requested that.
    Unverified,
    /// Another server on the node, over TLS.
    OtherTls,
    /// Another server on the node, or one in a pod, over plain HTTP.
    OtherPlain,
    /// A server in a pod over TLS, with whatever certificate.
    Pod,
}

/// A connection to a node, encrypted or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The connection failed; the text is that of Go's `net` and `crypto/tls`.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error("dial tcp: lookup {host}: no such host")]
    Lookup { host: String },
    #[error("dial tcp {address}: i/o timeout")]
    Timeout { address: String },
    #[error("dial tcp {address}: connect: {}", errno_text(source))]
    Connect {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("net/http: TLS handshake timeout")]
    HandshakeTimeout,
    #[error("{}", super::exchange::transport_text(.0))]
    Handshake(io::Error),
    #[error("address not allowed")]
    NotAllowed,
}

impl NodeConnector {
    /// Uses `client` as its client certificate and accepts nodes whose certificates `authority_pem`
    /// has signed.
    pub fn new(client: &Certificate, authority_pem: &str) -> Result<NodeConnector, ConnectorError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let certificate: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(client.certificate_pem.as_bytes())
                .collect::<Result<_, _>>()
                .map_err(ConnectorError::Certificate)?;
        let key = || {
            PrivateKeyDer::from_pem_slice(client.key_pem.as_bytes()).map_err(ConnectorError::Key)
        };
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(authority_pem.as_bytes()) {
            let authority = authority.map_err(|_| ConnectorError::Authority)?;
            roots.add(authority)?;
        }
        if roots.is_empty() {
            return Err(ConnectorError::Authority);
        }
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|_| ConnectorError::Authority)?;
        let verified = || -> Result<_, ConnectorError> {
            Ok(builder(&provider)?.with_webpki_verifier(Arc::clone(&verifier)))
        };
        let unverifying = SkipVerification::new(&provider);
        let unverifying = Arc::new(unverifying);
        let unverified = || -> Result<_, ConnectorError> {
            let verifier = Arc::clone(&unverifying);
            let builder = builder(&provider)?.dangerous();
            Ok(builder.with_custom_certificate_verifier(verifier))
        };
        Ok(NodeConnector {
            tls: Arc::new(verified()?.with_client_auth_cert(certificate.clone(), key()?)?),
            unverified: Arc::new(unverified()?.with_client_auth_cert(certificate, key()?)?),
            pods: Arc::new(unverified()?.with_no_client_auth()),
            nameless: Arc::new(verified()?.with_no_client_auth()),
            preferred_address_types: PREFERRED_ADDRESS_TYPES.map(str::to_owned).to_vec(),
            allows_local_addresses: false,
            timeouts: Timeouts::default(),
        })
    }

    /// With another order of addresses; upstream's `--kubelet-preferred-address-types`.
    pub fn preferring(mut self, types: Vec<String>) -> NodeConnector {
        self.preferred_address_types = types;
        self
    }

    /// With other timeouts.
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> NodeConnector {
        self.timeouts = timeouts;
        self
    }

    /// Lets `nodes/NAME/proxy` reach loopback and link-local addresses as well. For clusters whose
    /// nodes are on the API server's own machine.
    pub fn allowing_local_addresses(mut self) -> NodeConnector {
        self.allows_local_addresses = true;
        self
    }

    pub(super) fn endpoint(&self, node: &Value) -> Result<NodeEndpoint, ErrorResponse> {
        endpoint_of(node, &self.preferred_address_types)
    }

    /// Connects, and over TLS verifies the peer.
    pub(super) async fn dial(
        &self,
        endpoint: &NodeEndpoint,
        channel: Channel,
    ) -> Result<Box<dyn Stream>, DialError> {
        let addresses = self.resolve(endpoint).await?;
        self.open(endpoint, &addresses, channel).await
    }

    /// As [`NodeConnector::dial`], but not to loopback and link-local addresses. The addresses
    /// that are checked are those that are dialled: a name may resolve differently a moment later.
    pub(super) async fn dial_proxied(
        &self,
        endpoint: &NodeEndpoint,
        channel: Channel,
    ) -> Result<Box<dyn Stream>, DialError> {
        let addresses = self.resolve(endpoint).await?;
        let are_global = addresses.iter().all(|found| is_global_unicast(found.ip()));
        if !are_global && !self.allows_local_addresses {
            return Err(DialError::NotAllowed);
        }
        self.open(endpoint, &addresses, channel).await
    }

    async fn open(
        &self,
        endpoint: &NodeEndpoint,
        addresses: &[SocketAddr],
        channel: Channel,
    ) -> Result<Box<dyn Stream>, DialError> {
        let tcp = self.connect(endpoint, addresses).await?;
        let tls = match channel {
            Channel::OtherPlain => return Ok(Box::new(tcp)),
            Channel::Agent => &self.tls,
            Channel::Unverified => &self.unverified,
            Channel::OtherTls => &self.nameless,
            Channel::Pod => &self.pods,
        };
        let name = ServerName::try_from(endpoint.host.clone()).map_err(|_| DialError::Lookup {
            host: endpoint.host.clone(),
        })?;
        let handshake = TlsConnector::from(Arc::clone(tls)).connect(name, tcp);
        match timeout(self.timeouts.handshake, handshake).await {
            Err(_) => Err(DialError::HandshakeTimeout),
            Ok(Err(source)) => Err(DialError::Handshake(source)),
            Ok(Ok(stream)) => Ok(Box::new(stream)),
        }
    }

    async fn resolve(&self, endpoint: &NodeEndpoint) -> Result<Vec<SocketAddr>, DialError> {
        if let Ok(address) = endpoint.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, endpoint.port)]);
        }
        let found = tokio::net::lookup_host((endpoint.host.as_str(), endpoint.port));
        let found = timeout(self.timeouts.dial, found).await;
        let addresses: Vec<SocketAddr> = match found {
            Ok(Ok(addresses)) => addresses.collect(),
            Ok(Err(_)) | Err(_) => Vec::new(),
        };
        if addresses.is_empty() {
            let host = endpoint.host.clone();
            return Err(DialError::Lookup { host });
        }
        Ok(addresses)
    }

    /// The first address that accepts a connection; the error is that of the first one.
    async fn connect(
        &self,
        endpoint: &NodeEndpoint,
        addresses: &[SocketAddr],
    ) -> Result<TcpStream, DialError> {
        let attempts = async {
            let mut first_error = None;
            for &address in addresses {
                match TcpStream::connect(address).await {
                    Ok(tcp) => return Ok(tcp),
                    Err(source) => {
                        first_error.get_or_insert(DialError::Connect { address, source });
                    }
                }
            }
            Err(first_error.unwrap_or_else(|| DialError::Lookup {
                host: endpoint.host.clone(),
            }))
        };
        let tcp = timeout(self.timeouts.dial, attempts)
            .await
            .unwrap_or_else(|_| {
                let address = endpoint.to_string();
                Err(DialError::Timeout { address })
            })?;
        // Small writes of a terminal must not wait for each other. Neither option can fail on a
        // connected socket in a way that matters.
        let _ = tcp.set_nodelay(true);
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
        let _ = SockRef::from(&tcp).set_tcp_keepalive(&keepalive);
        Ok(tcp)
    }
}

fn builder(
    provider: &Arc<CryptoProvider>,
) -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, rustls::Error> {
    ClientConfig::builder_with_provider(Arc::clone(provider)).with_safe_default_protocol_versions()
}

/// The system's message without its number, in lower case: as Go prints an errno.
fn errno_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_match_go() {
        let refused = io::Error::from_raw_os_error(111);
        let error = DialError::Connect {
            address: "10.0.0.1:10250".parse().unwrap(),
            source: refused,
        };
        assert_eq!(
            error.to_string(),
            "dial tcp 10.0.0.1:10250: connect: connection refused"
        );
    }

    #[test]
    fn a_connector_needs_an_authority_to_check_nodes_with() {
        let client = Certificate {
            certificate_pem: String::new(),
            key_pem: String::new(),
        };
        let refused = NodeConnector::new(&client, "").unwrap_err();
        assert!(matches!(refused, ConnectorError::Authority));
    }
}
