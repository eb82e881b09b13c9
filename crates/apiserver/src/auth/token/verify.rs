//! Verifying tokens.
//!
//! Matches v1.36 pkg/serviceaccount/jwt.go and claims.go.

use plimsoll_core::object::timestamp::Timestamp;
use serde_json::Value;

use super::claims::{Claims, Reference};
use super::key::ALGORITHM;
use super::{Authenticator, jwt};
use crate::auth::identity::{CREDENTIAL_ID, NODE_NAME, NODE_UID, POD_NAME, POD_UID, User};
use crate::auth::{Objects, quoted_list, text};

/// How far clocks may differ.
const LEEWAY_SECONDS: i64 = 60;

/// Why a token is invalid. All of these are 401.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Neither a token of this issuer nor a join token.
    #[error("invalid bearer token")]
    Unknown,
    /// The token names a key that is not ours.
    #[error("invalid signature, no keys found")]
    NoKey,
    /// The signature does not fit.
    #[error("go-jose/go-jose: error in cryptographic primitive")]
    Signature,
    /// The token has other audiences.
    #[error(
        "token audiences {} is invalid for the target audiences {}",
        quoted_list(.token),
        quoted_list(.wanted)
    )]
    Audience {
        /// The audiences of the token.
        token: Vec<String>,
        /// The audiences wanted.
        wanted: Vec<String>,
    },
    /// Expired.
    #[error("service account token has expired")]
    Expired,
    /// Not valid yet.
    #[error("service account token is not valid yet")]
    NotYetValid,
    /// Its issuer's clock is ahead.
    #[error("service account token is issued in the future")]
    IssuedInTheFuture,
    /// The account does not exist.
    #[error("serviceaccounts {} not found", plimsoll_core::problem::quoted(.0))]
    NoAccount(String),
    /// The account is being deleted.
    #[error("service account {0} has been deleted")]
    AccountDeleted(String),
    /// The account has been deleted and recreated.
    #[error("service account UID ({found}) does not match claim ({claimed})")]
    OtherAccount {
        /// The uid of the current account.
        found: String,
        /// The uid in the token.
        claimed: String,
    },
    /// The object that the token is bound to does not exist.
    #[error("service account token has been invalidated")]
    Invalidated,
    /// The object that the token is bound to has been deleted and recreated.
    #[error("{kind} UID ({found}) does not match service account {kind} ref claim ({claimed})")]
    OtherBoundObject {
        /// `pod`, `node` or `secret`.
        kind: &'static str,
        /// The uid of the current object.
        found: String,
        /// The uid in the token.
        claimed: String,
    },
}

/// A verified token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Authenticated {
    pub(super) user: User,
    /// The wanted audiences that the token has.
    pub(super) audiences: Vec<String>,
}

impl Authenticator {
    /// The user of a token with one of the `wanted` audiences.
    pub(super) fn authenticate_for(
        &self,
        token: &str,
        wanted: &[String],
        objects: &dyn Objects,
        now: Timestamp,
    ) -> Result<Authenticated, TokenError> {
        let unverified = jwt::parse(token);
        let claims = unverified
            .as_ref()
            .and_then(jwt::Unverified::claims::<Claims>);
        let (Some(token_parts), Some(claims)) = (unverified, claims) else {
            // Join tokens are for this server, whatever audience is requested.
            let user = super::bootstrap::user_of(token, objects, now).ok_or(TokenError::Unknown)?;
            let audiences = wanted.to_vec();
            return Ok(Authenticated { user, audiences });
        };
        if claims.iss != self.issuer {
            return Err(TokenError::Unknown);
        }
        self.check_signature(&token_parts)?;
        let audiences = self.common_audiences(&claims, wanted)?;
        check_times(&claims, now)?;
        check_objects(&claims, objects, now)?;
        Ok(Authenticated {
            user: user_of(&claims),
            audiences,
        })
    }

    fn check_signature(&self, token: &jwt::Unverified<'_>) -> Result<(), TokenError> {
        if !token.key_id.is_empty() && token.key_id != self.key.id() {
            return Err(TokenError::NoKey);
        }
        let is_ours =
            token.algorithm == ALGORITHM && self.key.is_signature(token.signed, &token.signature);
        is_ours.then_some(()).ok_or(TokenError::Signature)
    }

