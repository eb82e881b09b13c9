//! Sockets: TLS, HTTP/1.1 and HTTP/2, and the end of all of it.
//!
//! Every step that waits for a client has a limit: the handshake, the headers, an idle HTTP/2
//! connection. A client that says nothing costs a socket for a while and nothing else.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use plimsoll_client::accepting::accept;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::Server;
use super::call::read_body;
use super::handle::Peer;
use super::respond;
use crate::auth::authority::AuthorityError;
use crate::auth::identity::{User, user_of_certificate};
use crate::body::{self, Body, BodyError};
use crate::status::Status;

/// A client that has not shown who it is by then is not going to.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The same for the headers of a request.
const HEADERS: Duration = Duration::from_secs(30);

/// Bodies up to this are waited for, but not longer than that.
const SMALL_BODY: u64 = 64 * 1024;
const SMALL_BODY_ARRIVAL: Duration = Duration::from_secs(30);

/// How often a silent HTTP/2 client is asked whether it is still there, and how long it may think.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(15);

/// Requests on one HTTP/2 connection at once.
const MAX_STREAMS: u32 = 250;

/// Sockets at once.
const MAX_CONNECTIONS: usize = 16_384;

/// How long requests may take to end when the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// No certificate.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The certificate cannot be used.
    #[error("the server's certificate cannot be used")]
    Tls(#[from] rustls::Error),
    /// The certificate's file is damaged.
    #[error("the server's certificate cannot be read")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// Clients cannot be verified.
    #[error("clients cannot be verified against the authority")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// Serves until the server is stopped, then lets what was begun end.
///
/// `names` are the host names and addresses that clients use; the certificate is made for them.
pub async fn serve(
    server: Arc<Server>,
    listener: TcpListener,
    names: &[String],
) -> Result<(), ListenError> {
    let acceptor = acceptor(&server, names)?;
    let mut stop = server.stopping();
    let serve =
        |socket, address| connection(Arc::clone(&server), acceptor.clone(), socket, address);
    accept(listener, MAX_CONNECTIONS, stopped(&mut stop), GRACE, serve).await;
    Ok(())
}

fn acceptor(server: &Server, names: &[String]) -> Result<TlsAcceptor, ListenError> {
    let own = server.authority.server(names, respond::now())?;
    let chain = CertificateDer::pem_slice_iter(own.certificate_pem.as_bytes());
    let chain: Vec<CertificateDer<'static>> = chain.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(own.key_pem.as_bytes())?;
    let mut roots = RootCertStore::empty();
    let authority = server.authority.certificate_pem().as_bytes();
    for certificate in CertificateDer::pem_slice_iter(authority) {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // Tokens and anonymous health checks come without a certificate.
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Waits for a body that is small. A refusal that overtakes its request resets the stream, and
/// some clients then never read the refusal.
async fn arrived(request: Request<Incoming>) -> Result<Request<Body>, Status> {
    let is_small = matches!(request.body().size_hint().exact(), Some(1..=SMALL_BODY));
    let (parts, body) = request.into_parts();
    let body = BodyExt::boxed_unsync(body.map_err(BodyError::other));
    if !is_small {
        return Ok(Request::from_parts(parts, body));
    }
    let bytes = tokio::time::timeout(SMALL_BODY_ARRIVAL, read_body(body)).await;
    let bytes = bytes.map_err(|_| Status::bad_request("the body of the request did not come"))?;
    Ok(Request::from_parts(parts, body::full(bytes?)))
}

async fn stopped(stop: &mut tokio::sync::watch::Receiver<bool>) {
    // A server that is gone has stopped, too.
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn connection(
    server: Arc<Server>,
    acceptor: TlsAcceptor,
    socket: TcpStream,
    address: SocketAddr,
) {
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(socket)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%address, %error, "TLS handshake failed");
            return;
        }
        Err(_) => return,
    };
    let (_, session) = stream.get_ref();
    let certificate = session.peer_certificates().and_then(|chain| chain.first());
    let certificate: Option<Arc<[u8]>> = certificate.map(|der| der.as_ref().into());
    let user = certificate.as_deref().map(user_of_certificate);
    let user = user.and_then(|user| user.ok().flatten());
    let peer = Arc::new(Peer::Socket(certificate, user.map(User::authenticated)));
    let mut stop = server.stopping();
    let service = service_fn(move |request: Request<Incoming>| {
        let (server, peer) = (Arc::clone(&server), Arc::clone(&peer));
        async move {
            Ok::<_, Infallible>(match arrived(request).await {
                Ok(request) => server.handle(request, &peer).await,
                Err(status) => respond::status(&status),
            })
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_ANSWER);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%address, error, "connection ended");
    }
}
