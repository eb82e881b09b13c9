//! The way of a request: who, may they, is there room, what is it about, do it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, SEC_WEBSOCKET_PROTOCOL,
};
use http::{HeaderMap, Method, Request, Response};
use plimsoll_core::object::timestamp::Timestamp;
use serde_json::json;

use super::call::{Call, header, read_body};
use super::documents::{CUSTOM_RESOURCES, nothing_here};
use super::metrics::RequestLabels;
use super::respond;
use super::route::{Route, Target};
use super::{Server, identity};
use crate::auth::attributes::{Attributes, Resource};
use crate::auth::authorize::impersonate;
use crate::auth::identity::{
    Credentials, User, authenticate, token_from_header, token_from_web_socket_protocols,
    wanted_user,
};
use crate::body::{self, Body};
use crate::http::negotiation;
use crate::http::query::{ListOptions, Query};
use crate::kinds::{self, Kind, Verb};
use crate::machinery::write::Part;
use crate::status::{Details, Status};

/// How long a request may take that is neither a watch nor a stream.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Where a request comes from.
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    /// A socket, with the certificate that the client showed and that was verified, and the user
    /// it stands for: read once, not with every request.
    Socket(Option<Arc<[u8]>>, Option<User>),
    /// Code of this process.
    Trusted(User),
}

/// A request on its way.
struct Journey {
    method: Method,
    uri: String,
    route: Route,
    query: Query,
    headers: HeaderMap,
    now: Timestamp,
    audit_id: String,
    user: Option<User>,
}

impl Server {
    /// Answers a request. Whatever happens, there is an answer.
    pub(crate) async fn handle(
        self: &Arc<Self>,
        request: Request<Body>,
        peer: &Peer,
    ) -> Response<Body> {
        let started = Instant::now();
        let (mut parts, body) = request.into_parts();
        let audit_id = match header(&parts.headers, &AUDIT_ID) {
            "" => identity::uid(),
            given => given.chars().take(64).collect(),
        };
        let mut journey = Journey {
            route: Route::of(parts.uri.path()),
            query: Query::parse(parts.uri.query().unwrap_or_default()),
            method: parts.method.clone(),
            uri: parts
                .uri
                .path_and_query()
                .map_or("", |uri| uri.as_str())
                .to_owned(),
            headers: std::mem::take(&mut parts.headers),
            now: respond::now(),
            audit_id,
            user: None,
        };
        let request = Request::from_parts(parts, body);
        let answer = self.answer(&mut journey, request, peer).await;
        let mut response =
            answer.unwrap_or_else(|status| respond::status_as(&status, journey.is_pretty()));
        let headers = response.headers_mut();
        if let Ok(id) = HeaderValue::from_str(&journey.audit_id) {
            headers.insert(AUDIT_ID, id);
        }
        let private = HeaderValue::from_static("no-cache, private");
        headers.entry(CACHE_CONTROL).or_insert(private);
        self.take_note(&journey, response.status().as_u16(), started);
        response
    }

    async fn answer(
        self: &Arc<Self>,
        journey: &mut Journey,
        request: Request<Body>,
        peer: &Peer,
    ) -> Result<Response<Body>, Status> {
        self.see_decisive_changes().await;
        let user = self.identify(&journey.headers, peer, journey.now)?;
        let user = self.impersonated(journey, user)?;
        let user = journey.user.insert(user).clone();
        self.authorize(journey, &user)?;
        let is_long = journey.is_long_running();
        let answer = self.dispatch(journey, &user, request);
        if is_long {
            let answer = answer.await?;
            let running = self.metrics.long_running(journey.labels(0));
            return Ok(answer.map(|body| body::with(body, running)));
        }
        let _place = match journey.route {
            Route::Objects(_) => Some(self.limits.enter(journey.is_write()).await?),
            Route::Path(_) => None,
        };
        let timeout = journey.timeout()?;
        match tokio::time::timeout(timeout, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(timed_out()),
        }
    }

