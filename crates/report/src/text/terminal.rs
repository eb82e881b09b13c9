//! Properties of the terminal that a text is rendered for.

use super::Colour;

/// The terminal, or its replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// In characters.
    pub width: usize,
    /// In lines.
    pub height: usize,
    /// Whether the locale is UTF-8.
    pub is_unicode: bool,
    /// Whether standard output is a terminal.
    pub is_interactive: bool,
    /// Whether texts are coloured.
    pub colour: Colour,
}
