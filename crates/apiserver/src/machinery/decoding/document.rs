//! A parsed body, before anything is known about its type.

/// A JSON value that keeps what Go's decoder would see.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Document {
    Null,
    Bool(bool),
    /// The number as it is written.
    Number(String),
    String(String),
    Array(Vec<Document>),
    /// Members in order; a key may stand twice.
    Object(Vec<(String, Document)>),
}

impl Document {
    /// The last member of that name.
    pub(super) fn member(&self, name: &str) -> Option<&Document> {
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
