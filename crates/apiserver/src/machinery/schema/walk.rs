//! Visiting the structs of some types in an object.

use serde_json::{Map, Value};

use super::structs::{Shape, Struct, StructId, Type, schema};

/// What there is to do with the structs of some types, and where an object can have such structs.
///
/// Made once and used for every write: most parts of an object have nothing to visit.
#[derive(Debug)]
pub struct Visits<T> {
    own: Vec<Option<T>>,
    /// Whether a struct or one within it is visited.
    leads: Vec<bool>,
    /// Whether a struct within it is visited.
    leads_within: Vec<bool>,
}

impl<T> Visits<T> {
    /// Visits to the structs for which `wanted` returns something to do.
    pub fn new(wanted: impl Fn(&'static Struct) -> Option<T>) -> Visits<T> {
        let structs = &schema().structs;
        let own: Vec<Option<T>> = structs.iter().map(wanted).collect();
        let mut leads: Vec<bool> = own.iter().map(Option::is_some).collect();
        let within = |leads: &[bool], definition: &Struct| {
            let mut fields = definition.fields.iter();
            fields.any(|field| struct_of(&field.ty).is_some_and(|id| leads[id.0]))
        };
        loop {
            let more = |(at, of): (usize, &Struct)| !leads[at] && within(&leads, of);
            let found: Vec<bool> = structs.iter().enumerate().map(more).collect();
            if !found.contains(&true) {
                break;
            }
            for (leads, found) in leads.iter_mut().zip(found) {
                *leads |= found;
            }
        }
        let leads_within = structs.iter().map(|of| within(&leads, of)).collect();
        Visits {
            own,
            leads,
            leads_within,
        }
    }

    /// Calls `visit` on each such struct in the object, outer ones before those within.
    ///
    /// `visit` may add members; they are visited too.
    pub fn walk(
        &self,
        id: StructId,
        value: &mut Value,
        visit: &impl Fn(&T, &mut Map<String, Value>),
    ) {
        let Value::Object(members) = value else {
            return;
        };
        if let Some(own) = &self.own[id.0] {
            visit(own, members);
        }
        if !self.leads_within[id.0] {
            return;
        }
        let definition = schema().get(id);
        for (name, value) in members {
            if let Some(field) = definition.field(name) {
                self.walk_type(&field.ty, value, visit);
            }
        }
    }

    fn walk_type(
        &self,
        ty: &Type,
        value: &mut Value,
        visit: &impl Fn(&T, &mut Map<String, Value>),
    ) {
        match (&ty.shape, value) {
            (Shape::Pointer(inner), value) => self.walk_type(inner, value, visit),
            (Shape::List(item), Value::Array(items)) => {
                for value in items {
                    self.walk_type(item, value, visit);
                }
            }
            (Shape::Map(of), Value::Object(members)) => {
                for value in members.values_mut() {
                    self.walk_type(of, value, visit);
                }
            }
            (Shape::Struct(id), value) if self.leads[id.0] => self.walk(*id, value, visit),
            _ => {}
        }
    }
}

/// The struct that a type's values are or hold.
fn struct_of(ty: &Type) -> Option<StructId> {
    match &ty.shape {
        Shape::Pointer(inner) | Shape::List(inner) | Shape::Map(inner) => struct_of(inner),
        Shape::Struct(id) => Some(*id),
        _ => None,
    }
}
