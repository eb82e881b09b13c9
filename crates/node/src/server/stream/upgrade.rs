//! From HTTP to something else.

use std::sync::Arc;

use http::header::{
    CONNECTION, RETRY_AFTER, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use plimsoll_runtime::{Dial, Error, ProcessStreams};
use tokio::sync::Semaphore;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agreement::{Agreement, SPDY, STREAM_PROTOCOL};
use super::port_forward::Target;
use super::session::{self, Kind};
use super::{port_forward, remote_command, websocket};
use crate::server::answer::{self, Refusal};
use crate::server::body::Body;
use crate::server::command::Wanted;
use crate::server::{Options, Server};

/// Upgraded connections at once.
const MAX_STREAMS: usize = 1000;

/// When a client that found no place may come back, in seconds.
const COME_BACK: HeaderValue = HeaderValue::from_static("60");

/// The upgraded connections of a server.
#[derive(Debug)]
pub(in crate::server) struct Streams {
    places: Arc<Semaphore>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Default for Streams {
    fn default() -> Streams {
        Streams {
            places: Arc::new(Semaphore::new(MAX_STREAMS)),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }
}

impl Streams {
    /// Cancelled when the server stops.
    pub(in crate::server) fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Ends all of them.
    pub(in crate::server) async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Does something with the connection once it is upgraded, unless there are too many or the
    /// server stops.
    pub(super) fn spawn<F>(
        &self,
        request: &mut Request<Incoming>,
        serve: impl FnOnce(Upgraded) -> F + Send + 'static,
    ) -> Result<(), Refusal>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let text = "maximum number of in-flight requests exceeded";
            let mut refusal = answer::text(StatusCode::TOO_MANY_REQUESTS, text);
            refusal.headers_mut().insert(RETRY_AFTER, COME_BACK);
            return Err(Box::new(refusal));
        };
        let upgraded = hyper::upgrade::on(request);
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let serve = async {
                match upgraded.await {
                    Ok(upgraded) => serve(upgraded).await,
                    Err(error) => tracing::debug!(%error, "failed to upgrade connection"),
                }
            };
            tokio::select! {
                () = serve => {}
                () = stop.cancelled() => {}
            }
            drop(place);
        });
        Ok(())
    }
}

impl Server {
    /// Agrees to an upgrade and joins client and process. The error of a process that could not be
    /// started is sent over the upgraded connection.
    pub(in crate::server) fn upgrade(
        &self,
        mut request: Request<Incoming>,
        agreement: Agreement,
        process: Result<Box<ProcessStreams>, Error>,
        wanted: Wanted,
        kind: Kind,
    ) -> Result<Response<Body>, Refusal> {
        let Options {
            idle,
            stream_creation,
            ..
        } = self.options;
        match agreement {
            Agreement::Spdy { protocol } => {
                let serve = move |upgraded| async move {
                    let opened =
                        remote_command::open(upgraded, protocol, wanted, stream_creation).await;
                    match opened {
                        Ok((client, connection)) => {
                            session::serve(process, client, &kind, idle).await;
                            connection.close(idle).await;
                        }
                        Err(error) => tracing::debug!(%error, "failed to start streaming request"),
                    }
                };
                self.streams.spawn(&mut request, serve)?;
                Ok(spdy(protocol))
            }
            Agreement::WebSocket {
                protocol,
                encoding,
                key,
            } => {
                let serve = move |upgraded| async move {
                    let (client, connection) =
                        websocket::open(upgraded, protocol, encoding, wanted).await;
                    session::serve(process, client, &kind, idle).await;
                    connection.close(idle).await;
                };
                self.streams.spawn(&mut request, serve)?;
                Ok(web_socket(protocol, &key))
            }
        }
    }

    /// Agrees to an upgrade and connects the client to ports.
    pub(in crate::server) fn forward_ports(
        &self,
        mut request: Request<Incoming>,
        agreement: &Agreement,
        dial: Dial,
        target: Target,
    ) -> Result<Response<Body>, Refusal> {
        let Agreement::Spdy { protocol } = agreement else {
            return Err(Box::new(answer::bare(StatusCode::BAD_REQUEST)));
        };
        let Options {
            idle,
            stream_creation,
            ..
        } = self.options;
        self.streams.spawn(&mut request, move |upgraded| {
            port_forward::serve(upgraded, dial, target, stream_creation, idle)
        })?;
        Ok(spdy(protocol))
    }
}

fn spdy(protocol: &'static str) -> Response<Body> {
    let mut answer = switching(HeaderValue::from_static(SPDY));
    let protocol = HeaderValue::from_static(protocol);
    answer.headers_mut().insert(STREAM_PROTOCOL, protocol);
    answer
}

fn web_socket(protocol: &'static str, key: &[u8]) -> Response<Body> {
    let mut answer = switching(HeaderValue::from_static("websocket"));
    let headers = answer.headers_mut();
    if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key)) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    if !protocol.is_empty() {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    }
    answer
}

/// Yes to an upgrade.
pub(super) fn switching(to: HeaderValue) -> Response<Body> {
    let mut answer = answer::bare(StatusCode::SWITCHING_PROTOCOLS);
    let headers = answer.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, to);
    answer
}
