//! Answers as Go's HTTP library and go-restful word them, which is what clients of a kubelet see.

use http::header::{ALLOW, CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Response, StatusCode};

use super::body::{Body, empty, full};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// The text format of Prometheus.
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
const NO_SNIFFING: HeaderName = HeaderName::from_static("x-content-type-options");

/// An answer instead of the one that was hoped for.
pub(super) type Refusal = Box<Response<Body>>;

/// A text with a status.
pub(super) fn text(code: StatusCode, text: impl Into<String>) -> Response<Body> {
    with_type(code, text.into().into_bytes(), TEXT)
}

/// A text with a status, as a refusal.
pub(super) fn refuse(code: StatusCode, reason: impl Into<String>) -> Refusal {
    Box::new(text(code, reason))
}

/// As Go's `http.Error`: one line.
pub(super) fn error(code: StatusCode, text: &str) -> Response<Body> {
    let mut answer = with_type(code, format!("{text}\n").into_bytes(), TEXT);
    forbid_sniffing(&mut answer);
    answer
}

/// A text that browsers must not interpret as another type.
pub(super) fn plain(text: String) -> Response<Body> {
    let mut answer = with_type(StatusCode::OK, text.into_bytes(), TEXT);
    forbid_sniffing(&mut answer);
    answer
}

pub(super) fn json(bytes: Vec<u8>) -> Response<Body> {
    with_type(StatusCode::OK, bytes, JSON)
}

pub(super) fn metrics(page: String) -> Response<Body> {
    with_type(StatusCode::OK, page.into_bytes(), METRICS)
}

pub(super) fn html(page: String) -> Response<Body> {
    with_type(StatusCode::OK, page.into_bytes(), HTML)
}

/// A text that is made while it is sent.
pub(super) fn streamed(body: Body) -> Response<Body> {
    let mut answer = Response::new(body);
    answer.headers_mut().insert(CONTENT_TYPE, TEXT);
    answer
}

/// What Go's request multiplexer says of a path that is not served.
pub(super) fn no_such_page() -> Response<Body> {
    error(StatusCode::NOT_FOUND, "404 page not found")
}

/// What go-restful says of a path below one that is served.
pub(super) fn no_such_route() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404: Page Not Found")
}

/// What go-restful says of a method that a path is not served with.
pub(super) fn wrong_method(allowed: &'static str) -> Response<Body> {
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "405: Method Not Allowed");
    let allowed = HeaderValue::from_static(allowed);
    answer.headers_mut().insert(ALLOW, allowed);
    answer
}

/// A status and nothing else.
pub(super) fn bare(code: StatusCode) -> Response<Body> {
    let mut answer = Response::new(empty());
    *answer.status_mut() = code;
    answer
}

fn with_type(code: StatusCode, bytes: Vec<u8>, kind: HeaderValue) -> Response<Body> {
    let mut answer = Response::new(full(bytes));
    *answer.status_mut() = code;
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

fn forbid_sniffing(answer: &mut Response<Body>) {
    let value = HeaderValue::from_static("nosniff");
    answer.headers_mut().insert(NO_SNIFFING, value);
}
