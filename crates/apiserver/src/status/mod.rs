//! Status objects: the API's error responses, and successful deletes. Nothing else builds them.
//!
//! Matches v1.36 apimachinery/pkg/api/errors/errors.go.
//!
//! Reading order: this file (what a status is), `errors` (its constructors).

mod errors;

use serde_json::{Map, Value, json};

use crate::kinds::Kind;

/// A response that is not an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The HTTP status.
    pub code: u16,
    /// The machine-readable reason; empty where upstream gives none.
    pub reason: &'static str,
    /// The message, for people.
    pub message: String,
    /// The details.
    pub details: Option<Box<Details>>,
    /// The continue token of a list whose version was compacted.
    pub continue_token: String,
    /// Warnings for the caller, in headers: for instance about a body that was rejected
    /// for another reason. Not part of the object.
    pub warnings: Vec<String>,
}

/// The details of a status.
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
    /// The causes.
    pub causes: Vec<Cause>,
    /// When to retry.
    pub retry_after_seconds: u32,
}

/// One cause of many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cause {
    /// The machine-readable reason.
    pub reason: &'static str,
    /// The message, for people.
    pub message: String,
    /// The field, if there is one.
    pub field: String,
}

impl Status {
    /// A status without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Status {
        Status {
            code,
            reason,
            message: message.into(),
            details: None,
            continue_token: String::new(),
            warnings: Vec::new(),
        }
    }

    /// 200: the object was deleted.
    pub fn success(kind: &Kind, name: &str, uid: &str) -> Status {
        Status::new(200, "", "").about(Details {
            uid: uid.to_owned(),
            ..Details::of_resource(kind, name)
        })
    }

    /// With details.
    #[must_use]
    pub fn about(mut self, details: Details) -> Status {
        self.details = Some(Box::new(details));
        self
    }

    /// After how many seconds the client may retry, for the header `Retry-After`.
    pub fn retry_after(&self) -> Option<u32> {
        let seconds = self.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then_some(seconds)
    }

    /// The object of the response.
    pub fn to_json(&self) -> Value {
        let is_success = self.code < 300;
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": if is_success { "Success" } else { "Failure" },
        });
        if self.code != 200 {
            status["code"] = json!(self.code);
        }
        for (field, text) in [("message", self.message.as_str()), ("reason", self.reason)] {
            if !text.is_empty() {
                status[field] = json!(text);
            }
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_json();
        }
        if !self.continue_token.is_empty() {
            status["metadata"]["continue"] = json!(self.continue_token);
        }
        status
    }
}

impl Details {
    fn of_resource(kind: &Kind, name: &str) -> Details {
        Details {
            name: name.to_owned(),
            group: kind.group.to_owned(),
            kind: kind.plural.to_owned(),
            ..Details::default()
        }
    }

    fn retry_after(seconds: u32) -> Details {
        Details {
            retry_after_seconds: seconds,
            ..Details::default()
        }
    }

    /// Causes only.
    pub fn of_causes(causes: Vec<Cause>) -> Details {
        Details {
            causes,
            ..Details::default()
        }
    }

    fn to_json(&self) -> Value {
        let mut object = texts([
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
            ("uid", &self.uid),
        ]);
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(|cause| {
                Value::Object(texts([
                    ("reason", cause.reason),
                    ("message", &cause.message),
                    ("field", &cause.field),
                ]))
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

/// The fields that are not empty.
fn texts<const N: usize>(fields: [(&str, &str); N]) -> Map<String, Value> {
    let given = fields.into_iter().filter(|(_, text)| !text.is_empty());
    given
        .map(|(field, text)| (field.to_owned(), json!(text)))
        .collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_core::problem::Problem;

    use super::*;
    use crate::kinds;

    fn deployments() -> &'static Kind {
        kinds::by_kind("apps/v1", "Deployment").unwrap()
    }

    #[test]
    fn a_missing_object_is_named_by_its_resource() {
        assert_eq!(
            Status::not_found(deployments(), "x").to_json(),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "deployments.apps \"x\" not found", "reason": "NotFound", "code": 404,
                "details": {"name": "x", "group": "apps", "kind": "deployments"},
            })
        );
    }

    #[test]
    fn validation_error_is_a_cause() {
        let problems = [Problem::required("spec.selector", "")];
        let status = Status::invalid(deployments(), "x", &problems).to_json();
        assert_eq!(
            status["message"],
            "Deployment.apps \"x\" is invalid: spec.selector: Required value"
        );
        assert_eq!(
            status["details"]["causes"],
            json!([{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.selector"}])
        );
    }

    #[test]
    fn delete_status_has_name_and_uid() {
        assert_eq!(
            Status::success(deployments(), "x", "u").to_json(),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": {"name": "x", "group": "apps", "kind": "deployments", "uid": "u"},
            })
        );
    }
}
