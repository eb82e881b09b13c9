//! Constructors of all errors, from 400 to 504.

use plimsoll_core::admission::forbidden::forbidden_message;
use plimsoll_core::problem::{Problem, aggregate, quoted};

use super::{Cause, Details, Status};
use crate::bounds::MAX_DEPTH;
use crate::cache::Unreadable;
use crate::kinds::{Kind, qualified};

impl Status {
    /// 400: the request is invalid.
    pub fn bad_request(message: impl Into<String>) -> Status {
        Status::new(400, "BadRequest", message)
    }

    /// 401: the caller is not authenticated.
    pub fn unauthorized() -> Status {
        Status::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403: admission rejects the object.
    pub fn forbidden(kind: &Kind, name: &str, reason: &str) -> Status {
        let message = forbidden_message(&kind.group_resource(), name, reason);
        let name = if name.is_empty() { "Unknown" } else { name };
        Status::new(403, "Forbidden", message).about(Details::of_resource(kind, name))
    }

    /// 403: the caller may not do this. `resource` is empty for paths that are not resources.
    pub fn denied(group: &str, resource: &str, name: &str, reason: &str) -> Status {
        let what = qualified(resource, group);
        let message = match (resource, name) {
            ("", _) => format!("forbidden: {reason}"),
            (_, "") => format!("{what} is forbidden: {reason}"),
            _ => format!("{what} {} is forbidden: {reason}", quoted(name)),
        };
        Status::new(403, "Forbidden", message).about(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: resource.to_owned(),
            ..Details::default()
        })
    }

    /// 404: no such object.
    pub fn not_found(kind: &Kind, name: &str) -> Status {
        let message = format!("{} {} not found", kind.group_resource(), quoted(name));
        Status::new(404, "NotFound", message).about(Details::of_resource(kind, name))
    }

    /// 404: no such path.
    pub fn unknown_path() -> Status {
        let message = "the server could not find the requested resource";
        Status::new(404, "NotFound", message).about(Details::default())
    }

    /// 405: the resource has no such verb.
    pub fn method_not_allowed() -> Status {
        let message = "the server does not allow this method on the requested resource";
        Status::new(405, "MethodNotAllowed", message).about(Details::default())
    }

    /// 406: no media type that the client accepts.
    pub fn not_acceptable(accepted: &[&str]) -> Status {
        let message = format!(
            "only the following media types are accepted: {}",
            accepted.join(", ")
        );
        Status::new(406, "NotAcceptable", message)
    }

    /// 409: the name is taken.
    pub fn already_exists(kind: &Kind, name: &str) -> Status {
        let message = format!("{} {} already exists", kind.group_resource(), quoted(name));
        Status::new(409, "AlreadyExists", message).about(Details::of_resource(kind, name))
    }

    /// 409: a generated name is taken; the client should retry.
    pub fn generated_name_taken(kind: &Kind, name: &str) -> Status {
        let message = format!(
            "{} {} already exists, the server was not able to generate a unique name for the object",
            kind.group_resource(),
            quoted(name)
        );
        Status::new(409, "AlreadyExists", message).about(Details {
            retry_after_seconds: 1,
            ..Details::of_resource(kind, name)
        })
    }

    /// 409: the object has changed, or has another uid.
    pub fn conflict(kind: &Kind, name: &str, reason: &str) -> Status {
        Status::conflict_with(kind.group, kind.plural, name, reason)
    }

