//! How a refusal is told: a Kubernetes `Status`.

use serde_json::{Value, json};

/// A failed request's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The HTTP code.
    pub code: u16,
    /// The machine-readable reason; empty for errors that upstream did not foresee.
    pub reason: &'static str,
    /// The text for people.
    pub message: String,
    /// `details`, where upstream gives any.
    pub details: Option<Value>,
}

impl Status {
    /// 400: the request cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Status {
        Status::new(400, "BadRequest", message)
    }

    /// 413: more than the server takes.
    pub fn too_large(message: impl Into<String>) -> Status {
        let message = message.into();
        Status::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: {message}"),
        )
    }

    /// 500 without a reason: an error that upstream passes on as it is.
    pub fn unexpected(message: impl Into<String>) -> Status {
        Status::new(500, "", message)
    }

    /// 422 as a server answers that does not say what is wrong.
    pub fn rejected() -> Status {
        Status {
            details: Some(json!({})),
            ..Status::new(
                422,
                "Invalid",
                "the server rejected our request due to an error in our request",
            )
        }
    }

    /// 422: the result of a patch is no object of its kind. `quoted` is the value in quotes.
    pub fn invalid_patch(quoted: &str, problem: &str) -> Status {
        let message = format!("Invalid value: {quoted}: {problem}");
        Status {
            details: Some(json!({"causes": [{
                "field": "patch",
                "message": message,
                "reason": "FieldValueInvalid",
            }]})),
            ..Status::new(
                422,
                "Invalid",
                format!(" \"\" is invalid: patch: {message}"),
            )
        }
    }

    /// 415: a body of a type that the resource does not take.
    pub fn unsupported_media_type() -> Status {
        Status {
            details: Some(json!({})),
            ..Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
        }
    }

    /// A status without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Status {
        Status {
            code,
            reason,
            message: message.into(),
            details: None,
        }
    }

    /// The object that goes over the wire.
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
            status["reason"] = Value::from(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}
