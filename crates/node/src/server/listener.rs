//! Sockets: TLS, HTTP/1.1 and HTTP/2, and the end of all of it.
//!
//! Every step that waits for a client has a limit: the handshake, the headers, an idle connection.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use plimsoll_client::accept_loop::accept;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::body::Body;
use super::tls::{self, ServerCertificate, TlsError};
use super::{Peer, Server, health};

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The same for the headers of a request, and for the next request of a kept connection.
const HEADERS: Duration = Duration::from_secs(90);

/// How often a silent HTTP/2 client is pinged, and how long it may take to answer.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(15);

/// Requests on one HTTP/2 connection at once.
const MAX_STREAMS: u32 = 250;

/// Headers of one request together. Upstream allows 1 MiB, which no client needs.
const MAX_HEADER_BYTES: u32 = 64 * 1024;

/// Health checkers at once.
const MAX_CHECKERS: usize = 64;

/// How long requests may take to end when the server stops.
const GRACE: Duration = Duration::from_secs(5);

impl Server {
    /// Serves over TLS until stopped, then lets what was begun end.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        certificate: Arc<ServerCertificate>,
        stop: CancellationToken,
    ) -> Result<(), TlsError> {
        let acceptor = TlsAcceptor::from(Arc::new(tls::settings(certificate)?));
        let max = self.options.max_connections;
        let (server, until) = (Arc::clone(&self), stop.clone());
        let accepting = accept(
            listener,
            max,
            stop.cancelled(),
            GRACE,
            move |socket, address| {
                let (server, acceptor, stop) =
                    (Arc::clone(&server), acceptor.clone(), until.clone());
                async move { secured(server, acceptor, socket, address, stop).await }
            },
        );
        // What has no end of its own is ended first, or the rest would be waited for in vain.
        let ending = async {
            stop.cancelled().await;
            let ended = tokio::time::timeout(GRACE, self.streams.end()).await;
            if ended.is_err() {
                tracing::warn!("streams did not end before shutdown deadline");
            }
        };
        tokio::join!(accepting, ending);
        Ok(())
    }

    /// Answers `/healthz` without TLS or authentication, for health checkers.
    pub async fn serve_health(listener: TcpListener, stop: CancellationToken) {
        let until = stop.clone();
        accept(
            listener,
            MAX_CHECKERS,
            stop.cancelled(),
            GRACE,
            move |socket, address| {
                let stop = until.clone();
                async move {
                    let answer = async |request: Request<Incoming>| health::ping(&request);
                    converse(socket, address, stop, answer).await;
                }
            },
        )
        .await;
    }
}

async fn secured(
    server: Arc<Server>,
    acceptor: TlsAcceptor,
    socket: TcpStream,
    address: SocketAddr,
    stop: CancellationToken,
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
    let chain = session.peer_certificates().unwrap_or_default().to_vec();
    let peer = Arc::new(Peer { chain });
    let answer = move |request| {
        let (server, peer) = (Arc::clone(&server), Arc::clone(&peer));
        async move { server.answer(request, &peer).await }
    };
    converse(stream, address, stop, answer).await;
}

/// Speaks HTTP until the client is done or the server stops.
async fn converse<S, F, A>(stream: S, address: SocketAddr, stop: CancellationToken, answer: F)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    F: Fn(Request<Incoming>) -> A,
    A: Future<Output = Response<Body>> + Send + 'static,
{
    let service = service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(usize::try_from(MAX_HEADER_BYTES).unwrap_or(usize::MAX));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_BYTES)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_ANSWER);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%address, error, "connection ended");
    }
}
