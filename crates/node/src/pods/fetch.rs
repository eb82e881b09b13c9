//! One HTTP request to a container, for probes and hooks.
//!
//! Certificates are not verified: any server at the pod's address is accepted. Errors
//! read as Go's HTTP client words them, because people see them in events. Matches v1.36
//! pkg/probe/http.

mod target;

use std::sync::Arc;

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONNECTION, HOST, LOCATION, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Container, HTTPGetAction};
use plimsoll_client::skip_verification::SkipVerification;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub(super) use target::{Target, port_of};

/// So much of a body is read.
const BODY_BYTES: usize = 10 * 1024;
/// So many requests are made before a chain of redirects is given up.
const MAX_REQUESTS: usize = 10;

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// The status code.
    pub(super) code: u16,
    /// The beginning of the body.
    pub(super) body: String,
}

/// What the request is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// A probe.
    Probe,
    /// A hook.
    Lifecycle,
}

impl Purpose {
    fn user_agent(self) -> &'static str {
        match self {
            Purpose::Probe => "kube-probe/1.36",
            Purpose::Lifecycle => "kube-lifecycle/1.36",
        }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    /// The action does not say where to go.
    #[error("{0}")]
    Target(String),
    /// There was no answer.
    #[error("Get {url:?}: {problem}")]
    Request {
        /// The requested URL.
        url: String,
        /// What went wrong.
        problem: String,
    },
    /// The response to a TLS request was plain HTTP.
    #[error("Get {url:?}: http: server gave HTTP response to HTTPS client")]
    PlainAnswer {
        /// The requested URL.
        url: String,
    },
}

/// Asks, following redirects that stay on the same host. A redirect elsewhere is the answer.
pub(super) async fn get(
    action: &HTTPGetAction,
    container: &Container,
    pod_ip: &str,
    purpose: Purpose,
) -> Result<Answer, FetchError> {
    let mut target = Target::of(action, container, pod_ip).map_err(FetchError::Target)?;
    let headers: Vec<(&str, &str)> = action
        .http_headers
        .iter()
        .flatten()
        .map(|header| (header.name.as_str(), header.value.as_str()))
        .collect();
    for _ in 0..MAX_REQUESTS {
        let answer = ask(&target, &headers, purpose).await?;
        let location = answer.headers().get(LOCATION);
        let location = location.and_then(|location| location.to_str().ok());
        let code = answer.status().as_u16();
        let next = location
            .filter(|_| matches!(code, 301 | 302 | 303 | 307 | 308))
            .and_then(|location| target.redirected(location))
            .filter(|next| next.host == target.host);
        match next {
            Some(next) => target = next,
            None => {
                let body = read_body(answer.into_body()).await;
                return Ok(Answer { code, body });
            }
        }
    }
    Err(FetchError::Request {
        url: target.to_string(),
        problem: format!("stopped after {MAX_REQUESTS} redirects"),
    })
}

/// Asks for the same over plain HTTP.
pub(super) async fn get_plain(
    action: &HTTPGetAction,
    container: &Container,
    pod_ip: &str,
    purpose: Purpose,
) -> Result<Answer, FetchError> {
    let mut plain = action.clone();
    plain.scheme = Some("HTTP".to_owned());
    if let Some(headers) = &mut plain.http_headers {
        headers.retain(|header| !header.name.eq_ignore_ascii_case("authorization"));
    }
    get(&plain, container, pod_ip, purpose).await
}

async fn ask(
    target: &Target,
    headers: &[(&str, &str)],
    purpose: Purpose,
) -> Result<Response<Incoming>, FetchError> {
    let fail = |problem: String| FetchError::Request {
        url: target.to_string(),
        problem,
    };
    let request = request(target, headers, purpose).map_err(fail)?;
    let stream = TcpStream::connect((target.host.as_str(), target.port)).await;
    let stream = stream.map_err(|error| fail(dial_error(&target.address(), &error)))?;
    if !target.is_tls {
        return send(stream, request).await.map_err(fail);
    }
    let connector = TlsConnector::from(Arc::new(trusting()));
    let server = server_name(&target.host);
    match connector.connect(server, stream).await {
        Ok(stream) => send(stream, request).await.map_err(fail),
        Err(error) if error.to_string().contains("corrupt message") => {
            Err(FetchError::PlainAnswer {
                url: target.to_string(),
            })
        }
        Err(error) => Err(fail(error.to_string())),
    }
}

/// TLS settings that accept any server certificate.
fn trusting() -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let any_server = SkipVerification::new(&provider);
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(any_server))
        .with_no_client_auth()
}

/// The name for SNI; a name that SNI cannot carry is left to the server.
fn server_name(host: &str) -> ServerName<'static> {
    let unspecified = std::net::Ipv4Addr::UNSPECIFIED.into();
    ServerName::try_from(host.to_owned()).unwrap_or(ServerName::IpAddress(unspecified))
}

fn request(
    target: &Target,
    headers: &[(&str, &str)],
    purpose: Purpose,
) -> Result<Request<Empty<Bytes>>, String> {
    let given = |name: &str| {
        let mut own = headers
            .iter()
            .filter(|(own, _)| own.eq_ignore_ascii_case(name));
        own.next().map(|(_, value)| *value)
    };
    let mut builder = Request::get(target.path.as_str());
    let host = given("host").filter(|host| !host.is_empty());
    builder = builder.header(HOST, host.unwrap_or(&target.address()));
    builder = builder.header(CONNECTION, "close");
    if given("user-agent").is_none() {
        builder = builder.header(USER_AGENT, purpose.user_agent());
    }
    if given("accept").is_none() {
        builder = builder.header(ACCEPT, "*/*");
    }
    for (name, value) in headers {
        let is_off = value.is_empty()
            && (name.eq_ignore_ascii_case("accept") || name.eq_ignore_ascii_case("user-agent"));
        if !is_off && !name.eq_ignore_ascii_case("host") {
            builder = builder.header(*name, *value);
        }
    }
    builder
        .body(Empty::new())
        .map_err(|error| error.to_string())
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Empty<Bytes>>,
) -> Result<Response<Incoming>, String> {
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| error.to_string())?;
    // The connection lives until the answer has been read or dropped.
    tokio::spawn(connection);
    sender.send_request(request).await.map_err(|error| {
        if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
            return "EOF".to_owned();
        }
        match std::error::Error::source(&error) {
            Some(source) => source.to_string(),
            None => error.to_string(),
        }
    })
}

async fn read_body(mut body: Incoming) -> String {
    let mut read = Vec::new();
    while read.len() < BODY_BYTES
        && let Some(Ok(frame)) = body.frame().await
    {
        if let Ok(data) = frame.into_data() {
            read.extend_from_slice(&data);
        }
    }
    read.truncate(BODY_BYTES);
    String::from_utf8_lossy(&read).into_owned()
}

/// A failed connection, as Go words it.
pub(super) fn dial_error(address: &str, error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    let problem = match error.kind() {
        ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        ErrorKind::TimedOut => "connect: connection timed out".to_owned(),
        _ => error.to_string(),
    };
    format!("dial tcp {address}: {problem}")
}

#[cfg(test)]
mod tests;
