//! The compact form of a signed token: `header.payload.signature`, each part base64url.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Longer texts are not tokens. Upstream's limit is that of all headers together, 1 MiB; a token
/// that names a pod and a node with the longest names is far below this.
const MAX_BYTES: usize = 16 << 10;

/// A parsed token, not verified.
#[derive(Debug)]
pub(super) struct Unverified<'a> {
    /// The algorithm the token claims to be signed with.
    pub(super) algorithm: String,
    /// The key the token claims to be signed with; empty if it names none.
    pub(super) key_id: String,
    /// The signed part.
    pub(super) signed: &'a str,
    /// The signature.
    pub(super) signature: Vec<u8>,
    payload: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
}

/// Parses a token; `None` if it does not have the form of one.
pub(super) fn parse(token: &str) -> Option<Unverified<'_>> {
    if token.len() > MAX_BYTES {
        return None;
    }
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, payload) = signed.split_once('.')?;
    if payload.contains('.') {
        return None;
    }
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
    let header: Header = serde_json::from_slice(&decode(header)?).ok()?;
    Some(Unverified {
        algorithm: header.alg,
        key_id: header.kid,
        signed,
        signature: decode(signature)?,
        payload: decode(payload)?,
    })
}

impl Unverified<'_> {
    /// The claims.
    pub(super) fn claims<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.payload).ok()
    }
}

/// The part of a token before its signature.
pub(super) fn unsigned(header: &[u8], payload: &[u8]) -> String {
    let encode = |part: &[u8]| URL_SAFE_NO_PAD.encode(part);
    format!("{}.{}", encode(header), encode(payload))
}

/// The whole token.
pub(super) fn signed(unsigned: &str, signature: &[u8]) -> String {
    format!("{unsigned}.{}", URL_SAFE_NO_PAD.encode(signature))
}
