//! Bodies in JSON, and the members that stand twice in them.

use std::fmt;

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use thiserror::Error;

use super::go::syntax::syntax_error;

/// Upstream stops counting here.
const MOST_DUPLICATES: usize = 100;

/// A body as read.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The content; of members that stand twice, the last.
    pub value: Value,
    /// The paths of members that stand twice, such as `spec.containers[0].name`.
    pub duplicates: Vec<String>,
}

/// A body that is no JSON, in the words of Go's decoder.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SyntaxError(String);

/// Reads a body. Nesting beyond 127 levels is refused.
pub fn parse(body: &[u8]) -> Result<Document, SyntaxError> {
    let mut reader = Reader {
        path: String::new(),
        duplicates: Vec::new(),
    };
    let mut source = serde_json::Deserializer::from_slice(body);
    let value = (&mut reader)
        .deserialize(&mut source)
        .and_then(|value| source.end().map(|()| value))
        // What Go takes and serde does not: halves of surrogate pairs, bytes that are no UTF-8.
        .map_err(|error| SyntaxError(syntax_error(body).unwrap_or_else(|| error.to_string())))?;
    Ok(Document {
        value,
        duplicates: reader.duplicates,
    })
}

struct Reader {
    path: String,
    duplicates: Vec<String>,
}

impl<'de> DeserializeSeed<'de> for &mut Reader {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        let length = self.path.len();
        loop {
            self.path.push_str(&format!("[{}]", out.len()));
            let item = items.next_element_seed(&mut *self)?;
            self.path.truncate(length);
            match item {
                Some(item) => out.push(item),
                None => return Ok(Value::Array(out)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        let length = self.path.len();
        while let Some(key) = members.next_key::<String>()? {
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            let is_new_duplicate = out.contains_key(&key)
                && self.duplicates.len() < MOST_DUPLICATES
                && !self.duplicates.contains(&self.path);
            if is_new_duplicate {
                self.duplicates.push(self.path.clone());
            }
            let value = members.next_value_seed(&mut *self)?;
            self.path.truncate(length);
            out.insert(key, value);
        }
        Ok(Value::Object(out))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_that_stand_twice_are_named() {
        let document = parse(br#"{"a":[{"b":1,"b":2}],"c":1,"c":{}}"#).unwrap();
        assert_eq!(document.value, json!({"a": [{"b": 2}], "c": {}}));
        assert_eq!(document.duplicates, ["a[0].b", "c"]);
    }

    #[test]
    fn what_is_no_json_is_told_in_go_s_words() {
        assert_eq!(
            parse(b"{a}").unwrap_err().to_string(),
            "invalid character 'a' looking for beginning of object key string"
        );
    }
}
