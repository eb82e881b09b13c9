//! Issuing tokens: `kubectl create token`, and requests of kubelets.
//!
//! Matches v1.36 pkg/registry/core/serviceaccount/storage/token.go.

use k8s_openapi::api::authentication::v1::{
    BoundObjectReference, TokenRequest, TokenRequestStatus,
};
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::problem::Problem;
use serde_json::Value;

use super::Authenticator;
use super::claims::{Claims, Kubernetes, Reference};
use crate::auth::identity::service_account_user_name;
use crate::auth::{Objects, text};

const DEFAULT_SECONDS: i64 = 60 * 60;
const MIN_SECONDS: i64 = 10 * 60;
const MAX_SECONDS: i64 = 1 << 32;

/// The lifetime that token volumes of pods request. Such a token lives a year, so that clients
/// which never reload the file keep working; a claim in it says when they should have.
const INJECTED_SECONDS: i64 = 60 * 60 + 7;
const EXTENDED_SECONDS: i64 = 365 * 24 * 60 * 60;

/// The account that a token request is for.
#[derive(Clone, Copy, Debug)]
pub struct TokenRequestContext<'a> {
    /// The namespace in the URL.
    pub namespace: &'a str,
    /// The service account in the URL.
    pub name: &'a str,
    /// A uid for the token.
    pub id: &'a str,
}

/// Why no token is issued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// 422 on `TokenRequest.authentication.k8s.io`.
    #[error("{}", plimsoll_core::problem::aggregate(.problems))]
    Invalid {
        /// The name in the message.
        name: String,
        /// The errors.
        problems: Vec<Problem>,
    },
    /// 404: the account or the object to bind to does not exist.
    #[error("{resource} {} not found", plimsoll_core::problem::quoted(.name))]
    NotFound {
        /// The plural name.
        resource: &'static str,
        /// The name that was looked for.
        name: String,
    },
    /// 400.
    #[error("{0}")]
    BadRequest(String),
    /// 409: an object of that name exists, but with another uid.
    #[error(
        "Operation cannot be fulfilled on {kind} {}: {reason}",
        plimsoll_core::problem::quoted(.name)
    )]
    Conflict {
        /// The kind, with its group if it has one.
        kind: String,
        /// The name of the object.
        name: String,
        /// Why.
        reason: String,
    },
    /// 500: the token cannot be signed.
    #[error("failed to generate token: no randomness to sign with")]
    Sign,
}

/// What a token is bound to.
#[derive(Debug, Default)]
struct Bound {
    pod: Option<Reference>,
    node: Option<Reference>,
    secret: Option<Reference>,
}

impl Authenticator {
    /// Handles a token request: returns the same object with a token in its status.
    pub fn issue(
        &self,
        mut request: TokenRequest,
        context: TokenRequestContext<'_>,
        objects: &dyn Objects,
        now: Timestamp,
    ) -> Result<TokenRequest, RequestError> {
        let account = check_account(&request, context, objects)?;
        let mut spec = request.spec.take().unwrap_or_default();
        let audiences = spec.audiences.take().filter(|given| !given.is_empty());
        let audiences = audiences.unwrap_or_else(|| self.audiences.clone());
        let seconds = spec.expiration_seconds.unwrap_or(DEFAULT_SECONDS);
        check_seconds(seconds)?;
        let bound = match &spec.bound_object_ref {
            Some(reference) => bind(reference, context, objects)?,
            None => Bound::default(),
        };
        let issued_at = now.as_nanos().div_euclid(1_000_000_000);
        let claims = self.claims(context, &account, bound, &audiences, seconds, issued_at);
        let token = self.key.sign(&claims).map_err(|_| RequestError::Sign)?;

        request.metadata.name = Some(account.name);
        request.metadata.namespace = Some(context.namespace.to_owned());
        request.metadata.uid = Some(account.uid);
        let api_time = |seconds| Some(Timestamp::from_secs(seconds).to_api());
        request.metadata.creation_timestamp = api_time(issued_at);
        spec.audiences = Some(audiences);
        spec.expiration_seconds = Some(seconds);
        request.spec = Some(spec);
        request.status = Some(TokenRequestStatus {
            expiration_timestamp: api_time(issued_at.saturating_add(seconds)),
            token: Some(token),
        });
        Ok(request)
    }

    fn claims(
        &self,
        context: TokenRequestContext<'_>,
        account: &Reference,
        bound: Bound,
        audiences: &[String],
        seconds: i64,
        issued_at: i64,
    ) -> Claims {
        let is_for_this_server = |audience| self.audiences.contains(audience);
        let is_extended = bound.pod.is_some()
            && seconds == INJECTED_SECONDS
            && audiences.iter().all(is_for_this_server);
        let lifetime = if is_extended {
            EXTENDED_SECONDS
        } else {
            seconds
        };
        Claims {
            aud: audiences.to_vec(),
            exp: Some(issued_at.saturating_add(lifetime)),
            iat: Some(issued_at),
            iss: self.issuer.clone(),
            jti: context.id.to_owned(),
            kubernetes: Kubernetes {
                namespace: context.namespace.to_owned(),
                node: bound.node,
                pod: bound.pod,
                secret: bound.secret,
                serviceaccount: account.clone(),
                warnafter: is_extended.then(|| issued_at.saturating_add(seconds)),
            },
            nbf: Some(issued_at),
            sub: service_account_user_name(context.namespace, context.name),
        }
    }
}

