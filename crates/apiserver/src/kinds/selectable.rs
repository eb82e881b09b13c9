//! The fields that can be selected on.
//!
//! Matches v1.36 pkg/apis/*/v1/conversion.go (the accepted labels) and the `ToSelectableFields`
//! of pkg/registry (their values in an object).

use plimsoll_core::object::selector::{FieldRequirement, FieldSelector, Lookup};
use serde_json::Value;

use crate::pointer::at;

/// How a field is read from an object; a missing field reads as upstream's zero value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Read {
    /// A text at a JSON pointer.
    Text(&'static str),
    /// A boolean at a JSON pointer.
    Flag(&'static str),
    /// A number at a JSON pointer.
    Count(&'static str),
    /// The first pointer that has a text.
    First(&'static [&'static str]),
    /// Accepted as a label, but no object has a value for it.
    Nothing,
}

impl Read {
    /// The value in the object. Numbers have no text there; see [`Fields`].
    fn text(self, object: &Value) -> Option<&str> {
        let text = |pointer: &str| at(object, pointer).and_then(Value::as_str);
        match self {
            Read::Text(pointer) => text(pointer),
            Read::Flag(pointer) => Some(match at(object, pointer) {
                Some(Value::Bool(true)) => "true",
                _ => "false",
            }),
            Read::First(pointers) => {
                let mut texts = pointers.iter().filter_map(|pointer| text(pointer));
                texts.find(|text| !text.is_empty())
            }
            Read::Count(_) | Read::Nothing => None,
        }
    }

    /// The JSON pointers that are read.
    fn pointers(&self) -> &[&'static str] {
        match self {
            Read::Text(pointer) | Read::Flag(pointer) | Read::Count(pointer) => {
                std::slice::from_ref(pointer)
            }
            Read::First(pointers) => pointers,
            Read::Nothing => &[],
        }
    }

    fn count(self, object: &Value) -> Option<String> {
        let Read::Count(pointer) = self else {
            return None;
        };
        let count = at(object, pointer).and_then(Value::as_i64);
        Some(count.unwrap_or_default().to_string())
    }
}

/// The selectable fields of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Selectable {
    /// Label and how to read it, apart from `metadata.name` and `metadata.namespace`.
    fields: &'static [(&'static str, Read)],
    /// Deprecated labels and the ones they stand for.
    aliases: &'static [(&'static str, &'static str)],
    /// Whether `metadata.namespace` is a label.
    by_namespace: bool,
    refusal: Refusal,
}

/// The error for an unknown label; upstream has four texts.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    KnownOnly,
    Plain,
    ForKind(&'static str),
    ForGroupVersionKind(&'static str),
}

/// A field selector names a field that cannot be selected on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedField {
    /// The kind has no fields of its own.
    #[error(
        "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        plimsoll_core::problem::quoted(label)
    )]
    NotKnown {
        /// The label.
        label: String,
    },
    /// The kind has fields of its own; this is not one of them.
    #[error("field label not supported: {label}")]
    NotSupported {
        /// The label.
        label: String,
    },
    /// The same in the wording of one kind.
    #[error(
        "field label {} not supported for {kind}",
        plimsoll_core::problem::quoted(label)
    )]
    NotSupportedForKind {
        /// The label.
        label: String,
        /// The kind.
        kind: &'static str,
    },
    /// The same in the wording of another kind.
    #[error("field label not supported for {kind}: {label}")]
    NotSupportedForGroupVersionKind {
        /// The label.
        label: String,
        /// Group, version and kind.
        kind: &'static str,
    },
}

impl Selectable {
    /// `metadata.name` and `metadata.namespace`.
    pub(super) const METADATA: Selectable = Selectable {
        fields: &[],
        aliases: &[],
        by_namespace: true,
        refusal: Refusal::KnownOnly,
    };

    /// These fields as well.
    pub(super) const fn fields(fields: &'static [(&'static str, Read)]) -> Selectable {
        Selectable {
            fields,
            refusal: Refusal::Plain,
            ..Selectable::METADATA
        }
    }

    pub(super) const fn aliases(
        self,
        aliases: &'static [(&'static str, &'static str)],
    ) -> Selectable {
        Selectable { aliases, ..self }
    }

    pub(super) const fn without_namespace(self) -> Selectable {
        Selectable {
            by_namespace: false,
            ..self
        }
    }

    pub(super) const fn refused_for(self, kind: &'static str) -> Selectable {
        Selectable {
            refusal: Refusal::ForKind(kind),
            ..self
        }
    }

    pub(super) const fn refused_for_gvk(self, kind: &'static str) -> Selectable {
        Selectable {
            refusal: Refusal::ForGroupVersionKind(kind),
            ..self
        }
    }

    /// The labels that can be selected on.
    pub fn labels(&self) -> impl Iterator<Item = &'static str> {
        let metadata = ["metadata.name", "metadata.namespace"];
        let metadata = metadata
            .into_iter()
            .take(1 + usize::from(self.by_namespace));
        metadata.chain(self.fields.iter().map(|(label, _)| *label))
    }

    /// The JSON pointers of all fields but the name and the namespace.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = &'static str> {
        self.fields
            .iter()
            .flat_map(|(_, read)| read.pointers().iter().copied())
    }

    /// The selector in the labels that [`Selectable::of`] knows, or the first label that the kind
    /// does not have.
    pub fn convert(&self, selector: &FieldSelector) -> Result<FieldSelector, UnsupportedField> {
        let converted = selector.requirements().iter().map(|requirement| {
            let field = self.convert_label(&requirement.field)?;
            Ok(FieldRequirement {
                field: field.to_owned(),
                ..requirement.clone()
            })
        });
        converted.collect::<Result<_, _>>().map(FieldSelector::new)
    }

    fn convert_label<'a>(&self, label: &'a str) -> Result<&'a str, UnsupportedField> {
        if let Some((_, meant)) = self.aliases.iter().find(|(alias, _)| *alias == label) {
            return Ok(meant);
        }
        if self.labels().any(|known| known == label) {
            return Ok(label);
        }
        let label = label.to_owned();
        Err(match self.refusal {
            Refusal::KnownOnly => UnsupportedField::NotKnown { label },
            Refusal::Plain => UnsupportedField::NotSupported { label },
            Refusal::ForKind(kind) => UnsupportedField::NotSupportedForKind { label, kind },
            Refusal::ForGroupVersionKind(kind) => {
                UnsupportedField::NotSupportedForGroupVersionKind { label, kind }
            }
        })
    }

    /// The object's fields, to be matched by a converted selector.
    pub fn of<'a>(&self, object: &'a Value) -> Fields<'a> {
        let counts = self.fields.iter();
        let counts = counts.filter_map(|(label, read)| Some((*label, read.count(object)?)));
        Fields {
            object,
            fields: self.fields,
            counts: counts.collect(),
        }
    }
}

/// The selectable fields of one object, read on demand.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    object: &'a Value,
    fields: &'static [(&'static str, Read)],
    /// The numbers among the fields as texts; few kinds have any.
    counts: Vec<(&'static str, String)>,
}

impl Lookup for Fields<'_> {
    fn lookup(&self, label: &str) -> Option<&str> {
        let read = match label {
            "metadata.name" => Read::Text("/metadata/name"),
            "metadata.namespace" => Read::Text("/metadata/namespace"),
            _ => self.fields.iter().find(|(known, _)| *known == label)?.1,
        };
        let count = || self.counts.iter().find(|(known, _)| *known == label);
        let text = read.text(self.object);
        text.or_else(|| count().map(|(_, text)| text.as_str()))
    }
}
