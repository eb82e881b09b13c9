//! A printer: columns, and a function from an object to its row.

use serde_json::Value;

use super::column::Column;
use super::view::View;

/// The printer of a kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Printer {
    pub(super) columns: &'static [Column],
    pub(super) row: fn(View<'_>) -> Row,
}

/// The row of one object.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) cells: Vec<Value>,
    pub(super) conditions: Vec<Value>,
}

/// A row of the given cells: texts, numbers or booleans.
macro_rules! row {
    ($($cell:expr),* $(,)?) => {
        $crate::machinery::table::printer::Row {
            cells: vec![$(serde_json::json!($cell)),*],
            conditions: Vec::new(),
        }
    };
}
pub(super) use row;