    /// The same for a subresource: `deployments/scale`.
    pub fn conflict_with(group: &str, resource: &str, name: &str, reason: &str) -> Status {
        let message = format!(
            "Operation cannot be fulfilled on {} {}: {reason}",
            qualified(resource, group),
            quoted(name)
        );
        Status::new(409, "Conflict", message).about(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: resource.to_owned(),
            ..Details::default()
        })
    }

    /// 409: the object has changed since the caller read it.
    pub fn modified(kind: &Kind, name: &str) -> Status {
        Status::conflict(
            kind,
            name,
            "the object has been modified; please apply your changes to the latest version and try \
             again",
        )
    }

    /// 410: the version is too old.
    pub fn expired(message: impl Into<String>) -> Status {
        Status::new(410, "Expired", message)
    }

    /// 413: the request is too large; `problem` is such as `limit is 3145728`.
    pub fn too_large(problem: &str) -> Status {
        let message = format!("Request entity too large: {problem}");
        Status::new(413, "RequestEntityTooLarge", message)
    }

    /// 415: the body has an unsupported type.
    pub fn unsupported_media_type(accepted: &[&str]) -> Status {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Status::new(415, "UnsupportedMediaType", message)
    }

    /// 415: no handler takes a body of this type.
    pub fn unrouted_media_type() -> Status {
        Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
            .about(Details::default())
    }

    /// 422: the object is invalid.
    pub fn invalid(kind: &Kind, name: &str, problems: &[Problem]) -> Status {
        Status::invalid_kind(kind.group, kind.kind, name, problems)
    }

    /// 422: something that is not a stored kind is invalid, such as options.
    pub fn invalid_kind(group: &str, kind: &str, name: &str, problems: &[Problem]) -> Status {
        let message = format!(
            "{} {} is invalid: {}",
            qualified(kind, group),
            quoted(name),
            aggregate(problems)
        );
        let causes = problems.iter().map(|problem| Cause {
            reason: problem.kind.reason(),
            message: problem.message(),
            field: problem.path.clone(),
        });
        Status::new(422, "Invalid", message).about(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            ..Details::of_causes(causes.collect())
        })
    }

    /// 422: the result of a patch is not an object of its kind. `shown` is the value in quotes.
    pub fn invalid_patch(shown: &str, problem: &str) -> Status {
        let message = format!("Invalid value: {shown}: {problem}");
        let text = format!(" \"\" is invalid: patch: {message}");
        Status::new(422, "Invalid", text).about(Details::of_causes(vec![Cause {
            reason: "FieldValueInvalid",
            message,
            field: "patch".to_owned(),
        }]))
    }

    /// 422: the object is nested more deeply than objects that can be stored.
    pub fn too_deep() -> Status {
        let message = format!(
            "the object is nested too deeply: exceeded max depth of {MAX_DEPTH} levels, \
             metadata.managedFields included"
        );
        Status::new(422, "Invalid", message).about(Details::default())
    }

    /// 422 without a reason.
    pub fn rejected() -> Status {
        let message = "the server rejected our request due to an error in our request";
        Status::new(422, "Invalid", message).about(Details::default())
    }

    /// 429: too many requests.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Status {
        Status::new(429, "TooManyRequests", message)
            .about(Details::retry_after(retry_after_seconds))
    }

    /// 500: a bug of the server.
    pub fn internal_error(message: &str) -> Status {
        let text = format!("Internal error occurred: {message}");
        Status::new(500, "InternalError", text).about(Details::of_causes(vec![Cause {
            message: message.to_owned(),
            ..Cause::default()
        }]))
    }

    /// 500: the stored value is not an object. It can be removed with the option that the message
    /// names.
    pub fn unreadable(key: &str) -> Status {
        Status::internal_error(&format!(
            "StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, \
             AdditionalErrorMsg: the stored object cannot be read; to remove it, delete it with \
             ignoreStoreReadErrorWithClusterBreakingPotential=true"
        ))
    }

    /// 500 without a reason: an error that upstream passes through.
    pub fn unexpected(message: impl Into<String>) -> Status {
        Status::new(500, "", message)
    }

    /// 503: temporarily unavailable.
    pub fn service_unavailable(message: impl Into<String>) -> Status {
        Status::new(503, "ServiceUnavailable", message)
    }

    /// 507: the store is full.
    pub fn insufficient_storage(message: &str) -> Status {
        Status::new(507, "InsufficientStorage", message).about(Details::default())
    }

    /// 504: a timeout.
    pub fn timeout(message: &str, retry_after_seconds: u32) -> Status {
        Status::new(504, "Timeout", format!("Timeout: {message}"))
            .about(Details::retry_after(retry_after_seconds))
    }
}

/// A value that was parsed once and does not parse again is a bug of the server.
impl From<Unreadable> for Status {
    fn from(error: Unreadable) -> Status {
        Status::internal_error(&format!("stored object: {error}"))
    }
}
