//! Tokens: the credentials of service accounts and joining nodes.
//!
//! Reading order: `jwt` (the compact form), `key` (the signing key, its file and its public
//! documents), `claims` (the contents of a service account token), `request` (issuing one),
//! `verify` (verifying one), `bootstrap` (join tokens), `review` (TokenReview).
//!
//! Tokens are signed with ES256. A token is valid only as long as the account and the object it
//! is bound to exist with the same uid, which is what makes deleting a pod revoke its token.

mod bootstrap;
mod claims;
mod jwt;
mod key;
mod request;
mod review;
mod verify;

pub use bootstrap::{BOOTSTRAP_SECRET_TYPE, parse_bootstrap_token};
pub use key::{KeyError, SigningKey};
pub use request::{RequestError, TokenRequestContext};
pub use review::review;
pub use verify::TokenError;

use plimsoll_core::object::timestamp::Timestamp;

use super::Objects;
use super::identity::User;

/// Issues and verifies tokens.
#[derive(Debug)]
pub struct Authenticator {
    key: SigningKey,
    issuer: String,
    audiences: Vec<String>,
}

impl Authenticator {
    /// `issuer` is the issuer in tokens, an `https` URL; `audiences` are those of this server,
    /// usually just the issuer.
    pub fn new(
        key: SigningKey,
        issuer: impl Into<String>,
        audiences: Vec<String>,
    ) -> Authenticator {
        Authenticator {
            key,
            issuer: issuer.into(),
            audiences,
        }
    }

    /// The user of a bearer token, for requests to this server.
    ///
    /// `system:authenticated` is not among the groups yet.
    pub fn authenticate(
        &self,
        token: &str,
        objects: &dyn Objects,
        now: Timestamp,
    ) -> Result<User, TokenError> {
        let found = self.authenticate_for(token, &self.audiences, objects, now)?;
        Ok(found.user)
    }

    /// The public keys, as `/openid/v1/jwks` serves them.
    pub fn key_set(&self) -> String {
        self.key.key_set()
    }

    /// The document at `/.well-known/openid-configuration`; `key_set_url` is where the public keys
    /// are served.
    pub fn discovery(&self, key_set_url: &str) -> String {
        self.key.discovery(&self.issuer, key_set_url)
    }
}

#[cfg(test)]
mod tests;
