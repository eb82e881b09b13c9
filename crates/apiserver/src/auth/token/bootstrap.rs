//! Join tokens: the credentials of a machine before it has a certificate.
//!
//! A join token is a secret in `kube-system`; upstream calls it a bootstrap token.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plimsoll_core::object::timestamp::Timestamp;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use crate::auth::identity::{BOOTSTRAPPERS, User};
use crate::auth::{Objects, text};

/// The type of the secrets that are join tokens.
pub const BOOTSTRAP_SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";

/// The id and the secret part of a join token, `abcdef.0123456789abcdef`.
pub fn parse_bootstrap_token(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let is_part = |part: &str, length| {
        let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        part.len() == length && part.bytes().all(is_allowed)
    };
    (is_part(id, 6) && is_part(secret, 16)).then_some((id, secret))
}

/// The user of a join token; `None` if there is no such token, or it is invalid.
///
/// Matches v1.36 plugin/pkg/auth/authenticator/token/bootstrap/bootstrap.go.
pub(super) fn user_of(token: &str, objects: &dyn Objects, now: Timestamp) -> Option<User> {
    let (id, secret_part) = parse_bootstrap_token(token)?;
    let name = format!("bootstrap-token-{id}");
    let secret = objects.object("", "secrets", "kube-system", &name)?;
    let is_deleted = secret.pointer("/metadata/deletionTimestamp");
    let is_usable = is_deleted.is_none_or(Value::is_null)
        && text(&secret, "/type") == BOOTSTRAP_SECRET_TYPE
        && is_same_secret(&data(&secret, "token-secret"), secret_part.as_bytes())
        && data(&secret, "token-id") == id.as_bytes()
        && !is_expired(&secret, now)
        && data(&secret, "usage-bootstrap-authentication") == b"true";
    let groups = is_usable.then(|| groups(&secret)).flatten()?;
    Some(User {
        name: format!("system:bootstrap:{id}"),
        groups,
        ..User::default()
    })
}

/// Digests are compared, so that the duration does not reveal where two secrets differ.
fn is_same_secret(known: &[u8], offered: &[u8]) -> bool {
    digest(&SHA256, known).as_ref() == digest(&SHA256, offered).as_ref()
}

/// The value of a key, or nothing.
fn data(secret: &Value, key: &str) -> Vec<u8> {
    let encoded = secret.get("data").and_then(|data| data.get(key));
    let encoded = encoded.and_then(Value::as_str).unwrap_or_default();
    STANDARD.decode(encoded).unwrap_or_default()
}

/// Without a time it never expires; with one that cannot be parsed it has expired.
fn is_expired(secret: &Value, now: Timestamp) -> bool {
    let time = data(secret, "expiration");
    let end = || Timestamp::from_rfc3339(std::str::from_utf8(&time).ok()?);
    !time.is_empty() && end().is_none_or(|end| end <= now)
}

/// `None` if an extra group has an invalid name.
fn groups(secret: &Value) -> Option<Vec<String>> {
    let extra = String::from_utf8(data(secret, "auth-extra-groups")).ok()?;
    let mut groups = BTreeSet::from([BOOTSTRAPPERS.to_owned()]);
    if !extra.is_empty() {
        for group in extra.split(',') {
            if !is_group(group) {
                return None;
            }
            groups.insert(group.to_owned());
        }
    }
    Some(groups.into_iter().collect())
}

/// `system:bootstrappers:` and a name of lower-case letters, digits, colons and inner dashes.
fn is_group(group: &str) -> bool {
    let Some(name) = group.strip_prefix("system:bootstrappers:") else {
        return false;
    };
    let is_outer = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_inner = |byte: u8| is_outer(&byte) || matches!(byte, b':' | b'-');
    let bytes = name.as_bytes();
    bytes.len() <= 256 && bytes.last().is_some_and(is_outer) && name.bytes().all(is_inner)
}
