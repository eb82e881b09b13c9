//! Errors in an input, reported so that a user can fix them.
//!
//! A [`Problem`] names the field, the value and the rule. It reads like an API server's field
//! error, because runbooks and tests match on those texts. Readers collect problems and report all
//! of them; they never stop at the first.

use std::fmt;

use serde::Serialize;

/// One wrong value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where: `spec.containers[0].resources.requests`.
    pub path: String,
    /// The kind of error.
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

/// The kinds of errors, as upstream's field errors have them.
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
    /// More bytes than may be.
    TooLong,
    /// More items than may be.
    TooMany,
    /// Names something that is not there.
    NotFound,
    /// Cannot be decided.
    Internal,
    /// No such field. Upstream reports this while decoding.
    Unknown,
    /// A setting the kubelet refuses to start with. Upstream reports it in a whole sentence, which
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
            Kind::TooLong => "FieldValueTooLong",
            Kind::TooMany => "FieldValueTooMany",
            Kind::NotFound => "FieldValueNotFound",
            Kind::Internal => "InternalError",
            Kind::Unknown => "FieldValueUnknown",
        }
    }

    /// What a message begins with; empty for [`Kind::Refused`].
    pub fn title(self) -> &'static str {
        match self {
            Kind::Invalid | Kind::TypeInvalid => "Invalid value",
            Kind::NotSupported => "Unsupported value",
            Kind::Duplicate => "Duplicate value",
            Kind::Required => "Required value",
            Kind::Forbidden => "Forbidden",
            Kind::TooLong => "Too long",
            Kind::TooMany => "Too many",
            Kind::NotFound => "Not found",
            Kind::Internal => "Internal error",
            Kind::Unknown => "Unknown field",
            Kind::Refused => "",
        }
    }
}

impl Problem {
    /// A malformed or out-of-bounds text.
    pub fn invalid(path: impl Into<String>, value: &str, detail: impl Into<String>) -> Problem {
        Problem::new(Kind::Invalid, path, quoted(value), detail)
    }

    /// A number, boolean or anything else that is printed without quotes.
    pub fn invalid_bare(
        path: impl Into<String>,
        value: impl fmt::Display,
        detail: impl Into<String>,
    ) -> Problem {
        Problem::new(Kind::Invalid, path, value.to_string(), detail)
    }

    /// A list of texts that is wrong as a whole, printed as JSON; an absent list is `null`.
    pub fn invalid_list(
        path: impl Into<String>,
        values: Option<&[String]>,
        detail: impl Into<String>,
    ) -> Problem {
        Problem::new(Kind::Invalid, path, json_text(&values), detail)
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
    ///
    /// The value is printed as JSON: upstream's enumerations have types of their own, and its
    /// field errors quote only plain texts.
    pub fn not_supported(path: impl Into<String>, value: &str, supported: &[&str]) -> Problem {
        let supported: Vec<String> = supported.iter().map(|s| quoted(s)).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        Problem::new(Kind::NotSupported, path, json_text(&value), detail)
    }

    /// A value that stands twice.
    pub fn duplicate(path: impl Into<String>, value: &str) -> Problem {
        Problem::new(Kind::Duplicate, path, quoted(value), "")
    }

    /// A missing value.
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> Problem {
        Problem::new(Kind::Required, path, String::new(), detail)
    }

    /// A value that may not be given here.
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Problem {
        Problem::new(Kind::Forbidden, path, String::new(), detail)
    }

    /// A text or list of more than `max_bytes`, which is not repeated.
    pub fn too_long(path: impl Into<String>, max_bytes: usize) -> Problem {
        let unit = if max_bytes == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {max_bytes} {unit}");
        Problem::new(Kind::TooLong, path, String::new(), detail)
    }

    /// A list with `given` items where `most` are allowed.
    pub fn too_many(path: impl Into<String>, given: usize, most: usize) -> Problem {
        let detail = format!("must have at most {most} items");
        Problem::new(Kind::TooMany, path, given.to_string(), detail)
    }

    /// The name of something that is not there.
    pub fn not_found(path: impl Into<String>, value: &str) -> Problem {
        Problem::new(Kind::NotFound, path, quoted(value), "")
    }

    /// Something that could not be decided.
    pub fn internal(path: impl Into<String>, detail: impl Into<String>) -> Problem {
        Problem::new(Kind::Internal, path, String::new(), detail)
    }

    /// The same problem about another value, printed as it is given here.
    #[must_use]
    pub fn with_value(mut self, value: impl Into<String>) -> Problem {
        self.value = value.into();
        self
    }

    /// The same problem with another detail.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Problem {
        self.detail = detail.into();
        self
    }

