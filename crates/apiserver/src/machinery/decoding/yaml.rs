//! A YAML parser.

use std::collections::BTreeSet;

use plimsoll_core::config::document::{self, Content, Node, ScalarValue};
use plimsoll_core::problem::quoted;
use serde_json::{Map, Value};

use super::Configuration;
use super::document::Document;
use super::json::TOO_DEEP;
use super::typed::untyped;
use crate::bounds::MAX_DEPTH;
use crate::machinery::patch::request::json_word;

/// Parses the first document of a text; an empty text is null.
pub(super) fn parse(body: &[u8]) -> Result<Document<'static>, String> {
    let parsed = document::parse(body);
    match (parsed.documents.first(), parsed.problems.first()) {
        (None, Some(problem)) => Err(format!("error converting YAML to JSON: {problem}")),
        (None, None) => Ok(Document::Null),
        (Some(node), _) => to_bounded_document(node),
    }
}

/// A tree that is no deeper than objects may be.
pub(super) fn to_bounded_document(node: &Node) -> Result<Document<'static>, String> {
    within_depth(node).map(|()| to_document(node))
}

/// Reads a text as JSON without a type, as `sigs.k8s.io/yaml` does.
pub(super) fn read_configuration(body: &[u8]) -> Result<Configuration, String> {
    let parsed = document::parse(body);
    let mut duplicates = Vec::new();
    let value = match (parsed.documents.first(), parsed.problems.first()) {
        (None, Some(problem)) => return Err(format!("error converting YAML to JSON: {problem}")),
        (None, None) => Value::Null,
        (Some(node), _) => {
            within_depth(node)?;
            find_duplicates(node, &mut duplicates);
            untyped(&to_document(node))
        }
    };
    match value {
        Value::Object(_) => Ok(Configuration { value, duplicates }),
        Value::Null => Ok(Configuration {
            value: Value::Object(Map::new()),
            duplicates,
        }),
        other => {
            let found = json_word(&other);
            Err(format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into \
                 Go value of type map[string]interface {{}}"
            ))
        }
    }
}

/// The tree has fewer levels than the YAML parser accepts, which is for configurations too.
fn within_depth(node: &Node) -> Result<(), String> {
    fn fits(node: &Node, levels: usize) -> bool {
        let below = levels.checked_sub(1);
        match &node.content {
            Content::Scalar { .. } => true,
            Content::Sequence(items) => {
                below.is_some_and(|below| items.iter().all(|item| fits(item, below)))
            }
            Content::Mapping(entries) => {
                below.is_some_and(|below| entries.iter().all(|entry| fits(&entry.value, below)))
            }
        }
    }
    match fits(node, MAX_DEPTH) {
        true => Ok(()),
        false => Err(format!("error converting YAML to JSON: {TOO_DEEP}")),
    }
}

fn find_duplicates(node: &Node, found: &mut Vec<String>) {
    for item in node.as_sequence().unwrap_or_default() {
        find_duplicates(item, found);
    }
    let mut keys = BTreeSet::new();
    for entry in node.as_mapping().unwrap_or_default() {
        if !keys.insert(entry.key.as_str()) {
            let (line, key) = (entry.key_position.line, quoted(&entry.key));
            found.push(format!("line {line}: key {key} already set in map"));
        }
        find_duplicates(&entry.value, found);
    }
}

fn to_document(node: &Node) -> Document<'static> {
    match &node.content {
        Content::Scalar { text, value } => match value {
            ScalarValue::Null => Document::Null,
            ScalarValue::Bool(value) => Document::Bool(*value),
            ScalarValue::Text => Document::String(text.clone().into()),
            // Numbers that JSON does not have, such as infinity, have no digits to show.
            _ => match node.to_json("", &mut Vec::new()) {
                Value::Number(number) => Document::Number(number.to_string().into()),
                _ => Document::String(text.clone().into()),
            },
        },
        Content::Sequence(items) => Document::Array(items.iter().map(to_document).collect()),
        Content::Mapping(entries) => {
            let members = entries
                .iter()
                .map(|e| (e.key.clone().into(), to_document(&e.value)));
            Document::Object(members.collect())
        }
    }
}
