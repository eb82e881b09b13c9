//! Responses of the API server in place of a node's.

use http::{Response, StatusCode, header};
use plimsoll_core::problem::{Problem, quoted};

use crate::body::{Body, full};
use crate::kinds;
use crate::status::{Details, Status};

/// Why a request is not forwarded. Boxed, as it is much larger than the results around it.
pub type ErrorResponse = Box<Status>;

/// The status as a response.
pub(super) fn status_response(status: &Status) -> Response<Body> {
    let mut answer = Response::new(full(status.to_json().to_string()));
    *answer.status_mut() =
        StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = header::HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, json);
    answer
}

/// 400: the request is invalid.
pub(super) fn bad_request(message: impl Into<String>) -> ErrorResponse {
    Box::new(Status::bad_request(message))
}

/// 500 without a reason: an error that upstream passes through.
pub(super) fn unexpected(message: impl Into<String>) -> ErrorResponse {
    Box::new(Status::unexpected(message))
}

/// 503: a server on a node does not respond.
pub(super) fn unreachable(error: &str) -> ErrorResponse {
    let message = format!("error trying to reach service: {error}");
    Box::new(Status::service_unavailable(message))
}

/// 404: the pod's node does not exist.
pub(super) fn no_such_node(name: &str) -> ErrorResponse {
    let nodes = kinds::by_resource("", "v1", "nodes").expect("nodes are served");
    Box::new(Status::not_found(nodes, name))
}

/// 422: contradictory log options.
pub(super) fn invalid_log_options(pod: &str, problems: &[Problem]) -> ErrorResponse {
    Box::new(Status::invalid_kind("", "PodLogOptions", pod, problems))
}

/// How a node's error response to a log request is reported.
///
/// Matches v1.36 apiserver/pkg/registry/generic/rest/response_checker.go and
/// apimachinery/pkg/api/errors/errors.go `NewGenericServerResponse`.
pub(super) fn of_log_response(code: u16, text: &str, pod: &str) -> ErrorResponse {
    match code {
        500 => return Box::new(Status::internal_error(text)),
        400 => return bad_request(text),
        _ => {}
    }
    let (reason, message) = match code {
        401 => (
            "Unauthorized",
            "the server has asked for the client to provide credentials".to_owned(),
        ),
        403 => ("Forbidden", text.to_owned()),
        404 => (
            "NotFound",
            "the server could not find the requested resource".to_owned(),
        ),
        405 => (
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource".to_owned(),
        ),
        406 if text.is_empty() || text == "unknown" => (
            "NotAcceptable",
            "the server was unable to respond with a content type that the client supports"
                .to_owned(),
        ),
        406 => ("NotAcceptable", text.to_owned()),
        409 => ("Conflict", "the server reported a conflict".to_owned()),
        415 => ("UnsupportedMediaType", text.to_owned()),
        422 => (
            "Invalid",
            "the server rejected our request due to an error in our request".to_owned(),
        ),
        429 => (
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later"
                .to_owned(),
        ),
        503 => (
            "ServiceUnavailable",
            "the server is currently unable to handle the request".to_owned(),
        ),
        504 => (
            "Timeout",
            "the server was unable to return a response in the time allotted, but may still be \
             processing the request"
                .to_owned(),
        ),
        501.. => (
            "InternalError",
            format!(
                "an error on the server ({}) has prevented the request from succeeding",
                quoted(text)
            ),
        ),
        _ => (
            "",
            format!(
                "the server responded with the status code {code} but did not return more \
                 information"
            ),
        ),
    };
    // The space before the resource is where upstream would name a verb.
    let message = format!("{message} ( pods/log {pod})");
    Box::new(Status::new(code, reason, message).about(Details {
        kind: "pods/log".to_owned(),
        name: pod.to_owned(),
        ..Details::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_error_keeps_its_status_code() {
        let missing = of_log_response(404, "pod does not exist", "web");
        assert_eq!(
            missing.message,
            "the server could not find the requested resource ( pods/log web)"
        );
        assert_eq!((missing.code, missing.reason), (404, "NotFound"));

        let bad = of_log_response(400, "container \"c\" in pod \"web\" is waiting", "web");
        assert_eq!(bad.message, "container \"c\" in pod \"web\" is waiting");

        let broken = of_log_response(500, "oops", "web");
        assert_eq!(broken.message, "Internal error occurred: oops");

        let gateway = of_log_response(502, "a \"b\"", "web");
        assert_eq!(
            gateway.message,
            "an error on the server (\"a \\\"b\\\"\") has prevented the request from succeeding \
             ( pods/log web)"
        );
        assert_eq!(of_log_response(418, "", "web").reason, "");
    }
}
