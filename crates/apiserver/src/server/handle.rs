//! The path of a request: authentication, authorization, body, limits, routing, handler.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use http::header::{AUTHORIZATION, CACHE_CONTROL, HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, Method, Request, Response};
use hyper::body::Body as _;
use plimsoll_core::object::timestamp::Timestamp;

use super::annotations::Annotations;
use super::call::{Call, header, read_body};
use super::documents::{CUSTOM_RESOURCES, unknown_path};
use super::limits::{Level, Permit, RequestKind};
use super::listener::SMALL_BODY;
use super::request_context::{RequestContext, is_connection};
use super::respond;
use super::route::{Route, Target};
use super::{Server, identity};
use crate::auth::attributes::{Attributes, Forbidden};
use crate::auth::authorize::{Decision, impersonate};
use crate::auth::identity::{
    ANONYMOUS, Credentials, User, authenticate, requested_user, token_from_header,
    token_from_web_socket_protocols,
};
use crate::body::{self, Body};
use crate::http::query::Query;
use crate::kinds::{self, Kind};
use crate::status::{Details, Status};

/// The sender of a request.
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    /// A client on a socket.
    Socket(Client),
    /// Code of this process.
    Trusted(User),
}

/// A client on a socket.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// The kind of peer.
    pub origin: Origin,
    /// Its address.
    pub address: IpAddr,
    /// Its client certificate, if any.
    pub shown: Option<Shown>,
}

/// A client certificate that was verified during the TLS handshake.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub der: Arc<[u8]>,
    /// The user it names: parsed once per connection, not per request.
    pub user: Option<Arc<User>>,
    /// When it expires. Connections may last longer.
    pub end: Timestamp,
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The machine of this server.
    ThisMachine,
    /// Another machine, with this address as far as this server can see.
    Elsewhere(IpAddr),
}

impl Client {
    /// Whether a certificate authenticates the client.
    fn is_certified(&self) -> bool {
        self.shown
            .as_ref()
            .is_some_and(|shown| shown.user.is_some())
    }
}

impl Peer {
    fn origin(&self) -> Origin {
        match self {
            Peer::Socket(client) => client.origin,
            Peer::Trusted(_) => Origin::ThisMachine,
        }
    }
}

/// Set on responses to clients that have authenticated without a certificate: the user's name.
#[derive(Clone, Debug)]
pub(crate) struct Authenticated(pub(crate) String);

