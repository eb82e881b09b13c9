//! Comparing two objects.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::atom::Atom;
use super::super::path::{PathElement, is_equal};
use super::super::set::FieldSet;
use super::{group, is_hollow, items_of, member_of, names_of};

/// The fields that an object loses, changes and gains.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Comparison {
    pub(in super::super) removed: FieldSet,
    pub(in super::super) modified: FieldSet,
    pub(in super::super) added: FieldSet,
}

/// The change of a field itself, regardless of changes within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    None,
    Removed,
    Modified,
    Added,
}

/// Compares two objects of one type.
pub(in super::super) fn compare(atom: Atom, left: &Value, right: &Value) -> Comparison {
    compare_at(atom, Some(left), Some(right)).1
}

/// The result at a path: the change of the field itself, and those within.
type Found = (Change, Comparison);

fn is_nothing((change, within): &Found) -> bool {
    let is_empty = |set: &FieldSet| set.members.is_empty() && set.children.is_empty();
    *change == Change::None
        && is_empty(&within.removed)
        && is_empty(&within.modified)
        && is_empty(&within.added)
}

fn compare_at(atom: Atom, left: Option<&Value>, right: Option<&Value>) -> Found {
    let mut within = Comparison::default();
    let mut change = match (left, right) {
        (None, Some(_)) => Change::Added,
        (Some(_), None) => Change::Removed,
        _ => Change::None,
    };
    if atom.is_leaf() || (is_hollow(left) && is_hollow(right)) {
        if let (Some(left), Some(right)) = (left, right)
            && !is_equal(left, right)
        {
            change = Change::Modified;
        }
    } else if matches!(atom, Atom::List { .. }) {
        compare_items(atom, items_of(left), items_of(right), &mut within);
    } else {
        for name in names_of(left, right) {
            let Some(inner) = atom.member(name) else {
                continue;
            };
            let found = compare_at(inner, member_of(left, name), member_of(right, name));
            if !is_nothing(&found) {
                within.put(PathElement::Field(name.clone()), found);
            }
        }
    }
    (change, within)
}

impl Comparison {
    /// Adds the result of `element`.
    fn put(&mut self, element: PathElement, (change, within): Found) {
        self.removed.put_within(&element, within.removed);
        self.modified.put_within(&element, within.modified);
        self.added.put_within(&element, within.added);
        match change {
            Change::None => false,
            Change::Removed => self.removed.members.insert(element),
            Change::Modified => self.modified.members.insert(element),
            Change::Added => self.added.members.insert(element),
        };
    }
}

/// Items that share a key are compared as one: their number and contents.
fn compare_items(atom: Atom, left: &[Value], right: &[Value], out: &mut Comparison) {
    let Some(inner) = atom.item() else { return };
    let (_, left) = group(atom, left);
    let (_, right) = group(atom, right);
    let elements: BTreeSet<&PathElement> = left.keys().chain(right.keys()).collect();
    for element in elements {
        let left = left.get(element).map(Vec::as_slice).unwrap_or_default();
        let right = right.get(element).map(Vec::as_slice).unwrap_or_default();
        let (first_left, first_right) = (left.first().copied(), right.first().copied());
        let found = match (left, right) {
            ([] | [_], [] | [_]) => compare_at(inner, first_left, first_right),
            ([] | [_], _) => {
                let within = first_left.map(|left| compare_at(inner, Some(left), None).1);
                // The single item is removed and several are added.
                if first_left.is_some() {
                    out.removed.members.insert(element.clone());
                }
                (Change::Added, within.unwrap_or_default())
            }
            (_, [] | [_]) => {
                let within = first_right.map(|right| compare_at(inner, None, Some(right)).1);
                if first_right.is_some() {
                    out.added.members.insert(element.clone());
                }
                (Change::Removed, within.unwrap_or_default())
            }
            (left, right) => {
                let is_same = left.len() == right.len()
                    && left
                        .iter()
                        .zip(right)
                        .all(|(left, right)| is_equal(left, right));
                let change = if is_same {
                    Change::None
                } else {
                    Change::Modified
                };
                (change, Comparison::default())
            }
        };
        out.put(element.clone(), found);
    }
}
