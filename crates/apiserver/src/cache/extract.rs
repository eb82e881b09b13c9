//! The parts of an object that selectors use, extracted without building the rest.
//!
//! Every change of every object passes here, and selectors use little of an object: the other parts
//! are not built. If another program may have encoded them, they are still parsed, since
//! clients will have to parse what is accepted here; of what this process has encoded, the syntax is
//! checked.

use std::collections::BTreeMap;

use plimsoll_core::object::selector::Lookup;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::scan::scan;
use crate::kinds::{self, Selectable};
use crate::pointer::at;

/// The labels and the selectable fields of an object.
#[derive(Debug, Default)]
pub(super) struct SelectorFields {
    labels: Box<[(Box<str>, Box<str>)]>,
    /// Fields without a value are left out.
    fields: Box<[(&'static str, Box<str>)]>,
}

impl SelectorFields {
    pub(super) fn field(&self, label: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields
            .find(|(known, _)| *known == label)
            .map(|(_, value)| &**value)
    }
}

/// Labels are sorted by key.
impl Lookup for SelectorFields {
    fn lookup(&self, name: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(key, _)| (**key).cmp(name));
        Some(&self.labels[at.ok()?].1)
    }
}

/// The parts of a kind's objects that selectors can use.
#[derive(Debug)]
pub(crate) struct SelectorPaths {
    tree: Tree,
    /// Of every encoding in which the objects are served.
    selectables: Vec<Selectable>,
}

impl SelectorPaths {
    /// The parts for all kinds that are stored in the same place.
    pub(crate) fn of_storage(storage: &str) -> SelectorPaths {
        let kinds = kinds::all().filter(|kind| kind.storage == Some(storage));
        let selectables: Vec<Selectable> = kinds.map(|kind| kind.selectable).collect();
        let mut tree = Tree::default();
        tree.add("/metadata/labels");
        for selectable in &selectables {
            selectable.pointers().for_each(|pointer| tree.add(pointer));
        }
        SelectorPaths { tree, selectables }
    }

    /// Reads the labels and fields of an object that any program may have encoded.
    pub(super) fn extract(&self, encoded: &[u8]) -> Result<SelectorFields, serde_json::Error> {
        Ok(self.fields_of(&self.parse(encoded)?))
    }

    /// The same for an object that this process has encoded; `None` if it is not as expected.
    pub(super) fn scan(&self, encoded: &[u8]) -> Option<SelectorFields> {
        let pruned = scan(&self.tree, encoded)?;
        Some(self.fields_of(&pruned))
    }

    #[cfg(test)]
    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The wanted parts of an object, all of which is parsed.
    pub(super) fn parse(&self, encoded: &[u8]) -> Result<Value, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(encoded);
        let pruned = Reader(&self.tree).deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(pruned)
    }

    fn fields_of(&self, pruned: &Value) -> SelectorFields {
        let labels = at(pruned, "/metadata/labels").and_then(Value::as_object);
        let labels = labels.into_iter().flatten();
        let mut labels: Vec<(Box<str>, Box<str>)> = labels
            .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
            .collect();
        labels.sort();
        let mut fields: Vec<(&'static str, Box<str>)> = Vec::new();
        for selectable in &self.selectables {
            let read = selectable.of(pruned);
            for label in selectable
                .labels()
                .skip_while(|l| l.starts_with("metadata."))
            {
                let value = read.lookup(label).filter(|value| !value.is_empty());
                let is_new = fields.iter().all(|(known, _)| *known != label);
                fields.extend(value.filter(|_| is_new).map(|value| (label, value.into())));
            }
        }
        SelectorFields {
            labels: labels.into(),
            fields: fields.into(),
        }
    }
}

/// The wanted JSON pointers, as a tree.
#[derive(Debug, Default)]
pub(super) struct Tree {
    children: BTreeMap<&'static str, Tree>,
}

impl Tree {
    /// Whether the value is wanted whole.
    pub(super) fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }

