//! A value together with the place where it was set.

use std::fmt;
use std::ops::Deref;

use crate::problem::Position;

/// A configured value. It reads as the value itself and remembers whether it was set explicitly.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting<T> {
    /// The value that counts.
    pub value: T,
    /// Where it was set; `None` for a default.
    pub origin: Option<Origin>,
}

impl<T> Setting<T> {
    /// A value that was not set.
    pub const fn defaulted(value: T) -> Setting<T> {
        Setting {
            value,
            origin: None,
        }
    }

    /// A value that was set explicitly.
    pub const fn chosen(value: T, origin: Origin) -> Setting<T> {
        Setting {
            value,
            origin: Some(origin),
        }
    }

    /// Whether the value was set explicitly, even if it equals the default.
    pub const fn is_set(&self) -> bool {
        self.origin.is_some()
    }
}

impl<T> Deref for Setting<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// The place where a value was set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The path as the source writes it: `evictionHard`, `kubeletArguments.eviction-hard[0]`,
    /// `--eviction-hard`.
    pub path: String,
    /// Where in the text; `None` on a command line.
    pub position: Option<Position>,
}

impl Origin {
    /// A place in a file.
    pub fn in_file(path: impl Into<String>, position: Position) -> Origin {
        Origin {
            path: path.into(),
            position: Some(position),
        }
    }

    /// A command-line flag.
    pub fn flag(name: &str) -> Origin {
        Origin {
            path: format!("--{name}"),
            position: None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(position) => write!(f, "{} (line {})", self.path, position.line),
            None => f.write_str(&self.path),
        }
    }
}
