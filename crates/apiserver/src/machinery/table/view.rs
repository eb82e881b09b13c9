//! Reading an object: a missing field reads as Go's zero value.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use plimsoll_core::object::selector::format_label_selector;
use plimsoll_core::object::timestamp::Timestamp;
use plimsoll_core::quantity::Quantity;
use serde_json::{Map, Value};

use super::age::human_duration;

/// A part of an object, and the current time.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    value: &'a Value,
    now: Timestamp,
}

impl<'a> View<'a> {
    pub(super) fn new(value: &'a Value, now: Timestamp) -> View<'a> {
        View { value, now }
    }

    /// The value at a JSON pointer, unless it is absent or null.
    pub(super) fn at(self, pointer: &str) -> Option<View<'a>> {
        let value = self.value.pointer(pointer).filter(|v| !v.is_null())?;
        Some(View { value, ..self })
    }

    pub(super) fn has(self, pointer: &str) -> bool {
        self.at(pointer).is_some()
    }

    pub(super) fn text(self, pointer: &str) -> &'a str {
        self.value
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub(super) fn text_or(self, pointer: &str, otherwise: &'a str) -> &'a str {
        match self.text(pointer) {
            "" => otherwise,
            text => text,
        }
    }

    /// The first text of several pointers that is not empty.
    pub(super) fn first(self, pointers: &[&str]) -> &'a str {
        let mut texts = pointers.iter().map(|pointer| self.text(pointer));
        texts.find(|text| !text.is_empty()).unwrap_or_default()
    }

    pub(super) fn integer(self, pointer: &str) -> i64 {
        self.integer_or(pointer, 0)
    }

    pub(super) fn integer_or(self, pointer: &str, otherwise: i64) -> i64 {
        self.value
            .pointer(pointer)
            .and_then(Value::as_i64)
            .unwrap_or(otherwise)
    }

    pub(super) fn flag(self, pointer: &str) -> bool {
        self.flag_or(pointer, false)
    }

    pub(super) fn flag_or(self, pointer: &str, otherwise: bool) -> bool {
        self.value
            .pointer(pointer)
            .and_then(Value::as_bool)
            .unwrap_or(otherwise)
    }

    pub(super) fn items(
        self,
        pointer: &str,
    ) -> impl DoubleEndedIterator<Item = View<'a>> + ExactSizeIterator {
        let items = self.value.pointer(pointer).and_then(Value::as_array);
        let items = items.map(Vec::as_slice).unwrap_or_default();
        items.iter().map(move |value| View { value, ..self })
    }

    /// The texts of a list.
    pub(super) fn texts(self, pointer: &str) -> Vec<&'a str> {
        self.items(pointer).map(|item| item.text("")).collect()
    }

    pub(super) fn entries(self, pointer: &str) -> Option<&'a Map<String, Value>> {
        self.value.pointer(pointer).and_then(Value::as_object)
    }

    /// How many entries a map has.
    pub(super) fn size(self, pointer: &str) -> usize {
        self.entries(pointer).map_or(0, Map::len)
    }

    /// A map of texts as `a=b,c=d`.
    pub(super) fn labels(self, pointer: &str) -> String {
        let entries = self.entries(pointer).into_iter().flatten();
        let sorted: BTreeMap<&String, &Value> = entries.collect();
        let pairs = sorted
            .iter()
            .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()));
        match pairs.collect::<Vec<String>>().join(",") {
            text if text.is_empty() => NONE.to_owned(),
            text => text,
        }
    }

    /// A label selector; a value that is not one is an error.
    pub(super) fn api_selector(
        self,
        pointer: &str,
    ) -> Result<Option<LabelSelector>, serde_json::Error> {
        let selector = self.at(pointer).map(|selector| selector.value.clone());
        selector.map(serde_json::from_value).transpose()
    }

    /// A label selector in one line.
    pub(super) fn selector(self, pointer: &str) -> String {
        match self.api_selector(pointer) {
            Ok(selector) => format_label_selector(selector.as_ref()),
            Err(_) => "<error>".to_owned(),
        }
    }

    /// The quantity of a resource; `0` if there is none.
    pub(super) fn quantity(self, list: &str, resource: &str) -> String {
        let token = self.entries(list).and_then(|list| list.get(resource));
        let quantity =
            token.and_then(|token| Quantity::from_json_token(&token.to_string()).ok()?);
        quantity.unwrap_or_default().to_string()
    }

    pub(super) fn time(self, pointer: &str) -> Option<Timestamp> {
        Timestamp::from_rfc3339(self.text(pointer))
    }

    /// The time since then.
    pub(super) fn since(self, pointer: &str) -> String {
        self.since_time(self.time(pointer))
    }

    pub(super) fn since_time(self, time: Option<Timestamp>) -> String {
        time.map_or_else(|| UNKNOWN.to_owned(), |time| human_duration(time, self.now))
    }

    pub(super) fn name(self) -> &'a str {
        self.text("/metadata/name")
    }

    pub(super) fn age(self) -> String {
        self.since("/metadata/creationTimestamp")
    }

    pub(super) fn is_being_deleted(self) -> bool {
        self.has("/metadata/deletionTimestamp")
    }

    /// The names and images of the containers of a pod spec.
    pub(super) fn containers(self, pod_spec: &str) -> (String, String) {
        let pointer = format!("{pod_spec}/containers");
        let containers = self.items(&pointer);
        let pairs = containers.map(|c| (c.text("/name"), c.text("/image")));
        let (names, images): (Vec<&str>, Vec<&str>) = pairs.unzip();
        (names.join(","), images.join(","))
    }

    /// The status of a condition.
    pub(super) fn condition(self, ty: &str) -> Option<&'a str> {
        let mut conditions = self.items("/status/conditions");
        let condition = conditions.find(|condition| condition.text("/type") == ty)?;
        Some(condition.text("/status"))
    }
}

pub(super) const NONE: &str = "<none>";
pub(super) const UNKNOWN: &str = "<unknown>";
pub(super) const UNSET: &str = "<unset>";

/// The text, or a placeholder when it is empty.
pub(super) fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}
