//! `pods/exec`, `pods/attach` and `pods/portforward`.
//!
//! Matches v1.36 pkg/registry/core/pod/rest/subresources.go, pkg/registry/core/pod/strategy.go and
//! apimachinery/pkg/util/proxy/upgradeaware.go. As in upstream, the node validates the command and
//! the streams.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use plimsoll_client::splice::{Timeouts, splice};
use serde_json::Value;
use tokio::time::timeout;

use super::connector::{Channel, NodeConnector, Stream};
use super::container::choose_container;
use super::endpoint::NodeEndpoint;
use super::error_response::{
    ErrorResponse, bad_request, no_such_node, status_response, unexpected,
};
use super::exchange::{Connection, send, transport_text};
use super::headers::{
    is_upgrade, is_websocket, offered_protocols, remove_hop_by_hop, set_upgrade, upgrade_headers,
};
use super::options::{CommandOptions, port_forward_to_node};
use super::{tunnel, websocket};
use crate::body::{Body, empty, full};
use crate::http::query::Query;
use crate::status::Status;

/// How much of a node's error response is passed on.
const MAX_ERROR_RESPONSE_BYTES: usize = 1 << 20;

/// The time between the upgrade and the first message over a WebSocket. kubectl up to
/// 1.32 starts to read before it has created its streams, and drops messages for a stream
/// that does not exist yet; our nodes respond within a millisecond.
const HEAD_START: Duration = Duration::from_millis(30);

impl NodeConnector {
    /// Runs a command in a container, over a WebSocket (GET) or SPDY (POST). `node` is the one
    /// that the pod is bound to, if it exists.
    pub async fn exec(
        &self,
        request: Request<Body>,
        pod: &Value,
        node: Option<&Value>,
    ) -> Response<Body> {
        let options = CommandOptions::read(&query_of(&request));
        let answer = self.command(request, pod, node, "exec", options).await;
        answer.unwrap_or_else(|status| status_response(&status))
    }

    /// Attaches to the running process of a container; otherwise as [`NodeConnector::exec`].
    pub async fn attach(
        &self,
        request: Request<Body>,
        pod: &Value,
        node: Option<&Value>,
    ) -> Response<Body> {
        let options = CommandOptions::read(&query_of(&request)).without_command();
        let answer = self.command(request, pod, node, "attach", options).await;
        answer.unwrap_or_else(|status| status_response(&status))
    }

    /// Forwards ports of a pod, over SPDY or over a WebSocket that carries SPDY.
    pub async fn port_forward(
        &self,
        request: Request<Body>,
        pod: &Value,
        node: Option<&Value>,
    ) -> Response<Body> {
        let answer = self.try_port_forward(request, pod, node).await;
        answer.unwrap_or_else(|status| status_response(&status))
    }

    async fn command(
        &self,
        request: Request<Body>,
        pod: &Value,
        node: Option<&Value>,
        verb: &str,
        options: CommandOptions,
    ) -> Result<Response<Body>, ErrorResponse> {
        refuse_dry_run(&request)?;
        let container = choose_container(pod, &options.container)?;
        let endpoint = self.pod_endpoint(pod, node)?;
        require_upgrade(request.headers())?;
        let (namespace, name) = names_of(pod);
        let query = options.to_node();
        let path = with_query(format!("/{verb}/{namespace}/{name}/{container}"), &query);
        let wants_v5 = is_websocket(request.headers())
            && offered_protocols(request.headers()).any(|protocol| protocol == websocket::V5);
        let error = match self.dial(&endpoint, Channel::Agent).await {
            Ok(stream) => return self.pass_on(request, stream, &path).await,
            Err(error) => error,
        };
        // A client of the fifth protocol gets the error on its error channel, as upstream does: it
        // would take a failed upgrade for a server that supports SPDY only, and try again.
        if wants_v5 {
            let text = format!("error sending request: Post \"https://{endpoint}{path}\": {error}");
            let status = Status::internal_error(&text);
            let channel = options.lowest_output_channel();
            return websocket::fail(request, channel, &status, self.timeouts.closing);
        }
        Err(dialing_failed(&error.to_string()))
    }

    async fn try_port_forward(
        &self,
        request: Request<Body>,
        pod: &Value,
        node: Option<&Value>,
    ) -> Result<Response<Body>, ErrorResponse> {
        refuse_dry_run(&request)?;
        let query = port_forward_to_node(&query_of(&request))?;
        let endpoint = self.pod_endpoint(pod, node)?;
        require_upgrade(request.headers())?;
        let (namespace, name) = names_of(pod);
        let path = with_query(format!("/portForward/{namespace}/{name}"), &query);
        let stream = self.dial(&endpoint, Channel::Agent).await;
        let stream = stream.map_err(|error| dialing_failed(&error.to_string()))?;
        match tunnel::spdy_protocols(request.headers()) {
            Some(protocols) => self.tunnel(request, stream, &path, &protocols).await,
            None => self.pass_on(request, stream, &path).await,
        }
    }

