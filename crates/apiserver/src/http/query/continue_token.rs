//! The continue token of a list.
//!
//! Matches v1.36 apiserver/pkg/storage/continue.go, byte for byte: a list that was begun on one
//! server can be continued on another.

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::{DecodeError, Engine};
use serde::{Deserialize, Serialize};

/// Where the next page starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinueToken {
    /// The version at which all pages are read; negative: the latest, because the first page's is
    /// compacted.
    pub resource_version: i64,
    /// The first key of the page, without the prefix of the kind.
    pub start_key: String,
}

/// A token that is not valid: 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContinueError {
    /// Not base64, not JSON, or a key outside of the kind.
    #[error("continue key is not valid: {reason}")]
    Malformed {
        /// The error.
        reason: String,
    },
    /// No version.
    #[error(
        "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
    )]
    NoVersion,
    /// No key.
    #[error("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")]
    NoKey,
    /// A newer version.
    #[error("continue key is not valid: server does not recognize this encoded version {version}")]
    UnknownForm {
        /// The version.
        version: String,
    },
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Wire {
    #[serde(rename = "v")]
    form: String,
    rv: i64,
    start: String,
}

const FORM: &str = "meta.k8s.io/v1";

/// Longer than the longest key; a longer token cannot be ours.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

impl ContinueToken {
    /// The token for the page after the one that ends with `last_key`, which is without the prefix
    /// of the kind.
    pub fn after(last_key: &str, resource_version: i64) -> ContinueToken {
        ContinueToken {
            resource_version,
            start_key: format!("{last_key}\0"),
        }
    }

    /// The text of `metadata.continue`.
    pub fn encode(&self) -> String {
        let wire = Wire {
            form: FORM.to_owned(),
            rv: self.resource_version,
            start: self.start_key.clone(),
        };
        let json = serde_json::to_vec(&wire).expect("texts and a number always serialise");
        URL_SAFE_NO_PAD.encode(json)
    }

    /// Parses the token of a request.
    pub fn decode(text: &str) -> Result<ContinueToken, ContinueError> {
        let malformed = |reason: String| ContinueError::Malformed { reason };
        if text.len() > MAX_TOKEN_BYTES {
            return Err(malformed(format!("longer than {MAX_TOKEN_BYTES} bytes")));
        }
        let json = URL_SAFE_NO_PAD.decode(text);
        let json = json.map_err(|error| malformed(base64_reason(&error, text.len())))?;
        let wire: Wire =
            serde_json::from_slice(&json).map_err(|error| malformed(error.to_string()))?;
        if wire.form != FORM {
            let version = wire.form;
            return Err(ContinueError::UnknownForm { version });
        }
        if wire.rv == 0 {
            return Err(ContinueError::NoVersion);
        }
        if wire.start.is_empty() {
            return Err(ContinueError::NoKey);
        }
        let key = wire.start.strip_prefix('/').unwrap_or(&wire.start);
        if !is_within_prefix(key) {
            return Err(malformed(wire.start));
        }
        Ok(ContinueToken {
            resource_version: wire.rv,
            start_key: key.to_owned(),
        })
    }
}

/// In Go's words.
fn base64_reason(error: &DecodeError, length: usize) -> String {
    let at = match error {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => *at,
        DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => length,
    };
    format!("illegal base64 data at input byte {at}")
}

/// Whether the key, put behind a prefix, is its own shortest form; `..` could leave the prefix.
fn is_within_prefix(key: &str) -> bool {
    key.is_empty() || key.split('/').all(|part| !matches!(part, "" | "." | ".."))
}
