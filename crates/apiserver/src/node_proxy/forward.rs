//! `nodes/NAME/proxy`: a node's own HTTP endpoints; `pods/NAME/proxy`: those of a pod.
//!
//! Matches v1.36 pkg/registry/core/node/strategy.go `ResourceLocation` and
//! apimachinery/pkg/util/proxy (upgradeaware.go, transport.go), apart from links in HTML pages,
//! which are left as they are.

use http::header::{HOST, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use serde_json::Value;

use super::connector::{Channel, DialError, NodeConnector};
use super::endpoint::{NodeEndpoint, ProxyTarget, pod_endpoint};
use super::error_response::{ErrorResponse, bad_request, status_response, unexpected, unreachable};
use super::exchange::{send, streamed, transport_text};
use super::headers::{is_upgrade, remove_credentials, remove_hop_by_hop};
use super::stream::dialing_failed;
use crate::body::{Body, empty};
use crate::http::query::parse_u16;

/// Removed from responses: a node does not decide which other sites may read them.
const CORS: [&str; 4] = [
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
];

const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");

impl NodeConnector {
    /// Forwards any request to a server of a node. `target` is the part of the path after
    /// `nodes/`, `path` the part after `proxy`, still escaped; both are of `request`'s own path.
    ///
    /// Unlike upstream, other ports over TLS need a certificate of the cluster's CA, too.
    pub async fn node_proxy(
        &self,
        request: Request<Body>,
        node: &Value,
        target: &ProxyTarget<'_>,
        path: &str,
    ) -> Response<Body> {
        let answer = self.try_node_proxy(request, node, target, path).await;
        answer.unwrap_or_else(|status| status_response(&status))
    }

    async fn try_node_proxy(
        &self,
        request: Request<Body>,
        node: &Value,
        target: &ProxyTarget<'_>,
        path: &str,
    ) -> Result<Response<Body>, ErrorResponse> {
        let (endpoint, channel) = self.proxied_endpoint(node, target)?;
        self.forward(request, &endpoint, channel, path).await
    }

    /// Forwards any request to a server in a pod; the API server needs a route to pods. The pod is
    /// not verified over TLS, and gets no certificate of the API server.
    pub async fn pod_proxy(
        &self,
        request: Request<Body>,
        pod: &Value,
        target: &ProxyTarget<'_>,
        path: &str,
    ) -> Response<Body> {
        let channel = match target.scheme {
            "https" => Channel::Pod,
            _ => Channel::OtherPlain,
        };
        let answer = match pod_endpoint(pod, target) {
            Ok(endpoint) => self.forward(request, &endpoint, channel, path).await,
            Err(status) => Err(status),
        };
        answer.unwrap_or_else(|status| status_response(&status))
    }

    async fn forward(
        &self,
        request: Request<Body>,
        endpoint: &NodeEndpoint,
        channel: Channel,
        path: &str,
    ) -> Result<Response<Body>, ErrorResponse> {
        let to_node = with_query(if path.is_empty() { "/" } else { path }, &request);
        if is_upgrade(request.headers()) {
            let stream = self.dial_proxied(endpoint, channel).await;
            let stream = stream.map_err(|error| {
                not_allowed(&error).unwrap_or(dialing_failed(&error.to_string()))
            })?;
            return self.pass_on(request, stream, &to_node).await;
        }
        if path.is_empty() && matches!(*request.method(), Method::GET | Method::HEAD) {
            return Ok(with_slash(&request));
        }
        let stream = self.dial_proxied(endpoint, channel).await;
        let stream = stream
            .map_err(|error| not_allowed(&error).unwrap_or(unreachable(&error.to_string())))?;

        let rewrite = Rewrite::new(&request, endpoint, path);
        let request = to_forward(request, &to_node)?;
        let (response, connection) = send(stream, request)
            .await
            .map_err(|error| unreachable(&transport_text(&error)))?;
        let (mut parts, body) = response.into_parts();
        remove_hop_by_hop(&mut parts.headers);
        for name in CORS {
            parts.headers.remove(name);
        }
        rewrite.apply(&mut parts.headers);
        Ok(Response::from_parts(parts, streamed(body, connection)))
    }

    fn proxied_endpoint(
        &self,
        node: &Value,
        target: &ProxyTarget<'_>,
    ) -> Result<(NodeEndpoint, Channel), ErrorResponse> {
        let agent = self.endpoint(node)?;
        if target.port.is_empty() || target.port == agent.port.to_string() {
            return Ok((agent, Channel::Agent));
        }
        let port = parse_u16(target.port).map_err(|_| {
            unreachable(&format!("dial tcp: address {}: invalid port", target.port))
        })?;
        let channel = match target.scheme {
            "https" => Channel::OtherTls,
            _ => Channel::OtherPlain,
        };
        Ok((NodeEndpoint { port, ..agent }, channel))
    }
}

/// Addresses that are not proxied to, and names without any, are the caller's error.
fn not_allowed(error: &DialError) -> Option<ErrorResponse> {
    match error {
        DialError::NotAllowed => Some(bad_request(error.to_string())),
        DialError::Lookup { host } => Some(bad_request(format!("lookup {host}: no such host"))),
        _ => None,
    }
}

fn with_query(path: &str, request: &Request<Body>) -> String {
    match request.uri().query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    }
}

