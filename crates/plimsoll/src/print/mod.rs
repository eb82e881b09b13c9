//! Human-readable output: aligned tables, amounts, durations, and colour on terminals.

mod alternate_screen;
mod amount;
mod colour;
mod paragraph;
mod span;
mod stdout;
mod table;
mod terminal;

pub(crate) use alternate_screen::AlternateScreen;
pub(crate) use amount::Unit;
pub(crate) use colour::{Colour, Palette};
pub(crate) use paragraph::{join_wrapped, wrap};
pub(crate) use span::span;
pub(crate) use stdout::write;
pub(crate) use table::Table;
pub(crate) use terminal::Terminal;
