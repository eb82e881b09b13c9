//! The server's TLS certificate, and the verification of client certificates.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme,
};

use crate::auth::authority::{Authority, AuthorityError, Term};
use crate::server::Server;
use crate::server::request::clock::is_over;
use crate::server::request::respond;

/// How long to wait after a renewal failed.
const RETRY: Duration = Duration::from_secs(60);

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate is missing or cannot be issued.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The certificate cannot be used.
    #[error("the server's certificate cannot be used")]
    Tls(#[from] rustls::Error),
    /// The certificate's file is damaged.
    #[error("the server's certificate cannot be read")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// Client certificates cannot be verified.
    #[error("clients cannot be verified against the authority")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// The connection threads cannot be started.
    #[error("the threads for connections cannot be started")]
    Threads(#[source] std::io::Error),
}

/// The current certificate.
pub(in crate::server) struct ServerCertificate {
    shown: RwLock<(Arc<CertifiedKey>, Term)>,
}

impl ServerCertificate {
    pub(in crate::server) fn new(server: &Server) -> Result<ServerCertificate, TlsError> {
        let shown = RwLock::new(current(server)?);
        Ok(ServerCertificate { shown })
    }

    /// Renews the certificate before it expires, until the server is dropped.
    pub(in crate::server) async fn keep(self: Arc<Self>, server: Weak<Server>) {
        loop {
            let (_, term) = self.get();
            is_over(term).await;
            let Some(server) = server.upgrade() else {
                return;
            };
            let renewed = self.renew(&server);
            drop(server);
            if let Err(error) = renewed {
                tracing::warn!(%error, "failed to renew serving certificate");
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    fn renew(&self, server: &Server) -> Result<(), TlsError> {
        let next = current(server)?;
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = next;
        tracing::info!("renewed serving certificate");
        Ok(())
    }

    fn get(&self) -> (Arc<CertifiedKey>, Term) {
        let shown = self.shown.read().unwrap_or_else(PoisonError::into_inner);
        shown.clone()
    }
}

fn current(server: &Server) -> Result<(Arc<CertifiedKey>, Term), TlsError> {
    let authority = &server.authority;
    let own = authority.server(&server.options.names, respond::now())?;
    let chain = CertificateDer::pem_slice_iter(own.certificate_pem.as_bytes());
    let chain: Vec<CertificateDer<'static>> = chain.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(own.key_pem.as_bytes())?;
    let provider = rustls::crypto::ring::default_provider();
    let key = CertifiedKey::from_der(chain, key, &provider)?;
    Ok((Arc::new(key), authority.term(&own)))
}

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.get().0)
    }
}

impl fmt::Debug for ServerCertificate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ServerCertificate")
            .finish_non_exhaustive()
    }
}

/// The settings of a listener with this certificate.
pub(in crate::server) fn settings(
    server: &Server,
    certificate: Arc<ServerCertificate>,
) -> Result<rustls::ServerConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    let authorities = server.authority.client_ca_pem();
    for certificate in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // Requests with a token, and anonymous health checks, come without a certificate.
    let by_chain =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()?;
    let verifier = ClientVerifier {
        by_chain,
        authority: Arc::clone(&server.authority),
    };
    let mut settings = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_cert_resolver(certificate);
    settings.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(settings)
}

/// Accepts certificates that were signed for clients.
#[derive(Debug)]
struct ClientVerifier {
    by_chain: Arc<dyn ClientCertVerifier>,
    authority: Arc<Authority>,
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.by_chain.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.by_chain.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.by_chain.verify_client_cert(own, others, now)?;
        match self.authority.admits_client(own) {
            true => Ok(verified),
            false => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_chain
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_chain
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_chain.supported_verify_schemes()
    }
}
