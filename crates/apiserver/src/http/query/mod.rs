//! Query parameters.
//!
//! Values are parsed as upstream's conversions from `url.Values` do, then validated by its
//! option validations: a value that does not parse is a [`OptionsError::Malformed`] (400), a value
//! that is not allowed an [`OptionsError::Invalid`] (422).
//!
//! Reading order: [`Query`], [`ListOptions`], [`WriteOptions`] and [`DeleteOptions`],
//! [`ContinueToken`].

mod continue_token;
mod delete;
mod list;
mod value;
mod write;

use plimsoll_core::object::selector::{FieldSelectorError, ParseError};
use plimsoll_core::problem::{Problem, aggregate};

use crate::kinds::UnsupportedField;
use crate::status::Status;

pub use continue_token::{ContinueError, ContinueToken};
pub use delete::{DeleteOptions, Preconditions, Propagation};
pub use list::{ListOptions, VersionMatch};
pub(crate) use value::parse_u16;
pub use value::{InvalidResourceVersion, MalformedNumber, parse_resource_version};
pub use write::{PatchOptions, WriteOptions, include_object};

/// Names and values in the order of the query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

/// Invalid options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// A value does not parse: 400, with this text as the message.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A value is not allowed: 422 about an object without a name.
    #[error("{kind}.meta.k8s.io \"\" is invalid: {}", aggregate(problems))]
    Invalid {
        /// The kind of the options, in group `meta.k8s.io`.
        kind: &'static str,
        /// The errors.
        problems: Vec<Problem>,
    },
}

impl From<OptionsError> for Status {
    fn from(error: OptionsError) -> Status {
        match error {
            OptionsError::Malformed(malformed) => Status::bad_request(malformed.to_string()),
            OptionsError::Invalid { kind, problems } => {
                Status::invalid_kind("meta.k8s.io", kind, "", &problems)
            }
        }
    }
}

/// A value that does not parse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not a number.
    #[error(transparent)]
    Number(#[from] MalformedNumber),
    /// Not a label selector.
    #[error(transparent)]
    LabelSelector(#[from] ParseError),
    /// Not a field selector.
    #[error(transparent)]
    FieldSelector(#[from] FieldSelectorError),
    /// A field that the kind cannot be selected by.
    #[error(transparent)]
    Field(#[from] UnsupportedField),
    /// The path names a single object and the selector another.
    #[error("fieldSelector metadata.name doesn't match requested name")]
    OtherName,
    /// `includeObject` has an unknown value.
    #[error("Unable to convert to Table as requested: {0}")]
    Table(Problem),
}

impl Query {
    /// Parses the part after `?`. As in Go, a pair that does not parse is left out, and so is one
    /// with a semicolon.
    pub fn parse(text: &str) -> Query {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.filter(|pair| !pair.contains(';')).filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((unescape(name)?, unescape(value)?))
        });
        Query(pairs.collect())
    }

    /// The first value of that name.
    pub fn first(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        pairs
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// All values of that name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.0.iter().filter(move |(key, _)| key == name);
        named.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.first(name).unwrap_or_default().to_owned()
    }

    /// Anything but `0` and `false` is true, even an empty value.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        let value = self.first(name)?;
        Some(value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, Malformed> {
        let value = self.first(name).map(value::parse_i64).transpose();
        value.map_err(Malformed::from)
    }
}

/// `None` when a percent sign is not followed by two hexadecimal digits.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |b: Option<u8>| char::from(b?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).expect("two hexadecimal digits make a byte")
            }
            other => other,
        });
    }
    // Names and selectors are UTF-8; anything else fails its own checks later.
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