    /// Who asks.
    fn identify(&self, headers: &HeaderMap, peer: &Peer, now: Timestamp) -> Result<User, Status> {
        let certificate = match peer {
            Peer::Trusted(user) => return Ok(user.clone().authenticated()),
            Peer::Socket(_, Some(user)) => return Ok(user.clone()),
            Peer::Socket(certificate, None) => certificate.as_deref(),
        };
        let protocols = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
        let protocols = protocols.filter_map(|value| value.to_str().ok());
        let by_protocol = token_from_web_socket_protocols(protocols)
            .map_err(|_| Status::unauthorized())?
            .map(|found| found.token);
        let by_header = token_from_header(header(headers, &AUTHORIZATION));
        let credentials = Credentials {
            certificate,
            token: by_header.or(by_protocol.as_deref()),
        };
        authenticate(credentials, &self.tokens, self, now).map_err(|error| {
            tracing::debug!(%error, "not authenticated");
            Status::unauthorized()
        })
    }

    /// Whom the user acts for, if they say so and may.
    fn impersonated(&self, journey: &Journey, user: User) -> Result<User, Status> {
        let pairs = journey.headers.iter();
        let pairs = pairs.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let wanted =
            wanted_user(pairs).map_err(|error| Status::internal_error(&error.to_string()))?;
        let Some(wanted) = wanted else {
            return Ok(user);
        };
        journey.with_attributes(|attributes| {
            let acts = self.access.with(&user, &self.cache, |authorizer| {
                impersonate(authorizer, &user, &wanted, attributes)
            });
            acts.map_err(|forbidden| {
                let (group, resource) = (&forbidden.group, &forbidden.resource);
                Status::denied(group, resource, &forbidden.name, &forbidden.reason)
            })
        })
    }

    fn authorize(&self, journey: &Journey, user: &User) -> Result<(), Status> {
        journey.with_attributes(|attributes| {
            let checked = self.access.with(user, &self.cache, |authorizer| {
                authorizer.check(user, attributes)
            });
            checked.map_err(|forbidden| {
                let (group, resource) = (&forbidden.group, &forbidden.resource);
                Status::denied(group, resource, &forbidden.name, &forbidden.reason)
            })
        })
    }

    async fn dispatch(
        self: &Arc<Self>,
        journey: &Journey,
        user: &User,
        request: Request<Body>,
    ) -> Result<Response<Body>, Status> {
        let target = match &journey.route {
            Route::Objects(target) => target,
            Route::Path(path) => {
                if !matches!(journey.method, Method::GET | Method::HEAD) {
                    return Err(Status::method_not_allowed());
                }
                return self.document(path, &journey.query, &journey.headers).await;
            }
        };
        let kind = kinds::by_resource(&target.group, &target.version, &target.resource);
        let Some(kind) = kind else {
            let is_served = |group: &&kinds::Group| {
                (group.name, group.version) == (target.group.as_str(), target.version.as_str())
            };
            return match kinds::GROUPS.iter().find(is_served) {
                Some(_) => Err(Status::unknown_path()),
                None if target.is_list_of(CUSTOM_RESOURCES) => Ok(self.no_custom_resources()),
                None => Ok(nothing_here()),
            };
        };
        let subresource = match target.subresource.as_str() {
            "" => None,
            name => Some(kind.subresource(name).ok_or_else(Status::unknown_path)?),
        };
        check_scope(kind, target)?;
        let is_read = matches!(journey.method, Method::GET | Method::HEAD);
        if kind.is_namespaced() && target.namespace.is_empty() && !is_read {
            // Across namespaces there is nothing but lists and watches.
            return Err(Status::method_not_allowed());
        }
        let call = Call {
            server: self,
            user,
            target,
            kind,
            subresource,
            query: &journey.query,
            headers: &journey.headers,
            now: journey.now,
        };
        match subresource {
            None => {
                call.on_object(&journey.method, journey.verb(), request)
                    .await
            }
            Some(part) => {
                let mut request = request;
                if is_connection(part.name) {
                    // Streams and proxies pass the headers on.
                    request.headers_mut().clone_from(&journey.headers);
                }
                call.on_part(&journey.method, request).await
            }
        }
    }

