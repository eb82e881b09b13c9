//! The table in memory.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use serde_json::Value;

use super::parse;
use crate::kinds::GroupVersionKind;

/// All types of the API.
#[derive(Debug)]
pub struct Schema {
    pub(super) structs: Vec<Struct>,
    /// apiVersion -> kind -> struct.
    pub(super) kinds: BTreeMap<&'static str, BTreeMap<&'static str, StructId>>,
    /// package -> name -> struct.
    pub(super) packages: BTreeMap<&'static str, BTreeMap<&'static str, StructId>>,
    /// (kind, version, group) -> struct: every write looks it up several times.
    pub(super) types: BTreeMap<(&'static str, &'static str, &'static str), StructId>,
}

/// A struct's index in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructId(pub(super) usize);

/// A Go struct: named fields in the order they are written in.
#[derive(Debug)]
pub struct Struct {
    /// The group's short name, such as `core`.
    pub package: &'static str,
    /// The Go name, such as `PodSpec`.
    pub name: &'static str,
    /// Server-side apply gives the whole value one owner.
    pub is_atomic: bool,
    /// In Go's order, which is the order of the JSON text.
    pub fields: Vec<Field>,
    pub(super) by_name: FieldNames,
    /// The indexes of the fields that are printed even when nothing is set.
    pub(super) printed: Vec<usize>,
    /// The zero struct, created on first use.
    pub(super) empty: OnceLock<Value>,
}

/// The indexes of a struct's fields, found by name.
///
/// Every member of every object is looked up several times per write. Names of one length are few,
/// so that most lookups compare one or two texts.
#[derive(Debug, Default)]
pub(super) struct FieldNames {
    by_length: Vec<Vec<usize>>,
}

impl FieldNames {
    pub(super) fn insert(&mut self, name: &str, index: usize) {
        if self.by_length.len() <= name.len() {
            self.by_length.resize_with(name.len() + 1, Vec::new);
        }
        self.by_length[name.len()].push(index);
    }

    fn find<'f>(&self, name: &str, fields: &'f [Field]) -> Option<&'f Field> {
        let same_length = self.by_length.get(name.len())?.iter();
        let mut fields = same_length.map(|&index| &fields[index]);
        fields.find(|field| field.name == name)
    }
}

/// One field of a struct.
#[derive(Debug)]
pub struct Field {
    /// The JSON name.
    pub name: &'static str,
    /// Its type.
    pub ty: Type,
    /// When it is written.
    pub emit: Emit,
    /// Its strategic merge patch strategy.
    pub patch: Patch,
    /// How server-side apply owns the items, if it is a list.
    pub list: ListType,
    /// Server-side apply gives this map or struct one owner.
    pub is_atomic: bool,
    /// The default of a key field in an item that leaves it out.
    pub key_default: Option<Value>,
    /// The embedded structs that it comes from, outermost first.
    pub embedded_in: Vec<&'static str>,
    /// Its number in protobuf, after the numbers of the structs it is inlined from; empty for
    /// fields that protobuf does not carry.
    pub numbers: Vec<u32>,
}

/// When Go writes a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// Always, be it empty.
    Always,
    /// Unless it is empty; structs are never empty in this sense.
    OmitEmpty,
    /// Unless it is zero; structs too.
    OmitZero,
}

/// The struct tags `patchStrategy` and `patchMergeKey`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// `merge` or `replace`; empty stands for neither.
    pub strategy: &'static str,
    /// The field that identifies an item; empty for lists of scalars.
    pub merge_key: &'static str,
    /// The whole tag, as OpenAPI documents repeat it: `merge,retainKeys`.
    pub tag: &'static str,
}

/// Who owns the items of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// One owner for the whole list.
    Atomic,
    /// Each scalar has owners of its own.
    Set,
    /// Each item has owners of its own; these fields identify it.
    Map(Vec<&'static str>),
}

/// The type of a field, an item or a map's value.
#[derive(Clone, Debug)]
pub struct Type {
    /// Its JSON form.
    pub shape: Shape,
    /// The name Go's errors print, such as `v1.RestartPolicy`. Empty for unnamed types.
    pub(super) go_name: String,
}

