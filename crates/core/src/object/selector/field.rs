//! Selectors over fields: `spec.nodeName=n1,status.phase!=Failed`.
//!
//! Matches v1.36 apimachinery/pkg/fields/selector.go.

use std::fmt;
use std::str::FromStr;

use super::Lookup;

/// A selector over fields: what meets every requirement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<FieldRequirement>);

/// One demand on one field. A missing field counts as empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The path of the field.
    pub field: String,
    /// How field and value relate.
    pub operator: FieldOperator,
    /// The value, without escapes.
    pub value: String,
}

/// How a field and the value of a requirement relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldOperator {
    /// The field is the value, written `=` or `==`.
    Equals,
    /// The field is not the value.
    NotEquals,
}

/// Why a text is no field selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldSelectorError {
    /// A term has no operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    NoOperator {
        /// The whole text.
        selector: String,
        /// The term.
        term: String,
    },
    /// A backslash stands before a character that needs none, or at the end.
    #[error("invalid field selector: invalid escape sequence: {0}")]
    Escape(String),
    /// A comma or equals sign in a value lacks its backslash. The text shows its code.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}

impl FieldOperator {
    /// As written in a selector string.
    pub fn as_str(self) -> &'static str {
        match self {
            FieldOperator::Equals => "=",
            FieldOperator::NotEquals => "!=",
        }
    }
}

impl FieldRequirement {
    /// Whether the fields meet the demand.
    pub fn matches(&self, fields: &impl Lookup) -> bool {
        let is_equal = fields.lookup(&self.field).unwrap_or_default() == self.value;
        is_equal == (self.operator == FieldOperator::Equals)
    }
}

impl FieldSelector {
    /// Selects what meets all requirements.
    pub const fn new(requirements: Vec<FieldRequirement>) -> FieldSelector {
        FieldSelector(requirements)
    }

    /// Whether the fields are selected.
    pub fn matches(&self, fields: &impl Lookup) -> bool {
        self.0.iter().all(|requirement| requirement.matches(fields))
    }

    /// Whether it selects everything for lack of requirements.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The requirements.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.0
    }
}

/// Terms are put in the order of their texts. Empty terms, and terms in which both the field and
/// the value are empty, have no effect and are dropped.
impl FromStr for FieldSelector {
    type Err = FieldSelectorError;

    fn from_str(selector: &str) -> Result<FieldSelector, FieldSelectorError> {
        let mut terms = split_terms(selector);
        terms.sort_unstable();
        let mut requirements = Vec::new();
        for term in terms.into_iter().filter(|term| !term.is_empty()) {
            let Some((field, operator, value)) = split_term(term) else {
                return Err(FieldSelectorError::NoOperator {
                    selector: selector.to_owned(),
                    term: term.to_owned(),
                });
            };
            let value = unescape(value)?;
            if !(field.is_empty() && value.is_empty()) {
                requirements.push(FieldRequirement {
                    field: field.to_owned(),
                    operator,
                    value,
                });
            }
        }
        Ok(FieldSelector(requirements))
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let operator = requirement.operator.as_str();
            let value = escape(&requirement.value);
            write!(f, "{comma}{}{operator}{value}", requirement.field)?;
        }
        Ok(())
    }
}

/// Splits at commas without a backslash.
fn split_terms(selector: &str) -> Vec<&str> {
    let mut is_escaped = false;
    let is_separator = |c: char| {
        let is_separator = c == ',' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_separator
    };
    selector.split(is_separator).collect()
}

/// Splits at the first operator.
fn split_term(term: &str) -> Option<(&str, FieldOperator, &str)> {
    let operators = [
        ("!=", FieldOperator::NotEquals),
        ("==", FieldOperator::Equals),
        ("=", FieldOperator::Equals),
    ];
    term.char_indices().find_map(|(index, _)| {
        let (field, behind) = term.split_at(index);
        operators
            .into_iter()
            .find_map(|(text, operator)| Some((field, operator, behind.strip_prefix(text)?)))
    })
}

fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | ',' | '=') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn unescape(value: &str) -> Result<String, FieldSelectorError> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                Some(other) => return Err(FieldSelectorError::Escape(format!("\\{other}"))),
                None => return Err(FieldSelectorError::Escape("\\".to_owned())),
            },
            ',' | '=' => return Err(FieldSelectorError::Unescaped(c)),
            _ => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let rendered = match text.parse::<FieldSelector>() {
            Ok(selector) => selector.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(rendered, expected);
    }

    #[test]
    fn terms_are_sorted_and_empty_ones_dropped() {
        check("", "");
        check(",b!=2,,a==1,", "a=1,b!=2");
        check("=,a=1,!=", "a=1");
        check("a=", "a=");
    }

    #[test]
    fn values_keep_commas_and_equals_signs_behind_backslashes() {
        check(r"a=b\,c\=d\\", r"a=b\,c\=d\\");
        check(r"a\,b=c", r"a\,b=c");
        check(
            r"a=\x",
            r"invalid field selector: invalid escape sequence: \x",
        );
        check(
            "a=b=c",
            "invalid field selector: unescaped character in value: 61",
        );
    }

    #[test]
    fn a_missing_field_counts_as_empty() {
        let fields = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        let matches = |text: &str| text.parse::<FieldSelector>().unwrap().matches(&fields);
        assert!(matches("a=1,b="));
        assert!(matches("b!=1"));
        assert!(!matches("b!="));
    }
}
