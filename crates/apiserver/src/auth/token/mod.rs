//! Tokens: what service accounts and joining nodes prove themselves with.
//!
//! Reading order: `jwt` (the compact form), `key` (the signing key, its file and its public
//! documents), `claims` (what a service account token says), `request` (issuing one), `verify`
//! (believing one), `bootstrap` (join tokens), `review` (telling others who a token is).
//!
//! Tokens are signed with ES256. A token is believed only as long as the account and the object it
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

/// Issues tokens and believes them.
#[derive(Debug)]
pub struct Authenticator {
    key: SigningKey,
    issuer: String,
    audiences: Vec<String>,
}

impl Authenticator {
    /// `issuer` is what tokens name as their issuer, an `https` URL; `audiences` is what this
    /// server answers to, usually just the issuer.
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

    /// The user a bearer token stands for, for requests to this server.
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
