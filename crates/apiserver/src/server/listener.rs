//! Sockets: TLS, HTTP/1.1 and HTTP/2, and the end of all of it.
//!
//! Every step that waits for a client has a limit: the handshake, the headers, an idle HTTP/2
//! connection. A client that says nothing costs a socket for a while and nothing else.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use plimsoll_client::accepting::accept;
use plimsoll_core::object::timestamp::Timestamp;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::Server;
use super::call::read_body;
use super::clock::passed;
use super::handle::{Client, Origin, Peer, Shown};
use super::respond;
use super::tls::{self, ServerCertificate, TlsError};
use crate::auth::authority::end_of_certificate;
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

/// Serves until the server is stopped, then lets what was begun end.
pub async fn serve(server: Arc<Server>, listener: TcpListener) -> Result<(), TlsError> {
    let certificate = Arc::new(ServerCertificate::new(&server)?);
    let acceptor = TlsAcceptor::from(Arc::new(tls::settings(&server, Arc::clone(&certificate))?));
    let renewing = tokio::spawn(certificate.keep(Arc::downgrade(&server)));
    let mut stop = server.stopping();
    let serve =
        |socket, address| connection(Arc::clone(&server), acceptor.clone(), socket, address);
    accept(listener, MAX_CONNECTIONS, stopped(&mut stop), GRACE, serve).await;
    renewing.abort();
    Ok(())
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
    let (socket, session) = stream.get_ref();
    let certificate = session.peer_certificates().and_then(|chain| chain.first());
    let shown = certificate.map(|der| {
        let user = user_of_certificate(der).ok().flatten();
        Shown {
            der: der.as_ref().into(),
            user: user.map(User::authenticated),
            end: end_of_certificate(der),
        }
    });
    let end = shown.as_ref().map(|shown| shown.end);
    let own_address = socket.local_addr().ok().map(|own| own.ip().to_canonical());
    let address = address.ip().to_canonical();
    let peer = Arc::new(Peer::Socket(Client {
        origin: origin(address, own_address),
        address,
        shown,
    }));
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
        () = ended(end) => {
            // Watches and streams would go on for ever; who asks has to show a certificate anew.
            connection.as_mut().graceful_shutdown();
            match tokio::time::timeout(GRACE, connection).await {
                Ok(ended) => ended,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%address, error, "connection ended");
    }
}

/// A client that has the address at which it is answered is on the same machine.
fn origin(peer: IpAddr, own: Option<IpAddr>) -> Origin {
    if peer.is_loopback() || Some(peer) == own {
        Origin::ThisMachine
    } else {
        Origin::Elsewhere(peer)
    }
}

/// Waits until a certificate has ended.
async fn ended(end: Option<Timestamp>) {
    match end {
        Some(end) => passed(end).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_on_this_machine_if_it_has_one_of_its_addresses() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let own = Some(address("10.0.0.1"));
        assert_eq!(origin(address("127.0.0.1"), own), Origin::ThisMachine);
        assert_eq!(origin(address("::1"), own), Origin::ThisMachine);
        assert_eq!(origin(address("10.0.0.1"), own), Origin::ThisMachine);
        let other = address("10.0.0.2");
        assert_eq!(origin(other, own), Origin::Elsewhere(other));
        assert_eq!(origin(other, None), Origin::Elsewhere(other));
    }
}
