//! Validation errors of an object.

use std::fmt;

use plimsoll_core::problem::{Problem, json_text, quoted};
use plimsoll_core::quantity::Quantity;
use serde::Serialize;

use crate::machinery::schema::encode::go_json;

use super::path::Path;

/// The problems found so far, in upstream's order.
#[derive(Debug, Default)]
pub struct Problems {
    found: Vec<Problem>,
}

/// A value in the format of an error.
pub struct Shown(String);

impl Shown {
    /// A value that is formatted already.
    pub(super) fn bare(text: impl Into<String>) -> Shown {
        Shown(text.into())
    }
}

impl From<&str> for Shown {
    fn from(text: &str) -> Shown {
        Shown(quoted(text))
    }
}

impl From<&String> for Shown {
    fn from(text: &String) -> Shown {
        Shown(quoted(text))
    }
}

macro_rules! shown_bare {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Shown {
            fn from(value: $kind) -> Shown {
                Shown(value.to_string())
            }
        }
    )*};
}
shown_bare!(i32, i64, bool);

/// A value in JSON format, which upstream uses for everything but plain strings, numbers and
/// booleans; its enumerations have types of their own and count as everything else.
pub(super) fn json(value: &impl Serialize) -> Shown {
    Shown(json_text(value))
}

/// A value of an API type in the format of Go's encoder; see [`go_json`].
pub(super) fn api(type_name: &str, value: &impl Serialize) -> Shown {
    Shown(go_json(type_name, value))
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Problems {
    /// The problems.
    pub fn into_vec(self) -> Vec<Problem> {
        self.found
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    pub(super) fn extend(&mut self, problems: impl IntoIterator<Item = Problem>) {
        self.found.extend(problems);
    }

    pub(super) fn truncate_to(&mut self, len: usize) {
        self.found.truncate(len);
    }

    pub(super) fn push(&mut self, problem: Problem) {
        self.found.push(problem);
    }

    pub(super) fn invalid(
        &mut self,
        path: &Path<'_>,
        value: impl Into<Shown>,
        detail: impl Into<String>,
    ) {
        let Shown(value) = value.into();
        self.push(Problem::invalid_bare(path.to_string(), value, detail));
    }

    /// One problem for each violated rule.
    pub(super) fn invalid_each(&mut self, path: &Path<'_>, value: &str, broken: Vec<String>) {
        for rule in broken {
            self.invalid(path, value, rule);
        }
    }

    pub(super) fn required(&mut self, path: &Path<'_>, detail: impl Into<String>) {
        self.push(Problem::required(path.to_string(), detail));
    }

    /// A required text.
    pub(super) fn require_text(&mut self, path: &Path<'_>, text: &str) {
        if text.is_empty() {
            self.required(path, "");
        }
    }

    pub(super) fn forbidden(&mut self, path: &Path<'_>, detail: impl Into<String>) {
        self.push(Problem::forbidden(path.to_string(), detail));
    }

    /// Rejects a value that is set.
    pub(super) fn forbid_if(&mut self, is_set: bool, path: &Path<'_>, detail: &str) {
        if is_set {
            self.forbidden(path, detail);
        }
    }

    pub(super) fn duplicate(&mut self, path: &Path<'_>, value: &str) {
        self.push(Problem::duplicate(path.to_string(), value));
    }

    /// A value that is not a text.
    pub(super) fn duplicate_bare(&mut self, path: &Path<'_>, Shown(value): Shown) {
        self.push(Problem::duplicate(path.to_string(), "").with_value(value));
    }

    pub(super) fn not_found(&mut self, path: &Path<'_>, value: &str) {
        self.push(Problem::not_found(path.to_string(), value));
    }

    pub(super) fn not_supported(&mut self, path: &Path<'_>, value: &str, supported: &[&str]) {
        self.push(Problem::not_supported(path.to_string(), value, supported));
    }

    /// As [`Problems::not_supported`], for values that are not texts.
    pub(super) fn not_supported_value(
        &mut self,
        path: &Path<'_>,
        Shown(value): Shown,
        supported: &[&str],
    ) {
        let problem = Problem::not_supported(path.to_string(), "", supported);
        self.push(problem.with_value(value));
    }

    /// Rejects a text that is not one of the supported ones.
    pub(super) fn one_of(&mut self, path: &Path<'_>, value: &str, supported: &[&str]) {
        if !supported.contains(&value) {
            self.not_supported(path, value, supported);
        }
    }

    /// As [`Problems::one_of`], but a missing text is `Required`.
    pub(super) fn required_one_of(&mut self, path: &Path<'_>, value: &str, supported: &[&str]) {
        if value.is_empty() {
            self.required(path, "");
        } else {
            self.one_of(path, value, supported);
        }
    }

    pub(super) fn too_long(&mut self, path: &Path<'_>, most: usize) {
        self.push(Problem::too_long(path.to_string(), most));
    }

    pub(super) fn too_many(&mut self, path: &Path<'_>, given: usize, most: usize) {
        if given > most {
            self.push(Problem::too_many(path.to_string(), given, most));
        }
    }

    pub(super) fn internal(&mut self, path: &Path<'_>, detail: impl Into<String>) {
        self.push(Problem::internal(path.to_string(), detail));
    }

    pub(super) fn nonnegative(&mut self, path: &Path<'_>, value: impl Into<i64>) {
        let value = value.into();
        if value < 0 {
            self.invalid(path, value, "must be greater than or equal to 0");
        }
    }

    pub(super) fn positive(&mut self, path: &Path<'_>, value: impl Into<i64>) {
        let value = value.into();
        if value <= 0 {
            self.invalid(path, value, "must be greater than zero");
        }
    }

    /// A quantity that must not be negative; one that does not parse was rejected before.
    pub(super) fn nonnegative_quantity(&mut self, path: &Path<'_>, amount: &str) {
        if let Ok(quantity) = amount.parse::<Quantity>()
            && quantity.signum() < 0
        {
            let shown = quantity.to_string();
            self.invalid(path, &shown, "must be greater than or equal to 0");
        }
    }

    /// A quantity that is required to be positive.
    pub(super) fn positive_quantity(&mut self, path: &Path<'_>, amount: &str) {
        self.nonnegative_quantity(path, amount);
        if let Ok(quantity) = amount.parse::<Quantity>()
            && quantity.signum() <= 0
        {
            self.invalid(path, &quantity.to_string(), "must be greater than zero");
        }
    }

    /// Both `lowest` and `highest` are valid.
    pub(super) fn in_range(&mut self, path: &Path<'_>, value: i64, lowest: i64, highest: i64) {
        if value < lowest || value > highest {
            self.invalid(
                path,
                value,
                format!("must be between {lowest} and {highest}, inclusive"),
            );
        }
    }

    /// Rejects a value that differs from the old one.
    pub(super) fn immutable<T: PartialEq + Serialize>(
        &mut self,
        path: &Path<'_>,
        new: &T,
        old: &T,
    ) {
        if new != old {
            self.invalid(path, json(new), FIELD_IS_IMMUTABLE);
        }
    }
}

/// Upstream's message about a changed immutable field.
pub(super) const FIELD_IS_IMMUTABLE: &str = "field is immutable";
