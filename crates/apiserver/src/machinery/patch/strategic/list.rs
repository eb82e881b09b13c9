//! Merging lists.

use serde_json::{Map, Value};

use super::lookup::{Found, Place};
use super::map::is_same_type;
use super::{DIRECTIVE, StrategicError, map, order};
use crate::machinery::go::print;

/// `$deleteFromPrimitiveList`: the items of `current` that are not in `gone`.
pub(super) fn delete_scalars(
    current: &[Value],
    gone: &[Value],
    found: Found,
) -> Result<Vec<Value>, StrategicError> {
    if current.is_empty() && gone.is_empty() {
        return Ok(Vec::new());
    }
    if element_type(current, gone)?.is_object() {
        // Lists of objects are merged even so; the directive is for scalars.
        return merge(&mut current.to_vec(), gone.to_vec(), found);
    }
    Ok(current
        .iter()
        .filter(|item| !gone.contains(item))
        .cloned()
        .collect())
}

/// Merges `patch` into `original`.
///
/// `original` is left as Go leaves the array behind it: the items after one that `$patch: delete`
/// removes are shifted over it, and new items are put into the places this frees.
/// `$setElementOrder` uses that array afterwards, so its result depends on it.
pub(super) fn merge(
    original: &mut [Value],
    patch: Vec<Value>,
    found: Found,
) -> Result<Vec<Value>, StrategicError> {
    if original.is_empty() && patch.is_empty() {
        return Ok(Vec::new());
    }
    let holds_objects = element_type(original, &patch)?.is_object();
    let key = found.patch.merge_key;
    if !holds_objects {
        let merged = deduplicate(original.iter().chain(&patch).cloned().collect());
        let (patched, others) = if key.is_empty() {
            order::partition_scalars(merged, &patch)
        } else {
            order::partition_objects(merged, &patch, key)?
        };
        return order::arrange(patched, others, &patch, original, key, false);
    }
    if key.is_empty() {
        return Err(StrategicError::Other(format!(
            "cannot merge lists without merge key for {}",
            found.place.go_kind()
        )));
    }
    let patch = split_directives(patch, key)?;
    if patch.replaces {
        // The patch's plain items are the result; there is nothing to merge into them.
        let items = patch.items;
        let (patched, others) = order::partition_objects(items.clone(), &[], key)?;
        return order::arrange(patched, others, &[], &items, key, true);
    }
    let mut live = original.len();
    for value in &patch.deletions {
        delete_matching(original, &mut live, key, value)?;
    }
    let rest: Vec<Value> = original[..live].to_vec();
    let merged = merge_objects(original, live, patch.items.clone(), key, found.place)?;
    let (patched, others) = order::partition_objects(merged, &patch.items, key)?;
    order::arrange(patched, others, &patch.items, &rest, key, true)
}

/// A patch list with its directives parsed.
struct Split {
    /// Items without directives.
    items: Vec<Value>,
    /// Merge key values to delete.
    deletions: Vec<Value>,
    replaces: bool,
}

fn split_directives(patch: Vec<Value>, key: &str) -> Result<Split, StrategicError> {
    let mut split = Split {
        items: Vec::new(),
        deletions: Vec::new(),
        replaces: false,
    };
    for item in patch {
        let Some(directive) = item.get(DIRECTIVE) else {
            split.items.push(item);
            continue;
        };
        let map = as_object(&item);
        match directive.as_str() {
            Some("delete") => {
                let value = map
                    .get(key)
                    .ok_or_else(|| StrategicError::no_merge_key(map, key))?;
                split.deletions.push(value.clone());
            }
            Some("replace") => split.replaces = true,
            Some("merge") => {
                return Err(StrategicError::Other(
                    "merging lists cannot yet be specified in the patch".to_owned(),
                ));
            }
            _ => return Err(StrategicError::unknown_directive(directive, map)),
        }
    }
    Ok(split)
}

/// `element_type` has verified that all items are objects.
fn as_object(item: &Value) -> &Map<String, Value> {
    item.as_object()
        .expect("all items are of one type, objects")
}

/// Shifts the items behind a deleted one over it, within the first `live` of the array.
fn delete_matching(
    array: &mut [Value],
    live: &mut usize,
    key: &str,
    value: &Value,
) -> Result<(), StrategicError> {
    while let Some(at) = find(&array[..*live], key, value)? {
        for index in at..*live - 1 {
            array[index] = array[index + 1].clone();
        }
        *live -= 1;
    }
    Ok(())
}

/// Merges each item into the one with the same key, or appends it.
fn merge_objects(
    array: &mut [Value],
    live: usize,
    patch: Vec<Value>,
    key: &str,
    place: Place<'static>,
) -> Result<Vec<Value>, StrategicError> {
    let mut merged: Vec<Value> = array[..live].to_vec();
    for item in patch {
        let value = as_object(&item)
            .get(key)
            .ok_or_else(|| StrategicError::no_merge_key(as_object(&item), key))?;
        match find(&merged, key, value)? {
            Some(at) => {
                let (Value::Object(current), Value::Object(change)) = (merged[at].take(), item)
                else {
                    unreachable!("all items are objects");
                };
                merged[at] = Value::Object(map::merge(current, change, place)?);
            }
            None => {
                if let Some(freed) = array.get_mut(merged.len()) {
                    *freed = item.clone();
                }
                merged.push(item);
            }
        }
    }
    Ok(merged)
}

/// The first object whose `key` equals `value`.
pub(super) fn find(
    items: &[Value],
    key: &str,
    value: &Value,
) -> Result<Option<usize>, StrategicError> {
    for (index, item) in items.iter().enumerate() {
        let Value::Object(map) = item else {
            return Err(StrategicError::Other(format!(
                "value for key {index} is not a map"
            )));
        };
        if map.get(key) == Some(value) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// One item of the lists, all of whose items must be of its type.
pub(super) fn element_type<'a>(
    left: &'a [Value],
    right: &'a [Value],
) -> Result<&'a Value, StrategicError> {
    let mut items = left.iter().chain(right);
    let Some(first) = items.next() else {
        return Err(StrategicError::Other(
            "no elements in any of the given slices".to_owned(),
        ));
    };
    if first.is_array() {
        return Err(StrategicError::ListOfLists);
    }
    if items.all(|item| is_same_type(first, item)) {
        return Ok(first);
    }
    let both = Value::Array(vec![left.to_vec().into(), right.to_vec().into()]);
    Err(StrategicError::Other(format!(
        "list element types are not identical: {}",
        print::sprint(&both)
    )))
}

/// Removes duplicates. The last item moves into the gap, which the later ordering corrects.
fn deduplicate(mut items: Vec<Value>) -> Vec<Value> {
    let mut index = 0;
    while index < items.len() {
        let mut other = index + 1;
        while other < items.len() {
            if items[index] == items[other] {
                items.swap_remove(other);
            } else {
                other += 1;
            }
        }
        index += 1;
    }
    items
}