/// The account in the URL. The body must agree with it.
fn check_account(
    request: &TokenRequest,
    context: TokenRequestContext<'_>,
    objects: &dyn Objects,
) -> Result<Reference, RequestError> {
    let given = |part: &Option<String>| part.clone().filter(|text| !text.is_empty());
    let mismatches = [
        ("name", given(&request.metadata.name), context.name),
        (
            "namespace",
            given(&request.metadata.namespace),
            context.namespace,
        ),
    ];
    for (field, value, expected) in mismatches {
        let Some(value) = value.filter(|value| value != expected) else {
            continue;
        };
        let path = format!("metadata.{field}");
        let detail = format!("must match the service account {field} if specified");
        return Err(RequestError::Invalid {
            name: context.name.to_owned(),
            problems: vec![Problem::invalid(path, &value, detail)],
        });
    }
    let account = find(objects, "serviceaccounts", context.namespace, context.name)?;
    let account = reference(&account, context.name);
    match given(&request.metadata.uid).filter(|uid| *uid != account.uid) {
        None => Ok(account),
        Some(uid) => Err(RequestError::Conflict {
            kind: "TokenRequest.authentication.k8s.io".to_owned(),
            name: context.name.to_owned(),
            reason: format!(
                "the UID in the token request ({uid}) does not match the UID of the service \
                 account ({})",
                account.uid
            ),
        }),
    }
}

fn check_seconds(seconds: i64) -> Result<(), RequestError> {
    let detail = if seconds < MIN_SECONDS {
        "may not specify a duration less than 10 minutes"
    } else if seconds > MAX_SECONDS {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let problem = Problem::invalid_bare("spec.expirationSeconds", seconds, detail);
    Err(RequestError::Invalid {
        name: String::new(),
        problems: vec![problem],
    })
}

/// The existing object that the token is bound to.
fn bind(
    wanted: &BoundObjectReference,
    context: TokenRequestContext<'_>,
    objects: &dyn Objects,
) -> Result<Bound, RequestError> {
    let api_version = wanted.api_version.as_deref().unwrap_or_default();
    let kind = wanted.kind.as_deref().unwrap_or_default();
    let name = wanted.name.as_deref().unwrap_or_default();
    let (group, version) = group_and_version(api_version);
    let mut bound = Bound::default();
    let found = match (group, kind) {
        ("", "Pod") => {
            let pod = find(objects, "pods", context.namespace, name)?;
            if text(&pod, "/spec/serviceAccountName") != context.name {
                return Err(RequestError::BadRequest(format!(
                    "cannot bind token for serviceaccount {} to pod running with different \
                     serviceaccount name.",
                    plimsoll_core::problem::quoted(context.name)
                )));
            }
            bound.node = node_of(&pod, objects);
            bound.pod.insert(reference(&pod, name))
        }
        ("", "Node") => {
            let node = find(objects, "nodes", "", name)?;
            bound.node.insert(reference(&node, name))
        }
        ("", "Secret") => {
            let secret = find(objects, "secrets", context.namespace, name)?;
            bound.secret.insert(reference(&secret, name))
        }
        _ => {
            return Err(RequestError::BadRequest(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    match wanted.uid.as_deref().filter(|uid| !uid.is_empty()) {
        Some(uid) if uid != found.uid => Err(RequestError::Conflict {
            kind: kind.to_owned(),
            name: name.to_owned(),
            reason: format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. \
                 The object might have been deleted and then recreated"
            ),
        }),
        _ => Ok(bound),
    }
}

/// The node of the pod; a node without an object is named without a uid.
fn node_of(pod: &Value, objects: &dyn Objects) -> Option<Reference> {
    let name = text(pod, "/spec/nodeName");
    let node = objects.object("", "nodes", "", name);
    (!name.is_empty()).then(|| reference(&node.unwrap_or_default(), name))
}

fn find(
    objects: &dyn Objects,
    resource: &'static str,
    namespace: &str,
    name: &str,
) -> Result<Value, RequestError> {
    let object = objects.object("", resource, namespace, name);
    object.ok_or_else(|| RequestError::NotFound {
        resource,
        name: name.to_owned(),
    })
}

fn reference(object: &Value, name: &str) -> Reference {
    Reference {
        name: name.to_owned(),
        uid: text(object, "/metadata/uid").to_owned(),
    }
}

/// A text that is not a group and version counts as neither.
fn group_and_version(api_version: &str) -> (&str, &str) {
    match api_version.split_once('/') {
        None => ("", api_version),
        Some((_, version)) if version.contains('/') => ("", ""),
        Some((group, version)) => (group, version),
    }
}
