//! One audit event, in the form of `audit.k8s.io/v1`.

use std::net::IpAddr;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName};
use plimsoll_core::object::timestamp::Timestamp;
use serde_json::{Map, Value, json};

use super::policy::{Level, Stage, Verdict};
use crate::auth::identity::User;
use crate::http::protobuf;
use crate::kinds;
use crate::server::call::{header, time_text};
use crate::server::request_context::RequestContext;
use crate::server::respond;
use crate::status::Status;

/// Longer user agents are truncated, as upstream does.
const MAX_USER_AGENT: usize = 1024;
const CUT_OFF: &str = "...TRUNCATED";

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// The response to a request.
pub(super) struct ResponseSummary<'a> {
    pub code: u16,
    /// The Status, if the response is an error.
    pub refusal: Option<&'a Status>,
}

/// A request at a stage.
pub(super) fn event(
    context: &RequestContext,
    verdict: &Verdict,
    stage: Stage,
    response: Option<&ResponseSummary<'_>>,
) -> Value {
    let mut event = json!({
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": verdict.level.as_str(),
        "auditID": context.audit_id,
        "stage": stage.as_str(),
        "requestURI": context.uri,
        "verb": context.verb(),
        "user": context.actor.as_deref().map(User::to_api).unwrap_or_default(),
        "sourceIPs": source_ips(&context.headers, context.address),
        "userAgent": user_agent(&context.headers),
        "requestReceivedTimestamp": micro_time(context.now),
        "stageTimestamp": micro_time(respond::now()),
    });
    if let Some(user) = &context.impersonated {
        event["impersonatedUser"] = json!(user.to_api());
    }
    if let Some(target) = context.target() {
        let fields = [
            ("resource", &target.resource),
            ("namespace", &target.namespace),
            ("name", &target.name),
            ("apiGroup", &target.group),
            ("apiVersion", &target.version),
            ("subresource", &target.subresource),
        ];
        let given = fields.into_iter().filter(|(_, text)| !text.is_empty());
        let reference: Map<String, Value> = given
            .map(|(name, text)| (name.to_owned(), json!(text)))
            .collect();
        event["objectRef"] = reference.into();
    }
    if let Some(annotations) = context.annotations.to_json() {
        event["annotations"] = annotations;
    }
    if let Some((decision, reason)) = &context.access {
        event["annotations"]["authorization.k8s.io/decision"] = json!(decision);
        event["annotations"]["authorization.k8s.io/reason"] = json!(reason);
    }
    if let Some(response) = response {
        event["responseStatus"] = response_status(response);
    }
    if verdict.level >= Level::Request
        && let Some(body) = context.body.as_ref().filter(|body| !body.is_empty())
    {
        event["requestObject"] = request_object(context, body, verdict);
    }
    event
}

/// The event of the same request at the end of its response.
pub(super) fn finish(event: &mut Value) {
    event["stage"] = json!(Stage::ResponseComplete.as_str());
    event["stageTimestamp"] = json!(micro_time(respond::now()));
}

fn response_status(response: &ResponseSummary<'_>) -> Value {
    let mut status = json!({"metadata": {}, "code": response.code});
    if let Some(refusal) = response.refusal {
        let refusal = refusal.to_json();
        for field in ["status", "message", "reason", "details"] {
            if let Some(value) = refusal.get(field) {
                status[field] = value.clone();
            }
        }
    }
    status
}

/// The body of a request, in any format; null if it cannot be decoded.
fn request_object(context: &RequestContext, body: &[u8], verdict: &Verdict) -> Value {
    let media_type = header(&context.headers, &CONTENT_TYPE);
    let read = || {
        if media_type.contains("protobuf") {
            let target = context.target()?;
            let kind = kinds::by_resource(&target.group, &target.version, &target.resource)?;
            return protobuf::decode(body, &kind.api_version(), kind.kind).ok();
        }
        if media_type.contains("yaml") {
            return serde_saphyr::from_str(std::str::from_utf8(body).ok()?).ok();
        }
        serde_json::from_slice(body).ok()
    };
    let mut object = read().unwrap_or_default();
    without_managed_fields(&mut object, verdict);
    object
}

