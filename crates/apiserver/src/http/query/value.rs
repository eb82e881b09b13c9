//! Numbers in query values, with Go's error messages.

use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

use plimsoll_core::problem::quoted;

/// A text is not a number of the wanted size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("strconv.{function}: parsing {}: {reason}", quoted(text))]
pub struct MalformedNumber {
    function: &'static str,
    text: String,
    reason: &'static str,
}

/// A resource version is not a number: 400 for lists.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("resourceVersion: Invalid value: {}: {source}", quoted(&source.text))]
pub struct InvalidResourceVersion {
    #[source]
    source: MalformedNumber,
}

/// Parses a resource version; none and `0` are the same to lists and to watches.
pub fn parse_resource_version(text: &str) -> Result<u64, InvalidResourceVersion> {
    if text.is_empty() {
        return Ok(0);
    }
    parse_unsigned(text).map_err(|source| InvalidResourceVersion { source })
}

/// Parses a port.
pub(crate) fn parse_u16(text: &str) -> Result<u16, MalformedNumber> {
    parse_unsigned(text)
}

fn parse_unsigned<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, MalformedNumber> {
    // Go's unsigned numbers have no sign at all.
    if text.starts_with('+') {
        return Err(malformed("ParseUint", text, false));
    }
    text.parse().map_err(|error: ParseIntError| {
        let is_overflow = matches!(error.kind(), IntErrorKind::PosOverflow);
        malformed("ParseUint", text, is_overflow)
    })
}

pub(super) fn parse_i64(text: &str) -> Result<i64, MalformedNumber> {
    text.parse().map_err(|error: ParseIntError| {
        let is_overflow = matches!(
            error.kind(),
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow
        );
        malformed("ParseInt", text, is_overflow)
    })
}

fn malformed(function: &'static str, text: &str, is_overflow: bool) -> MalformedNumber {
    MalformedNumber {
        function,
        text: text.to_owned(),
        reason: if is_overflow {
            "value out of range"
        } else {
            "invalid syntax"
        },
    }
}
