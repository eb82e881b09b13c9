//! PartialObjectMetadata: objects with only their metadata.

use serde_json::{Value, json};

use super::MetaVersion;
use crate::kinds::Kind;

/// A list was requested as one object: 406.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("you requested PartialObjectMetadata, but the requested object is a list ({go_type})")]
pub struct NotAnObject {
    go_type: String,
}

impl NotAnObject {
    /// About a list of that kind.
    pub fn new(kind: &Kind) -> NotAnObject {
        let go_type = format!("*{}.{}", go_package(kind), kind.list_kind());
        NotAnObject { go_type }
    }
}

/// One object was requested as a list: 406.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "you requested PartialObjectMetadataList, but the requested object is not a list ({go_type})"
)]
pub struct NotAList {
    go_type: String,
}

impl NotAList {
    /// About an object of that kind.
    pub fn new(kind: &Kind) -> NotAList {
        let go_type = format!("*{}.{}", go_package(kind), kind.kind);
        NotAList { go_type }
    }
}

/// The package of upstream's internal types; events of both encodings are core's.
fn go_package(kind: &Kind) -> &'static str {
    match kind.group.split('.').next().unwrap_or_default() {
        "" | "events" => "core",
        package => package,
    }
}

/// The metadata of an object.
pub fn partial_object_metadata(object: &Value, version: MetaVersion) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": version.api_version(),
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

/// The metadata of each object of a list.
pub fn partial_object_metadata_list(list: &Value, version: MetaVersion) -> Value {
    let items = list["items"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let items = items
        .iter()
        .map(|item| partial_object_metadata(item, version));
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": version.api_version(),
        "metadata": super::list_metadata(list),
        "items": items.collect::<Vec<Value>>(),
    })
}
