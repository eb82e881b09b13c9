//! An encoded object split into members whose values stay encoded.
//!
//! A change of a few fields then parses only the object's outline, not everything in it.

use std::borrow::Cow;

/// The members of an encoded object, in their order. Names are compared as they are written, which
/// is enough for names of fields.
#[derive(Clone, Debug)]
pub(crate) struct Members<'a>(Vec<(&'a [u8], Cow<'a, [u8]>)>);

impl<'a> Members<'a> {
    /// Splits an object; an empty text and null have no members. `None` if it is something else.
    ///
    /// The values are not parsed: they must be known to be JSON, like everything that came from the
    /// store.
    pub(crate) fn read(encoded: Option<&'a [u8]>) -> Option<Members<'a>> {
        let mut rest = Rest(encoded.unwrap_or(b"null"));
        if rest.0 == b"null" {
            return Some(Members(Vec::new()));
        }
        let mut members = Vec::with_capacity(16);
        rest.take(b'{')?;
        if rest.take(b'}').is_some() {
            return rest.0.is_empty().then_some(Members(members));
        }
        loop {
            let name = rest.text()?;
            rest.take(b':')?;
            members.push((name, Cow::Borrowed(rest.value()?)));
            if rest.take(b',').is_none() {
                break;
            }
        }
        rest.take(b'}')?;
        rest.0.is_empty().then_some(Members(members))
    }

    /// The value of a member.
    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        let place = self.place(name)?;
        Some(&self.0[place].1)
    }

    /// The value of a member as it was read; `None` if it has been set since.
    pub(crate) fn original(&self, name: &str) -> Option<&'a [u8]> {
        match self.0[self.place(name)?].1 {
            Cow::Borrowed(value) => Some(value),
            Cow::Owned(_) => None,
        }
    }

    /// The text of a member; empty where there is none.
    pub(crate) fn text(&self, name: &str) -> String {
        let value = self.get(name).unwrap_or(b"\"\"");
        serde_json::from_slice(value).unwrap_or_default()
    }

    /// Sets a member; a new one takes its place in the order of names.
    pub(crate) fn set(&mut self, name: &'a str, value: Vec<u8>) {
        let value = Cow::Owned(value);
        match self.place(name) {
            Some(place) => self.0[place].1 = value,
            None => {
                let name = name.as_bytes();
                let last = self.0.iter().rposition(|(known, _)| *known < name);
                self.0
                    .insert(last.map_or(0, |last| last + 1), (name, value));
            }
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| *known != name.as_bytes());
    }

    /// The object, encoded again.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let size: usize = self
            .0
            .iter()
            .map(|(name, value)| name.len() + value.len() + 4)
            .sum();
        let mut encoded = Vec::with_capacity(size + 2);
        encoded.push(b'{');
        for (at, (name, value)) in self.0.iter().enumerate() {
            if at > 0 {
                encoded.push(b',');
            }
            encoded.push(b'"');
            encoded.extend_from_slice(name);
            encoded.extend_from_slice(b"\":");
            encoded.extend_from_slice(value);
        }
        encoded.push(b'}');
        encoded
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.0
            .iter()
            .position(|(known, _)| *known == name.as_bytes())
    }
}

/// The unparsed rest. The encoding has no spaces between its parts.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, byte: u8) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        (*first == byte).then(|| self.0 = rest)
    }

    fn split(&mut self, at: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(at)?;
        self.0 = rest;
        Some(taken)
    }

    /// A text, without its quotes.
    fn text(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let text = self.split(end_of_text(self.0)?)?;
        self.take(b'"')?;
        Some(text)
    }

    fn value(&mut self) -> Option<&'a [u8]> {
        let mut depth = 0_usize;
        let mut at = 0;
        loop {
            match self.0.get(at)? {
                b'"' => at += 1 + end_of_text(self.0.get(at + 1..)?)?,
                b'{' | b'[' => depth += 1,
                b',' if depth == 0 => return self.split(at),
                b'}' | b']' if depth == 0 => return self.split(at),
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            at += 1;
        }
    }
}

/// Where the quote is that ends a text.
fn end_of_text(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += text
            .get(at..)?
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\\'))?;
        if text[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-c\"\\\\{}\\[\\],:é\n]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            let name = "[a-e]{1,2}";
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(name, inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn editing_members_is_editing_the_object(
            object in prop::collection::btree_map("[a-e]{1,2}", any_value(), 0..6),
            name in "[a-e]{1,2}",
            value in prop::option::of(any_value()),
        ) {
            let mut object: Map<String, Value> = object.into_iter().collect();
            let encoded = Value::Object(object.clone()).to_string();
            let mut members = Members::read(Some(encoded.as_bytes())).unwrap();
            let found = members.get(&name).map(|value| serde_json::from_slice(value).unwrap());
            prop_assert_eq!(found, object.get(&name).cloned());
            match value {
                Some(value) => {
                    members.set(&name, value.to_string().into_bytes());
                    object.insert(name.clone(), value);
                }
                None => {
                    members.remove(&name);
                    object.remove(&name);
                }
            }
            let expected = Value::Object(object).to_string();
            prop_assert_eq!(String::from_utf8(members.encode()).unwrap(), expected);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in "[{}\\[\\]\",:\\\\a1 ]{0,16}") {
            let _ = Members::read(Some(bytes.as_bytes()));
        }
    }

    #[test]
    fn empty_text_has_no_members_and_other_values_are_rejected() {
        assert_eq!(Members::read(None).unwrap().encode(), b"{}");
        assert_eq!(Members::read(Some(b"null")).unwrap().encode(), b"{}");
        for other in ["[]", "1", "\"\"", "{\"a\":1", "{}x", "{\"a\"}"] {
            assert!(Members::read(Some(other.as_bytes())).is_none(), "{other}");
        }
    }

    #[test]
    fn new_member_is_inserted_after_the_type_in_name_order() {
        let encoded = br#"{"kind":"Pod","apiVersion":"v1","metadata":{},"status":{}}"#;
        let mut members = Members::read(Some(encoded)).unwrap();
        members.set("spec", json!({}).to_string().into_bytes());
        let expected = br#"{"kind":"Pod","apiVersion":"v1","metadata":{},"spec":{},"status":{}}"#;
        assert_eq!(members.encode(), expected);
    }
}