    /// A field that does not exist; `detail` may name the one that was meant.
    pub fn unknown(path: impl Into<String>, detail: impl Into<String>) -> Problem {
        Problem::new(Kind::Unknown, path, String::new(), detail)
    }

    /// A setting the kubelet refuses to start with, in the kubelet's words.
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

/// All problems in one line, as upstream's aggregate errors read; see [`joined`].
pub fn aggregate(problems: &[Problem]) -> String {
    joined(problems.iter().map(Problem::to_string))
}

/// Several messages in one line: one stands alone, several are listed in brackets, each once.
///
/// Matches v1.36 apimachinery/pkg/util/errors, `Aggregate`.
pub fn joined(messages: impl IntoIterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for message in messages {
        if !distinct.contains(&message) {
            distinct.push(message);
        }
    }
    match distinct.as_slice() {
        [only] => only.clone(),
        _ => format!("[{}]", distinct.join(", ")),
    }
}

/// The text as Go's `%q` prints it.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            _ if is_printable(c) => out.push(c),
            _ => out.push_str(&match u32::from(c) {
                code @ 0..0x80 => format!("\\x{code:02x}"),
                code @ 0x80..0x1_0000 => format!("\\u{code:04x}"),
                code => format!("\\U{code:08x}"),
            }),
        }
    }
    out.push('"');
    out
}

/// Letters, marks, numbers, punctuation, symbols and the ASCII space.
///
/// The standard library knows this only through escaping; behind another character a combining
/// mark is not escaped for being one.
pub fn is_printable(c: char) -> bool {
    let mut behind_a_letter = [b'a', 0, 0, 0, 0];
    c.encode_utf8(&mut behind_a_letter[1..]);
    let text = std::str::from_utf8(&behind_a_letter[..=c.len_utf8()]);
    let text = text.expect("a letter and an encoded character are UTF-8");
    c == '\'' || text.escape_debug().eq(text.chars())
}

/// The value as Go's JSON encoder prints it, which escapes characters that HTML or JavaScript
/// interpret.
pub fn json_text(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("keys of the maps that are shown are texts");
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

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
    #[test]
    fn texts_are_quoted_as_go_quotes_them() {
        assert_eq!(quoted("it's \"ö\u{301}\""), "\"it's \\\"ö\u{301}\\\"\"");
        assert_eq!(
            quoted("\0\n\u{7f}\u{a0}\u{e0001}"),
            "\"\\x00\\n\\x7f\\u00a0\\U000e0001\""
        );
    }

    #[test]
    fn lists_are_printed_as_json() {
        let values = ["a<b".to_owned(), "c".to_owned()];
        let problem = Problem::invalid_list("values", Some(&values), "too many");
        assert_eq!(
            problem.to_string(),
            "values: Invalid value: [\"a\\u003cb\",\"c\"]: too many"
        );
        let problem = Problem::invalid_list("values", None, "too few");
        assert_eq!(problem.to_string(), "values: Invalid value: null: too few");
    }

    #[test]
    fn several_problems_are_listed_in_brackets_without_repeats() {
        let (a, b) = (Problem::required("a", ""), Problem::required("b", ""));
        assert_eq!(aggregate(std::slice::from_ref(&a)), "a: Required value");
        assert_eq!(aggregate(&[a.clone(), a.clone()]), "a: Required value");
        assert_eq!(
            aggregate(&[a.clone(), b, a]),
            "[a: Required value, b: Required value]"
        );
    }
}
