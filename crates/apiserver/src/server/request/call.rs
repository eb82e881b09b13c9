//! One request as the handlers get it: authenticated, authorized and routed.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;
use plimsoll_core::object::timestamp::Timestamp;
use tokio::time::Instant;

use super::annotations::Annotations;
use super::handle::Origin;
use super::route::Target;
use crate::auth::identity::User;
use crate::body::Body;
use crate::http::negotiation::{self, Endpoint, NotAcceptable, Output};
use crate::http::query::Query;
use crate::kinds::{Kind, Subresource};
use crate::machinery::write::BodyFormat;
use crate::server::Server;
use crate::server::limits::{Level, Permit, RequestKind};
use crate::status::Status;

/// Larger bodies are rejected, as upstream does.
pub(crate) const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// How long a body may take: a time to begin, then a minimum rate, and a maximum in total.
const FIRST_BYTES: Duration = Duration::from_secs(10);
const SLOWEST_BYTES_PER_MILLISECOND: u64 = 16;
const LONGEST: Duration = Duration::from_secs(60);

/// One request about objects.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// The server.
    pub server: &'a Server,
    /// The user.
    pub user: &'a User,
    /// Where the request comes from.
    pub origin: Origin,
    /// Whether the user is impersonated.
    pub is_impersonated: bool,
    /// The verb that the request was authorized for.
    pub verb: &'static str,
    /// Which seats the user may have.
    pub level: Level,
    /// The target of the request, as the path names it.
    pub target: &'a Target,
    /// The kind of the target.
    pub kind: &'static Kind,
    /// The subresource, if the path names one.
    pub subresource: Option<&'static Subresource>,
    /// The query parameters.
    pub query: &'a Query,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// When the request arrived.
    pub now: Timestamp,
    /// Annotations that admission adds to the audit event.
    pub annotations: &'a Annotations,
}

impl Call<'_> {
    /// A header as text; empty when it is absent or not text.
    pub(crate) fn header(&self, name: http::HeaderName) -> &str {
        header(self.headers, &name)
    }

    /// The output format of the response.
    pub(crate) fn output(&self, endpoint: Endpoint) -> Result<Output, Status> {
        // Clients may repeat the header instead of joining its values.
        let accept: Vec<&str> = self
            .headers
            .get_all(ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        let accept = accept.join(",");
        negotiation::negotiate_output(&accept, endpoint).map_err(|error| not_acceptable(&error))
    }

    /// Whether the response is printed for people.
    pub(crate) fn is_pretty(&self) -> bool {
        negotiation::is_pretty(self.query.first("pretty"), self.header(USER_AGENT))
    }

    /// The form of the request's body.
    pub(crate) fn body_format(&self) -> Result<BodyFormat, Status> {
        let format = negotiation::body_format(self.header(CONTENT_TYPE));
        format.map_err(|error| Status::new(415, "UnsupportedMediaType", error.to_string()))
    }

    /// The field manager: the query parameter, else the client's name.
    pub(crate) fn field_manager(&self, given: &str) -> String {
        if !given.is_empty() {
            return given.to_owned();
        }
        let agent = self
            .header(USER_AGENT)
            .split('/')
            .next()
            .unwrap_or_default();
        let printable: String = agent.chars().filter(|c| !c.is_control()).collect();
        let cut = printable.char_indices().map(|(at, c)| at + c.len_utf8());
        let end = cut.take_while(|end| *end <= 128).last().unwrap_or_default();
        match &printable[..end] {
            "" => "unknown".to_owned(),
            agent => agent.to_owned(),
        }
    }

    /// Takes a seat for a resource that the request needs besides its own seat.
    pub(crate) async fn enter(&self, need: RequestKind) -> Result<Permit, Status> {
        let limits = &self.server.limits;
        limits.enter(need, self.level, self.user).await
    }

    /// The key of the object within its collection.
    pub(crate) fn key(&self) -> String {
        self.key_of(&self.target.name)
    }

    /// The key of an object of that name in the request's namespace.
    pub(crate) fn key_of(&self, name: &str) -> String {
        key(self.kind, &self.target.namespace, name)
    }

    /// The prefix of all keys of a list.
    pub(crate) fn list_prefix(&self) -> String {
        if self.kind.is_namespaced() && !self.target.namespace.is_empty() {
            format!("{}/", self.target.namespace)
        } else {
            String::new()
        }
    }

    /// The time as objects print it.
    pub(crate) fn now_text(&self) -> String {
        time_text(self.now)
    }
}

/// The key of an object within its collection.
pub(crate) fn key(kind: &Kind, namespace: &str, name: &str) -> String {
    if kind.is_namespaced() {
        format!("{namespace}/{name}")
    } else {
        name.to_owned()
    }
}

/// A time as objects print it: UTC, whole seconds.
pub(crate) fn time_text(time: Timestamp) -> String {
    let seconds = time.as_nanos().div_euclid(1_000_000_000);
    let whole = Timestamp::from_secs(seconds).to_api();
    whole.0.to_string()
}

/// A header as text; empty when it is absent or not text.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> &'a str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

/// The 406 for a response format that the client does not accept.
pub(crate) fn not_acceptable(error: &NotAcceptable) -> Status {
    let status = Status::new(406, "NotAcceptable", error.to_string());
    match error {
        NotAcceptable::ByRouter { .. } => status.about(crate::status::Details::default()),
        NotAcceptable::ByHandler { .. } => status,
    }
}

/// Reads a body within its limits of size and time.
pub(crate) async fn read_body(body: Body) -> Result<Bytes, Status> {
    let started = Instant::now();
    let mut body = Limited::new(body, MAX_BODY_BYTES);
    let mut whole = BytesMut::new();
    loop {
        let paced = Duration::from_millis(whole.len() as u64 / SLOWEST_BYTES_PER_MILLISECOND);
        let deadline = started + (FIRST_BYTES + paced).min(LONGEST);
        let frame = match tokio::time::timeout_at(deadline, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => return Ok(whole.freeze()),
            Ok(Some(Err(error))) if error.is::<LengthLimitError>() => {
                return Err(Status::too_large(&format!("limit is {MAX_BODY_BYTES}")));
            }
            Ok(Some(Err(error))) => {
                return Err(Status::bad_request(format!(
                    "the body of the request cannot be read: {error}"
                )));
            }
            Err(_) => return Err(Status::timeout("the body of the request did not come", 1)),
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if whole.is_empty() && body.is_end_stream() {
            return Ok(data);
        }
        whole.extend_from_slice(&data);
    }
}