/// The JSON shape of a type.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A boolean.
    Bool,
    /// A whole number of so many bits.
    Int(u8),
    /// A number.
    Float,
    /// A text.
    String,
    /// Bytes, in JSON as base64 text.
    Bytes,
    /// `100m`, `1Gi`; a number is taken too.
    Quantity,
    /// A whole number or a text.
    IntOrString,
    /// A point in time, whole seconds.
    Time,
    /// A point in time, microseconds.
    MicroTime,
    /// Any JSON, kept as it is.
    Raw,
    /// May be null; else the inner type.
    Pointer(Box<Type>),
    /// A list.
    List(Box<Type>),
    /// A map from texts.
    Map(Box<Type>),
    /// Named fields.
    Struct(StructId),
}

static SCHEMA: LazyLock<Schema> = LazyLock::new(parse::parse_tables);

/// The table; parsed once.
pub fn schema() -> &'static Schema {
    &SCHEMA
}

impl Schema {
    /// The struct of a kind, if it is in the table.
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<StructId> {
        self.kinds.get(api_version)?.get(kind).copied()
    }

    /// The struct of a kind, if it is in the table.
    pub fn of(&self, kind: GroupVersionKind) -> Option<StructId> {
        let key = (kind.kind, kind.version, kind.group);
        self.types.get(&key).copied()
    }

    /// The struct of a name with its package: `meta.LabelSelector`.
    pub fn named(&self, name: &str) -> Option<StructId> {
        let (package, name) = name.split_once('.')?;
        self.packages.get(package)?.get(name).copied()
    }

    /// The struct at an index.
    pub fn get(&self, id: StructId) -> &Struct {
        &self.structs[id.0]
    }

    /// All kinds as (apiVersion, kind).
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.kinds
            .iter()
            .flat_map(|(version, kinds)| kinds.keys().map(|kind| (*version, *kind)))
    }
}

impl Struct {
    /// The fields that are printed even when nothing is set.
    pub(super) fn printed_fields(&self) -> impl Iterator<Item = &Field> {
        self.printed.iter().map(|index| &self.fields[*index])
    }

    /// The field of this JSON name; case matters.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.by_name.find(name, &self.fields)
    }

    /// The field of this name, or else one whose name differs in case only.
    pub fn field_ignoring_case(&self, name: &str) -> Option<&Field> {
        self.field(name).or_else(|| {
            self.fields
                .iter()
                .find(|field| field.name.eq_ignore_ascii_case(name))
        })
    }
}

impl Field {
    /// Whether Go prints it when it is not set: if it has no `omitempty`, or if it is a struct in
    /// Go, which is never empty.
    pub(super) fn is_printed_unset(&self) -> bool {
        match self.emit {
            Emit::Always => true,
            Emit::OmitZero => false,
            Emit::OmitEmpty => matches!(
                self.ty.shape,
                Shape::Quantity
                    | Shape::IntOrString
                    | Shape::Time
                    | Shape::MicroTime
                    | Shape::Raw
                    | Shape::Struct(_)
            ),
        }
    }
}

impl Type {
    pub(super) fn unnamed(shape: Shape) -> Type {
        Type {
            shape,
            go_name: String::new(),
        }
    }

    /// The type behind the pointers.
    pub fn pointee(&self) -> &Type {
        match &self.shape {
            Shape::Pointer(inner) => inner.pointee(),
            _ => self,
        }
    }

    /// The type as Go's reflection prints it: `map[string]string`, `[]v1.Container`.
    pub fn go_name(&self) -> String {
        if !self.go_name.is_empty() {
            return self.go_name.clone();
        }
        match &self.shape {
            Shape::Bool => "bool".to_owned(),
            Shape::Int(64) => "int64".to_owned(),
            Shape::Int(_) => "int32".to_owned(),
            Shape::Float => "float64".to_owned(),
            Shape::String => "string".to_owned(),
            Shape::Bytes => "[]uint8".to_owned(),
            Shape::Pointer(inner) => format!("*{}", inner.go_name()),
            Shape::List(item) => format!("[]{}", item.go_name()),
            Shape::Map(value) => format!("map[string]{}", value.go_name()),
            // These all carry a name.
            _ => String::new(),
        }
    }

    /// Go's word for the kind of type, as reflection prints it.
    pub fn go_kind(&self) -> &'static str {
        match &self.shape {
            Shape::Bool => "bool",
            Shape::Int(64) => "int64",
            Shape::Int(_) => "int32",
            Shape::Float => "float64",
            Shape::String => "string",
            Shape::Bytes | Shape::List(_) => "slice",
            Shape::Pointer(_) => "ptr",
            Shape::Map(_) => "map",
            _ => "struct",
        }
    }
}