    fn pod_endpoint(
        &self,
        pod: &Value,
        node: Option<&Value>,
    ) -> Result<NodeEndpoint, ErrorResponse> {
        let Some(node) = assigned_node(pod, node)? else {
            let (_, name) = names_of(pod);
            let message = format!("pod {name} does not have a host assigned");
            return Err(bad_request(message));
        };
        self.endpoint(node)
    }

    /// Requests the same upgrade from the node, and joins the two connections when it accepts.
    pub(super) async fn pass_on(
        &self,
        mut request: Request<Body>,
        stream: Box<dyn Stream>,
        path: &str,
    ) -> Result<Response<Body>, ErrorResponse> {
        let client = hyper::upgrade::on(&mut request);
        let protocol = request.headers().get(header::UPGRADE).cloned();
        let protocol = protocol.unwrap_or(HeaderValue::from_static(""));
        let mut to_node = Request::new(empty());
        *to_node.method_mut() = request.method().clone();
        *to_node.headers_mut() = upgrade_headers(request.headers(), protocol);

        let (mut response, connection) = self.upgrade(stream, to_node, path).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return self.not_upgraded(response).await;
        }
        let node = hyper::upgrade::on(&mut response);
        let patience = Timeouts {
            idle: self.timeouts.idle,
            closing: self.timeouts.closing,
        };
        let head_start = is_websocket(request.headers()).then_some(HEAD_START);
        tokio::spawn(async move {
            let (Ok(client), Ok(node)) = tokio::join!(client, node) else {
                return;
            };
            if let Some(head_start) = head_start {
                tokio::time::sleep(head_start).await;
            }
            splice(TokioIo::new(client), TokioIo::new(node), patience).await;
            drop(connection);
        });
        let mut answer = Response::new(empty());
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let mut headers = response.headers().clone();
        let protocol = headers.get(header::UPGRADE).cloned();
        remove_hop_by_hop(&mut headers);
        if let Some(protocol) = protocol {
            set_upgrade(&mut headers, protocol);
        }
        *answer.headers_mut() = headers;
        Ok(answer)
    }

    /// Sends an upgrade request; the response may be an error.
    pub(super) async fn upgrade(
        &self,
        stream: Box<dyn Stream>,
        mut request: Request<Body>,
        path: &str,
    ) -> Result<(Response<Incoming>, Connection), ErrorResponse> {
        *request.uri_mut() = path
            .parse()
            .map_err(|error: http::uri::InvalidUri| unexpected(error.to_string()))?;
        match timeout(self.timeouts.upgrade, send(stream, request)).await {
            Ok(Ok(answered)) => Ok(answered),
            Ok(Err(error)) => Err(unexpected(transport_text(&error))),
            Err(_) => Err(unexpected("read tcp: i/o timeout")),
        }
    }

    /// A node's error is passed on; success without an upgrade is an error, too.
    pub(super) async fn not_upgraded(
        &self,
        response: Response<Incoming>,
    ) -> Result<Response<Body>, ErrorResponse> {
        let code = response.status();
        if code.as_u16() < 400 {
            let message = format!("invalid upgrade response: status code {}", code.as_u16());
            return Err(unexpected(message));
        }
        let (mut parts, body) = response.into_parts();
        let body = Limited::new(body, MAX_ERROR_RESPONSE_BYTES).collect();
        let body = match timeout(self.timeouts.closing, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) => return Err(unexpected(transport_text(error.as_ref()))),
            Err(_) => return Err(unexpected("read tcp: i/o timeout")),
        };
        remove_hop_by_hop(&mut parts.headers);
        parts.headers.remove(header::CONTENT_LENGTH);
        Ok(Response::from_parts(parts, full(body)))
    }
}

/// Namespace and name.
pub(super) fn names_of(pod: &Value) -> (&str, &str) {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
    (text("namespace"), text("name"))
}

/// The node that the pod is bound to: `None` if it is unbound, an error if that node does not
/// exist.
pub(super) fn assigned_node<'a>(
    pod: &Value,
    node: Option<&'a Value>,
) -> Result<Option<&'a Value>, ErrorResponse> {
    match pod["spec"]["nodeName"].as_str().unwrap_or_default() {
        "" => Ok(None),
        name => node.map(Some).ok_or_else(|| no_such_node(name)),
    }
}

fn query_of(request: &Request<Body>) -> Query {
    Query::parse(request.uri().query().unwrap_or_default())
}

fn with_query(path: String, query: &str) -> String {
    if query.is_empty() {
        path
    } else {
        format!("{path}?{query}")
    }
}

fn refuse_dry_run(request: &Request<Body>) -> Result<(), ErrorResponse> {
    match query_of(request).first("dryRun") {
        Some(_) => Err(bad_request("dryRun is not supported")),
        None => Ok(()),
    }
}

fn require_upgrade(headers: &HeaderMap) -> Result<(), ErrorResponse> {
    if is_upgrade(headers) {
        Ok(())
    } else {
        Err(bad_request("Upgrade request required"))
    }
}

pub(super) fn dialing_failed(error: &str) -> ErrorResponse {
    unexpected(format!("error dialing backend: {error}"))
}
