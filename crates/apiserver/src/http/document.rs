//! Documents that do not change while the server runs.

use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest, Sha512};

/// A text, or bytes, with an ETag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The content.
    pub body: Bytes,
    /// Its hash in hexadecimal digits.
    pub hash: String,
}

impl Document {
    pub(super) fn new(content: &Value) -> Document {
        Document::of_bytes(content.to_string())
    }

    pub(super) fn of_bytes(body: impl Into<Bytes>) -> Document {
        let body = body.into();
        let digest = Sha512::digest(&body);
        let hash = digest.iter().map(|byte| format!("{byte:02X}")).collect();
        Document { body, hash }
    }

    /// The value of `ETag`.
    pub fn etag(&self) -> String {
        format!("\"{}\"", self.hash)
    }

    /// Whether the client has the document already, so that the response is 304.
    pub fn is_known(&self, if_none_match: &str) -> bool {
        if_none_match == self.etag()
    }
}
