//! Endpoints other than objects: discovery, OpenAPI, version, health, metrics, keys.

use std::collections::BTreeMap;
use std::time::Duration;

use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, Response, StatusCode};
use serde_json::Value;

use super::Server;
use super::request::call::header;
use super::request::respond::{json, reply};
use crate::body::{self, Body};
use crate::http::discovery;
use crate::http::document::Document;
use crate::http::negotiation::{Endpoint, negotiate_output};
use crate::http::openapi;
use crate::http::query::Query;
use crate::status::{Details, Status};

/// What `?verbose` lists, with the tasks of the server and its store; each is also a path.
const CHECKS: [&str; 3] = ["ping", "store", "cache"];

/// The reason of a failed check is in the log only.
const WITHHELD: &str = "reason withheld";

/// A cache further behind the store than this is not following it.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(5);

/// The paths of kinds that aggregated API servers add.
pub(super) const CUSTOM_RESOURCES: (&str, &str, &str) =
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions");

/// Browsers must not sniff another type.
const NO_SNIFFING: (HeaderName, HeaderValue) = (
    http::header::X_CONTENT_TYPE_OPTIONS,
    HeaderValue::from_static("nosniff"),
);

impl Server {
    /// Handles a GET of a document.
    pub(super) async fn document(
        &self,
        path: &str,
        query: &Query,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Status> {
        let trimmed = path.trim_end_matches('/');
        let parts: Vec<&str> = trimmed.split('/').skip(1).collect();
        match parts.as_slice() {
            ["healthz" | "livez" | "readyz", ..] => self.health(trimmed, query).await,
            ["plimsoll", "store", "snapshot"] => self.snapshot().await,
            ["version"] => Ok(reply(200, "application/json", discovery::version())),
            ["metrics"] => {
                let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                Ok(reply(200, media_type, self.metrics.text(self)))
            }
            ["api"] => Ok(aggregated_or(headers, discovery::aggregated_core(), || {
                discovery::api_versions(&self.options.advertised)
            })),
            ["apis"] => Ok(aggregated_or(
                headers,
                discovery::aggregated_groups(),
                discovery::group_list,
            )),
            ["api", version] => Ok(found(discovery::resource_list("", version))),
            ["apis", group] => Ok(found(discovery::group(group))),
            ["apis", group, version] => Ok(found(discovery::resource_list(group, version))),
            ["openapi", "v2"] => {
                let accept = header(headers, &http::header::ACCEPT);
                if !openapi::PROTOBUF.iter().any(|known| accept.contains(known)) {
                    return Err(not_acceptable_as(openapi::PROTOBUF[0]));
                }
                let document = openapi::v2_document();
                Ok(cached(document, openapi::PROTOBUF[0], headers, false))
            }
            ["openapi", "v3"] => Ok(cached(openapi::index(), "application/json", headers, false)),
            ["openapi", "v3", ..] => {
                let name = trimmed.trim_start_matches("/openapi/v3/");
                let document = openapi::document(name).ok_or_else(Status::unknown_path)?;
                let is_named = query.first("hash") == Some(document.hash.as_str());
                Ok(cached(document, "application/json", headers, is_named))
            }
            ["openid", "v1", "jwks"] => Ok(reply(
                200,
                "application/jwk-set+json",
                self.tokens.key_set(),
            )),
            [".well-known", "openid-configuration"] => {
                let url = format!("https://{}/openid/v1/jwks", self.options.advertised);
                Ok(reply(200, "application/json", self.tokens.discovery(&url)))
            }
            [] | [""] => Ok(json(200, &paths())),
            _ => Ok(unknown_path()),
        }
    }

    /// An empty list. Custom resources are not served, but kubectl looks there for kinds that it
    /// does not find elsewhere, and prints the actual error only after that lookup.
    pub(super) fn no_custom_resources(&self) -> Response<Body> {
        let (group, version, _) = CUSTOM_RESOURCES;
        let list = serde_json::json!({
            "kind": "CustomResourceDefinitionList",
            "apiVersion": format!("{group}/{version}"),
            "metadata": {"resourceVersion": self.cache.revision().to_string()},
            "items": [],
        });
        json(200, &list)
    }

    async fn health(&self, path: &str, query: &Query) -> Result<Response<Body>, Status> {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let excluded: Vec<&str> = query.all("exclude").collect();
        let tasks = self.supervisor.checks().into_iter();
        let tasks: BTreeMap<&str, bool> = tasks.chain(self.store.checks()).collect();
        let all = || CHECKS.into_iter().chain(tasks.keys().copied());
        let wanted: Vec<&str> = match parts.as_slice() {
            [_] => all().collect(),
            [_, one] => all().filter(|check| check == one).collect(),
            _ => Vec::new(),
        };
        if wanted.is_empty() {
            return Err(Status::unknown_path());
        }
        let mut text = String::new();
        let mut is_healthy = true;
        for check in wanted {
            let line = if excluded.contains(&check) {
                format!("[+]{check} excluded: ok\n")
            } else {
                let checked = match tasks.get(check) {
                    Some(true) => Ok(()),
                    Some(false) => Err(WITHHELD.to_owned()),
                    None => self.check_health(check, parts[0]).await,
                };
                match checked {
                    Ok(()) => format!("[+]{check} ok\n"),
                    Err(reason) => {
                        is_healthy = false;
                        format!("[-]{check} failed: {reason}\n")
                    }
                }
            };
            text.push_str(&line);
        }
        let name = parts[0];
        let code = if is_healthy { 200 } else { 500 };
        let text = match (is_healthy, query.first("verbose").is_some()) {
            (true, false) => "ok".to_owned(),
            (true, true) => format!("{text}{name} check passed\n"),
            (false, _) => format!("{text}{name} check failed\n"),
        };
        let mut response = reply(code, "text/plain; charset=utf-8", text);
        response.headers_mut().insert(NO_SNIFFING.0, NO_SNIFFING.1);
        Ok(response)
    }

    async fn check_health(&self, check: &str, endpoint: &str) -> Result<(), String> {
        let is_stopping = *self.stop.borrow();
        let is_well = match check {
            // A server with a full store is alive: a restart would not free space.
            "store" if endpoint == "readyz" => {
                self.store_is_ready().await?;
                self.store.current_revision().await.is_ok()
            }
            "store" => self.store.current_revision().await.is_ok(),
            "cache" => {
                let Ok(current) = self.store.current_revision().await else {
                    // The storage check reports it.
                    return Ok(());
                };
                let reached = self.cache.wait_for(current);
                let reached = tokio::time::timeout(CATCH_UP_TIMEOUT, reached).await;
                matches!(reached, Ok(Ok(_)))
            }
            // A server that shuts down is alive, but not ready.
            _ => endpoint != "readyz" || !is_stopping,
        };
        is_well.then_some(()).ok_or_else(|| WITHHELD.to_owned())
    }
}

fn found(document: Option<Value>) -> Response<Body> {
    document.map_or_else(unknown_path, |document| json(200, &document))
}

fn not_acceptable_as(media_type: &str) -> Status {
    let text = format!("406: Not Acceptable\n\nAvailable representations: {media_type}");
    Status::new(406, "NotAcceptable", text).about(Details::default())
}

/// The 404 for an unknown path. As in upstream, it is not a Status.
pub(super) fn unknown_path() -> Response<Body> {
    let mut response = reply(404, "text/plain; charset=utf-8", "404 page not found\n");
    response.headers_mut().insert(NO_SNIFFING.0, NO_SNIFFING.1);
    response
}

/// The aggregated document for clients that accept it, else the legacy one.
fn aggregated_or(
    headers: &HeaderMap,
    aggregated: &Document,
    legacy: impl Fn() -> Value,
) -> Response<Body> {
    let accept = header(headers, &http::header::ACCEPT);
    let takes_aggregated = negotiate_output(accept, Endpoint::Discovery)
        .is_ok_and(|output| output.transform.is_some());
    let mut response = if takes_aggregated {
        cached(aggregated, discovery::AGGREGATED_MEDIA_TYPE, headers, false)
    } else {
        json(200, &legacy())
    };
    let accept = HeaderValue::from_static("Accept");
    response.headers_mut().insert(VARY, accept);
    response
}

/// A document with its ETag, or 304 for clients that have it. `is_immutable`: the URL contains the
/// hash, so that its content never changes.
fn cached(
    document: &Document,
    media_type: &'static str,
    headers: &HeaderMap,
    is_immutable: bool,
) -> Response<Body> {
    let mut response = match document.is_known(header(headers, &IF_NONE_MATCH)) {
        true => {
            let mut response = Response::new(body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        false => reply(200, media_type, document.body.clone()),
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    if let Ok(tag) = HeaderValue::from_str(&document.etag()) {
        headers.insert(ETAG, tag);
    }
    if is_immutable {
        let control = HeaderValue::from_static("public, immutable");
        headers.insert(CACHE_CONTROL, control);
    }
    response
}

/// The list of paths, for people.
fn paths() -> Value {
    let mut paths = vec!["/api".to_owned(), "/apis".to_owned()];
    for group in crate::kinds::GROUPS {
        if !group.name.is_empty() {
            paths.push(format!("/apis/{}", group.name));
        }
        paths.push(group.path());
    }
    for path in [
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    ] {
        paths.push(path.to_owned());
    }
    paths.sort();
    serde_json::json!({"paths": paths})
}
