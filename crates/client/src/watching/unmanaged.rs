//! Objects read without `managedFields`, which no loop reads.
//!
//! They are often half of an object's text and more than half of the work of reading it: skipping
//! them while reading costs little, dropping them afterwards everything.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, IntoDeserializer, MapAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

/// An object that was read without its `managedFields`.
#[derive(Debug)]
pub(super) struct Unmanaged<K>(pub(super) K);

impl<'de, K: Deserialize<'de>> Deserialize<'de> for Unmanaged<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Within(deserializer, Level::Object);
        K::deserialize(object).map(Unmanaged)
    }
}

/// Where in an object something is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Object,
    Metadata,
}

impl Level {
    fn is_skipped(self, name: &str) -> bool {
        self == Level::Metadata && name == "managedFields"
    }

    fn is_metadata(self, name: &str) -> bool {
        self == Level::Object && name == "metadata"
    }
}

/// A deserializer or visitor, at a level.
struct Within<T>(T, Level);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Within<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(Within(visitor, self.1))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(Within(visitor, self.1))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Within<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Members {
            members,
            level: self.1,
            is_metadata: false,
        })
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Within(deserializer, self.1))
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }
}

/// The members of an object but for those that are skipped.
struct Members<A> {
    members: A,
    level: Level,
    /// Whether the value that comes next is the metadata.
    is_metadata: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Members<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let mut seed = seed;
        loop {
            let name = Name {
                seed,
                level: self.level,
            };
            match self.members.next_key_seed(name)? {
                None => return Ok(None),
                Some(Found::Skipped(unused)) => {
                    self.members.next_value::<IgnoredAny>()?;
                    seed = unused;
                }
                Some(Found::Wanted(value, is_metadata)) => {
                    self.is_metadata = is_metadata;
                    return Ok(Some(value));
                }
            }
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        if self.is_metadata {
            return self.members.next_value_seed(Within(seed, Level::Metadata));
        }
        self.members.next_value_seed(seed)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Within<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Within(deserializer, self.1))
    }
}

/// Checks a member's name before the member is deserialized.
struct Name<S> {
    seed: S,
    level: Level,
}

enum Found<S, T> {
    /// The caller does not read it.
    Skipped(S),
    /// Read, and whether it is the metadata.
    Wanted(T, bool),
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Name<S> {
    type Value = Found<S, S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for Name<S> {
    type Value = Found<S, S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<F: Error>(self, name: &str) -> Result<Self::Value, F> {
        if self.level.is_skipped(name) {
            return Ok(Found::Skipped(self.seed));
        }
        let text: StrDeserializer<'_, F> = name.into_deserializer();
        let value = self.seed.deserialize(text)?;
        Ok(Found::Wanted(value, self.level.is_metadata(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    fn read(object: &Value) -> Pod {
        let text = object.to_string();
        serde_json::from_str::<Unmanaged<Pod>>(&text).unwrap().0
    }

    #[test]
    fn reads_everything_but_managed_fields() {
        let mut object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "a", "labels": {"managedFields": "x", "b": "é\n"},
                "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}],
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "ReplicaSet", "name": "r", "uid": "u",
                }],
            },
            "spec": {"containers": [{"name": "c", "env": [{"name": "metadata", "value": "v"}]}]},
            "status": {"phase": "Pending"},
        });
        let found = read(&object);
        object["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("managedFields");
        assert_eq!(found, serde_json::from_value(object).unwrap());
    }

    #[test]
    fn absent_and_null_metadata_read_as_usual() {
        for object in [
            json!({}),
            json!({"metadata": null}),
            json!({"metadata": {}}),
        ] {
            let usual: Pod = serde_json::from_value(object.clone()).unwrap();
            assert_eq!(read(&object), usual, "{object}");
        }
    }

    #[test]
    fn malformed_object_is_refused() {
        for text in [r#"{"metadata":1}"#, "[]", r#"{"metadata":{"name":{}}}"#] {
            assert!(
                serde_json::from_str::<Unmanaged<Pod>>(text).is_err(),
                "{text}"
            );
        }
    }
}
