//! Trees to JSON values, for objects that are decoded by their API types, and back.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use crate::problem::{Position, Problem};

use super::{Content, Entry, Node, ScalarValue, child_path, item_path};

impl Node {
    /// The tree of a JSON value, all of which stands at the position.
    pub fn from_json(value: &Value, position: Position) -> Node {
        let nested = |value: &Value| Node::from_json(value, position);
        let content = match value {
            Value::Array(items) => Content::Sequence(items.iter().map(nested).collect()),
            Value::Object(members) => {
                let entry = |(key, value): (&String, &Value)| Entry {
                    key: key.clone(),
                    key_position: position,
                    value: nested(value),
                };
                Content::Mapping(members.iter().map(entry).collect())
            }
            Value::String(text) => return Node::text(text, position),
            Value::Null => return Node::scalar("null", ScalarValue::Null, position),
            Value::Bool(truth) => {
                return Node::scalar(truth.to_string(), ScalarValue::Bool(*truth), position);
            }
            Value::Number(number) => {
                let meaning = match (number.as_i64(), number.as_u64()) {
                    (Some(signed), _) => ScalarValue::Int(signed),
                    (None, Some(unsigned)) => ScalarValue::Unsigned(unsigned),
                    (None, None) => ScalarValue::Float(number.as_f64().unwrap_or(f64::NAN)),
                };
                return Node::scalar(number.to_string(), meaning, position);
            }
        };
        Node { position, content }
    }

    /// The JSON value. Keys that stand twice and numbers that JSON has not are problems; of two
    /// equal keys the last one counts, as it does upstream where duplicates are accepted.
    pub fn to_json(&self, path: &str, problems: &mut Vec<Problem>) -> Value {
        match &self.content {
            Content::Scalar { text, value } => match scalar_to_json(text, *value) {
                Some(value) => value,
                None => {
                    let detail = "JSON has no such number";
                    let problem = Problem::invalid_bare(path, text, detail);
                    problems.push(problem.at(Some(self.position)));
                    Value::Null
                }
            },
            Content::Sequence(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| item.to_json(&item_path(path, index), problems))
                .collect(),
            Content::Mapping(entries) => {
                self.report_duplicate_keys(path, problems);
                let mut object = Map::new();
                for entry in entries {
                    let path = child_path(path, &entry.key);
                    let value = entry.value.to_json(&path, problems);
                    object.insert(entry.key.clone(), value);
                }
                Value::Object(object)
            }
        }
    }

    /// Reports each key of a mapping that stands twice, at its second place. Does not descend.
    pub fn report_duplicate_keys(&self, path: &str, problems: &mut Vec<Problem>) {
        let mut first_lines = BTreeMap::new();
        for entry in self.as_mapping().unwrap_or_default() {
            match first_lines.get(&entry.key) {
                None => {
                    first_lines.insert(&entry.key, entry.key_position.line);
                }
                Some(line) => {
                    let mut problem = Problem::duplicate(child_path(path, &entry.key), &entry.key);
                    problem.detail = format!("the key is already set in line {line}");
                    problems.push(problem.at(Some(entry.key_position)));
                }
            }
        }
    }
}

fn scalar_to_json(text: &str, value: ScalarValue) -> Option<Value> {
    Some(match value {
        ScalarValue::Null => Value::Null,
        ScalarValue::Bool(value) => Value::Bool(value),
        ScalarValue::Int(number) => number.into(),
        ScalarValue::Unsigned(number) => number.into(),
        ScalarValue::Float(number) => match value.as_integer() {
            Some(whole) => whole.into(),
            None => Value::Number(Number::from_f64(number)?),
        },
        ScalarValue::Text => text.into(),
    })
}
