//! Printing for people: aligned tables, and colour only on a terminal.

mod colour;
mod table;

pub(crate) use colour::{Colour, Palette};
pub(crate) use table::Table;
