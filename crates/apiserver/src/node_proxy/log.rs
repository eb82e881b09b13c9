//! `pods/log`.
//!
//! Matches v1.36 pkg/registry/core/pod/rest/log.go and
//! apiserver/pkg/registry/generic/rest/streamer.go.

use http::header::{CONTENT_TYPE, HOST, LOCATION};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::timeout;

use super::connector::{Channel, NodeConnector};
use super::container::choose_container;
use super::error_response::{
    ErrorResponse, invalid_log_options, of_log_response, status_response, unexpected,
};
use super::exchange::{send, streamed, transport_text};
use super::log_socket::LogSocket;
use super::options::LogOptions;
use super::stream::{assigned_node, names_of};
use crate::body::{Body, empty};
use crate::http::query::Query;

/// How much of a node's error response is passed to the caller.
const MAX_ERROR_RESPONSE_BYTES: usize = 50_000;

impl NodeConnector {
    /// The log of a container. `node` is the one that the pod is bound to; an unbound pod has no log
    /// yet. The log is streamed as fast as it is read, and the node stops sending when the
    /// response is dropped. A client that requests a WebSocket gets it in messages.
    pub async fn log(
        &self,
        mut request: Request<Body>,
        pod: &Value,
        node: Option<&Value>,
    ) -> Response<Body> {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let socket = match LogSocket::take(&mut request) {
            Ok(socket) => socket,
            Err(status) => return status_response(&status),
        };
        drop(request);
        match (self.try_log(&query, pod, node).await, socket) {
            (Ok(log), Some(socket)) if log.status() != StatusCode::NO_CONTENT => {
                socket.send(log.into_body(), self.timeouts)
            }
            (Ok(log), _) => log,
            (Err(status), _) => status_response(&status),
        }
    }

    async fn try_log(
        &self,
        query: &str,
        pod: &Value,
        node: Option<&Value>,
    ) -> Result<Response<Body>, ErrorResponse> {
        let options = LogOptions::read(&Query::parse(query))?;
        let (namespace, name) = names_of(pod);
        let problems = options.problems();
        if !problems.is_empty() {
            return Err(invalid_log_options(name, &problems));
        }
        let container = choose_container(pod, &options.container)?;
        let Some(node) = assigned_node(pod, node)? else {
            let mut nothing = Response::new(empty());
            *nothing.status_mut() = StatusCode::NO_CONTENT;
            return Ok(nothing);
        };
        let endpoint = self.endpoint(node)?;
        let mut path = format!("/containerLogs/{namespace}/{name}/{container}");
        let query = options.to_node();
        if !query.is_empty() {
            path = format!("{path}?{query}");
        }
        let failed = |text: String| unexpected(format!("Get \"https://{endpoint}{path}\": {text}"));

        let request = Request::get(&path).header(HOST, endpoint.to_string());
        let request = request.body(empty());
        let request = request.map_err(|error| unexpected(error.to_string()))?;
        let channel = if options.skips_tls_verification {
            Channel::Unverified
        } else {
            Channel::Agent
        };
        let stream = self.dial(&endpoint, channel).await;
        let stream = stream.map_err(|error| failed(error.to_string()))?;
        let (response, connection) = send(stream, request)
            .await
            .map_err(|error| failed(transport_text(&error)))?;

        if let Some(location) = response.headers().get(LOCATION)
            && response.status().is_redirection()
        {
            let location = String::from_utf8_lossy(location.as_bytes());
            return Err(unexpected(format!(
                "Get \"{location}\": redirects forbidden"
            )));
        }
        // Upstream accepts 200 to 206.
        if !(200..=206).contains(&response.status().as_u16()) {
            return Err(self.log_error(response, name).await);
        }
        let mut answer = Response::new(streamed(response.into_body(), connection));
        let text = HeaderValue::from_static("text/plain");
        answer.headers_mut().insert(CONTENT_TYPE, text);
        Ok(answer)
    }

    /// An error response of the node; the reason is in the body.
    async fn log_error(&self, response: Response<Incoming>, pod: &str) -> ErrorResponse {
        let code = response.status().as_u16();
        let body = Limited::new(response.into_body(), MAX_ERROR_RESPONSE_BYTES).collect();
        match timeout(self.timeouts.closing, body).await {
            Ok(Ok(body)) => {
                let text = body.to_bytes();
                of_log_response(code, &String::from_utf8_lossy(&text), pod)
            }
            Ok(Err(_)) | Err(_) => of_log_response(code, "", pod),
        }
    }
}
