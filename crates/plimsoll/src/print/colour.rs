//! Colour on terminals.

use std::io::IsTerminal;

use plimsoll_core::lint::Level;

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    On,
    Off,
}

impl Colour {
    /// For standard output.
    pub(crate) fn for_stdout() -> Colour {
        Colour::on(&std::io::stdout())
    }

    /// For standard error.
    pub(crate) fn for_stderr() -> Colour {
        Colour::on(&std::io::stderr())
    }

    /// On for a terminal, unless `NO_COLOR` is set to anything.
    fn on(stream: &impl IsTerminal) -> Colour {
        let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if stream.is_terminal() && !is_unwanted {
            Colour::On
        } else {
            Colour::Off
        }
    }
}

/// Colours text, or leaves it unchanged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette(pub(crate) Colour);

impl Palette {
    pub(crate) fn level(self, level: Level) -> String {
        let code = match level {
            Level::Error => "1;31",
            Level::Warning => "1;33",
            Level::Info => "1;36",
        };
        self.paint(level.as_str(), code)
    }

    pub(crate) fn heading(self, text: &str) -> String {
        self.paint(text, "1")
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.paint(text, "2")
    }

    /// Colour of normal values.
    pub(crate) fn calm(self, text: &str) -> String {
        self.paint(text, "32")
    }

    /// Colour of values near a threshold.
    pub(crate) fn near(self, text: &str) -> String {
        self.paint(text, "33")
    }

    /// Colour of values beyond a threshold.
    pub(crate) fn alarming(self, text: &str) -> String {
        self.paint(text, "1;31")
    }

    fn paint(self, text: &str, code: &str) -> String {
        match self.0 {
            Colour::On => format!("\x1b[{code}m{text}\x1b[0m"),
            Colour::Off => text.to_owned(),
        }
    }
}
