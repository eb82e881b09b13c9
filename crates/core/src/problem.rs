//! What is wrong with an input, said so that a person can mend it.
//!
//! A [`Problem`] names the field, the value and the rule. It reads like an API server's field
//! error, because runbooks and tests match on those words. Readers collect problems and report
//! all of them; they never stop at the first.

use std::fmt;

/// One wrong value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where: `spec.containers[0].resources.requests`.
    pub path: String,
    /// What sort of mistake it is.
    pub kind: Kind,
    /// The value as it is printed: texts quoted, numbers bare. Empty where none is shown.
    pub value: String,
    /// The rule that is broken, and what would be right.
    pub detail: String,
    /// Where in the text it stands, for inputs that are files. Not part of the message.
    pub position: Option<Position>,
}

/// A place in a text. Both numbers count from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// The sorts of mistakes, as upstream's field errors have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Malformed or out of bounds.
    Invalid,
    /// Of the wrong type: a list where a text belongs.
    TypeInvalid,
    /// Not one of the known values.
    NotSupported,
    /// Given twice.
    Duplicate,
    /// Missing.
    Required,
    /// Fine by itself, but not here.
    Forbidden,
    /// No such field. Upstream reports this while decoding.
    Unknown,
    /// A setting the kubelet refuses to start with. Upstream says so in a whole sentence, which
    /// is the detail and is printed as it is.
    Refused,
}

impl Kind {
    /// The machine-readable reason in a `Status` cause.
    pub fn reason(self) -> &'static str {
        match self {
            Kind::Invalid | Kind::Refused => "FieldValueInvalid",
            Kind::TypeInvalid => "FieldValueTypeInvalid",
            Kind::NotSupported => "FieldValueNotSupported",
            Kind::Duplicate => "FieldValueDuplicate",
            Kind::Required => "FieldValueRequired",
            Kind::Forbidden => "FieldValueForbidden",
            Kind::Unknown => "FieldValueUnknown",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Kind::Invalid | Kind::TypeInvalid => "Invalid value",
            Kind::NotSupported => "Unsupported value",
            Kind::Duplicate => "Duplicate value",
            Kind::Required => "Required value",
            Kind::Forbidden => "Forbidden",
            Kind::Unknown => "Unknown field",
            Kind::Refused => "",
        }
    }
}

impl Problem {
    /// A malformed or out-of-bounds text.
    pub fn invalid(path: impl Into<String>, value: &str, detail: impl Into<String>) -> Problem {
        Problem::new(Kind::Invalid, path, quote(value), detail)
    }

    /// A number, boolean or anything else that is printed without quotes.
    pub fn invalid_bare(
        path: impl Into<String>,
        value: impl fmt::Display,
        detail: impl Into<String>,
    ) -> Problem {
        Problem::new(Kind::Invalid, path, value.to_string(), detail)
    }

    /// A value of the wrong type, printed as it stands in the input.
    pub fn wrong_type(
        path: impl Into<String>,
        value: impl fmt::Display,
        detail: impl Into<String>,
    ) -> Problem {
        Problem::new(Kind::TypeInvalid, path, value.to_string(), detail)
    }

    /// A text that is not among the `supported` ones.
    pub fn not_supported(path: impl Into<String>, value: &str, supported: &[&str]) -> Problem {
        let supported: Vec<String> = supported.iter().map(|s| quote(s)).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        Problem::new(Kind::NotSupported, path, quote(value), detail)
    }

    /// A value that stands twice.
    pub fn duplicate(path: impl Into<String>, value: &str) -> Problem {
        Problem::new(Kind::Duplicate, path, quote(value), "")
    }

    /// A missing value.
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> Problem {
        Problem::new(Kind::Required, path, String::new(), detail)
    }

    /// A value that may not be given here.
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Problem {
        Problem::new(Kind::Forbidden, path, String::new(), detail)
    }

    /// A field that does not exist; `detail` may name the one that was meant.
    pub fn unknown(path: impl Into<String>, detail: impl Into<String>) -> Problem {
        Problem::new(Kind::Unknown, path, String::new(), detail)
    }

    /// A setting the kubelet refuses to start with, in the words it uses.
    pub fn refused(path: impl Into<String>, sentence: impl Into<String>) -> Problem {
        Problem::new(Kind::Refused, path, String::new(), sentence)
    }

    /// The same problem with its place in the text.
    #[must_use]
    pub fn at(mut self, position: Option<Position>) -> Problem {
        self.position = position;
        self
    }

    fn new(
        kind: Kind,
        path: impl Into<String>,
        value: String,
        detail: impl Into<String>,
    ) -> Problem {
        Problem {
            path: path.into(),
            kind,
            value,
            detail: detail.into(),
            position: None,
        }
    }

    /// The text without the path, as in a `Status` cause.
    pub fn message(&self) -> String {
        let parts = [self.kind.title(), &self.value, &self.detail];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(": ")
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is wrong with a whole text has no path.
        if self.path.is_empty() {
            return f.write_str(&self.message());
        }
        write!(f, "{}: {}", self.path, self.message())
    }
}

impl std::error::Error for Problem {}

/// The text in double quotes, as Go's `strconv.Quote` and `%q` write it.
pub fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\x0b' => out.push_str("\\v"),
            '\x0c' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            ' '..='~' => out.push(c),
            '\0'..='\x7f' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            _ if is_printable(c) => out.push(c),
            '\0'..='\u{ffff}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// Letters, marks, numbers, punctuation and symbols. A mark is escaped by the standard library
/// only where it has nothing to attach to, so it is put behind a letter.
fn is_printable(c: char) -> bool {
    let text: String = ['a', c].iter().collect();
    !text.escape_debug().any(|escaped| escaped == '\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_go_does() {
        assert_eq!(quote("a\"\\\n\u{7}"), r#""a\"\\\n\a""#);
        assert_eq!(
            quote("\0\u{7f}\u{200b}é\u{301}"),
            "\"\\x00\\x7f\\u200bé\u{301}\""
        );
        assert_eq!(quote("\u{e0001}"), r#""\U000e0001""#);
    }

    #[test]
    fn a_problem_reads_like_an_upstream_field_error() {
        assert_eq!(
            Problem::invalid(
                "spec.x",
                "2",
                "must be less than or equal to cpu limit of 1"
            )
            .to_string(),
            "spec.x: Invalid value: \"2\": must be less than or equal to cpu limit of 1"
        );
        assert_eq!(
            Problem::not_supported("spec.y", "z", &["a", "b"]).to_string(),
            "spec.y: Unsupported value: \"z\": supported values: \"a\", \"b\""
        );
        assert_eq!(
            Problem::required("spec.z", "").to_string(),
            "spec.z: Required value"
        );
    }
}
