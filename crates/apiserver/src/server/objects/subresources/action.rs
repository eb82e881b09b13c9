//! Bodies that request an action and are not stored.

use serde_json::Value;

use crate::kinds::GroupVersionKind;
use crate::machinery::decoding::decode;
use crate::machinery::write::FieldValidation;
use crate::pointer::at;
use crate::server::request::call::Call;
use crate::status::Status;

impl Call<'_> {
    /// Parses a body of that kind.
    pub(super) fn action(&self, bytes: &[u8], kind: GroupVersionKind) -> Result<Value, Status> {
        let decoded = decode(bytes, self.body_format()?, kind, FieldValidation::Ignore);
        let decoded = decoded.map_err(|error| Status::bad_request(error.to_string()))?;
        Ok(decoded.object)
    }
}

/// The text at a JSON pointer, or an empty one.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    let value = at(object, pointer).and_then(Value::as_str);
    value.unwrap_or_default()
}

/// A member of a stored object that is about to be changed, created if it is missing or has another
/// type.
pub(in crate::server) fn part<'a>(object: &'a mut Value, name: &str) -> &'a mut Value {
    let part = &mut object[name];
    if !part.is_object() {
        *part = Value::Object(serde_json::Map::new());
    }
    part
}

/// Sets one of a pod's conditions as upstream's `UpdatePodCondition`: the transition time changes
/// with the status.
pub(super) fn set_condition(conditions: &mut Value, now: &str, mut condition: Value) {
    if !conditions.is_array() {
        *conditions = Value::Array(Vec::new());
    }
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };
    condition["lastTransitionTime"] = now.into();
    let same = conditions
        .iter_mut()
        .find(|c| c["type"] == condition["type"]);
    match same {
        None => conditions.push(condition),
        Some(before) => {
            if before["status"] == condition["status"] {
                condition["lastTransitionTime"] = before["lastTransitionTime"].clone();
            }
            *before = condition;
        }
    }
}
