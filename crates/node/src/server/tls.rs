//! The serving certificate and the client authority, which can be replaced while the server runs.
//!
//! As upstream, a handshake takes any client certificate whose key the client has. Whether it is
//! good is found out for each request, so that a client with a wrong certificate gets an answer it
//! can read, and an expired certificate does not live on in an old connection.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file is damaged.
    #[error("cannot read the {what}")]
    Pem {
        /// Which.
        what: &'static str,
        /// Why.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// There is nothing in it.
    #[error("the {what} contains no certificate")]
    Empty {
        /// Which.
        what: &'static str,
    },
    /// It is no certificate, or not of this key.
    #[error("cannot use the {what}")]
    Unusable {
        /// Which.
        what: &'static str,
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// No client could be verified with it.
    #[error("clients cannot be verified against the authority")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// The certificate that the server presents.
pub struct ServerCertificate(RwLock<Arc<CertifiedKey>>);

/// The certificate authority of clients.
pub struct ClientAuthority(RwLock<Arc<dyn ClientCertVerifier>>);

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn certificates(pem: &[u8], what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|source| TlsError::Pem { what, source })?;
    if all.is_empty() {
        return Err(TlsError::Empty { what });
    }
    Ok(all)
}

impl ServerCertificate {
    /// From a chain and its key in PEM form.
    pub fn new(chain: &[u8], key: &[u8]) -> Result<ServerCertificate, TlsError> {
        Ok(ServerCertificate(RwLock::new(certified(chain, key)?)))
    }

    /// Shows another one from the next connection on.
    pub fn replace(&self, chain: &[u8], key: &[u8]) -> Result<(), TlsError> {
        let next = certified(chain, key)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }
}

fn certified(chain: &[u8], key: &[u8]) -> Result<Arc<CertifiedKey>, TlsError> {
    let chain = certificates(chain, "server certificate")?;
    let what = "server key";
    let key =
        PrivateKeyDer::from_pem_slice(key).map_err(|source| TlsError::Pem { what, source })?;
    let key = CertifiedKey::from_der(chain, key, &provider());
    let key = key.map_err(|source| TlsError::Unusable { what, source })?;
    Ok(Arc::new(key))
}

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(
            &self.0.read().unwrap_or_else(PoisonError::into_inner),
        ))
    }
}

impl fmt::Debug for ServerCertificate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ServerCertificate")
            .finish_non_exhaustive()
    }
}

impl ClientAuthority {
    /// From its certificates in PEM form.
    pub fn new(pem: &[u8]) -> Result<ClientAuthority, TlsError> {
        Ok(ClientAuthority(RwLock::new(verifier(pem)?)))
    }

    /// Trusts these from the next request on.
    pub fn replace(&self, pem: &[u8]) -> Result<(), TlsError> {
        let next = verifier(pem)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    /// Whether a client's certificate is signed by the authority, good now and meant for clients.
    pub(super) fn verify(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        let verifier = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        verifier.verify_client_cert(own, others, now).map(|_| ())
    }
}

fn verifier(pem: &[u8]) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let what = "client authority";
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, what)? {
        let added = roots.add(certificate);
        added.map_err(|source| TlsError::Unusable { what, source })?;
    }
    let roots = Arc::new(roots);
    Ok(WebPkiClientVerifier::builder_with_provider(roots, provider()).build()?)
}

impl fmt::Debug for ClientAuthority {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ClientAuthority").finish_non_exhaustive()
    }
}

/// The settings of a listener that shows this certificate.
pub(super) fn settings(
    certificate: Arc<ServerCertificate>,
) -> Result<rustls::ServerConfig, TlsError> {
    let provider = provider();
    let any = AnyClient(Arc::clone(&provider));
    let builder = rustls::ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions();
    let what = "set of protocol versions";
    let builder = builder.map_err(|source| TlsError::Unusable { what, source })?;
    let mut settings = builder
        .with_client_cert_verifier(Arc::new(any))
        .with_cert_resolver(certificate);
    settings.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(settings)
}

/// Takes any certificate whose key the client has, or none.
#[derive(Debug)]
struct AnyClient(Arc<CryptoProvider>);

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