    /// Counts the request, and notes it down if that is wanted.
    fn take_note(&self, journey: &Journey, code: u16, started: Instant) {
        let labels = journey.labels(code);
        let took = (!journey.is_long_running()).then(|| started.elapsed());
        if let Some(audit) = &self.audit {
            audit.note(&journey.audit_event(code));
        }
        self.metrics.observe(labels, took);
    }
}

/// Which server of a cluster counts.
const COMPONENT: &str = "apiserver";

const APPLY: &str = "application/apply-patch+yaml";

/// The parts of objects that are connections.
fn is_connection(subresource: &str) -> bool {
    matches!(
        subresource,
        "exec" | "attach" | "portforward" | "proxy" | "log"
    )
}

const AUDIT_ID: http::HeaderName = http::HeaderName::from_static("audit-id");

fn timed_out() -> Status {
    Status::new(
        504,
        "Timeout",
        "Timeout: request did not complete within the allotted timeout",
    )
    .about(Details::default())
}

/// A kind with namespaces is read across all of them, but written in one; a kind without is never
/// found in one.
fn check_scope(kind: &Kind, target: &Target) -> Result<(), Status> {
    let is_in_namespace = !target.namespace.is_empty() && target.resource != "namespaces";
    let is_named = !target.name.is_empty();
    if !kind.is_namespaced() && is_in_namespace
        || kind.is_namespaced() && is_named && !is_in_namespace
    {
        return Err(Status::unknown_path());
    }
    Ok(())
}

impl Journey {
    fn target(&self) -> Option<&Target> {
        match &self.route {
            Route::Objects(target) => Some(target),
            Route::Path(_) => None,
        }
    }

    /// The verb as authorization names it.
    fn verb(&self) -> &'static str {
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
            // Streams are made, whichever way they are asked for.
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

    /// Whether a person reads the answer.
    fn is_pretty(&self) -> bool {
        let agent = header(&self.headers, &http::header::USER_AGENT);
        negotiation::is_pretty(self.query.first("pretty"), agent)
    }

