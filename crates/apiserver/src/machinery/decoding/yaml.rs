//! YAML texts to documents.

use plimsoll_core::config::document::{self, Content, Node, ScalarValue};
use serde_json::Value;

use super::document::Document;

/// Parses the first document of a text; an empty text is null.
pub(super) fn parse(body: &[u8]) -> Result<Document, String> {
    let parsed = document::parse(body);
    match (parsed.documents.first(), parsed.problems.first()) {
        (None, Some(problem)) => Err(format!("error converting YAML to JSON: {problem}")),
        (None, None) => Ok(Document::Null),
        (Some(node), _) => Ok(to_document(node)),
    }
}

fn to_document(node: &Node) -> Document {
    match &node.content {
        Content::Scalar { text, value } => match value {
            ScalarValue::Null => Document::Null,
            ScalarValue::Bool(value) => Document::Bool(*value),
            ScalarValue::Text => Document::String(text.clone()),
            // Numbers that JSON has not, such as infinity, have no digits to show.
            _ => match node.to_json("", &mut Vec::new()) {
                Value::Number(number) => Document::Number(number.to_string()),
                _ => Document::String(text.clone()),
            },
        },
        Content::Sequence(items) => Document::Array(items.iter().map(to_document).collect()),
        Content::Mapping(entries) => {
            let members = entries
                .iter()
                .map(|e| (e.key.clone(), to_document(&e.value)));
            Document::Object(members.collect())
        }
    }
}
