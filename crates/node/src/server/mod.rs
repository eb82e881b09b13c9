//! The kubelet API: what the API server, `kubectl` and metrics collectors ask a node for.
//!
//! It listens with TLS on port 10250, authenticates and authorizes the client, and answers out of a
//! [`Node`]: pods, usage, measurements, logs; and commands, terminals and ports of containers over
//! upgraded connections. It decides nothing about pods.
//!
//! Reading order: `node` (the agent behind the API), `route` (its pages), [`access`], `observe`,
//! `journal`, `health`, `logs` and `system_logs` (pages), `command`, `forward` and `stream` (upgraded
//! connections), `listener` and [`tls`] (sockets).

pub mod access;
mod answer;
mod body;
mod command;
mod forward;
mod health;
mod journal;
mod listener;
mod logs;
mod node;
mod observe;
mod query;
mod route;
mod stream;
mod system_logs;
pub mod tls;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use rustls::pki_types::CertificateDer;

use access::{Attributes, Authenticator, Authorizer, Denial, strip_token};
use answer::{Refusal, refuse};
use body::Body;
pub use node::{Metrics, Node, Trouble};
use query::Query;
use route::{Pages, Route, route};
use stream::Streams;

/// The options of the kubelet API.
#[derive(Debug)]
pub struct Options {
    /// Identifies the client.
    pub authenticator: Authenticator,
    /// Decides what the client may do.
    pub authorizer: Authorizer,
    /// Whether there are logs, commands and ports at all (`enableDebuggingHandlers`).
    pub debugging_handlers: bool,
    /// The node's log folder, if it is shown (`enableSystemLogHandler`, `/var/log`).
    pub system_logs: Option<PathBuf>,
    /// How long nothing may happen on an upgraded connection
    /// (`streamingConnectionIdleTimeout`, 4 hours).
    pub idle: Duration,
    /// How long a client may take to open its streams (30 seconds).
    pub stream_creation: Duration,
    /// Connections at once.
    pub max_connections: usize,
}

/// The kubelet API of one node.
#[derive(Debug)]
pub struct Server {
    node: Arc<dyn Node>,
    options: Options,
    streams: Streams,
}

/// The other end of a connection.
#[derive(Debug)]
struct Peer {
    /// The certificates it showed, its own first.
    chain: Vec<CertificateDer<'static>>,
}

impl Server {
    /// A server that does not listen yet.
    pub fn new(node: Arc<dyn Node>, options: Options) -> Arc<Server> {
        Arc::new(Server {
            node,
            options,
            streams: Streams::default(),
        })
    }

    async fn answer(&self, mut request: Request<Incoming>, peer: &Peer) -> Response<Body> {
        let pages = Pages {
            debugging: self.options.debugging_handlers,
            system_logs: self.options.system_logs.is_some(),
        };
        let path = query::path(request.uri().path());
        let found = path.and_then(|path| Some((route(request.method(), &path, pages)?, path)));
        let Some((route, path)) = found else {
            return answer::no_such_page();
        };
        if let Err(refusal) = self.admit(&request, &path, peer).await {
            return *refusal;
        }
        strip_token(request.headers_mut());
        let method = request.method().clone();
        let shown = self.show(route, request).await;
        let shown = shown.unwrap_or_else(|refusal| *refusal);
        tracing::debug!(%method, path, status = shown.status().as_u16(), "handled request");
        shown
    }

    async fn system_logs(&self, below: &str, request: &Request<Incoming>) -> Response<Body> {
        let Some(root) = &self.options.system_logs else {
            return answer::no_such_page();
        };
        let ends_open = request.uri().path().ends_with('/');
        system_logs::show(root, below, ends_open).await
    }

    /// Whether the caller may have the page.
    async fn admit(
        &self,
        request: &Request<Incoming>,
        path: &str,
        peer: &Peer,
    ) -> Result<(), Refusal> {
        let authenticator = &self.options.authenticator;
        let user = authenticator.user(&peer.chain, request.headers()).await;
        let user = user.map_err(|_| refuse(StatusCode::UNAUTHORIZED, "Unauthorized"))?;
        let wanted = Attributes::of(request.method(), path);
        let allowed = self.options.authorizer.allow(&user, &wanted).await;
        allowed.map_err(|denial| match denial {
            Denial::Forbidden(text) => refuse(StatusCode::FORBIDDEN, text),
            Denial::Unknown(text) => refuse(StatusCode::INTERNAL_SERVER_ERROR, text),
        })
    }

    async fn show(
        &self,
        route: Route,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let node = &*self.node;
        Ok(match route {
            Route::Health(check) => health::health(node, check, &query),
            Route::Pods => observe::pods(node),
            Route::RunningPods => observe::running_pods(node).await,
            Route::Summary => observe::summary(node, &query).await,
            Route::Metrics(page) => observe::metrics(node, page).await,
            Route::Configuration => observe::configuration(node),
            Route::Decisions => journal::decisions(node, &query),
            Route::Lines => journal::lines(node),
            Route::Ranking => journal::ranking(node, &query),
            Route::ContainerLogs(of) => {
                let stopping = self.streams.stopping();
                logs::container_logs(&self.node, &of, &query, stopping).await
            }
            Route::Exec(of) => self.exec(request, &of, &query).await?,
            Route::Attach(of) => self.attach(request, &of, &query).await?,
            Route::Run(of) => command::run(node, &of, &query).await?,
            Route::PortForward(pod) => self.port_forward(request, &pod).await?,
            Route::SystemLogs(below) => self.system_logs(&below, &request).await,
            Route::Disabled(why) => answer::error(StatusCode::METHOD_NOT_ALLOWED, why),
            Route::Missing => answer::no_such_route(),
            Route::WrongMethod(allowed) => answer::wrong_method(allowed),
        })
    }
}

#[cfg(test)]
mod tests;
