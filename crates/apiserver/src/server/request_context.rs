//! The context of a request: its target, its timeout, and what metrics and the audit log record
//! about it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method};
use plimsoll_core::object::timestamp::Timestamp;

use super::annotations::Annotations;
use super::audit::policy::Verdict;
use super::call::header;
use super::metrics::RequestLabels;
use super::route::{Route, Target};
use crate::auth::attributes::{Attributes, Resource};
use crate::auth::identity::User;
use crate::http::negotiation;
use crate::http::query::{ListOptions, Query};
use crate::kinds;
use crate::status::Status;

/// The timeout of a request that is neither a watch nor a stream.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Any server of a cluster has this address.
const COMPONENT: &str = "apiserver";

const APPLY: &str = "application/apply-patch+yaml";

/// The subresources that are streams.
pub(super) fn is_connection(subresource: &str) -> bool {
    matches!(
        subresource,
        "exec" | "attach" | "portforward" | "proxy" | "log"
    )
}

/// A request in progress.
pub(super) struct RequestContext {
    pub(super) method: Method,
    pub(super) uri: String,
    pub(super) route: Route,
    pub(super) query: Query,
    pub(super) headers: HeaderMap,
    pub(super) now: Timestamp,
    pub(super) audit_id: String,
    pub(super) annotations: Annotations,
    /// The user, once authenticated.
    pub(super) actor: Option<Arc<User>>,
    /// The impersonated user, once allowed.
    pub(super) impersonated: Option<Arc<User>>,
    /// The source of the request; `None` for one from this process.
    pub(super) address: Option<IpAddr>,
    /// The audit level, if the request is recorded.
    pub(super) verdict: Option<Verdict>,
    /// The authorization decision and its reason, if they are recorded.
    pub(super) access: Option<(&'static str, String)>,
    /// The request's body, if it is recorded.
    pub(super) body: Option<Bytes>,
}

impl RequestContext {
    pub(super) fn target(&self) -> Option<&Target> {
        match &self.route {
            Route::Objects(target) => Some(target),
            Route::Path(_) => None,
        }
    }

    /// The verb as authorization names it.
    pub(super) fn verb(&self) -> &'static str {
        let Some(target) = self.target() else {
            return match self.method {
                Method::GET => "get",
                Method::HEAD => "head",
                Method::POST => "post",
                Method::PUT => "put",
                Method::PATCH => "patch",
                Method::DELETE => "delete",
                _ => "options",
            };
        };
        let is_named = !target.name.is_empty();
        let watches = target.is_old_watch
            || self
                .query
                .first("watch")
                .is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"));
        match self.method {
            // A stream is a `create`, whichever method requests it.
            Method::GET
                if matches!(
                    target.subresource.as_str(),
                    "exec" | "attach" | "portforward"
                ) =>
            {
                "create"
            }
            Method::GET | Method::HEAD if watches && target.subresource.is_empty() => "watch",
            Method::GET | Method::HEAD if is_named => "get",
            Method::GET | Method::HEAD => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if is_named => "delete",
            Method::DELETE => "deletecollection",
            _ => "",
        }
    }

    /// Whether the response is printed for people.
    pub(super) fn is_pretty(&self) -> bool {
        let agent = header(&self.headers, &http::header::USER_AGENT);
        negotiation::is_pretty(self.query.first("pretty"), agent)
    }

    pub(super) fn is_write(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD)
    }

    /// Watches and streams end when the client closes them.
    pub(super) fn is_long_running(&self) -> bool {
        let Some(target) = self.target() else {
            return false;
        };
        self.verb() == "watch" || is_connection(&target.subresource)
    }

    /// The timeout of the request; the client may request a shorter one.
    pub(super) fn timeout(&self) -> Result<Duration, Status> {
        let Some(text) = self.query.first("timeout").filter(|text| !text.is_empty()) else {
            return Ok(TIMEOUT);
        };
        let invalid = || Status::bad_request("invalid timeout specified in the request URL");
        let requested: plimsoll_core::duration::Duration = text.parse().map_err(|_| invalid())?;
        let nanos = u64::try_from(requested.as_nanos()).map_err(|_| invalid())?;
        match Duration::from_nanos(nanos) {
            Duration::ZERO => Ok(TIMEOUT),
            requested => Ok(requested.min(TIMEOUT)),
        }
    }

    /// Runs a check with the attributes of the request.
    pub(super) fn with_attributes<T>(&self, ask: impl FnOnce(&Attributes<'_>) -> T) -> T {
        let verb = self.verb();
        let target = match &self.route {
            Route::Path(path) => return ask(&Attributes::path(verb, path)),
            Route::Objects(target) => target,
        };
        // Lists and watches can be restricted to the objects that the user may read.
        let kind = kinds::by_resource(&target.group, &target.version, &target.resource);
        let options = kind
            .filter(|_| matches!(verb, "list" | "watch" | "deletecollection"))
            .and_then(|kind| ListOptions::from_query(&self.query, kind, None).ok());
        let selected = options.as_ref().and_then(ListOptions::selected_name);
        let fields = options
            .as_ref()
            .map(|options| options.field_selector.requirements());
        let name = match target.name.as_str() {
            "" => selected.unwrap_or_default(),
            name => name,
        };
        ask(&Attributes::resource(
            verb,
            Resource {
                group: &target.group,
                resource: &target.resource,
                subresource: &target.subresource,
                namespace: &target.namespace,
                name,
                field_selector: fields.unwrap_or_default(),
            },
        ))
    }

    pub(super) fn labels(&self, code: u16) -> RequestLabels {
        let verb = self.counted_verb();
        let dry_run = match self.query.first("dryRun") {
            Some("All") => "All",
            _ => "",
        };
        // Only served resources become labels: paths that clients make up must not fill memory.
        let known = self.target().and_then(|target| {
            let kind = kinds::by_resource(&target.group, &target.version, &target.resource)?;
            Some((target, kind))
        });
        let Some((target, kind)) = known else {
            return RequestLabels {
                verb,
                dry_run,
                component: COMPONENT,
                code,
                ..RequestLabels::default()
            };
        };
        let subresource = kind.subresource(&target.subresource);
        let is_one = !target.name.is_empty() || self.verb() == "create";
        let scope = match (is_one, target.namespace.is_empty()) {
            (true, _) => "resource",
            (false, false) => "namespace",
            (false, true) => "cluster",
        };
        RequestLabels {
            verb,
            dry_run,
            group: kind.group,
            version: kind.version,
            resource: kind.plural,
            subresource: subresource.map_or("", |sub| sub.name),
            scope,
            component: COMPONENT,
            code,
        }
    }

    /// The verb as upstream's metrics name it: the method, except where that is ambiguous.
    fn counted_verb(&self) -> &'static str {
        let subresource = self.target().map_or("", |target| &target.subresource);
        match self.verb() {
            _ if is_connection(subresource) => "CONNECT",
            "watch" => "WATCH",
            "list" => "LIST",
            "patch" if header(&self.headers, &CONTENT_TYPE) == APPLY => "APPLY",
            _ if self.method == Method::HEAD => "GET",
            _ => match self.method {
                Method::GET => "GET",
                Method::POST => "POST",
                Method::PUT => "PUT",
                Method::PATCH => "PATCH",
                Method::DELETE => "DELETE",
                _ => "other",
            },
        }
    }
}