impl Server {
    /// Handles a request. Every request gets a response.
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
        let mut context = RequestContext {
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
            annotations: Annotations::default(),
            actor: None,
            impersonated: None,
            address: match peer {
                Peer::Socket(client) => Some(client.address),
                Peer::Trusted(_) => None,
            },
            verdict: None,
            access: None,
            body: None,
        };
        let request = Request::from_parts(parts, body);
        let answer = self.respond(&mut context, request, peer).await;
        let (mut response, refusal) = match answer {
            Ok(response) => (response, None),
            Err(status) => (
                respond::status_as(&status, context.is_pretty()),
                Some(status),
            ),
        };
        let headers = response.headers_mut();
        if let Ok(id) = HeaderValue::from_str(&context.audit_id) {
            headers.insert(AUDIT_ID, id);
        }
        let private = HeaderValue::from_static("no-cache, private");
        headers.entry(CACHE_CONTROL).or_insert(private);
        if let (Peer::Socket(client), Some(actor)) = (peer, &context.actor)
            && !client.is_certified()
            && actor.name != ANONYMOUS
        {
            let user = Authenticated(actor.name.clone());
            response.extensions_mut().insert(user);
        }
        self.count(&context, response.status().as_u16(), started);
        match &self.audit {
            None => response,
            Some(audit) => {
                let recorded = audit.record_response(&mut context, response, refusal.as_ref());
                Box::pin(recorded).await
            }
        }
    }

    async fn respond(
        self: &Arc<Self>,
        context: &mut RequestContext,
        request: Request<Body>,
        peer: &Peer,
    ) -> Result<Response<Body>, Status> {
        self.wait_for_access_changes().await;
        let actor = self.identify(&context.headers, peer, context.now)?;
        context.actor = Some(Arc::clone(&actor));
        if let Some(audit) = &self.audit {
            audit.received(context).await?;
        }
        if let Some(other) = self.impersonated(context, &actor)? {
            context.impersonated = Some(Arc::new(other));
        }
        let user = context.impersonated.clone().unwrap_or(actor);
        self.authorize_and_record(context, &user)?;
        let level = match peer {
            Peer::Trusted(_) => Level::Exempt,
            Peer::Socket(_) => Level::of(&user),
        };
        let origin = peer.origin();
        if context.is_long_running() {
            let streaming = self.respond_streaming(context, &user, origin, level, request);
            return Box::pin(streaming).await;
        }
        let (_body, request) = self.receive_body(context, &user, level, request).await?;
        let request = match &self.audit {
            None => request,
            Some(audit) => audit.keep_body(context, request).await?,
        };
        let _seat = match context.route {
            Route::Objects(_) => {
                let need = if context.is_write() {
                    RequestKind::Write
                } else {
                    RequestKind::Read
                };
                Some(self.limits.enter(need, level, &user).await?)
            }
            Route::Path(_) => None,
        };
        let answer = self.dispatch(context, &user, origin, level, request);
        let timeout = context.timeout()?;
        match tokio::time::timeout(timeout, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(timed_out()),
        }
    }

    /// Watches and streams: they are counted, and take a seat for reads only until they have begun.
    async fn respond_streaming(
        self: &Arc<Self>,
        context: &RequestContext,
        user: &User,
        origin: Origin,
        level: Level,
        request: Request<Body>,
    ) -> Result<Response<Body>, Status> {
        let counted = self
            .limits
            .enter(RequestKind::LongRunning, level, user)
            .await?;
        let beginning = match context.verb() {
            "watch" => Some(self.limits.enter(RequestKind::Read, level, user).await?),
            _ => None,
        };
        let answer = self.dispatch(context, user, origin, level, request).await?;
        drop(beginning);
        let running = self.metrics.long_running(context.labels(0));
        Ok(answer.map(|body| body::with(body, (running, counted))))
    }

    /// Reads the body of a write before the write takes a seat: a client that sends slowly occupies
    /// none. A body that has already arrived, or is not an object, passes.
    async fn receive_body(
        &self,
        context: &RequestContext,
        user: &User,
        level: Level,
        request: Request<Body>,
    ) -> Result<(Permit, Request<Body>), Status> {
        let has_arrived = matches!(request.body().size_hint().exact(), Some(..=SMALL_BODY));
        if has_arrived || !context.is_write() {
            return Ok((Permit::Unlimited, request));
        }
        // Kept until the response, so that few large bodies are in memory.
        let seat = self.limits.enter(RequestKind::Body, level, user).await?;
        let (parts, body) = request.into_parts();
        let bytes = read_body(body).await?;
        Ok((seat, Request::from_parts(parts, body::full(bytes))))
    }

    /// The authenticated user.
    fn identify(
        &self,
        headers: &HeaderMap,
        peer: &Peer,
        now: Timestamp,
    ) -> Result<Arc<User>, Status> {
        let shown = match peer {
            Peer::Trusted(user) => return Ok(Arc::new(user.clone().authenticated())),
            Peer::Socket(client) => client.shown.as_ref(),
        };
        let certificate = match shown {
            None => None,
            Some(shown) if now > shown.end => {
                tracing::debug!(
                    error = "client certificate has expired",
                    "unable to authenticate the request"
                );
                return Err(Status::unauthorized());
            }
            Some(Shown {
                user: Some(user), ..
            }) => return Ok(Arc::clone(user)),
            Some(shown) => Some(&*shown.der),
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
        let user = authenticate(credentials, &self.tokens, self, now).map_err(|error| {
            tracing::debug!(%error, "unable to authenticate the request");
            Status::unauthorized()
        })?;
        Ok(Arc::new(user))
    }

    /// The impersonated user, if impersonation is requested and allowed.
    fn impersonated(&self, context: &RequestContext, user: &User) -> Result<Option<User>, Status> {
        let pairs = context.headers.iter();
        let pairs = pairs.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let wanted =
            requested_user(pairs).map_err(|error| Status::internal_error(&error.to_string()))?;
        let Some(wanted) = wanted else {
            return Ok(None);
        };
        context.with_attributes(|attributes| {
            let acts = self.access.with(user, &self.cache, |authorizer| {
                impersonate(authorizer, user, &wanted, attributes)
            });
            acts.map(Some).map_err(|forbidden| denied(&forbidden))
        })
    }

    /// Authorizes the user for a request; the 403 otherwise.
    pub(super) fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Result<(), Status> {
        let checked = self.access.with(user, &self.cache, |authorizer| {
            authorizer.check(user, attributes)
        });
        checked.map_err(|forbidden| denied(&forbidden))
    }

    /// The same for a whole request; its audit event records the reason.
    fn authorize_and_record(
        &self,
        context: &mut RequestContext,
        user: &User,
    ) -> Result<(), Status> {
        if context.verdict.is_none() {
            return context.with_attributes(|attributes| self.authorize(user, attributes));
        }
        let (access, outcome) = context.with_attributes(|attributes| {
            let decided = self.access.with(user, &self.cache, |authorizer| {
                authorizer.authorize(user, attributes)
            });
            match decided {
                Decision::Allow(why) => (("allow", why.to_string()), Ok(())),
                Decision::Deny { reason } => {
                    let refusal = denied(&attributes.forbidden(user, &reason));
                    (("forbid", reason), Err(refusal))
                }
            }
        });
        context.access = Some(access);
        outcome
    }

    async fn dispatch(
        self: &Arc<Self>,
        context: &RequestContext,
        user: &User,
        origin: Origin,
        level: Level,
        request: Request<Body>,
    ) -> Result<Response<Body>, Status> {
        let target = match &context.route {
            Route::Objects(target) => target,
            Route::Path(path) => {
                if !matches!(context.method, Method::GET | Method::HEAD) {
                    return Err(Status::method_not_allowed());
                }
                let document = self.document(path, &context.query, &context.headers);
                return Box::pin(document).await;
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
                None => Ok(unknown_path()),
            };
        };
        let subresource = match target.subresource.as_str() {
            "" => None,
            name => Some(kind.subresource(name).ok_or_else(Status::unknown_path)?),
        };
        check_scope(kind, target)?;
        let is_read = matches!(context.method, Method::GET | Method::HEAD);
        if kind.is_namespaced() && target.namespace.is_empty() && !is_read {
            // Requests across namespaces are lists and watches only.
            return Err(Status::method_not_allowed());
        }
        let call = Call {
            server: self,
            user,
            origin,
            is_impersonated: context.impersonated.is_some(),
            verb: context.verb(),
            level,
            target,
            kind,
            subresource,
            query: &context.query,
            headers: &context.headers,
            now: context.now,
            annotations: &context.annotations,
        };
        match subresource {
            None => call.on_object(&context.method, request).await,
            Some(part) => {
                let mut request = request;
                if is_connection(part.name) {
                    // Streams and proxies forward the headers.
                    request.headers_mut().clone_from(&context.headers);
                }
                Box::pin(call.on_part(&context.method, request)).await
            }
        }
    }

    fn count(&self, context: &RequestContext, code: u16, started: Instant) {
        let labels = context.labels(code);
        let took = (!context.is_long_running()).then(|| started.elapsed());
        self.metrics.observe(labels, took);
    }
}

const AUDIT_ID: http::HeaderName = http::HeaderName::from_static("audit-id");

fn denied(forbidden: &Forbidden) -> Status {
    let (group, resource) = (&forbidden.group, &forbidden.resource);
    Status::denied(group, resource, &forbidden.name, &forbidden.reason)
}

fn timed_out() -> Status {
    Status::new(
        504,
        "Timeout",
        "Timeout: request did not complete within the allotted timeout",
    )
    .about(Details::default())
}

/// A namespaced kind is read across all namespaces, but written in one; a cluster-scoped kind is
/// never found in one.
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

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;
    use crate::store::{RedbOptions, RedbStore};

    /// It is copied several times per request, whichever operation it is for.
    #[tokio::test]
    async fn future_of_a_request_is_small() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.redb");
        let store = RedbStore::open(&file, &RedbOptions::default()).unwrap();
        let options = Options::new(folder.path().join("pki"));
        let server = Server::open(Arc::new(store), options).await.unwrap();
        let peer = Peer::Trusted(User::new("a", &[]));
        let future = server.handle(Request::new(body::full("")), &peer);
        let bytes = size_of_val(&future);
        assert!(bytes <= 8 * 1024, "{bytes} bytes");
    }
}
