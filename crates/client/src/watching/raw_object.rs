//! Objects as the server wrote them.
//!
//! Lists and watches are followed with this one type for all kinds, and each object is parsed on
//! its own afterwards. An object that cannot be parsed therefore hides no other, and the machinery
//! of a watch is compiled once and not for every kind.

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::unmanaged::Unmanaged;

/// An object's text, and the version at which a watch that has reported it continues.
///
/// With `METADATA`, only the metadata of objects is requested.
#[derive(Clone, Debug)]
pub(super) struct RawObject<const METADATA: bool> {
    /// The resource version and nothing else.
    metadata: ObjectMeta,
    pub(super) text: Text,
}

/// The text of an object.
#[derive(Clone, Debug)]
pub(super) struct Text(Box<RawValue>);

/// The URL of a collection.
#[derive(Clone, Debug)]
pub(super) struct Collection(pub(super) String);

impl<const METADATA: bool> Resource for RawObject<METADATA> {
    type DynamicType = Collection;
    type Scope = kube::core::DynamicResourceScope;

    fn kind(_: &Collection) -> Cow<'_, str> {
        "".into()
    }

    fn group(_: &Collection) -> Cow<'_, str> {
        "".into()
    }

    fn version(_: &Collection) -> Cow<'_, str> {
        "".into()
    }

    fn plural(_: &Collection) -> Cow<'_, str> {
        "".into()
    }

    fn metadata_api() -> bool {
        METADATA
    }

    fn url_path(collection: &Collection, _: Option<&str>) -> String {
        collection.0.clone()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl<'de, const METADATA: bool> Deserialize<'de> for RawObject<METADATA> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let metadata = ObjectMeta {
            resource_version: resource_version(text.get()),
            ..ObjectMeta::default()
        };
        let text = Text(text);
        Ok(RawObject { metadata, text })
    }
}

impl Text {
    /// The object, without its `managedFields`.
    ///
    /// # Errors
    ///
    /// If it is not an object of that kind.
    pub(super) fn read<K: DeserializeOwned>(&self) -> Result<K, serde_json::Error> {
        serde_json::from_str(self.0.get()).map(|Unmanaged(object)| object)
    }

    /// An object of that kind with nothing but the identity.
    ///
    /// # Errors
    ///
    /// If it is not an object of the kind.
    pub(super) fn read_identity<K: DeserializeOwned>(&self) -> Result<K, serde_json::Error> {
        serde_json::from_value(serde_json::to_value(self.head())?)
    }

    /// Namespace and name, as far as they can be read.
    pub(super) fn name(&self) -> String {
        let Identity {
            namespace, name, ..
        } = self.head().metadata;
        match (namespace, name.unwrap_or_default()) {
            (None, name) => name,
            (Some(namespace), name) => format!("{namespace}/{name}"),
        }
    }

    fn head(&self) -> Head {
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }
}

#[derive(Default, Deserialize, Serialize)]
struct Head {
    #[serde(default)]
    metadata: Identity,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<String>,
}

/// The object's `metadata.resourceVersion`. Servers write it near the beginning: the rest of the
/// text is not looked at.
fn resource_version(text: &str) -> Option<String> {
    let mut found = None;
    let path = Path {
        names: &["metadata", "resourceVersion"],
        found: &mut found,
    };
    // Reading ends with an error as soon as it is found.
    let _ = path.deserialize(&mut serde_json::Deserializer::from_str(text));
    found
}

/// Looks for the text at a path of members.
struct Path<'a> {
    names: &'a [&'static str],
    found: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Path<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.names {
            [] => *self.found = Some(String::deserialize(deserializer)?),
            _ => deserializer.deserialize_map(self)?,
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Path<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Some((wanted, below)) = self.names.split_first() else {
            return Ok(());
        };
        while let Some(name) = members.next_key::<Cow<'_, str>>()? {
            if name != *wanted {
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            members.next_value_seed(Path {
                names: below,
                found: self.found,
            })?;
            if self.found.is_some() {
                return Err(A::Error::custom("found"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    fn raw_object(text: &str) -> RawObject<false> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn finds_resource_version_wherever_it_is() {
        for (text, version) in [
            (
                r#"{"metadata":{"resourceVersion":"7","name":"a"}}"#,
                Some("7"),
            ),
            (
                r#"{"a":{"resourceVersion":"1"},"metadata":{"labels":{"resourceVersion":"2"},"resourceVersion":"3"},"b":[]}"#,
                Some("3"),
            ),
            (r#"{"resourceVersion":"1","metadata":{}}"#, None),
            (r#"{"metadata":null}"#, None),
            (r#"{"metadata":{"resourceVersion":5}}"#, None),
            ("[]", None),
            ("null", None),
        ] {
            assert_eq!(
                raw_object(text).metadata.resource_version.as_deref(),
                version
            );
        }
    }

    #[test]
    fn too_deeply_nested_objects_are_named() {
        let depth = 5000;
        let deep = format!(
            r#"{{"metadata":{{"name":"a","namespace":"b","x":{}{}}}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        );
        let raw_object = raw_object(&deep);
        assert_eq!(raw_object.text.name(), "b/a");
        assert!(raw_object.text.read::<serde_json::Value>().is_err());
    }

    #[test]
    fn malformed_object_is_named() {
        let raw_object = raw_object(r#"{"metadata":{"name":"a"},"data":1}"#);
        assert!(raw_object.text.read::<ConfigMap>().is_err());
        assert_eq!(raw_object.text.name(), "a");
    }
}
