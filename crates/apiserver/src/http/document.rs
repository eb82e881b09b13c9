//! Documents that do not change while the server runs.

use serde_json::Value;
use sha2::{Digest, Sha512};

/// A text and what it is recognised by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The text.
    pub body: String,
    /// A hash of the text in hexadecimal digits.
    pub hash: String,
}

impl Document {
    pub(super) fn new(content: &Value) -> Document {
        let body = content.to_string();
        let digest = Sha512::digest(&body);
        let hash = digest.iter().map(|byte| format!("{byte:02X}")).collect();
        Document { body, hash }
    }

    /// The value of `ETag`.
    pub fn etag(&self) -> String {
        format!("\"{}\"", self.hash)
    }

    /// Whether the client has the document already and 304 is the answer.
    pub fn is_known(&self, if_none_match: &str) -> bool {
        if_none_match == self.etag()
    }
}
