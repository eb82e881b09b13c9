//! The name in the URL and the one in the body are the same.
//!
//! Matches v1.36 apiserver/pkg/endpoints/handlers (checkName) and apiserver/pkg/registry/rest.

use serde_json::{Map, Value};

use crate::machinery::status::Status;

/// Compares `object` with the request; an object without namespace gets the request's.
///
/// `namespace` is empty for kinds that have none.
pub fn check_identity(object: &mut Value, namespace: &str, name: &str) -> Result<(), Status> {
    let Value::Object(members) = object else {
        return Err(undeterminable(name));
    };
    let metadata = members
        .entry("metadata")
        .or_insert_with(|| Value::Object(Map::new()));
    let text = |metadata: &Value, key: &str| -> String {
        let value = metadata.get(key).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let own_namespace = text(metadata, "namespace");
    if own_namespace != namespace {
        if !own_namespace.is_empty() && !namespace.is_empty() {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        if let Value::Object(metadata) = metadata {
            metadata.remove("namespace");
            if !namespace.is_empty() {
                metadata.insert("namespace".to_owned(), Value::from(namespace));
            }
        }
    }
    match text(metadata, "name") {
        own if own.is_empty() => Err(undeterminable(name)),
        own if own != name => Err(Status::bad_request(format!(
            "the name of the object ({own}) does not match the name on the URL ({name})"
        ))),
        _ => Ok(()),
    }
}

fn undeterminable(name: &str) -> Status {
    Status::bad_request(format!(
        "the name of the object ({name} based on URL) was undeterminable: name must be provided"
    ))
}