    /// What is wanted of a member or an item.
    pub(super) fn child(&self, name: &str) -> Option<&Tree> {
        self.children.get(name)
    }

    fn add(&mut self, pointer: &'static str) {
        let mut tree = self;
        for part in pointer.split('/').skip(1) {
            tree = tree.children.entry(part).or_default();
        }
    }
}

/// Reads the wanted parts; a leaf is read whole.
struct Reader<'t>(&'t Tree);

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.0.is_leaf() {
            return serde::Deserialize::deserialize(deserializer);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut found = Map::new();
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            match self.0.child(&key) {
                Some(tree) => {
                    let value = map.next_value_seed(Reader(tree))?;
                    found.insert(key.into_owned(), value);
                }
                None => {
                    map.next_value::<Ignored>()?;
                }
            }
        }
        Ok(Value::Object(found))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut found = Vec::new();
        for at in 0_usize.. {
            // Positions before a selected one keep their place.
            let next = match self.0.child(&at.to_string()) {
                Some(tree) => seq.next_element_seed(Reader(tree))?,
                None => seq.next_element::<Ignored>()?.map(|_| Value::Null),
            };
            match next {
                Some(value) => found.push(value),
                None => break,
            }
        }
        Ok(Value::Array(found))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E>(self, _: &str) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

/// A value that is parsed and dropped. `serde`'s own `IgnoredAny` does not check texts and numbers.
struct Ignored;

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ignored, D::Error> {
        deserializer.deserialize_any(Ignored)
    }
}

impl<'de> Visitor<'de> for Ignored {
    type Value = Ignored;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ignored, A::Error> {
        while map.next_entry::<Ignored, Ignored>()?.is_some() {}
        Ok(Ignored)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Ignored, A::Error> {
        while seq.next_element::<Ignored>()?.is_some() {}
        Ok(Ignored)
    }

    fn visit_unit<E>(self) -> Result<Ignored, E> {
        Ok(Ignored)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Ignored, E> {
        Ok(Ignored)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Ignored, E> {
        Ok(Ignored)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Ignored, E> {
        Ok(Ignored)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Ignored, E> {
        Ok(Ignored)
    }

    fn visit_str<E>(self, _: &str) -> Result<Ignored, E> {
        Ok(Ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extracts_only_labels_and_selectable_fields() {
        let pod = br#"{"metadata":{"labels":{"b":"2","a":"1"},"name":"x"},
            "spec":{"nodeName":"n","hostNetwork":true,"containers":[{"name":"nodeName"}]},
            "status":{"podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}]}}"#;
        let facets = SelectorPaths::of_storage("pods").extract(pod).unwrap();
        assert_eq!(facets.lookup("a"), Some("1"));
        assert_eq!(facets.lookup("b"), Some("2"));
        assert_eq!(facets.lookup("c"), None);
        assert_eq!(facets.field("spec.nodeName"), Some("n"));
        assert_eq!(facets.field("spec.hostNetwork"), Some("true"));
        assert_eq!(facets.field("status.podIP"), Some("10.0.0.1"));
        assert_eq!(facets.field("status.phase"), None);
    }

    #[test]
    fn event_is_selected_by_field_labels_of_both_encodings() {
        let event = br#"{"involvedObject":{"kind":"Pod"},"reason":"Killing"}"#;
        let facets = SelectorPaths::of_storage("events").extract(event).unwrap();
        assert_eq!(facets.field("involvedObject.kind"), Some("Pod"));
        assert_eq!(facets.field("regarding.kind"), Some("Pod"));
    }

    #[test]
    fn parts_of_an_unexpected_type_have_no_value() {
        let pod = br#"{"metadata":{"labels":["a"]},"spec":"none","status":null}"#;
        let facets = SelectorPaths::of_storage("pods").extract(pod).unwrap();
        assert_eq!(facets.lookup("a"), None);
        assert_eq!(facets.field("spec.nodeName"), None);
    }
}
