//! Responses in the format that the client accepts.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WARNING};
use http::{Response, StatusCode};
use plimsoll_core::object::timestamp::Timestamp;
use serde_json::Value;

use super::call::Call;
use crate::body::{self, Body};
use crate::cache::{self, Unreadable};
use crate::http::negotiation::{Format, Output, Transform};
use crate::http::query::include_object;
use crate::http::warning;
use crate::kinds::Kind;
use crate::machinery::table::{self, NotAList, NotAnObject};
use crate::machinery::write;
use crate::status::Status;

/// A complete response of a media type.
pub(crate) fn reply(
    code: u16,
    media_type: &'static str,
    bytes: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::new(body::full(bytes));
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// A JSON document.
pub(crate) fn json(code: u16, document: &Value) -> Response<Body> {
    reply(code, "application/json", cache::encode(document))
}

/// A JSON document for people.
fn pretty(code: u16, document: &Value) -> Response<Body> {
    let text = serde_json::to_string_pretty(document).unwrap_or_default();
    reply(code, "application/json", text + "\n")
}

/// A Status: an error, or a success without an object.
pub(crate) fn status(status: &Status) -> Response<Body> {
    status_as(status, false)
}

/// The same, for people or for programs.
pub(crate) fn status_as(status: &Status, is_pretty: bool) -> Response<Body> {
    let document = status.to_json();
    let mut response = match is_pretty {
        true => pretty(status.code, &document),
        false => json(status.code, &document),
    };
    if let Some(seconds) = status.retry_after() {
        let seconds = HeaderValue::from(seconds);
        response.headers_mut().insert(RETRY_AFTER, seconds);
    }
    warn(&mut response, &status.warnings);
    response
}

/// Adds warnings for the person at the client. Duplicates are left out, and too many are truncated
/// as upstream does.
pub(crate) fn warn(response: &mut Response<Body>, warnings: &[String]) {
    const MAX_BYTES: usize = 4 * 1024;
    let mut sent: Vec<&str> = Vec::new();
    let mut bytes = 0;
    for text in warnings {
        bytes += text.len();
        if sent.contains(&text.as_str()) || bytes > MAX_BYTES {
            continue;
        }
        sent.push(text);
        if let Ok(value) = HeaderValue::from_str(&warning::header_value(text)) {
            response.headers_mut().append(WARNING, value);
        }
    }
}

impl Call<'_> {
    /// The response with one object of the request's kind, given as it is stored.
    pub(crate) fn object_as(
        &self,
        code: u16,
        stored: &Bytes,
        output: Output,
    ) -> Result<Response<Body>, Status> {
        let is_plain = output.transform.is_none() && output.format == Format::Json;
        if is_plain && !is_converted(self.kind) && !self.is_pretty() && !output.is_pretty {
            return Ok(reply(code, "application/json", stored.clone()));
        }
        let object = converted(self.kind, stored)?;
        self.value_as(code, &object, output)
    }

    /// The response with one object of any kind.
    pub(crate) fn value_as(
        &self,
        code: u16,
        object: &Value,
        output: Output,
    ) -> Result<Response<Body>, Status> {
        let transformed = self.transformed(object, output, true)?;
        let object = transformed.as_ref().unwrap_or(object);
        Ok(self.written(code, object, output))
    }

    /// The transformation that the client requests for an object or list; `None` for the object
    /// itself.
    pub(crate) fn transformed(
        &self,
        object: &Value,
        output: Output,
        has_headers: bool,
    ) -> Result<Option<Value>, Status> {
        let Some((transform, version)) = output.transform else {
            return Ok(None);
        };
        let not_acceptable = |text: String| Status::new(406, "NotAcceptable", text);
        let is_list = object.get("items").is_some_and(Value::is_array);
        match transform {
            Transform::Table => {
                let include_object = include_object(self.query)
                    .map_err(|error| Status::bad_request(error.to_string()))?;
                let options = table::Options {
                    now: self.now,
                    include_object,
                    version,
                    has_headers,
                };
                let (group, kind) = self.answered_kind();
                Ok(Some(table::table(group, kind, object, &options)))
            }
            Transform::PartialObjectMetadata if is_list => {
                Err(not_acceptable(NotAnObject::new(self.kind).to_string()))
            }
            Transform::PartialObjectMetadata => {
                Ok(Some(table::partial_object_metadata(object, version)))
            }
            Transform::PartialObjectMetadataList if !is_list => {
                Err(not_acceptable(NotAList::new(self.kind).to_string()))
            }
            Transform::PartialObjectMetadataList => {
                Ok(Some(table::partial_object_metadata_list(object, version)))
            }
            Transform::AggregatedDiscovery => Ok(None),
        }
    }

    /// The group and kind of the response: a subresource may be of another kind.
    fn answered_kind(&self) -> (&'static str, &'static str) {
        match self.subresource {
            None => (self.kind.group, self.kind.kind),
            Some(part) => {
                let group = part
                    .group_version
                    .map_or(self.kind.group, |(group, _)| group);
                (group, part.kind)
            }
        }
    }

    /// A document in the chosen format.
    pub(crate) fn written(&self, code: u16, document: &Value, output: Output) -> Response<Body> {
        match output.format {
            Format::Yaml => {
                let text = serde_saphyr::to_string(document).unwrap_or_default();
                reply(code, "application/yaml", text)
            }
            Format::Json if output.is_pretty || self.is_pretty() => pretty(code, document),
            Format::Json => json(code, document),
        }
    }
}

/// Whether a kind is served in another encoding than it is stored in.
pub(crate) fn is_converted(kind: &Kind) -> bool {
    kind.group == "events.k8s.io"
}

/// A stored object in the encoding of a kind.
pub(crate) fn converted(kind: &'static Kind, stored: &[u8]) -> Result<Value, Unreadable> {
    let mut object: Value = serde_json::from_slice(stored)?;
    write::from_stored(kind, &mut object);
    Ok(object)
}

/// The time now.
pub(crate) fn now() -> Timestamp {
    let elapsed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = elapsed.map_or(0, |elapsed| elapsed.as_nanos());
    Timestamp::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}