    fn common_audiences(
        &self,
        claims: &Claims,
        wanted: &[String],
    ) -> Result<Vec<String>, TokenError> {
        // A token without audiences is for this server.
        let own = match claims.aud.as_slice() {
            [] => &self.audiences,
            own => own,
        };
        let common = own.iter().filter(|audience| wanted.contains(audience));
        let common: Vec<String> = common.cloned().collect();
        if common.is_empty() {
            return Err(TokenError::Audience {
                token: own.to_vec(),
                wanted: wanted.to_vec(),
            });
        }
        Ok(common)
    }
}

fn check_times(claims: &Claims, now: Timestamp) -> Result<(), TokenError> {
    let leeway = LEEWAY_SECONDS * 1_000_000_000;
    let latest = Timestamp::from_nanos(now.as_nanos().saturating_add(leeway));
    let earliest = Timestamp::from_nanos(now.as_nanos().saturating_sub(leeway));
    let time = |seconds: Option<i64>| seconds.map(Timestamp::from_secs);
    if time(claims.nbf).is_some_and(|start| latest < start) {
        return Err(TokenError::NotYetValid);
    }
    // A token that never expires is not one of this server.
    if time(claims.exp).is_none_or(|end| earliest > end) {
        return Err(TokenError::Expired);
    }
    if time(claims.iat).is_some_and(|issued| latest < issued) {
        return Err(TokenError::IssuedInTheFuture);
    }
    Ok(())
}

/// Whether all objects that the token refers to still exist.
fn check_objects(claims: &Claims, objects: &dyn Objects, now: Timestamp) -> Result<(), TokenError> {
    let said = &claims.kubernetes;
    let account = &said.serviceaccount;
    let found = objects.object("", "serviceaccounts", &said.namespace, &account.name);
    let found = found.ok_or_else(|| TokenError::NoAccount(account.name.clone()))?;
    let uid = text(&found, "/metadata/uid");
    if uid != account.uid {
        return Err(TokenError::OtherAccount {
            found: uid.to_owned(),
            claimed: account.uid.clone(),
        });
    }
    if was_deleted(&found, now) {
        let account = format!("{}/{}", said.namespace, account.name);
        return Err(TokenError::AccountDeleted(account));
    }
    let check = |kind, resource, namespace: &str, reference: &Option<Reference>| match reference {
        Some(reference) => {
            let found = objects.object("", resource, namespace, &reference.name);
            check_bound(kind, found.as_ref(), reference, now)
        }
        None => Ok(()),
    };
    check("secret", "secrets", &said.namespace, &said.secret)?;
    check("pod", "pods", &said.namespace, &said.pod)?;
    // The node of a pod's token is informational: the pod is authoritative.
    if said.pod.is_none() {
        check("node", "nodes", "", &said.node)?;
    }
    Ok(())
}

fn check_bound(
    kind: &'static str,
    found: Option<&Value>,
    claimed: &Reference,
    now: Timestamp,
) -> Result<(), TokenError> {
    let found = found.ok_or(TokenError::Invalidated)?;
    let uid = text(found, "/metadata/uid");
    if uid != claimed.uid {
        return Err(TokenError::OtherBoundObject {
            kind,
            found: uid.to_owned(),
            claimed: claimed.uid.clone(),
        });
    }
    if was_deleted(found, now) {
        return Err(TokenError::Invalidated);
    }
    Ok(())
}

/// Whether the object's grace period is over. A pod in its grace period may still use its token.
fn was_deleted(object: &Value, now: Timestamp) -> bool {
    let leeway = LEEWAY_SECONDS * 1_000_000_000;
    let limit = Timestamp::from_nanos(now.as_nanos().saturating_sub(leeway));
    let deleted = object.pointer("/metadata/deletionTimestamp");
    let deleted = deleted.and_then(Value::as_str);
    deleted.is_some_and(|time| Timestamp::from_rfc3339(time).is_none_or(|time| time < limit))
}

fn user_of(claims: &Claims) -> User {
    let said = &claims.kubernetes;
    let account = &said.serviceaccount;
    let mut user = User::service_account(&said.namespace, &account.name, &account.uid);
    let mut note = |key: &str, value: String| {
        if !value.is_empty() {
            user.extra.insert(key.to_owned(), vec![value]);
        }
    };
    if let Some(pod) = said.pod.as_ref().filter(|pod| !pod.uid.is_empty()) {
        note(POD_NAME, pod.name.clone());
        note(POD_UID, pod.uid.clone());
    }
    if let Some(node) = said.node.as_ref().filter(|node| !node.name.is_empty()) {
        note(NODE_NAME, node.name.clone());
        note(NODE_UID, node.uid.clone());
    }
    if !claims.jti.is_empty() {
        note(CREDENTIAL_ID, format!("JTI={}", claims.jti));
    }
    user
}
