//! Merging objects.

use serde_json::{Map, Value};

use super::lookup::Place;
use super::{
    DELETE_FROM_LIST, DIRECTIVE, RETAIN_KEYS, SET_ELEMENT_ORDER, StrategicError, list, order,
    without_directives, without_nulls,
};

type Object = Map<String, Value>;

/// Merges `patch` into `original`.
pub(super) fn merge(
    mut original: Object,
    mut patch: Object,
    place: Place<'static>,
) -> Result<Object, StrategicError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(StrategicError::unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    order::merge_ordered_lists(&mut original, &mut patch, place)?;
    for (key, value) in patch {
        merge_member(&mut original, key, value, place)?;
    }
    Ok(original)
}

fn merge_member(
    original: &mut Object,
    mut key: String,
    mut value: Value,
    place: Place<'static>,
) -> Result<(), StrategicError> {
    let is_deletion = key.starts_with(DELETE_FROM_LIST);
    if is_deletion {
        let name = list_name(&key, DELETE_FROM_LIST).ok_or(StrategicError::PrimitiveList)?;
        if !name.is_empty() {
            key = name.to_owned();
        }
    }
    if value.is_null() {
        original.remove(&key);
        return Ok(());
    }
    let current = original.get_mut(&key).map(Value::take);
    let merged = match (current, value) {
        (Some(Value::Object(current)), Value::Object(change)) => {
            let found = place.object_field(&key)?;
            Some(Value::Object(if found.patch.strategy == "replace" {
                change
            } else {
                merge(current, change, found.place)?
            }))
        }
        (Some(Value::Array(mut current)), Value::Array(change)) => {
            let found = place.list_field(&key)?;
            Some(Value::Array(if is_deletion {
                list::delete_scalars(&current, &change, found)?
            } else if found.patch.strategy == "merge" {
                list::merge(&mut current, change, found)?
            } else {
                change
            }))
        }
        (current, _) if is_deletion => current,
        (current, change) => {
            value = change;
            // Where both are scalars of one type Go leaves nulls, but scalars hold none.
            if current.is_none_or(|current| !is_same_type(&current, &value)) {
                without_nulls(&mut value);
            }
            without_directives(value)
        }
    };
    match merged {
        Some(merged) => original.insert(key, merged),
        None => original.remove(&key),
    };
    Ok(())
}

/// Whether Go holds both in the same type.
pub(super) fn is_same_type(left: &Value, right: &Value) -> bool {
    use crate::machinery::go::print::type_of;
    type_of(left) == type_of(right)
}

/// `$setElementOrder/containers` -> `containers`.
pub(super) fn list_name<'a>(key: &'a str, directive: &str) -> Option<&'a str> {
    let (prefix, name) = key.split_once('/')?;
    (prefix == directive).then_some(name)
}

/// `$retainKeys`: only the listed members stay, and the patch may set no other.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), StrategicError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let Value::Array(keys) = keys else {
        return Err(StrategicError::RetainKeys);
    };
    let is_kept = |key: &str| keys.iter().any(|kept| kept.as_str() == Some(key));
    let is_bad = |(key, value): (&String, &Value)| {
        !value.is_null()
            && !key.starts_with(DELETE_FROM_LIST)
            && !key.starts_with(SET_ELEMENT_ORDER)
            && !is_kept(key)
    };
    if patch.iter().any(is_bad) {
        return Err(StrategicError::RetainKeys);
    }
    original.retain(|key, _| is_kept(key));
    Ok(())
}
