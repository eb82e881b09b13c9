//! Streams that the runtime serves itself: the connection is passed on.

use std::io;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, HOST, UPGRADE};
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use plimsoll_client::splice::{Timeouts, splice};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::upgrade::switching;
use crate::server::Server;
use crate::server::answer::{self, Refusal};
use crate::server::body::{Body, full};

/// How long the runtime may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long either side may take to close the connection.
const CLOSING: Duration = Duration::from_secs(5);

/// How much of a refusal is handed on.
const MAX_REFUSAL: usize = 64 * 1024;

/// Why a runtime's streams cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum PassError {
    #[error("the runtime's address {0:?} cannot be used")]
    Address(String),
    #[error("error dialing backend: {0}")]
    Dial(#[source] io::Error),
    #[error("error dialing backend: {0}")]
    Exchange(#[from] hyper::Error),
    #[error("the runtime did not answer within {}s", PATIENCE.as_secs())]
    Late,
}

impl From<PassError> for Refusal {
    fn from(error: PassError) -> Refusal {
        tracing::warn!(%error, "failed to connect to streaming server of container runtime");
        let text = error.to_string();
        Box::new(answer::error(StatusCode::INTERNAL_SERVER_ERROR, &text))
    }
}

impl Server {
    /// Asks the runtime for the same upgrade and joins the two connections when it agrees.
    pub(in crate::server) async fn pass_on(
        &self,
        mut request: Request<Incoming>,
        url: &str,
    ) -> Result<Response<Body>, Refusal> {
        let (method, headers) = (request.method().clone(), request.headers().clone());
        let asked = timeout(PATIENCE, exchange(url, method, headers)).await;
        let mut response = asked.unwrap_or(Err(PassError::Late))?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(refusal(response).await);
        }
        let runtime = hyper::upgrade::on(&mut response);
        let patience = Timeouts {
            idle: self.options.idle,
            closing: CLOSING,
        };
        self.streams.spawn(&mut request, move |client| async move {
            if let Ok(runtime) = runtime.await {
                splice(TokioIo::new(client), TokioIo::new(runtime), patience).await;
            }
        })?;
        let protocol = response.headers().get(UPGRADE).cloned();
        let mut answer = switching(protocol.unwrap_or(HeaderValue::from_static("")));
        for (name, value) in response.headers() {
            if !answer.headers().contains_key(name) {
                answer.headers_mut().append(name, value.clone());
            }
        }
        Ok(answer)
    }
}

/// Asks at the runtime's address, over a connection of its own.
pub(super) async fn exchange(
    url: &str,
    method: Method,
    mut headers: HeaderMap,
) -> Result<Response<Incoming>, PassError> {
    let unusable = || PassError::Address(url.to_owned());
    let url: Uri = url.parse().map_err(|_| unusable())?;
    let authority = url.authority().ok_or_else(unusable)?;
    if url.scheme() != Some(&Scheme::HTTP) {
        return Err(unusable());
    }
    let host = authority.host().trim_matches(['[', ']']);
    let port = authority.port_u16().unwrap_or(80);
    let socket = TcpStream::connect((host, port)).await;
    let socket = socket.map_err(PassError::Dial)?;
    let _ = socket.set_nodelay(true);
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
    tokio::spawn(async move {
        // The reader of the response gets the error.
        let _ = connection.with_upgrades().await;
    });
    let path = url.path_and_query().ok_or_else(unusable)?;
    let host = HeaderValue::from_str(authority.as_str()).map_err(|_| unusable())?;
    headers.insert(HOST, host);
    // An upgrade has no body.
    headers.remove(CONTENT_LENGTH);
    let mut passed = Request::new(Empty::<bytes::Bytes>::new());
    *passed.method_mut() = method;
    *passed.uri_mut() = path.as_str().parse().map_err(|_| unusable())?;
    *passed.headers_mut() = headers;
    Ok(sender.send_request(passed).await?)
}

/// The runtime's refusal is the client's.
pub(super) async fn refusal(response: Response<Incoming>) -> Response<Body> {
    let (parts, body) = response.into_parts();
    let body = timeout(PATIENCE, Limited::new(body, MAX_REFUSAL).collect()).await;
    let body = body.ok().and_then(Result::ok);
    let bytes = body.map(|body| body.to_bytes()).unwrap_or_default();
    let mut answer = Response::new(full(bytes));
    *answer.status_mut() = parts.status;
    let kept = [
        http::header::CONTENT_TYPE,
        http::HeaderName::from_static("x-accepted-stream-protocol-versions"),
    ];
    for name in kept {
        for value in parts.headers.get_all(&name) {
            answer.headers_mut().append(&name, value.clone());
        }
    }
    answer
}
