//! Connections, from their TLS handshake to their end.
//!
//! Every step that waits for a client has a limit: the handshake, the headers, the body, an idle
//! HTTP/2 connection. A silent client costs a socket for a while and nothing else, and no client has
//! many (`connections`). A client that gives up request after request is disconnected (`resets`).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use plimsoll_client::accept_loop::accept;
use plimsoll_client::http_connection::{self, Limits};
use plimsoll_core::object::timestamp::Timestamp;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::connections::{Connection, Connections};
use super::priority::Priority;
use super::resets::Resets;
use super::tls::{self, ServerCertificate, TlsError};
use crate::auth::authority::end_of_certificate;
use crate::auth::identity::user_of_certificate;
use crate::body::{self, Body, BodyError};
use crate::server::Server;
use crate::server::limits::Level;
use crate::server::request::call::read_body;
use crate::server::request::clock::passed;
use crate::server::request::handle::{Authenticated, Client, Origin, Peer, Shown};
use crate::server::request::respond;
use crate::status::Status;

/// Headers may be as long as the HTTP library takes them.
const LIMITS: Limits = Limits {
    header_timeout: Duration::from_secs(30),
    header_bytes: None,
};

/// Bodies up to this are read before anything is known of the client.
pub(in crate::server) const SMALL_BODY: u64 = 64 * 1024;

/// So many at once; beyond that, refusals may overtake requests.
const SMALL_BODIES: usize = 1024;

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
    let priority = Priority::start().map_err(TlsError::Threads)?;
    let listener = priority.take(listener).map_err(TlsError::Threads)?;
    let shared = Shared {
        server,
        acceptor,
        connections: Arc::default(),
        small_bodies: Arc::new(Semaphore::new(SMALL_BODIES)),
        others: Handle::current(),
    };
    let accepting = priority.handle().spawn(async move {
        let serve = |socket, address| connection(shared.clone(), socket, address);
        accept(listener, MAX_CONNECTIONS, stopped(&mut stop), GRACE, serve).await;
    });
    let accepted = accepting.await;
    renewing.abort();
    accepted.map_err(|error| TlsError::Threads(error.into()))
}

/// What all connections share.
#[derive(Clone)]
struct Shared {
    server: Arc<Server>,
    acceptor: TlsAcceptor,
    connections: Arc<Connections>,
    small_bodies: Arc<Semaphore>,
    /// Serves the connections of clients without priority.
    others: Handle,
}

impl Shared {
    /// Waits for a body that is small. A refusal that overtakes its request resets the stream, and
    /// some clients then never read the refusal.
    async fn arrived(&self, request: Request<Incoming>) -> Result<Request<Body>, Status> {
        let is_small = matches!(request.body().size_hint().exact(), Some(1..=SMALL_BODY));
        let (parts, body) = request.into_parts();
        let body = BodyExt::boxed_unsync(body.map_err(BodyError::other));
        match self.small_bodies.try_acquire() {
            Ok(_place) if is_small => {
                let bytes = read_body(body).await?;
                Ok(Request::from_parts(parts, body::full(bytes)))
            }
            _ => Ok(Request::from_parts(parts, body)),
        }
    }

    async fn answer(&self, request: Request<Incoming>, peer: &Peer) -> Response<Body> {
        match self.arrived(request).await {
            Ok(request) => self.server.handle(request, peer).await,
            Err(status) => respond::status(&status),
        }
    }

    /// The TLS session; `None` if the client does not want one, or not soon enough.
    async fn handshake(
        &self,
        socket: TcpStream,
        address: SocketAddr,
        counted: &Connection,
    ) -> Option<TlsStream<TcpStream>> {
        tokio::select! {
            stream = http_connection::handshake(&self.acceptor, socket, address) => stream,
            () = counted.has_to_close() => None,
        }
    }
}

async fn stopped(stop: &mut tokio::sync::watch::Receiver<bool>) {
    // A server that is gone has stopped, too.
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn connection(shared: Shared, socket: TcpStream, address: SocketAddr) {
    let counted = shared.connections.open(address.ip());
    let Some(stream) = shared.handshake(socket, address, &counted).await else {
        return;
    };
    let (socket, session) = stream.get_ref();
    let certificate = session.peer_certificates().and_then(|chain| chain.first());
    let shown = certificate.map(|der| {
        let user = user_of_certificate(der).ok().flatten();
        Shown {
            der: der.as_ref().into(),
            user: user.map(|user| Arc::new(user.authenticated())),
            end: end_of_certificate(der),
        }
    });
    let user = shown.as_ref().and_then(|shown| shown.user.as_ref());
    if let Some(user) = user {
        counted.is_of(&user.name);
    }
    let has_priority = user.is_some_and(|user| Level::of(user) != Level::Workload);
    let own_address = socket.local_addr().ok().map(|own| own.ip().to_canonical());
    let client_address = address.ip().to_canonical();
    let (others, resets) = (shared.others.clone(), Resets::new());
    let about = About {
        shared,
        end: shown.as_ref().map(|shown| shown.end),
        peer: Peer::Socket(Client {
            origin: origin(client_address, own_address),
            address: client_address,
            shown,
        }),
        counted,
        resets,
        refused: Notify::new(),
    };
    let serving = serve_requests(Arc::new(about), stream, address);
    if has_priority {
        return serving.await;
    }
    // Ends with this task.
    let mut elsewhere = JoinSet::new();
    elsewhere.spawn_on(serving, &others);
    elsewhere.join_next().await;
}

/// What the requests of a connection share.
struct About {
    shared: Shared,
    peer: Peer,
    /// When the certificate that the client showed ends.
    end: Option<Timestamp>,
    counted: Connection,
    resets: Arc<Resets>,
    /// A request had credentials that prove nothing.
    refused: Notify,
}

async fn serve_requests(about: Arc<About>, stream: TlsStream<TcpStream>, address: SocketAddr) {
    let asked = Arc::clone(&about);
    let answer = move |request: Request<Incoming>| {
        let about = Arc::clone(&asked);
        async move {
            let answering = about.resets.begin();
            let mut response = about.shared.answer(request, &about.peer).await;
            answering.finish();
            if let Some(Authenticated(user)) = response.extensions_mut().remove() {
                about.counted.is_of(&user);
            }
            if response.status() == StatusCode::UNAUTHORIZED {
                about.refused.notify_one();
            }
            response
        }
    };
    let (drain, close) = (about.has_to_drain(), about.has_to_close(address));
    http_connection::serve(stream, address, LIMITS, drain, close, answer).await;
}

impl About {
    /// Waits until the connection has to end once its open requests are answered.
    async fn has_to_drain(&self) {
        let mut stop = self.shared.server.stopping();
        tokio::select! {
            () = stopped(&mut stop) => {}
            // A client whose credentials are not accepted has to connect anew for each try.
            () = self.refused.notified() => {}
            // The client has to show a certificate anew.
            () = certificate_ended(self.end) => {}
        }
    }

    /// Waits until the connection has to end, whatever is open on it.
    async fn has_to_close(&self, address: SocketAddr) {
        // Watches and streams would continue forever.
        let overdue = async {
            certificate_ended(self.end).await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            () = overdue => {}
            () = self.counted.has_to_close() => {}
            () = self.resets.flooded() => {
                tracing::warn!(%address, "closed a connection that gave up too many requests");
            }
        }
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
async fn certificate_ended(end: Option<Timestamp>) {
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
