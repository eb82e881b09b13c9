//! Sets of fields, as `managedFields` stores them.
//!
//! Matches v1.36 vendor/sigs.k8s.io/structured-merge-diff/v6/fieldpath.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::atom::Atom;
use super::path::PathElement;

/// A set of fields.
///
/// A field and the fields within it are members independently: owning `spec.containers[name="a"]`
/// does not imply owning its image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    pub(super) members: BTreeSet<PathElement>,
    pub(super) children: BTreeMap<PathElement, FieldSet>,
}

impl FieldSet {
    /// The set of these paths of field names.
    pub fn of_fields(paths: &[&[&str]]) -> FieldSet {
        let mut set = FieldSet::default();
        for path in paths {
            let path: Vec<PathElement> = path
                .iter()
                .map(|name| PathElement::Field((*name).to_owned()))
                .collect();
            set.insert(&path);
        }
        set
    }

    /// Adds a field; its parents are not added.
    pub(super) fn insert(&mut self, path: &[PathElement]) {
        match path {
            // The object as a whole cannot be owned.
            [] => {}
            [last] => {
                self.members.insert(last.clone());
            }
            [first, rest @ ..] => self.children.entry(first.clone()).or_default().insert(rest),
        }
    }

    /// Adds the set within `element`, unless it is empty.
    pub(super) fn put_within(&mut self, element: &PathElement, within: FieldSet) {
        if !(within.members.is_empty() && within.children.is_empty()) {
            self.children.insert(element.clone(), within);
        }
    }

    pub(super) fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.members.contains(last),
            [first, rest @ ..] => self.children.get(first).is_some_and(|set| set.has(rest)),
        }
    }

    /// Whether the set has no member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(FieldSet::is_empty)
    }

    /// With all members of `other`.
    #[must_use]
    pub(super) fn union(mut self, other: FieldSet) -> FieldSet {
        if self.members.is_empty() && self.children.is_empty() {
            return other;
        }
        self.members.extend(other.members);
        for (element, set) in other.children {
            let own = self.children.remove(&element).unwrap_or_default();
            self.children.insert(element, own.union(set));
        }
        self
    }

    pub(super) fn intersection(&self, other: &FieldSet) -> FieldSet {
        let children = self.children.iter().filter_map(|(element, set)| {
            let common = set.intersection(other.children.get(element)?);
            (!common.is_empty()).then(|| (element.clone(), common))
        });
        FieldSet {
            members: self.members.intersection(&other.members).cloned().collect(),
            children: children.collect(),
        }
    }

    /// Without the members of `other`; fields within a member stay.
    #[must_use]
    pub(super) fn difference(mut self, other: &FieldSet) -> FieldSet {
        for element in &other.members {
            self.members.remove(element);
        }
        for (element, others) in &other.children {
            if let Some(set) = self.children.remove(element) {
                let rest = set.difference(others);
                if !rest.is_empty() {
                    self.children.insert(element.clone(), rest);
                }
            }
        }
        self
    }

    /// Without the members of `other` and all that is within them.
    #[must_use]
    pub(super) fn recursive_difference(mut self, other: &FieldSet) -> FieldSet {
        for element in &other.members {
            self.members.remove(element);
            self.children.remove(element);
        }
        for (element, others) in &other.children {
            if let Some(set) = self.children.remove(element) {
                self.put_within(element, set.recursive_difference(others));
            }
        }
        self
    }

    /// Also has the struct fields on the paths of members; map keys and list items are not added.
    pub(super) fn with_named_fields(&self, atom: Atom) -> FieldSet {
        let mut out = FieldSet {
            members: self.members.clone(),
            children: BTreeMap::new(),
        };
        for (element, set) in &self.children {
            if let PathElement::Field(name) = element
                && atom.has_field(name)
            {
                out.members.insert(element.clone());
            }
            let inner = match element {
                PathElement::Field(name) => atom.member(name),
                PathElement::Key(_) => atom.item(),
                _ => None,
            };
            let inner = inner.map_or_else(|| set.clone(), |inner| set.with_named_fields(inner));
            out.children.insert(element.clone(), inner);
        }
        out
    }

    /// The members within `element`.
    pub(super) fn within(&self, element: &PathElement) -> Option<&FieldSet> {
        self.children.get(element)
    }

    /// All paths; those of a level before those within.
    pub(super) fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut out = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut out);
        out
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, out: &mut Vec<Vec<PathElement>>) {
        for member in &self.members {
            let mut path = prefix.clone();
            path.push(member.clone());
            out.push(path);
        }
        for (element, set) in &self.children {
            prefix.push(element.clone());
            set.collect_paths(prefix, out);
            prefix.pop();
        }
    }

    /// The set as FieldsV1.
    pub fn to_fields_v1(&self) -> Value {
        let mut out = Map::new();
        for member in &self.members {
            out.insert(member.render(), Value::Object(Map::new()));
        }
        for (element, set) in &self.children {
            let mut inner = set.to_fields_v1();
            if self.members.contains(element)
                && let Value::Object(inner) = &mut inner
                && !inner.is_empty()
            {
                inner.insert(".".to_owned(), Value::Object(Map::new()));
            }
            out.insert(element.render(), inner);
        }
        Value::Object(out)
    }

    /// Decodes FieldsV1; the error is for logs.
    pub fn from_fields_v1(fields: &Value) -> Result<FieldSet, String> {
        let Value::Object(fields) = fields else {
            return Err("fieldsV1 is not an object".to_owned());
        };
        Ok(read_fields(fields)?.0.unwrap_or_default())
    }
}

/// The members within, if any, and whether the field itself is a member.
fn read_fields(fields: &Map<String, Value>) -> Result<(Option<FieldSet>, bool), String> {
    let mut set: Option<FieldSet> = None;
    let mut is_member = false;
    for (key, inner) in fields {
        if key == "." {
            is_member = true;
            continue;
        }
        let Some(element) = PathElement::parse(key)? else {
            continue;
        };
        let Value::Object(inner) = inner else {
            return Err(format!("{key} holds no object"));
        };
        let (within, is_own) = read_fields(inner)?;
        let set = set.get_or_insert_default();
        if is_own {
            set.members.insert(element.clone());
        }
        if let Some(within) = within {
            set.children.insert(element, within);
        }
    }
    let is_leaf = set.is_none();
    Ok((set, is_member || is_leaf))
}