    fn is_write(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD)
    }

    /// Watches and streams end when the client is done.
    fn is_long_running(&self) -> bool {
        let Some(target) = self.target() else {
            return false;
        };
        self.verb() == "watch" || is_connection(&target.subresource)
    }

    /// The time that the request may take; the client may ask for less.
    fn timeout(&self) -> Result<Duration, Status> {
        let Some(text) = self.query.first("timeout").filter(|text| !text.is_empty()) else {
            return Ok(TIMEOUT);
        };
        let invalid = || Status::bad_request("invalid timeout specified in the request URL");
        let asked: plimsoll_core::threshold::Duration = text.parse().map_err(|_| invalid())?;
        let nanos = u64::try_from(asked.as_nanos()).map_err(|_| invalid())?;
        match Duration::from_nanos(nanos) {
            Duration::ZERO => Ok(TIMEOUT),
            asked => Ok(asked.min(TIMEOUT)),
        }
    }

    /// Asks with what the request is about.
    fn with_attributes<T>(&self, ask: impl FnOnce(&Attributes<'_>) -> T) -> T {
        let verb = self.verb();
        let target = match &self.route {
            Route::Path(path) => return ask(&Attributes::path(verb, path)),
            Route::Objects(target) => target,
        };
        // Lists and watches can be narrowed down to what the user may see.
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

    fn labels(&self, code: u16) -> RequestLabels {
        let verb = self.counted_verb();
        let dry_run = match self.query.first("dryRun") {
            Some("All") => "All",
            _ => "",
        };
        // Only what is served becomes a label: addresses that clients invent must not fill memory.
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

    /// The verb as upstream's metrics name it: the method, except where that says too little.
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

    fn audit_event(&self, code: u16) -> serde_json::Value {
        let user = self.user.as_ref().map(User::to_api);
        let time = super::call::time_text(self.now);
        let mut event = json!({
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": self.audit_id,
            "stage": "ResponseComplete",
            "requestURI": self.uri,
            "verb": self.verb(),
            "user": user,
            "userAgent": header(&self.headers, &http::header::USER_AGENT),
            "responseStatus": {"metadata": {}, "code": code},
            "requestReceivedTimestamp": time,
            "stageTimestamp": super::call::time_text(respond::now()),
        });
        if let Some(target) = self.target() {
            event["objectRef"] = json!({
                "resource": target.resource,
                "namespace": target.namespace,
                "name": target.name,
                "apiGroup": target.group,
                "apiVersion": target.version,
                "subresource": target.subresource,
            });
        }
        event
    }
}

impl Call<'_> {
    /// A request about whole objects.
    async fn on_object(
        &self,
        method: &Method,
        verb: &str,
        request: Request<Body>,
    ) -> Result<Response<Body>, Status> {
        let is_named = !self.target.name.is_empty();
        let allowed = |verb: Verb| match self.kind.allows(verb) {
            true => Ok(()),
            false => Err(Status::method_not_allowed()),
        };
        match (verb, is_named) {
            ("watch", _) => {
                allowed(Verb::Watch)?;
                self.watch(Some(self.target.name.as_str()).filter(|_| is_named))
                    .await
            }
            ("get", true) | ("list", false) if self.kind.group == "metrics.k8s.io" => {
                self.usage().await
            }
            ("get", true) => {
                allowed(Verb::Get)?;
                self.get().await
            }
            ("list", false) => {
                allowed(Verb::List)?;
                self.list().await
            }
            ("create", false) => {
                allowed(Verb::Create)?;
                let bytes = read_body(request.into_body()).await?;
                if self.kind.storage.is_some() {
                    return self.create(&bytes).await;
                }
                match self.kind.kind {
                    "Binding" => self.bind_by_body(&bytes).await,
                    _ => self.review(&bytes).await,
                }
            }
            ("update", true) => {
                allowed(Verb::Update)?;
                let bytes = read_body(request.into_body()).await?;
                self.update(&bytes, Part::Main).await
            }
            ("patch", true) => {
                allowed(Verb::Patch)?;
                let bytes = read_body(request.into_body()).await?;
                self.patch(&bytes, Part::Main).await
            }
            ("delete", true) => {
                allowed(Verb::Delete)?;
                let bytes = read_body(request.into_body()).await?;
                self.delete(&bytes).await
            }
            ("deletecollection", false) => {
                allowed(Verb::DeleteCollection)?;
                let bytes = read_body(request.into_body()).await?;
                self.delete_collection(&bytes).await
            }
            _ => {
                tracing::debug!(%method, "no such operation");
                Err(Status::method_not_allowed())
            }
        }
    }

    /// A request about a part of an object.
    async fn on_part(
        &self,
        method: &Method,
        request: Request<Body>,
    ) -> Result<Response<Body>, Status> {
        let Some(subresource) = self.subresource else {
            return Err(Status::unknown_path());
        };
        let verb = match *method {
            Method::GET | Method::HEAD => Verb::Get,
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE => Verb::Delete,
            _ => return Err(Status::method_not_allowed()),
        };
        if !subresource.verbs.contains(&verb) {
            return Err(Status::method_not_allowed());
        }
        let part = match subresource.name {
            "status" => Part::Status,
            "finalize" => Part::Finalize,
            "resize" => Part::Resize,
            "ephemeralcontainers" => Part::EphemeralContainers,
            "scale" => Part::Scale,
            "approval" => Part::Approval,
            _ => Part::Main,
        };
        match (subresource.name, verb) {
            ("scale", Verb::Get) => self.get_scale().await,
            ("log", _) => {
                let query = request.uri().query().unwrap_or_default().to_owned();
                drop(request);
                self.log(&query).await
            }
            ("exec" | "attach" | "portforward", _) => self.stream(request).await,
            ("proxy", _) => self.proxy(request).await,
            ("binding", _) => self.bind(&read_body(request.into_body()).await?).await,
            ("eviction", _) => self.evict(&read_body(request.into_body()).await?).await,
            ("token", _) => {
                self.issue_token(&read_body(request.into_body()).await?)
                    .await
            }
            (_, Verb::Get) if part != Part::Main => self.get().await,
            (_, Verb::Update) if part != Part::Main => {
                self.update(&read_body(request.into_body()).await?, part)
                    .await
            }
            (_, Verb::Patch) if part != Part::Main => {
                self.patch(&read_body(request.into_body()).await?, part)
                    .await
            }
            _ => Err(Status::method_not_allowed()),
        }
    }
}
