//! The fields of a new object, directly in the form that is stored.
//!
//! The creator of an object owns all of it, so there is nothing to compare and no other manager to
//! take fields from: one walk gives the same as a comparison with an empty object. Most objects are
//! written once and changed seldom; this is the cost of server-side apply for them.

use serde_json::{Map, Value};

use super::atom::Atom;
use super::path::{PathElement, is_equal};
use super::set::FieldSet;
use super::typed::{group, is_hollow, items_of, member_of};

/// The FieldsV1 of all members that `new` has and `empty` has not, except those that are `excluded`
/// or that cannot be owned.
///
/// `empty` is the zero object; `new` has been validated.
pub(super) fn fields_of_created(
    atom: Atom,
    empty: &Value,
    new: &Value,
    excluded: &FieldSet,
    never_owned: &FieldKeys,
) -> Map<String, Value> {
    let mut fields = fields_within(atom, Some(empty), new, Some(excluded));
    remove_fields(&mut fields, never_owned);
    fields
}

/// The fields owned at and below a path.
struct Owned {
    itself: bool,
    within: Map<String, Value>,
}

fn owned_at(atom: Atom, empty: Option<&Value>, new: &Value, excluded: Option<&FieldSet>) -> Owned {
    let is_leaf = atom.is_leaf() || is_hollow(empty) && is_hollow(Some(new));
    let is_changed = |empty: &Value| is_leaf && !is_equal(empty, new);
    Owned {
        itself: empty.is_none_or(is_changed),
        within: match is_leaf {
            true => Map::new(),
            false => fields_within(atom, empty, new, excluded),
        },
    }
}

fn fields_within(
    atom: Atom,
    empty: Option<&Value>,
    new: &Value,
    excluded: Option<&FieldSet>,
) -> Map<String, Value> {
    let mut fields = Map::new();
    if let Atom::List { .. } = atom {
        let Some(inner) = atom.item() else {
            return fields;
        };
        // The zero object has no list items, so each item is new.
        let mut own = |element: PathElement, items: &[&Value]| {
            let within = match items {
                [only] => owned_at(inner, None, only, None).within,
                // Items that share a key are owned as one.
                _ => Map::new(),
            };
            let owned = Owned {
                itself: true,
                within,
            };
            put(&mut fields, element.render(), owned);
        };
        match items_of(Some(new)) {
            [only] => {
                if let Ok(element) = atom.element(only) {
                    own(element, &[only]);
                }
            }
            items => {
                for (element, items) in group(atom, items).1 {
                    own(element, &items);
                }
            }
        }
        return fields;
    }
    for (name, value) in new.as_object().into_iter().flatten() {
        let (is_excluded, excluded) = excluded.map_or((false, None), |set| inside(set, name));
        let Some(inner) = atom.member(name).filter(|_| !is_excluded) else {
            continue;
        };
        let owned = owned_at(inner, member_of(empty, name), value, excluded);
        put(&mut fields, field_key(name), owned);
    }
    fields
}

fn put(fields: &mut Map<String, Value>, key: String, owned: Owned) {
    let Owned { itself, mut within } = owned;
    if within.is_empty() && !itself {
        return;
    }
    if itself && !within.is_empty() {
        within.insert(".".to_owned(), Value::Object(Map::new()));
    }
    fields.insert(key, Value::Object(within));
}

/// Whether a set has a field, and the set within it.
fn inside<'a>(set: &'a FieldSet, name: &str) -> (bool, Option<&'a FieldSet>) {
    let is_it = |element: &PathElement| matches!(element, PathElement::Field(own) if own == name);
    let is_member = set.members.iter().any(is_it);
    let within = set.children.iter().find(|(element, _)| is_it(element));
    (is_member, within.map(|(_, within)| within))
}

fn field_key(name: &str) -> String {
    let mut key = String::with_capacity(name.len() + 2);
    key.push_str("f:");
    key.push_str(name);
    key
}

/// A set of fields as the keys of FieldsV1.
#[derive(Debug)]
pub(super) struct FieldKeys {
    members: Vec<String>,
    children: Vec<(String, FieldKeys)>,
}

impl FieldKeys {
    pub(super) fn of(set: &FieldSet) -> FieldKeys {
        let children = set.children.iter();
        FieldKeys {
            members: set.members.iter().map(PathElement::render).collect(),
            children: children
                .map(|(element, within)| (element.render(), FieldKeys::of(within)))
                .collect(),
        }
    }
}

/// Removes the members of a set; those within them stay.
fn remove_fields(fields: &mut Map<String, Value>, set: &FieldKeys) {
    for key in &set.members {
        let is_bare = match fields.get_mut(key) {
            Some(Value::Object(within)) => {
                within.remove(".");
                within.is_empty()
            }
            _ => false,
        };
        if is_bare {
            fields.remove(key);
        }
    }
    for (key, others) in &set.children {
        if let Some(Value::Object(within)) = fields.get_mut(key) {
            let was_empty = within.is_empty();
            remove_fields(within, others);
            // A field that is owned with nothing within is encoded in the same way as one that has
            // lost everything within.
            if within.is_empty() && !was_empty {
                fields.remove(key);
            } else if within.len() == 1 && within.contains_key(".") {
                within.clear();
            }
        }
    }
}
