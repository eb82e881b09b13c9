//! Authentication of a request.

use plimsoll_core::object::timestamp::Timestamp;

use super::{CertificateError, User, user_of_certificate};
use crate::auth::Objects;
use crate::auth::token::{Authenticator, TokenError};

/// The credentials of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Credentials<'a> {
    /// The client certificate (DER) that the TLS layer has verified.
    pub certificate: Option<&'a [u8]>,
    /// The bearer token, from the header or from a WebSocket subprotocol.
    pub token: Option<&'a str>,
}

/// The credentials are invalid: 401, never anonymous.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unauthenticated {
    /// The certificate names no user.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The token is unknown, expired or revoked.
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// The user of a request. Invalid credentials are an error; a request without any is
/// [`User::anonymous`]. A certificate takes precedence over a token, as in upstream.
pub fn authenticate(
    credentials: Credentials<'_>,
    tokens: &Authenticator,
    objects: &dyn Objects,
    now: Timestamp,
) -> Result<User, Unauthenticated> {
    let by_certificate = credentials.certificate.map(user_of_certificate);
    let certificate_error = match by_certificate.transpose() {
        Ok(Some(Some(user))) => return Ok(user.authenticated()),
        Ok(_) => None,
        Err(error) => Some(error),
    };
    if let Some(token) = credentials.token {
        let user = tokens.authenticate(token, objects, now)?;
        return Ok(user.authenticated());
    }
    match certificate_error {
        Some(error) => Err(error.into()),
        None => Ok(User::anonymous()),
    }
}
