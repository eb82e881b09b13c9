//! The order of items in a merged list.
//!
//! Items that the patch (or `$setElementOrder`) names keep that order; items that only the server
//! has keep theirs. The server's are put between the patch's by the order of the live list: each
//! before the first of the patch's that comes after it in the live list.

use serde_json::{Map, Value};

use super::lookup::Place;
use super::map::list_name;
use super::{
    DIRECTIVE, LIST_TYPE, MAP_TYPE, SET_ELEMENT_ORDER, StrategicError, list, without_directives,
};
use crate::machinery::go::print;

type Object = Map<String, Value>;
type Items = Vec<Value>;

/// Merges the lists that have a `$setElementOrder` and removes the directives from the patch.
pub(super) fn merge_ordered_lists(
    original: &mut Object,
    patch: &mut Object,
    place: Place<'static>,
) -> Result<(), StrategicError> {
    let directives: Vec<String> = patch
        .keys()
        .filter(|key| key.starts_with(SET_ELEMENT_ORDER))
        .cloned()
        .collect();
    for directive in directives {
        let order = expect_list(patch.remove(&directive).unwrap_or_default())?;
        let name = list_name(&directive, SET_ELEMENT_ORDER)
            .ok_or(StrategicError::SetElementOrder)?
            .to_owned();
        let current = original.get(&name).cloned().map(expect_list).transpose()?;
        let change = patch.get(&name).cloned().map(expect_list).transpose()?;
        if let Some(merged) = merge_ordered(&name, current, change, &order, place)? {
            original.insert(name.clone(), Value::Array(merged));
            patch.remove(&name);
        }
    }
    Ok(())
}

fn expect_list(value: Value) -> Result<Items, StrategicError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(StrategicError::wrong_type(LIST_TYPE, &other)),
    }
}

fn merge_ordered(
    name: &str,
    current: Option<Items>,
    change: Option<Items>,
    order: &[Value],
    place: Place<'static>,
) -> Result<Option<Items>, StrategicError> {
    let found = place.list_field(name)?;
    let key = found.patch.merge_key;
    check_order(change.as_deref().unwrap_or_default(), order, key)?;
    let mut live = current.clone().unwrap_or_default();
    let merged = match (current, &change) {
        (None, None) => return Ok(None),
        (Some(current), None) => current,
        (None, Some(change)) => match without_directives(Value::Array(change.clone())) {
            Some(Value::Array(items)) => items,
            _ => return Ok(None),
        },
        (Some(_), Some(change)) if found.patch.strategy == "merge" => {
            list::merge(&mut live, change.clone(), found)?
        }
        (Some(_), Some(change)) => change.clone(),
    };
    let (named, others) = if key.is_empty() {
        partition_scalars(merged, order)
    } else {
        partition_objects(merged, order, key)?
    };
    let holds_objects =
        list::element_type(&live, change.as_deref().unwrap_or_default())?.is_object();
    arrange(named, others, order, &live, key, holds_objects).map(Some)
}

/// The patch's items must be in the order list, in its order.
fn check_order(patch: &[Value], order: &[Value], key: &str) -> Result<(), StrategicError> {
    if order.is_empty() || patch.is_empty() {
        return Ok(());
    }
    let mut kept = Vec::with_capacity(patch.len());
    for item in patch {
        match item {
            _ if key.is_empty() => kept.push(item),
            Value::Object(map) if map.get(DIRECTIVE).and_then(Value::as_str) == Some("delete") => {}
            Value::Object(_) => kept.push(item),
            other => return Err(StrategicError::wrong_type(MAP_TYPE, other)),
        }
    }
    let (mut at, mut next) = (0, 0);
    while at < kept.len() && next < order.len() {
        if kept[at].get(DIRECTIVE).is_some() {
            at += 1;
            continue;
        }
        if has_same_key(kept[at], &order[next], key)? {
            at += 1;
        }
        next += 1;
    }
    if at < kept.len() && next >= order.len() {
        return Err(StrategicError::Other(format!(
            "The order in patch list:\n{}\n doesn't match {SET_ELEMENT_ORDER} list:\n{}\n",
            print::sprint(&patch.into()),
            print::sprint(&order.into()),
        )));
    }
    Ok(())
}

