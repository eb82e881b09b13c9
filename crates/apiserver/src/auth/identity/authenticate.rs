//! One answer for a request: who is it?

use plimsoll_core::object::timestamp::Timestamp;

use super::{CertificateError, User, user_of_certificate};
use crate::auth::Objects;
use crate::auth::token::{Authenticator, TokenError};

/// What a request offers as proof.
#[derive(Clone, Copy, Debug, Default)]
pub struct Credentials<'a> {
    /// The client certificate (DER) that the TLS layer has verified.
    pub certificate: Option<&'a [u8]>,
    /// The bearer token, from the header or from a WebSocket subprotocol.
    pub token: Option<&'a str>,
}

/// Credentials were offered and are no good: 401, never anonymous.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unauthenticated {
    /// The certificate names nobody.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The token is unknown, expired or revoked.
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// Who a request comes from. Credentials that prove nothing are an error; none at all is
/// [`User::anonymous`]. A certificate counts before a token, as upstream has it.
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
