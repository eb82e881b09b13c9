//! YAML and JSON texts as trees that remember where everything stands.
//!
//! A tree keeps the order of mapping entries and duplicate keys, because reports show the order and
//! name the duplicates. Values have the types that `sigs.k8s.io/yaml` gives them. Parsing is
//! bounded in size, depth and alias expansion, so any input is safe.
//!
//! Reading order: this file (the tree), `scalar` (types), `parse` (text to tree), `place` (paths to
//! places), `json` and `render` (tree to JSON and to text).

mod json;
mod parse;
mod place;
mod render;
mod scalar;

pub use parse::{MAX_BYTES, MAX_COPIED_NODES, MAX_DEPTH, Parsed, parse};
pub use place::Place;
pub use scalar::ScalarValue;

use crate::problem::Position;

/// One value of a document, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it begins.
    pub position: Position,
    /// Its content.
    pub content: Content,
}

/// The content of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A single value.
    Scalar {
        /// The text, unquoted and unescaped.
        text: String,
        /// The type it has.
        value: ScalarValue,
    },
    /// A list.
    Sequence(Vec<Node>),
    /// Keys and values, in order. A key may stand twice.
    Mapping(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key as a text.
    pub key: String,
    /// Where the key stands.
    pub key_position: Position,
    /// The value.
    pub value: Node,
}

impl Node {
    /// A text that stands at the position.
    pub fn text(text: impl Into<String>, position: Position) -> Node {
        Node::scalar(text, ScalarValue::Text, position)
    }

    /// A scalar that stands at the position.
    pub fn scalar(text: impl Into<String>, value: ScalarValue, position: Position) -> Node {
        let text = text.into();
        Node {
            position,
            content: Content::Scalar { text, value },
        }
    }

    /// The entries, if it is a mapping.
    pub fn as_mapping(&self) -> Option<&[Entry]> {
        match &self.content {
            Content::Mapping(entries) => Some(entries),
            _ => None,
        }
    }

    /// The items, if it is a list.
    pub fn as_sequence(&self) -> Option<&[Node]> {
        match &self.content {
            Content::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The text, if it is a text; numbers and booleans are none.
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar {
                text,
                value: ScalarValue::Text,
            } => Some(text),
            _ => None,
        }
    }

    /// The meaning, if it is a scalar.
    pub fn as_scalar(&self) -> Option<ScalarValue> {
        match &self.content {
            Content::Scalar { value, .. } => Some(*value),
            _ => None,
        }
    }

    /// Whether nothing is there.
    pub fn is_null(&self) -> bool {
        self.as_scalar() == Some(ScalarValue::Null)
    }

    /// The first value under the key, if it is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let entries = self.as_mapping()?;
        let entry = entries.iter().find(|entry| entry.key == key)?;
        Some(&entry.value)
    }

    /// Where the value at a path stands, or the nearest thing around it that exists.
    pub fn position_of(&self, path: &str) -> Position {
        self.locate(path).position()
    }

    /// The text of a scalar, whatever its type.
    pub fn scalar_text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// A description for messages: `a list`, `the number 5`.
    pub fn describe(&self) -> String {
        match &self.content {
            Content::Mapping(_) => "a mapping".to_owned(),
            Content::Sequence(_) => "a list".to_owned(),
            Content::Scalar { text, value } => match value {
                ScalarValue::Null => "null".to_owned(),
                ScalarValue::Bool(value) => format!("the boolean {value}"),
                ScalarValue::Text => format!("the text {text:?}"),
                _ => format!("the number {text}"),
            },
        }
    }
}

/// The path of a key below a path: `memorySwap.swapBehavior`, `evictionHard[memory.available]`.
pub fn child_path(parent: &str, key: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if key.is_empty() || !key.bytes().all(is_plain) {
        format!("{parent}[{key}]")
    } else if parent.is_empty() {
        key.to_owned()
    } else {
        format!("{parent}.{key}")
    }
}

/// The path of a list item below a path.
pub fn item_path(parent: &str, index: usize) -> String {
    format!("{parent}[{index}]")
}

#[cfg(test)]
mod tests;
