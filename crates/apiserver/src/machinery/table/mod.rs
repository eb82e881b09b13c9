//! Objects as tables: rows of cells, made by the server for `kubectl get`.
//!
//! The server always makes the wide table; clients hide the columns they have no room for. A kind
//! without a printer gets its name and creation time. Ages depend on the clock, which
//! is passed in.
//!
//! Matches v1.36 pkg/printers/internalversion/printers.go and the transforms in
//! apiserver/pkg/endpoints/handlers/response.go.
//!
//! Reading order: `Table` and its rows, `column`, `view` (reading an object), `age`, then the
//! printers by topic.

mod age;
mod column;
mod metadata;
mod printer;
mod printers;
mod view;

use plimsoll_core::object::timestamp::Timestamp;
use serde_json::{Value, json};

use column::Column;
use printer::{Printer, Row};
use view::View;

pub use metadata::{NotAList, NotAnObject, partial_object_metadata, partial_object_metadata_list};

/// The version of `meta.k8s.io` in which a transformed object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVersion {
    /// `meta.k8s.io/v1`.
    V1,
    /// `meta.k8s.io/v1beta1`.
    V1Beta1,
}

impl MetaVersion {
    /// As `apiVersion` has it.
    pub const fn api_version(self) -> &'static str {
        match self {
            MetaVersion::V1 => "meta.k8s.io/v1",
            MetaVersion::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What the rows of a Table contain of their objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// The metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
    /// Nothing.
    None,
}

/// The options of a table.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The time that ages are counted to.
    pub now: Timestamp,
    /// What the rows contain of their objects.
    pub include_object: IncludeObject,
    /// The version of the table itself.
    pub version: MetaVersion,
    /// Whether the columns are described. In a watch only the first event describes them.
    pub has_headers: bool,
}

/// The table of an object or of a list of objects. `kind` and `group` are those of the objects,
/// not of their list.
pub fn table(group: &str, kind: &str, object: &Value, options: &Options) -> Value {
    let printer = printers::printer(group, kind);
    let items = object.get("items").and_then(Value::as_array);
    let rows: Vec<Value> = match items {
        Some(items) => items
            .iter()
            .map(|item| match options.include_object {
                IncludeObject::Object => row(&printer, &typed(kind, object, item), options),
                _ => row(&printer, item, options),
            })
            .collect(),
        None => vec![row(&printer, object, options)],
    };
    let columns = match options.has_headers {
        true => printer.columns.iter().map(Column::definition).collect(),
        false => Value::Null,
    };
    json!({
        "kind": "Table",
        "apiVersion": options.version.api_version(),
        "metadata": list_metadata(object),
        "columnDefinitions": columns,
        "rows": rows,
    })
}

/// An item of a list with its kind, which only the list has: a row has no list around it.
fn typed(kind: &str, list: &Value, item: &Value) -> Value {
    let mut item = item.clone();
    item["kind"] = json!(kind);
    item["apiVersion"] = list["apiVersion"].clone();
    item
}

/// The metadata that lists and single objects share: the version, and for lists the continue token.
fn list_metadata(object: &Value) -> Value {
    let mut metadata = json!({});
    for name in ["resourceVersion", "continue", "remainingItemCount"] {
        if let Some(value) = object["metadata"].get(name) {
            metadata[name] = value.clone();
        }
    }
    metadata
}

fn row(printer: &Printer, object: &Value, options: &Options) -> Value {
    let Row { cells, conditions } = (printer.row)(View::new(object, options.now));
    let mut row = json!({"cells": cells});
    if !conditions.is_empty() {
        row["conditions"] = Value::Array(conditions);
    }
    row["object"] = match options.include_object {
        IncludeObject::Object => object.clone(),
        IncludeObject::None if !ends_initial_events(object) => Value::Null,
        _ => partial_object_metadata(object, options.version),
    };
    row
}

/// The bookmark that ends the initial events of a watch is recognized by its annotation, so its
/// metadata is always sent.
fn ends_initial_events(object: &Value) -> bool {
    object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"
}

#[cfg(test)]
mod tests;