fn has_same_key(left: &Value, right: &Value, key: &str) -> Result<bool, StrategicError> {
    if key.is_empty() {
        return Ok(left == right);
    }
    Ok(merge_key_of(left, key)? == merge_key_of(right, key)?)
}

fn merge_key_of<'a>(item: &'a Value, key: &str) -> Result<&'a Value, StrategicError> {
    match item {
        Value::Object(map) => map
            .get(key)
            .ok_or_else(|| StrategicError::no_merge_key(map, key)),
        other => Err(StrategicError::wrong_type(MAP_TYPE, other)),
    }
}

/// Splits into values that `by` contains and others.
pub(super) fn partition_scalars(items: Items, by: &[Value]) -> (Items, Items) {
    items.into_iter().partition(|item| by.contains(item))
}

/// The same for objects that `key` identifies.
pub(super) fn partition_objects(
    items: Items,
    by: &[Value],
    key: &str,
) -> Result<(Items, Items), StrategicError> {
    let mut named = Vec::new();
    let mut others = Vec::new();
    for item in items {
        let value = merge_key_of(&item, key)?;
        if list::find(by, key, value)?.is_some() {
            named.push(item);
        } else {
            others.push(item);
        }
    }
    Ok((named, others))
}

/// Sorts `named` by `order` and `others` by `live`, and merges the two.
pub(super) fn arrange(
    named: Items,
    others: Items,
    order: &[Value],
    live: &[Value],
    key: &str,
    holds_objects: bool,
) -> Result<Items, StrategicError> {
    let named = sort_by_order(named, order, key, holds_objects)?;
    let others = sort_by_order(others, live, key, holds_objects)?;
    let is_before = |left: &Value, right: &Value| {
        let left = position(live, left, key, holds_objects);
        let right = position(live, right, key, holds_objects);
        matches!((left, right), (Some(left), Some(right)) if left < right)
    };
    let mut out = Vec::with_capacity(named.len() + others.len());
    let mut named = named.into_iter().peekable();
    for other in others {
        while let Some(next) = named.next_if(|next| !is_before(&other, next)) {
            out.push(next);
        }
        out.push(other);
    }
    out.extend(named);
    Ok(out)
}

/// Items with `$patch: delete` go last. Items that the order does not name go first, as in Go,
/// whose comparison says "less" for those.
fn sort_by_order(
    items: Items,
    order: &[Value],
    key: &str,
    holds_objects: bool,
) -> Result<Items, StrategicError> {
    if !holds_objects {
        return Ok(insertion_sort(items, order, key, false));
    }
    for item in items.iter().chain(order) {
        merge_key_of(item, key)?;
    }
    let (gone, kept): (Items, Items) = items
        .into_iter()
        .partition(|item| item.get(DIRECTIVE).and_then(Value::as_str) == Some("delete"));
    let mut sorted = insertion_sort(kept, order, key, true);
    sorted.extend(gone);
    Ok(sorted)
}

/// Stable, and equal to Go's for the contradictory comparison above on lists of up to 20 items.
fn insertion_sort(items: Items, order: &[Value], key: &str, holds_objects: bool) -> Items {
    let mut ranked: Vec<(Option<usize>, Value)> = items
        .into_iter()
        .map(|item| (position(order, &item, key, holds_objects), item))
        .collect();
    if ranked.iter().all(|(rank, _)| rank.is_some()) {
        ranked.sort_by_key(|(rank, _)| *rank);
    } else {
        for end in 1..ranked.len() {
            let mut at = end;
            while at > 0 && is_less(ranked[at].0, ranked[at - 1].0) {
                ranked.swap(at, at - 1);
                at -= 1;
            }
        }
    }
    ranked.into_iter().map(|(_, item)| item).collect()
}

fn is_less(left: Option<usize>, right: Option<usize>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => left < right,
        _ => true,
    }
}

fn position(items: &[Value], wanted: &Value, key: &str, holds_objects: bool) -> Option<usize> {
    if !holds_objects {
        return items.iter().position(|item| item == wanted);
    }
    let wanted = wanted.get(key);
    items.iter().position(|item| item.get(key) == wanted)
}
