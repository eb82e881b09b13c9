//! The Go types behind the kinds that are served, as far as JSON shows them.
//!
//! What upstream decodes, refuses and prints follows from its Go structs: which fields exist, which
//! are left out when empty, which keep a zero because they are pointers, and how a type is called
//! in an error. The table is `types.txt`.
//!
//! Reading order: this file, `table` (reads the text), `canonical` (objects as upstream prints
//! them), `print`, `walk`.

mod canonical;
mod print;
mod table;
mod walk;

use std::collections::BTreeMap;
use std::sync::LazyLock;

pub use canonical::canonicalize;
pub use print::go_json;
pub use walk::walk;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| table::read(include_str!("types.txt")));

/// All types.
#[derive(Debug)]
pub struct Schema {
    types: Vec<Type>,
    by_name: BTreeMap<&'static str, TypeId>,
}

/// A type of the [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeId(usize);

/// A Go type.
#[derive(Debug)]
pub struct Type {
    /// As Go's errors print it: `v1.PodSpec`, `[]v1.Container`, `int32`.
    pub go_name: String,
    /// What its JSON looks like.
    pub shape: Shape,
}

/// What the JSON of a type looks like.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A text.
    String,
    /// A boolean.
    Bool,
    /// A whole number of that many bits.
    Integer {
        /// 32 or 64.
        bits: u32,
    },
    /// Any number.
    Float,
    /// Base64.
    Bytes,
    /// A text or a number that `resource.Quantity` reads.
    Quantity,
    /// RFC 3339, printed in whole seconds.
    Time,
    /// RFC 3339 with exactly six digits behind the seconds.
    MicroTime,
    /// A Go duration such as `1m30s`.
    Duration,
    /// A whole number or a text.
    IntOrString,
    /// Any JSON.
    Raw,
    /// Another type, or nothing.
    Pointer(TypeId),
    /// A list.
    List(TypeId),
    /// A map with texts as keys.
    Map(TypeId),
    /// A struct.
    Struct(Struct),
}

/// The fields of a struct.
#[derive(Clone, Debug)]
pub struct Struct {
    /// Its name with the group: `core.PodSpec`.
    pub qualified_name: &'static str,
    /// Its name alone.
    pub name: &'static str,
    /// The fields in the order of the Go declaration.
    pub fields: Vec<Field>,
    index: BTreeMap<&'static str, usize>,
}

/// A field of a struct.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its JSON name.
    pub name: &'static str,
    /// Its type.
    pub of: TypeId,
    /// When it is left out.
    pub omit: Omit,
    /// The embedded structs that it comes from, outermost first.
    pub embedded_in: Vec<&'static str>,
}

/// When a field is left out of the JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Omit {
    /// Never.
    Never,
    /// When it is false, zero, absent or has no items; a struct never is.
    Empty,
    /// When it is zero, structs included.
    Zero,
}

impl Struct {
    /// The field of that name; names are case-sensitive.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.index.get(name).map(|index| &self.fields[*index])
    }
}

impl std::ops::Index<TypeId> for Schema {
    type Output = Type;

    fn index(&self, TypeId(index): TypeId) -> &Type {
        &self.types[index]
    }
}

impl Schema {
    /// The schema of the served version.
    pub fn get() -> &'static Schema {
        &SCHEMA
    }

    /// The type of a kind; the group is spelled as in `apiVersion`.
    pub fn kind(&self, group: &str, kind: &str) -> Option<TypeId> {
        let package = match group.split('.').next() {
            None | Some("") => "core",
            Some(first) => first,
        };
        self.by_name
            .get(format!("{package}.{kind}").as_str())
            .copied()
    }

    /// The type behind pointers.
    pub fn without_pointer(&self, id: TypeId) -> TypeId {
        match self[id].shape {
            Shape::Pointer(inner) => self.without_pointer(inner),
            _ => id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_group_and_name() {
        let schema = Schema::get();
        for (group, kind) in [
            ("", "Pod"),
            ("apps", "Deployment"),
            ("rbac.authorization.k8s.io", "ClusterRole"),
            ("coordination.k8s.io", "Lease"),
        ] {
            assert!(schema.kind(group, kind).is_some(), "{group}/{kind}");
        }
        assert_eq!(schema.kind("apps", "Pod"), None);
    }

    #[test]
    fn types_are_called_as_go_calls_them() {
        let schema = Schema::get();
        let pod = schema.kind("", "Pod").unwrap();
        let field = |id: TypeId, name: &str| match &schema[schema.without_pointer(id)].shape {
            Shape::Struct(fields) => fields.field(name).unwrap().clone(),
            other => panic!("{other:?} is no struct"),
        };
        let spec = field(pod, "spec").of;
        assert_eq!(schema[spec].go_name, "v1.PodSpec");
        assert_eq!(
            schema[field(spec, "containers").of].go_name,
            "[]v1.Container"
        );
        assert_eq!(
            schema[field(spec, "restartPolicy").of].go_name,
            "v1.RestartPolicy"
        );
        assert_eq!(
            schema[field(spec, "nodeSelector").of].go_name,
            "map[string]string"
        );
        let Shape::List(volume) = schema[field(spec, "volumes").of].shape else {
            panic!()
        };
        assert_eq!(field(volume, "emptyDir").embedded_in, ["VolumeSource"]);
    }
}
