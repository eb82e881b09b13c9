//! Human-readable text: aligned tables, amounts, durations, paragraphs, and colour.

mod amount;
mod colour;
mod paragraph;
mod span;
mod table;
mod terminal;

pub use amount::Unit;
pub use colour::{Colour, Palette};
pub use paragraph::{join_wrapped, wrap};
pub use span::span;
pub use table::Table;
pub use terminal::Terminal;
