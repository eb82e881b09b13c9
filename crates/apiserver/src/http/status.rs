//! Status objects: how the API says no. Nothing else builds them.
//!
//! Matches v1.36 apimachinery/pkg/api/errors/errors.go.

use plimsoll_core::admission::forbidden::forbidden_message;
use plimsoll_core::problem::{Problem, aggregate, quoted};
use serde_json::{Map, Value, json};

use crate::machinery::kind::Kind;
use crate::machinery::write::Refusal;

/// An answer that is not an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The HTTP status.
    pub code: u16,
    /// The machine-readable reason; empty where upstream gives none.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// What it is about.
    pub details: Option<Details>,
}

/// What a status is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// The object's name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// Its kind, or for most reasons its resource in the plural.
    pub kind: String,
    /// Its uid.
    pub uid: String,
    /// The single causes.
    pub causes: Vec<Cause>,
    /// When to try again.
    pub retry_after_seconds: u32,
}

/// One cause of many.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// The machine-readable reason.
    pub reason: String,
    /// For people.
    pub message: String,
    /// The field, if it is about one.
    pub field: String,
}

impl Details {
    fn of_resource(kind: &Kind, name: &str) -> Option<Details> {
        Some(Details {
            name: name.to_owned(),
            group: kind.group.to_owned(),
            kind: kind.resource.to_owned(),
            ..Details::default()
        })
    }
}

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Status {
        Status {
            code,
            reason,
            message: message.into(),
            details: None,
        }
    }

    fn with_details(mut self, details: Option<Details>) -> Status {
        self.details = details;
        self
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Status {
        Status::new(400, "BadRequest", message)
    }

    /// 401: nobody knows who asks.
    pub fn unauthorized() -> Status {
        Status::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403: not for this caller, or not in this cluster.
    pub fn forbidden(kind: &Kind, name: &str, reason: &str) -> Status {
        let message = forbidden_message(&kind.qualified_resource(), name, reason);
        let name = if name.is_empty() { "Unknown" } else { name };
        Status::new(403, "Forbidden", message).with_details(Details::of_resource(kind, name))
    }

    /// 404: no such object.
    pub fn not_found(kind: &Kind, name: &str) -> Status {
        let message = format!("{} {} not found", kind.qualified_resource(), quoted(name));
        Status::new(404, "NotFound", message).with_details(Details::of_resource(kind, name))
    }

    /// 404: no such path.
    pub fn unknown_path() -> Status {
        let message = "the server could not find the requested resource";
        Status::new(404, "NotFound", message).with_details(Some(Details::default()))
    }

    /// 405: the resource has no such verb.
    pub fn method_not_allowed() -> Status {
        let message = "the server does not allow this method on the requested resource";
        Status::new(405, "MethodNotAllowed", message).with_details(Some(Details::default()))
    }

    /// 406: no format that the caller understands.
    pub fn not_acceptable(accepted: &[&str]) -> Status {
        let message = format!(
            "only the following media types are accepted: {}",
            accepted.join(", ")
        );
        Status::new(406, "NotAcceptable", message)
    }

    /// 409: the name is taken.
    pub fn already_exists(kind: &Kind, name: &str) -> Status {
        let message = format!(
            "{} {} already exists",
            kind.qualified_resource(),
            quoted(name)
        );
        Status::new(409, "AlreadyExists", message).with_details(Details::of_resource(kind, name))
    }

    /// 409: the object has changed, or is not the one that was meant.
    pub fn conflict(kind: &Kind, name: &str, reason: &str) -> Status {
        let resource = kind.qualified_resource();
        let message = format!(
            "Operation cannot be fulfilled on {resource} {}: {reason}",
            quoted(name)
        );
        Status::new(409, "Conflict", message).with_details(Details::of_resource(kind, name))
    }

    /// 410: the version is too old.
    pub fn expired(message: impl Into<String>) -> Status {
        Status::new(410, "Expired", message)
    }

    /// 413: the body is too large.
    pub fn too_large(limit: usize) -> Status {
        let message = format!("Request entity is too large: limit is {limit}");
        Status::new(413, "RequestEntityTooLarge", message)
    }

    /// 415: the body is of a type that is not read here.
    pub fn unsupported_media_type(accepted: &[&str]) -> Status {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Status::new(415, "UnsupportedMediaType", message)
    }

    /// 422: the object breaks rules.
    pub fn invalid(kind: &Kind, name: &str, problems: &[Problem]) -> Status {
        let message = format!(
            "{} {} is invalid: {}",
            kind.qualified_kind(),
            quoted(name),
            aggregate(problems)
        );
        let causes = problems.iter().map(|problem| Cause {
            reason: problem.kind.reason().to_owned(),
            message: problem.message(),
            field: problem.path.clone(),
        });
        Status::new(422, "Invalid", message).with_details(Some(Details {
            name: name.to_owned(),
            group: kind.group.to_owned(),
            kind: kind.kind.to_owned(),
            causes: causes.collect(),
            ..Details::default()
        }))
    }

    /// 429: too much at once, or too soon.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Status {
        let details = Details {
            retry_after_seconds,
            ..Details::default()
        };
        Status::new(429, "TooManyRequests", message).with_details(Some(details))
    }

    /// 500: a mistake of the server.
    pub fn internal_error(message: &str) -> Status {
        let details = Details {
            causes: vec![Cause {
                reason: String::new(),
                message: message.to_owned(),
                field: String::new(),
            }],
            ..Details::default()
        };
        let message = format!("Internal error occurred: {message}");
        Status::new(500, "InternalError", message).with_details(Some(details))
    }

    /// 503: not now.
    pub fn service_unavailable(message: impl Into<String>) -> Status {
        Status::new(503, "ServiceUnavailable", message)
    }

    /// 504: it took too long.
    pub fn timeout(message: impl Into<String>, retry_after_seconds: u32) -> Status {
        let details = Details {
            retry_after_seconds,
            ..Details::default()
        };
        let message = format!("Timeout: {}", message.into());
        Status::new(504, "Timeout", message).with_details(Some(details))
    }

    /// How a refused write is answered.
    pub fn of_refusal(kind: &Kind, refusal: &Refusal) -> Status {
        match refusal {
            Refusal::Undecodable(error) => Status::bad_request(error.to_string()),
            Refusal::Mismatch(message) => Status::bad_request(message),
            // Upstream finds this out too late to give it a reason.
            Refusal::AlreadyVersioned => Status::new(
                500,
                "",
                "resourceVersion should not be set on objects to be created",
            ),
            Refusal::Invalid { name, problems } => Status::invalid(kind, name, problems),
            Refusal::Forbidden { name, reason } => Status::forbidden(kind, name, reason),
        }
    }

    /// The object that is sent.
    pub fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_json();
        }
        status
    }
}

