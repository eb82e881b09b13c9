//! Colour of text.

use plimsoll_core::lint::Level;

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    On,
    Off,
}

/// Colours text, or leaves it unchanged.
#[derive(Clone, Copy, Debug)]
pub struct Palette(pub Colour);

impl Palette {
    pub fn level(self, level: Level) -> String {
        let code = match level {
            Level::Error => "1;31",
            Level::Warning => "1;33",
            Level::Info => "1;36",
        };
        self.paint(level.as_str(), code)
    }

    pub fn heading(self, text: &str) -> String {
        self.paint(text, "1")
    }

    pub fn faint(self, text: &str) -> String {
        self.paint(text, "2")
    }

    /// Colour of normal values.
    pub fn calm(self, text: &str) -> String {
        self.paint(text, "32")
    }

    /// Colour of values near a threshold.
    pub fn near(self, text: &str) -> String {
        self.paint(text, "33")
    }

    /// Colour of values beyond a threshold.
    pub fn alarming(self, text: &str) -> String {
        self.paint(text, "1;31")
    }

    fn paint(self, text: &str, code: &str) -> String {
        match self.0 {
            Colour::On => format!("\x1b[{code}m{text}\x1b[0m"),
            Colour::Off => text.to_owned(),
        }
    }
}
