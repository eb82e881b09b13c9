//! Looking up a patch's fields in the table.

use plimsoll_core::problem::quoted;

use super::StrategicError;
use crate::machinery::schema::{Patch, Shape, StructId, Type, schema};

/// The type at a merge's location: a struct, or a type that has no fields.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    Struct(StructId),
    Other(&'a Type),
}

/// A field: the location where merging continues, and the strategy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) place: Place<'static>,
    pub(super) patch: &'static Patch,
}

impl Place<'static> {
    pub(super) fn of_struct(id: StructId) -> Place<'static> {
        Place::Struct(id)
    }

    fn of_type(ty: &'static Type) -> Place<'static> {
        match ty.pointee().shape {
            Shape::Struct(id) => Place::Struct(id),
            _ => Place::Other(ty.pointee()),
        }
    }

    /// Go's word for the kind of type.
    pub(super) fn go_kind(self) -> &'static str {
        match self {
            Place::Struct(_) => "struct",
            Place::Other(ty) => ty.go_kind(),
        }
    }

    fn field(self, key: &str) -> Result<(&'static Type, &'static Patch), StrategicError> {
        let id = match self {
            Place::Struct(id) => id,
            Place::Other(ty) if ty.go_kind() == "struct" => {
                let go_name = ty.go_name();
                let name = go_name.rsplit('.').next().unwrap_or_default();
                return Err(unknown_field(name, key));
            }
            Place::Other(ty) => {
                return Err(StrategicError::Other(format!(
                    "merging an object in json but data type is not struct, instead is: {}",
                    ty.go_kind()
                )));
            }
        };
        let definition = schema().get(id);
        let field = definition
            .field_ignoring_case(key)
            .ok_or_else(|| unknown_field(definition.name, key))?;
        Ok((&field.ty, &field.patch))
    }

    /// The field `key` that is an object on both sides.
    pub(super) fn object_field(self, key: &str) -> Result<Found, StrategicError> {
        let (ty, patch) = self.field(key)?;
        Ok(Found {
            place: Place::of_type(ty),
            patch,
        })
    }

    /// The field `key` that is a list on both sides; the location is that of an item.
    pub(super) fn list_field(self, key: &str) -> Result<Found, StrategicError> {
        let (ty, patch) = self.field(key)?;
        let place = match &ty.shape {
            Shape::List(item) => Place::of_type(item),
            Shape::Pointer(inner) => match &inner.shape {
                Shape::List(item) => Place::of_type(item),
                _ => Place::of_type(inner),
            },
            _ => {
                // Upstream prints the kind of the parent.
                return Err(StrategicError::Other(format!(
                    "expected slice or array type, but got: {}",
                    self.go_kind()
                )));
            }
        };
        Ok(Found { place, patch })
    }
}

fn unknown_field(name: &str, key: &str) -> StrategicError {
    let key = quoted(key);
    StrategicError::Other(format!(
        "unable to find api field in struct {name} for the json field {key}"
    ))
}
