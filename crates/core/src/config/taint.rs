//! Taints a node registers itself with.

use crate::object::taint::{Effect, Taint};

/// Why a text is not a taint. The messages are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaintError {
    /// Not of the form `key=value:effect`.
    #[error("invalid taint spec: {0}")]
    Malformed(String),
    /// There is no such effect.
    #[error("invalid taint effect: {0}, unsupported taint effect")]
    Effect(String),
}

/// Reads `key=value:effect` or `key:effect`; taints print that way. Matches v1.36
/// pkg/util/taints/taints.go; whether key and value are legal label parts is for validation to say.
pub fn parse_taint(text: &str) -> Result<Taint, TaintError> {
    let malformed = || TaintError::Malformed(text.to_owned());
    let (mark, effect) = text.split_once(':').ok_or_else(malformed)?;
    if effect.contains(':') {
        return Err(malformed());
    }
    let effect = Effect::from_name(effect);
    if !effect.is_known() {
        return Err(TaintError::Effect(effect.as_str().to_owned()));
    }
    let (key, value) = mark.split_once('=').unwrap_or((mark, ""));
    if key.is_empty() || value.contains('=') {
        return Err(malformed());
    }
    let (key, value) = (key.to_owned(), value.to_owned());
    Ok(Taint { key, value, effect })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_are_printed_as_they_are_read() {
        for text in ["dedicated=infra:NoSchedule", "spot:NoExecute"] {
            assert_eq!(parse_taint(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "a",
            "a:b:c",
            "a=b=c:NoSchedule",
            "a:Never",
            ":NoSchedule",
        ] {
            assert!(parse_taint(text).is_err(), "{text}");
        }
    }
}
