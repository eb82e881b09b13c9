//! Trees as JSON values, for objects that are decoded by their API types.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use crate::problem::Problem;

use super::{Content, Node, ScalarValue, child_path, item_path};

impl Node {
    /// The JSON value. Keys that stand twice and numbers that JSON has not are problems; of two
    /// equal keys the last one counts, as it does upstream where duplicates are let through.
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
