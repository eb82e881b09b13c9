//! A parsed body without a type.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// A JSON value with everything that Go's decoder distinguishes. Strings without escapes borrow
/// from the body.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Document<'a> {
    Null,
    Bool(bool),
    /// The number as it is written.
    Number(Cow<'a, str>),
    String(Cow<'a, str>),
    Array(Vec<Document<'a>>),
    /// Members in order; keys may be duplicate.
    Object(Vec<(Cow<'a, str>, Document<'a>)>),
}

/// Upstream stops counting here.
const MOST_DUPLICATES: usize = 100;

impl<'a> Document<'a> {
    /// Collects the paths of duplicate members; `path` is the path of this value.
    pub(super) fn find_duplicates(&self, path: &mut String, found: &mut Vec<String>) {
        let length = path.len();
        match self {
            Document::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    path.push_str(&format!("[{index}]"));
                    item.find_duplicates(path, found);
                    path.truncate(length);
                }
            }
            Document::Object(members) => {
                let mut seen = BTreeSet::new();
                for (key, value) in members {
                    if length > 0 {
                        path.push('.');
                    }
                    path.push_str(key);
                    let is_new = !seen.insert(key) && !found.contains(path);
                    if is_new && found.len() < MOST_DUPLICATES {
                        found.push(path.clone());
                    }
                    value.find_duplicates(path, found);
                    path.truncate(length);
                }
            }
            _ => {}
        }
    }

    /// The last member of that name.
    pub(super) fn member(&self, name: &str) -> Option<&Document<'a>> {
        let Document::Object(members) = self else {
            return None;
        };
        let mut members = members.iter().rev();
        members.find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// What Go's errors call it.
    pub(super) fn go_kind(&self) -> &'static str {
        match self {
            Document::Null => "null",
            Document::Bool(_) => "bool",
            Document::Number(_) => "number",
            Document::String(_) => "string",
            Document::Array(_) => "array",
            Document::Object(_) => "object",
        }
    }
}