/// The body of a response.
pub(super) fn object(body: &[u8], verdict: &Verdict) -> Value {
    let mut object = serde_json::from_slice(body).unwrap_or_default();
    without_managed_fields(&mut object, verdict);
    object
}

fn without_managed_fields(object: &mut Value, verdict: &Verdict) {
    if !verdict.omits_managed_fields {
        return;
    }
    let remove = |object: &mut Value| {
        let meta = object.get_mut("metadata").and_then(Value::as_object_mut);
        meta.map(|meta| meta.remove("managedFields"));
    };
    remove(object);
    let items = object.get_mut("items").and_then(Value::as_array_mut);
    items.into_iter().flatten().for_each(remove);
}

fn user_agent(headers: &HeaderMap) -> String {
    let agent = header(headers, &http::header::USER_AGENT);
    match agent.char_indices().find(|(at, _)| *at >= MAX_USER_AGENT) {
        Some((at, _)) => format!("{}{CUT_OFF}", &agent[..at]),
        None => agent.to_owned(),
    }
}

/// The source addresses of a request: those that proxies report, then the address of the
/// connection. Only the last one is trustworthy. A component of this process has the address of
/// this machine.
///
/// Matches v1.36 apimachinery/pkg/util/net/http.go, `SourceIPs`.
fn source_ips(headers: &HeaderMap, address: Option<IpAddr>) -> Vec<String> {
    let forwarded = header(headers, &FORWARDED_FOR).split(',');
    let forwarded = forwarded.filter_map(|text| text.trim().parse::<IpAddr>().ok());
    let mut found: Vec<IpAddr> = forwarded.collect();
    if let Ok(real) = header(headers, &REAL_IP).trim().parse()
        && !found.contains(&real)
    {
        found.push(real);
    }
    let seen = address.unwrap_or(IpAddr::from([127, 0, 0, 1]));
    if found.last() != Some(&seen) {
        found.push(seen);
    }
    found.iter().map(ToString::to_string).collect()
}

/// A time with microseconds, as upstream's `MicroTime`.
fn micro_time(time: Timestamp) -> String {
    let whole = time_text(time);
    let micros = time.as_nanos().rem_euclid(1_000_000_000) / 1000;
    format!("{}.{micros:06}Z", whole.trim_end_matches('Z'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_source_ip_is_the_connection_address() {
        let sources = |forwarded: &'static str, real: &'static str, seen: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(FORWARDED_FOR, forwarded.parse().unwrap());
            headers.insert(REAL_IP, real.parse().unwrap());
            source_ips(&headers, seen.parse().ok()).join(" ")
        };
        assert_eq!(sources("", "", "10.0.0.1"), "10.0.0.1");
        assert_eq!(sources("", "", ""), "127.0.0.1");
        let all = sources("1.1.1.1, nonsense, 2.2.2.2", "3.3.3.3", "10.0.0.1");
        assert_eq!(all, "1.1.1.1 2.2.2.2 3.3.3.3 10.0.0.1");
        assert_eq!(sources("1.1.1.1", "1.1.1.1", "1.1.1.1"), "1.1.1.1");
    }

    #[test]
    fn times_have_microseconds_and_long_user_agents_are_truncated() {
        let time = Timestamp::from_nanos(1_767_225_600_012_345_678);
        assert_eq!(micro_time(time), "2026-01-01T00:00:00.012345Z");
        let mut headers = HeaderMap::new();
        let long = "x".repeat(2000);
        headers.insert(http::header::USER_AGENT, long.parse().unwrap());
        assert_eq!(
            user_agent(&headers),
            format!("{}{CUT_OFF}", "x".repeat(1024))
        );
    }
}