/// Relative links on a node's first page need its address to end with a slash.
fn with_slash(request: &Request<Body>) -> Response<Body> {
    let location = with_query(&format!("{}/", request.uri().path()), request);
    let mut answer = Response::new(empty());
    *answer.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(location) = HeaderValue::from_str(&location) {
        answer.headers_mut().insert(LOCATION, location);
    }
    answer
}

fn to_forward(request: Request<Body>, to_node: &str) -> Result<Request<Body>, ErrorResponse> {
    let forwarded = HeaderValue::from_str(request.uri().path()).ok();
    let (parts, body) = request.into_parts();
    let mut forward = Request::new(body);
    *forward.method_mut() = parts.method;
    *forward.uri_mut() = to_node
        .parse()
        .map_err(|error: http::uri::InvalidUri| unexpected(error.to_string()))?;
    let mut headers = parts.headers;
    remove_credentials(&mut headers);
    remove_hop_by_hop(&mut headers);
    if let Some(forwarded) = forwarded {
        headers.insert(FORWARDED_URI, forwarded);
    }
    if let Some(authority) = parts.uri.authority()
        && !headers.contains_key(HOST)
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        headers.insert(HOST, host);
    }
    *forward.headers_mut() = headers;
    Ok(forward)
}

/// Rewrites a node's redirects to itself into redirects to the proxy.
struct Rewrite {
    /// The prefix of the node's own path: `/api/v1/nodes/N/proxy`.
    prefix: String,
    /// The node's address for the API server, and the API server's for the client.
    own_hosts: [String; 2],
}

impl Rewrite {
    fn new(request: &Request<Body>, endpoint: &NodeEndpoint, path: &str) -> Rewrite {
        let whole = request.uri().path();
        let host = request
            .headers()
            .get(HOST)
            .and_then(|host| host.to_str().ok());
        let host = host.or_else(|| request.uri().authority().map(http::uri::Authority::as_str));
        Rewrite {
            prefix: whole.strip_suffix(path).unwrap_or(whole).to_owned(),
            own_hosts: [endpoint.to_string(), host.unwrap_or_default().to_owned()],
        }
    }

    fn apply(&self, headers: &mut HeaderMap) {
        let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let rewritten = location.and_then(|location| self.rewritten(location));
        if let Some(value) = rewritten.and_then(|text| HeaderValue::from_str(&text).ok()) {
            headers.insert(LOCATION, value);
        }
    }

    /// `None` for a location that stays as it is: relative, or on another host.
    fn rewritten(&self, location: &str) -> Option<String> {
        let (base, path) = match location.split_once("://") {
            Some((_, rest)) => {
                let (host, path) = rest.split_at(rest.find('/')?);
                let is_own = self.own_hosts.iter().any(|own| own == host);
                if !is_own {
                    return None;
                }
                // The client's name for the API server stays.
                let kept = host == self.own_hosts[1];
                let base = &location[..location.len() - path.len()];
                (if kept { base } else { "" }, path)
            }
            None => ("", location),
        };
        if !path.starts_with('/') || path.starts_with("//") {
            return None;
        }
        if path.starts_with(&self.prefix) {
            return Some(format!("{base}{path}"));
        }
        Some(format!("{base}{}{path}", self.prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_of_a_node_to_itself_are_rewritten_to_the_proxy() {
        let rewrite = Rewrite {
            prefix: "/api/v1/nodes/n1/proxy".to_owned(),
            own_hosts: ["10.0.0.1:10250".to_owned(), "localhost:8001".to_owned()],
        };
        for (location, expected) in [
            ("/logs/", Some("/api/v1/nodes/n1/proxy/logs/")),
            (
                "https://10.0.0.1:10250/logs/?a=b",
                Some("/api/v1/nodes/n1/proxy/logs/?a=b"),
            ),
            (
                "http://localhost:8001/logs",
                Some("http://localhost:8001/api/v1/nodes/n1/proxy/logs"),
            ),
            (
                "/api/v1/nodes/n1/proxy/logs",
                Some("/api/v1/nodes/n1/proxy/logs"),
            ),
            ("logs/", None),
            ("https://elsewhere/logs", None),
            ("//elsewhere/logs", None),
            ("https://10.0.0.1:10250", None),
        ] {
            assert_eq!(
                rewrite.rewritten(location).as_deref(),
                expected,
                "{location}"
            );
        }
    }
}
