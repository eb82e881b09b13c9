//! The listeners of the kubelet API, from the first connection to the end of the last.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use plimsoll_client::accept_loop::accept;
use plimsoll_client::http_connection::{Limits, handshake, serve};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::tls::{self, ServerCertificate, TlsError};
use super::{Peer, Server, health};

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
                    let (drain, close) = (stop.cancelled(), pending());
                    serve(socket, address, Limits::default(), drain, close, answer).await;
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
    let Some(stream) = handshake(&acceptor, socket, address).await else {
        return;
    };
    let (_, session) = stream.get_ref();
    let chain = session.peer_certificates().unwrap_or_default().to_vec();
    let peer = Arc::new(Peer { chain });
    let answer = move |request| {
        let (server, peer) = (Arc::clone(&server), Arc::clone(&peer));
        async move { server.answer(request, &peer).await }
    };
    let (drain, close) = (stop.cancelled(), pending());
    serve(stream, address, Limits::default(), drain, close, answer).await;
}
