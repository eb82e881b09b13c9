//! Reads the table of types.

use std::collections::BTreeMap;

use super::{Field, Omit, Schema, Shape, Struct, Type, TypeId};

/// Reads the whole table. It is part of the program, so a malformed one is a broken invariant.
pub(super) fn read(text: &'static str) -> Schema {
    let mut reader = Reader {
        schema: Schema {
            types: Vec::new(),
            by_name: BTreeMap::new(),
        },
    };
    let lines = || text.lines().filter(|line| !line.starts_with('#'));
    // Names come first, so that fields may refer to types further down.
    for line in lines().filter(|line| !line.starts_with(' ')) {
        let name = line.split(' ').next().unwrap_or_default();
        reader.declare(name);
    }
    let mut current = None;
    for line in lines() {
        match line.strip_prefix(' ') {
            Some(field) => {
                let id = current.expect("a field stands below the struct it belongs to");
                let field = reader.field(field);
                reader.add_field(id, field);
            }
            None => {
                let (name, of) = line.split_once(' ').unwrap_or((line, ""));
                let id = reader.schema.by_name[name];
                current = Some(id);
                reader.schema.types[id.0].shape = reader.named_shape(name, of);
            }
        }
    }
    reader.schema
}

struct Reader {
    schema: Schema,
}

impl Reader {
    fn declare(&mut self, name: &'static str) -> TypeId {
        let (package, bare) = name.split_once('.').unwrap_or(("", name));
        let package = match package {
            "resource" if bare == "Quantity" => package,
            "intstr" | "runtime" | "types" => package,
            _ => "v1",
        };
        let id = self.push(format!("{package}.{bare}"), Shape::Raw);
        self.schema.by_name.insert(name, id);
        id
    }

    fn push(&mut self, go_name: String, shape: Shape) -> TypeId {
        self.schema.types.push(Type { go_name, shape });
        TypeId(self.schema.types.len() - 1)
    }

    /// What a type with a name is: a struct, whose fields follow, or what `of` says.
    fn named_shape(&mut self, name: &'static str, of: &'static str) -> Shape {
        if of.is_empty() {
            return Shape::Struct(Struct {
                qualified_name: name,
                name: name.split_once('.').map_or(name, |(_, bare)| bare),
                fields: Vec::new(),
                index: BTreeMap::new(),
            });
        }
        let id = self.type_of(of);
        self.schema[id].shape.clone()
    }

    fn field(&mut self, line: &'static str) -> Field {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let of = self.type_of(words.next().unwrap_or_default());
        let (omit, name) = match (name.strip_prefix('!'), name.strip_prefix('?')) {
            (Some(name), _) => (Omit::Never, name),
            (_, Some(name)) => (Omit::Zero, name),
            (None, None) => (Omit::Empty, name),
        };
        let embedded_in = words.filter_map(|word| word.strip_prefix('<')).collect();
        Field {
            name,
            of,
            omit,
            embedded_in,
        }
    }

    fn add_field(&mut self, id: TypeId, field: Field) {
        let Shape::Struct(fields) = &mut self.schema.types[id.0].shape else {
            unreachable!("only structs have fields below them");
        };
        fields.index.insert(field.name, fields.fields.len());
        fields.fields.push(field);
    }

    /// The type that a text of the table names; composite types are made on first use.
    fn type_of(&mut self, text: &'static str) -> TypeId {
        if let Some(id) = self.schema.by_name.get(text) {
            return *id;
        }
        let (go_name, shape) = if let Some(inner) = text.strip_prefix('*') {
            let inner = self.type_of(inner);
            (
                format!("*{}", self.schema[inner].go_name),
                Shape::Pointer(inner),
            )
        } else if text == "[]byte" {
            ("[]uint8".to_owned(), Shape::Bytes)
        } else if let Some(item) = text.strip_prefix("[]") {
            let item = self.type_of(item);
            (
                format!("[]{}", self.schema[item].go_name),
                Shape::List(item),
            )
        } else if let Some((key, value)) = text.strip_prefix('{').and_then(|s| s.split_once('}')) {
            let (key, value) = (self.type_of(key), self.type_of(value));
            let go_name = format!(
                "map[{}]{}",
                self.schema[key].go_name, self.schema[value].go_name
            );
            (go_name, Shape::Map(value))
        } else {
            (text.to_owned(), scalar(text))
        };
        let id = self.push(go_name, shape);
        self.schema.by_name.insert(text, id);
        id
    }
}

fn scalar(name: &str) -> Shape {
    match name {
        "string" => Shape::String,
        "bool" => Shape::Bool,
        "int32" => Shape::Integer { bits: 32 },
        "int64" | "int" => Shape::Integer { bits: 64 },
        "float64" => Shape::Float,
        "quantity" => Shape::Quantity,
        "time" => Shape::Time,
        "microTime" => Shape::MicroTime,
        "duration" => Shape::Duration,
        "intOrString" => Shape::IntOrString,
        "raw" => Shape::Raw,
        other => unreachable!("the table names no type {other}"),
    }
}
