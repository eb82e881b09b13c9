//! Table columns.

use serde_json::{Value, json};

use crate::kinds::schemas;

/// One column of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    name: &'static str,
    ty: &'static str,
    format: &'static str,
    doc: Doc,
    priority: u8,
}

/// The source of a column's description.
#[derive(Clone, Copy, Debug)]
pub(super) enum Doc {
    /// A text of its own.
    Text(&'static str),
    /// The description of an API field: the type's schema, and the field in it.
    Field(&'static str, &'static str),
}

impl Column {
    /// A column of texts.
    pub(super) const fn text(name: &'static str, description: &'static str) -> Column {
        Column {
            name,
            ty: "string",
            format: "",
            doc: Doc::Text(description),
            priority: 0,
        }
    }

    /// A column of texts that shows a field of the API. `ty` is a schema without `io.k8s.`.
    pub(super) const fn field(name: &'static str, ty: &'static str, field: &'static str) -> Column {
        Column {
            doc: Doc::Field(ty, field),
            ..Column::text(name, "")
        }
    }

    pub(super) const fn integer(self) -> Column {
        Column {
            ty: "integer",
            ..self
        }
    }

    pub(super) const fn boolean(self) -> Column {
        Column {
            ty: "boolean",
            ..self
        }
    }

    pub(super) const fn date(self) -> Column {
        Column { ty: "date", ..self }
    }

    pub(super) const fn names(self) -> Column {
        Column {
            format: "name",
            ..self
        }
    }

    /// Shown only in wide output.
    pub(super) const fn wide(self) -> Column {
        Column {
            priority: 1,
            ..self
        }
    }

    /// Shown in every output.
    pub(super) const fn narrow(self) -> Column {
        Column {
            priority: 0,
            ..self
        }
    }

    pub(super) fn definition(&self) -> Value {
        let description = match self.doc {
            Doc::Text(text) => text,
            Doc::Field(ty, field) => schemas::description(ty, field),
        };
        json!({
            "name": self.name,
            "type": self.ty,
            "format": self.format,
            "description": description,
            "priority": self.priority,
        })
    }
}

const OBJECT_META: &str = "apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The name of the object.
pub(super) const NAME: Column = Column::field("Name", OBJECT_META, "name").names();
/// The age of the object.
pub(super) const AGE: Column = Column::field("Age", OBJECT_META, "creationTimestamp");
/// The creation time of the object, for kinds without a printer.
pub(super) const CREATED_AT: Column =
    Column::field("Created At", OBJECT_META, "creationTimestamp").date();
/// The containers of a pod template.
pub(super) const CONTAINERS: Column =
    Column::text("Containers", "Names of each container in the template.").wide();
/// The images of a pod template.
pub(super) const IMAGES: Column = Column::text(
    "Images",
    "Images referenced by each container in the template.",
)
.wide();
