//! Encoding and decoding `metadata.managedFields`.
//!
//! Matches v1.36 apimachinery/pkg/util/managedfields/internal/managedfields.go.

use std::collections::BTreeMap;

use plimsoll_core::problem::quoted;
use serde_json::{Map, Value, json};

use super::set::FieldSet;
use crate::machinery::go::print;

/// A manager: its name, and the operation.
///
/// The same name applying, updating, and writing through a subresource are three managers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manager {
    pub(super) name: String,
    pub(super) operation: Operation,
    /// The version of an update. Appliers have one entry, whatever version they use.
    pub(super) api_version: String,
    pub(super) subresource: String,
}

/// The two operations; appliers sort first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

impl Manager {
    /// The identifier that upstream sorts managers by: an entry's JSON without fields and time.
    pub(super) fn identifier(&self) -> String {
        let mut out = String::from("{");
        let members = [
            ("manager", self.name.as_str()),
            ("operation", self.operation.as_str()),
            ("apiVersion", self.api_version.as_str()),
            ("subresource", self.subresource.as_str()),
        ];
        for (key, value) in members {
            if value.is_empty() {
                continue;
            }
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&format!("\"{key}\":{}", print::json(&Value::from(value))));
        }
        out.push('}');
        out
    }

    /// The manager in messages: `"hpa" with subresource "status" using apps/v1`.
    pub(super) fn describe(&self) -> String {
        let mut out = quoted(&self.name);
        if !self.subresource.is_empty() {
            out.push_str(&format!(" with subresource {}", quoted(&self.subresource)));
        }
        if self.operation == Operation::Update {
            out.push_str(&format!(" using {}", self.api_version));
        }
        out
    }
}

/// The fields that one manager owns.
#[derive(Clone, Debug)]
pub(super) struct Owned {
    pub(super) manager: Manager,
    pub(super) set: FieldSet,
    /// The version the fields belong to.
    pub(super) api_version: String,
    /// RFC 3339; managers that changed nothing have none.
    pub(super) time: Option<String>,
}

/// All managers of an object, by identifier.
#[derive(Clone, Debug, Default)]
pub(super) struct Managers(pub(super) BTreeMap<String, Owned>);

impl Managers {
    /// Decodes `metadata.managedFields`.
    pub(super) fn decode(entries: &[Value]) -> Result<Managers, String> {
        let mut managers = Managers::default();
        for (index, entry) in entries.iter().enumerate() {
            let owned = decode_entry(index, entry)?;
            managers.0.insert(owned.manager.identifier(), owned);
        }
        Ok(managers)
    }

    /// The entries, appliers first, then by time and name. `None` if there are none.
    pub(super) fn encode(self) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        let mut owned: Vec<Owned> = self.0.into_values().collect();
        owned.sort_by(|p, q| {
            let key = |owned: &Owned| {
                let manager = &owned.manager;
                (
                    manager.operation,
                    seconds(owned.time.as_deref()),
                    manager.name.clone(),
                )
            };
            key(p)
                .cmp(&key(q))
                .then_with(|| p.api_version.cmp(&q.api_version))
                .then_with(|| p.manager.subresource.cmp(&q.manager.subresource))
        });
        Some(owned.into_iter().map(encode_entry).collect())
    }

    pub(super) fn insert(&mut self, owned: Owned) {
        self.0.insert(owned.manager.identifier(), owned);
    }
}

fn decode_entry(index: usize, entry: &Value) -> Result<Owned, String> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => {
            return Err(format!(
                "missing fieldsType in managed fields entry {index}"
            ));
        }
        other => {
            let other = quoted(other);
            return Err(format!(
                "invalid fieldsType {other} in managed fields entry {index}"
            ));
        }
    }
    let set = match entry.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::default(),
        Some(fields) => FieldSet::from_fields_v1(fields)
            .map_err(|error| format!("error decoding versioned set: {error}"))?,
    };
    Ok(Owned {
        manager: Manager {
            name: text("manager").to_owned(),
            operation,
            api_version: match operation {
                Operation::Apply => String::new(),
                Operation::Update => api_version.to_owned(),
            },
            subresource: text("subresource").to_owned(),
        },
        set,
        api_version: api_version.to_owned(),
        time: entry.get("time").and_then(Value::as_str).map(str::to_owned),
    })
}

fn encode_entry(owned: Owned) -> Value {
    let fields = owned.set.to_fields_v1();
    encode_with(owned, fields)
}

/// An entry whose fields are FieldsV1 already.
pub(super) fn encode_with(owned: Owned, fields: Value) -> Value {
    let mut entry = Map::new();
    let mut put = |key: &str, value: String| {
        if !value.is_empty() {
            entry.insert(key.to_owned(), Value::String(value));
        }
    };
    put("manager", owned.manager.name);
    put("operation", owned.manager.operation.as_str().to_owned());
    put("apiVersion", owned.api_version);
    put("time", owned.time.unwrap_or_default());
    put("subresource", owned.manager.subresource);
    entry.insert("fieldsType".to_owned(), json!("FieldsV1"));
    entry.insert("fieldsV1".to_owned(), fields);
    Value::Object(entry)
}

/// Seconds since 1970; 0 where there is no time.
pub(super) fn seconds(time: Option<&str>) -> i64 {
    time.and_then(|text| text.parse::<k8s_openapi::jiff::Timestamp>().ok())
        .map_or(0, |time| time.as_second())
}
