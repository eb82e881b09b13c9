//! Selectors: which objects are meant, by label, by field, or by node.
//!
//! A selector is parsed once; matching takes a [`Lookup`] and allocates nothing. Which fields a
//! kind can be selected by is not decided here: the field selector knows only texts.
//!
//! Reading order: `requirement` (one demand on one label), `label` (all demands of a selector),
//! `parse` (the grammar of label selector strings), `field`, `node` (node selector terms and node
//! affinity of pods).

use std::collections::BTreeMap;

mod field;
mod label;
mod node;
mod parse;
mod requirement;

pub use field::{FieldOperator, FieldRequirement, FieldSelector, FieldSelectorError};
pub use label::{LabelSelector, ObjectError, format_label_selector};
pub use node::{
    NodeSelector, PreferredNodeAffinity, RequiredNodeAffinity, UnmetAffinity, UnmetTerm,
};
pub use parse::{ParseError, RequirementError, Unexpected};
pub use requirement::{Operator, Requirement};

/// Where labels or fields are looked up by name.
pub trait Lookup {
    /// The value of that name, if there is one.
    fn lookup(&self, name: &str) -> Option<&str>;
}

impl Lookup for BTreeMap<String, String> {
    fn lookup(&self, name: &str) -> Option<&str> {
        self.get(name).map(String::as_str)
    }
}
