//! Strategic merge patches: merge patches that know which lists are merged, and by which key.
//!
//! Matches v1.36 apimachinery/pkg/util/strategicpatch. A patch may carry directives: `$patch`
//! (`delete`, `replace`) in an object or list item, `$retainKeys`,
//! `$deleteFromPrimitiveList/<list>` and `$setElementOrder/<list>`.
//!
//! Reading order: `map` (objects), `list` (lists), `order` (where each item of a merged list goes),
//! `lookup` (fields in the table).

mod list;
mod lookup;
mod map;
mod order;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::machinery::go::print;
use crate::machinery::schema::StructId;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";

/// Why a patch cannot be merged. Upstream responds differently by variant.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StrategicError {
    /// `$deleteFromPrimitiveList` without the list's name.
    #[error("invalid patch format of primitive list")]
    PrimitiveList,
    /// `$retainKeys` is not a list or leaves out a key that the patch sets.
    #[error("invalid patch format of retainKeys")]
    RetainKeys,
    /// `$setElementOrder` without the list's name.
    #[error("invalid patch format of setElementOrder list")]
    SetElementOrder,
    /// A list to be merged holds lists.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// An error without a name in upstream.
    #[error("{0}")]
    Other(String),
}

impl StrategicError {
    fn no_merge_key(item: &Map<String, Value>, key: &str) -> StrategicError {
        let item = print::sprint(&Value::Object(item.clone()));
        StrategicError::Other(format!(
            "map: {item} does not contain declared merge key: {key}"
        ))
    }

    fn wrong_type(expected: &str, actual: &Value) -> StrategicError {
        let actual = print::type_of(actual);
        StrategicError::Other(format!("expected a {expected}, but received a {actual}"))
    }

    fn unknown_directive(directive: &Value, patch: &Map<String, Value>) -> StrategicError {
        let directive = match directive {
            Value::String(text) => text.clone(),
            // Go's %s of something other than a string.
            other => format!("%!s({}={})", print::type_of(other), print::sprint(other)),
        };
        let patch = print::sprint(&Value::Object(patch.clone()));
        StrategicError::Other(format!("unknown patch type: {directive} in map: {patch}"))
    }
}

/// Merges `patch` into `original`, both objects of the struct `kind`.
pub fn strategic_merge_patch(
    kind: StructId,
    original: Map<String, Value>,
    patch: Map<String, Value>,
) -> Result<Map<String, Value>, StrategicError> {
    map::merge(original, patch, lookup::Place::of_struct(kind))
}

/// The type Go's reflection gives a decoded object.
const MAP_TYPE: &str = "map[string]interface {}";
/// The same for a list.
const LIST_TYPE: &str = "[]interface {}";

/// Removes values with a `$patch`; `None` if that is the value itself.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => Some(Value::Object(
            map.into_iter()
                .filter_map(|(key, item)| Some((key, without_directives(item)?)))
                .collect(),
        )),
        Value::Array(items) => Some(Value::Array(
            items.into_iter().filter_map(without_directives).collect(),
        )),
        scalar => Some(scalar),
    }
}

/// Removes null members of all objects within.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, item| !item.is_null());
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}