impl Details {
    fn to_json(&self) -> Value {
        let mut object = Map::new();
        for (field, value) in [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
            ("uid", &self.uid),
        ] {
            if !value.is_empty() {
                object.insert(field.to_owned(), json!(value));
            }
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(|cause| {
                let mut object = Map::new();
                for (field, value) in [
                    ("reason", &cause.reason),
                    ("message", &cause.message),
                    ("field", &cause.field),
                ] {
                    if !value.is_empty() {
                        object.insert(field.to_owned(), json!(value));
                    }
                }
                Value::Object(object)
            });
            object.insert("causes".to_owned(), causes.collect());
        }
        if self.retry_after_seconds > 0 {
            object.insert(
                "retryAfterSeconds".to_owned(),
                json!(self.retry_after_seconds),
            );
        }
        Value::Object(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYMENT: Kind = Kind {
        group: "apps",
        version: "v1",
        kind: "Deployment",
        resource: "deployments",
        is_namespaced: true,
    };

    #[test]
    fn a_missing_object_is_named_by_its_resource() {
        assert_eq!(
            Status::not_found(&DEPLOYMENT, "x").to_json(),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "deployments.apps \"x\" not found", "reason": "NotFound", "code": 404,
                "details": {"name": "x", "group": "apps", "kind": "deployments"},
            })
        );
    }

    #[test]
    fn a_broken_rule_is_a_cause() {
        let problems = [Problem::required("spec.selector", "")];
        let status = Status::invalid(&DEPLOYMENT, "x", &problems).to_json();
        assert_eq!(
            status["message"],
            "Deployment.apps \"x\" is invalid: spec.selector: Required value"
        );
        assert_eq!(
            status["details"]["causes"],
            json!([{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.selector"}])
        );
    }
}
