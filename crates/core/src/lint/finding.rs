//! One piece of advice.

use std::fmt;

use crate::config::Origin;
use crate::problem::Position;

use super::Rule;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It does not work.
    Error,
    /// It works, but not as intended.
    Warning,
    /// For information.
    Info,
}

impl Level {
    /// Its name in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Info => "info",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Something to change or to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which rule found it.
    pub rule: Rule,
    /// How bad it is.
    pub level: Level,
    /// The field, as its file writes it.
    pub path: String,
    /// Where in the text, if it comes from one.
    pub position: Option<Position>,
    /// The value that was found.
    pub message: String,
    /// The value that would be right.
    pub fix: String,
}

impl Finding {
    /// A finding about a setting; one that was not set is named by `path` alone.
    pub(super) fn about(
        rule: Rule,
        level: Level,
        path: &str,
        origin: Option<&Origin>,
        message: String,
        fix: impl Into<String>,
    ) -> Finding {
        Finding {
            rule,
            level,
            path: origin.map_or(path, |origin| &origin.path).to_owned(),
            position: origin.and_then(|origin| origin.position),
            message,
            fix: fix.into(),
        }
    }
}
