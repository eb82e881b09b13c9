//! Taints a node registers itself with.

use std::fmt;

use super::TaintEffect;

/// A mark that keeps pods away.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    /// What the mark is called: `dedicated`.
    pub key: String,
    /// What it is for; may be empty.
    pub value: String,
    /// What it does.
    pub effect: TaintEffect,
}

/// Why a text is no taint. The words are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaintError {
    /// Not of the form `key=value:effect`.
    #[error("invalid taint spec: {0}")]
    Malformed(String),
    /// There is no such effect.
    #[error("invalid taint effect: {0}, unsupported taint effect")]
    Effect(String),
}

impl Taint {
    /// Reads `key=value:effect` or `key:effect`. Matches v1.36 pkg/util/taints/taints.go; whether
    /// key and value are legal label parts is for validation to say.
    pub fn parse(text: &str) -> Result<Taint, TaintError> {
        let malformed = || TaintError::Malformed(text.to_owned());
        let (mark, effect) = text.split_once(':').ok_or_else(malformed)?;
        if effect.contains(':') {
            return Err(malformed());
        }
        let effect =
            TaintEffect::from_word(effect).ok_or_else(|| TaintError::Effect(effect.to_owned()))?;
        let (key, value) = mark.split_once('=').unwrap_or((mark, ""));
        if key.is_empty() || value.contains('=') {
            return Err(malformed());
        }
        let (key, value) = (key.to_owned(), value.to_owned());
        Ok(Taint { key, value, effect })
    }
}

/// Prints what [`Taint::parse`] reads.
impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value.as_str() {
            "" => write!(f, "{}:{}", self.key, self.effect),
            value => write!(f, "{}={value}:{}", self.key, self.effect),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_are_printed_as_they_are_read() {
        for text in ["dedicated=infra:NoSchedule", "spot:NoExecute"] {
            assert_eq!(Taint::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "a",
            "a:b:c",
            "a=b=c:NoSchedule",
            "a:Never",
            ":NoSchedule",
        ] {
            assert!(Taint::parse(text).is_err(), "{text}");
        }
    }
}
