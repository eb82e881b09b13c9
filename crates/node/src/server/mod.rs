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
use std::time::{Duration, Instant};

use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use rustls::pki_types::CertificateDer;

use access::{Attributes, Authenticator, Authorizer, Denial, strip_token};
use answer::{Refusal, refuse};
use body::Body;
pub use node::{Metrics, Node, Trouble};
use query::Query;
use route::{Pages, Route, route};
use stream::Streams;

use crate::stats::metrics::{Answered, KubeletMetrics};

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
    /// What the agent counts.
    pub metrics: Arc<KubeletMetrics>,
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

    /// Answers a request, and counts it.
    async fn answer(&self, request: Request<Incoming>, peer: &Peer) -> Response<Body> {
        let begun = Instant::now();
        let method = metric_method(request.method());
        let path = metric_path(request.uri().path()).to_owned();
        let answer = self.handle(request, peer).await;
        self.options.metrics.answered(&Answered {
            method,
            path: &path,
            is_long_running: LONG_RUNNING.contains(&path.as_str()),
            duration: begun.elapsed(),
        });
        answer
    }

    async fn handle(&self, mut request: Request<Incoming>, peer: &Peer) -> Response<Body> {
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

/// Pages whose connections last as long as the client wants.
const LONG_RUNNING: [&str; 3] = ["exec", "attach", "portForward"];

/// The first part of a path, as metrics have it: one label per page, for any request.
fn metric_path(path: &str) -> &str {
    const PAGES: [&str; 12] = [
        "attach",
        "configz",
        "containerLogs",
        "exec",
        "healthz",
        "logs",
        "plimsoll",
        "pods",
        "portForward",
        "run",
        "runningpods",
        "stats",
    ];
    let path = path.trim_start_matches('/');
    let first = path.split('/').next().unwrap_or_default();
    match first {
        // Each page of figures has a label of its own, as upstream.
        "metrics" => match path.trim_end_matches('/') {
            "metrics/cadvisor" => "metrics/cadvisor",
            "metrics/probes" => "metrics/probes",
            "metrics/resource" => "metrics/resource",
            _ => "metrics",
        },
        _ if PAGES.contains(&first) => first,
        _ => "other",
    }
}

/// The method, as metrics have it.
fn metric_method(method: &Method) -> &'static str {
    const METHODS: [&str; 8] = [
        "OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT",
    ];
    let known = METHODS.iter().find(|known| **known == method.as_str());
    known.copied().unwrap_or("other")
}

#[cfg(test)]
mod tests;
